"""Git's history is held against the rule: each commit of a step flips its own statuses and touches its own files."""

from __future__ import annotations

from codegen.document.edit import set_method_status
from codegen.document.store import update_document
from codegen.workflow.audit import audit
from codegen.workflow.ledger import adopted, finished, started
from codegen.workflow.scaffold import scaffold
from tests.codegen.workflow.conftest import Pantry, complete


def breaches(pantry: Pantry) -> list[tuple[str, str]]:
    """Code of each finding, and its message without the commit's id."""
    findings = audit(pantry.git, {"design/pantry.md": pantry.document})
    return [(finding.code, finding.message.partition(" ")[2]) for finding in findings]


def forge(pantry: Pantry, step: int, title: str = "") -> None:
    """Commit all there is under a step's title and trailers."""
    pantry.commit_all(f"{title or f'Step {step}: by hand'}\n\nDesign-Doc: design/pantry.md\nStep: {step}\n")


def test_commits_made_by_the_tool_keep_the_rule(pantry: Pantry) -> None:
    complete(pantry, 1, 2, 3)
    assert breaches(pantry) == []


def test_a_step_by_title_alone_is_a_breach(pantry: Pantry) -> None:
    pantry.write("notes.txt", "x")
    pantry.commit_all("Step 1: jars by hand")
    assert breaches(pantry) == [("STEP020", "(Step 1: jars by hand) has no Design-Doc trailer")]


def test_a_commit_that_flips_nothing_is_a_breach(pantry: Pantry) -> None:
    pantry.write("pantry/jar.py", "x = 1\n")
    forge(pantry, 1)
    found = breaches(pantry)
    assert ("STEP021", "flips no status of Step 1") in found
    assert ("STEP021", "leaves Step 1 not done: pantry.jar.Jar, pantry.jar.fill") in found


def test_flipping_another_steps_status_is_a_breach(pantry: Pantry) -> None:
    complete(pantry, 1)
    path = pantry.root / "design/pantry.md"
    update_document(path, lambda document: set_method_status(document, 2, "Shelf", "DONE"))
    update_document(path, lambda document: set_method_status(document, 1, "fill", "STALE"))
    forge(pantry, 1)
    assert ("STEP022", "(Step 1) also changes the statuses of Step 2") in breaches(pantry)


def test_touching_a_file_of_something_else_is_a_breach(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.write("pantry/shelf.py", "x = 1\n")
    pantry.change("design/pantry.md", "| 1 | Jars | - | DONE |", "| 1 | Jars | - | FAILED |")
    forge(pantry, 1)
    assert ("STEP023", "(Step 1) touches pantry/shelf.py, not in the step's `files:`") in breaches(pantry)


def test_a_title_and_a_trailer_that_disagree_are_a_breach(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.change("design/pantry.md", "| 1 | Jars | - | DONE |", "| 1 | Jars | - | FAILED |")
    forge(pantry, 1, "Step 2: The shelf")
    assert ("STEP020", "is titled Step 2 and its trailer says Step 1") in breaches(pantry)


def test_a_done_step_without_a_commit_is_a_breach(pantry: Pantry) -> None:
    pantry.change("design/pantry.md", "| 3 | The report | 2 | NOT_STARTED |", "| 3 | The report | 2 | DONE |")
    ((code, message),) = breaches(pantry)
    assert code == "STEP024" and message.endswith("3 is DONE and has no commit")


def test_a_commit_cell_that_is_not_the_steps_commit_is_a_breach(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.change("design/pantry.md", "| 1 | Jars | - | DONE | - |", "| 1 | Jars | - | DONE | 0123456 |")
    ((code, message),) = breaches(pantry)
    assert code == "STEP025" and "the Commit cell says 0123456" in message


def test_another_step_that_was_begun_may_ride_along(pantry: Pantry) -> None:
    complete(pantry, 1)
    update_document(pantry.target(1).document.path, lambda document: started(document, 2, True))
    pantry.write("pantry/jar.py", (pantry.root / "pantry/jar.py").read_text() + "\n")
    forge(pantry, 1)
    assert "STEP022" not in [code for code, _ in breaches(pantry)]


def test_an_adopted_step_is_done_without_a_commit(pantry: Pantry) -> None:
    target = pantry.target(1)
    scaffold(target)
    update_document(target.document.path, lambda document: adopted(document, 1))
    pantry.commit_all("the code was there before the plan")
    assert pantry.document.step_by_number[1].status == "DONE"
    assert breaches(pantry) == []


def test_a_step_set_done_by_hand_is_a_breach(pantry: Pantry) -> None:
    update_document(pantry.target(1).document.path, lambda document: finished(document, 1))
    pantry.commit_all("statuses by hand")
    assert ("STEP024", "1 is DONE and has no commit") in breaches(pantry)
