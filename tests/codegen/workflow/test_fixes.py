"""A correction of done steps is one commit that belongs to them; a commit of their code that does not is found."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from codegen.cli import main
from codegen.diagnostics import UsageError
from codegen.document.store import update_document
from codegen.workflow.audit import audit
from codegen.workflow.commit import NotCommitted, commit_fix, steps_of_changes
from codegen.workflow.git import Git
from codegen.workflow.ledger import started
from codegen.workflow.rollback import roll_back, rollback_plan
from codegen.workflow.strays import strays
from codegen.workflow.trail import standing_commits, step_commits
from tests.codegen.workflow.conftest import Pantry, complete, finish

DOC = "design/pantry.md"


def breaches(pantry: Pantry, since: str = "") -> list[str]:
    documents = {DOC: pantry.document}
    found = audit(pantry.git, documents) + (strays(pantry.git, documents, since) if since else [])
    return [f"{finding.code} {finding.message}" for finding in found]


def correct(pantry: Pantry, path: str) -> None:
    pantry.write(path, (pantry.root / path).read_text() + "\n# corrected\n")


def fix(pantry: Pantry, *numbers: int, text: str = "jars close again") -> str:
    return commit_fix([pantry.target(number) for number in numbers], pantry.git, text, review=False).id


def test_a_correction_is_titled_and_trailed_and_the_steps_stay_done(pantry: Pantry) -> None:
    first, _ = complete(pantry, 1, 2)
    correct(pantry, "pantry/jar.py")
    ident = fix(pantry, 1)
    assert pantry.git.run("log", "-1", "--format=%s%n%(trailers:only,unfold)").splitlines()[:4] == [
        "Step 1: jars close again",
        f"Design-Doc: {DOC}",
        "Step: 1",
        "Step-Fix: the steps stay done",
    ]
    assert pantry.statuses()[1] == "DONE"
    assert breaches(pantry, since=first) == []
    assert standing_commits(step_commits(pantry.git))[1].id == ident


def test_one_correction_may_span_steps_and_they_are_found_from_what_is_changed(pantry: Pantry) -> None:
    complete(pantry, 1, 2)
    base = str(pantry.git.head())
    correct(pantry, "pantry/jar.py")
    correct(pantry, "pantry/shelf.py")
    numbers = [step.number for step in steps_of_changes(pantry.document, pantry.root, pantry.git)]
    assert numbers == [1, 2]
    ident = fix(pantry, *numbers)
    assert pantry.git.run("log", "-1", "--format=%s").strip() == "Step 1, 2: jars close again"
    assert {n: c.id for n, c in standing_commits(step_commits(pantry.git)).items()} == {1: ident, 2: ident}
    assert breaches(pantry, since=base) == []


def test_a_correction_of_a_step_that_is_not_done_is_refused(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.write("pantry/shelf.py", "x = 1\n")
    with pytest.raises(NotCommitted, match="Step 2 is not done"):
        fix(pantry, 2)


def test_a_correction_without_a_change_is_refused(pantry: Pantry) -> None:
    complete(pantry, 1)
    with pytest.raises(NotCommitted, match="nothing to commit"):
        fix(pantry, 1)
    with pytest.raises(NotCommitted, match="nothing below its roots"):
        steps_of_changes(pantry.document, pantry.root, pantry.git)


def test_a_file_that_no_step_has_is_named(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.write("pantry/loft.py", "x = 1\n")
    with pytest.raises(NotCommitted, match=r"pantry/loft.py: in the `files:` of no step"):
        steps_of_changes(pantry.document, pantry.root, pantry.git)


def test_rows_of_another_step_do_not_ride_along(pantry: Pantry) -> None:
    complete(pantry, 1, 2)
    correct(pantry, "pantry/jar.py")
    pantry.change(DOC, "| 2 | The shelf | 1 | DONE |", "| 2 | The shelf | 1 | FAILED |")
    fix(pantry, 1)
    assert pantry.statuses() == {1: "DONE", 2: "FAILED", 3: "NOT_STARTED"}
    assert "| 2 | The shelf | 1 | DONE |" in (pantry.git.show("HEAD", DOC) or "")
    assert breaches(pantry) == []


def test_a_correction_is_taken_back_alone_and_then_the_step(pantry: Pantry) -> None:
    first, *_ = complete(pantry, 1, 2)
    code = (pantry.root / "pantry/jar.py").read_text()
    correct(pantry, "pantry/jar.py")
    fix(pantry, 1)
    [item] = rollback_plan(pantry.target(1), pantry.git, cascade=False)  # though Step 2 builds on Step 1
    roll_back(pantry.target(1), pantry.git, item)
    assert (pantry.root / "pantry/jar.py").read_text() == code
    assert pantry.statuses()[1] == "DONE"
    assert standing_commits(step_commits(pantry.git))[1].id == first
    assert breaches(pantry, since=first) == []


def test_a_correction_of_two_steps_is_taken_back_for_one(pantry: Pantry) -> None:
    complete(pantry, 1, 2)
    code = (pantry.root / "pantry/shelf.py").read_text()
    correct(pantry, "pantry/jar.py")
    correct(pantry, "pantry/shelf.py")
    both = fix(pantry, 1, 2)
    [item] = rollback_plan(pantry.target(2), pantry.git, cascade=False)
    roll_back(pantry.target(2), pantry.git, item)
    assert (pantry.root / "pantry/shelf.py").read_text() == code
    assert "# corrected" in (pantry.root / "pantry/jar.py").read_text()
    assert standing_commits(step_commits(pantry.git))[1].id == both
    assert breaches(pantry) == []


def test_a_cascade_takes_back_corrections_and_their_steps(pantry: Pantry) -> None:
    complete(pantry, 1, 2)
    correct(pantry, "pantry/jar.py")
    correct(pantry, "pantry/shelf.py")
    fix(pantry, 1, 2)
    correct(pantry, "pantry/shelf.py")
    fix(pantry, 2)
    plan = rollback_plan(pantry.target(1), pantry.git, cascade=True)
    assert [(item.step.number, item.commit.is_fix) for item in plan] == [
        (2, True),
        (2, True),
        (1, True),
        (2, False),
        (1, False),
    ]
    for item in plan:
        roll_back(pantry.target(1), pantry.git, item)
    assert pantry.statuses() == {1: "NOT_STARTED", 2: "NOT_STARTED", 3: "NOT_STARTED"}
    assert not (pantry.root / "pantry").exists() or not list((pantry.root / "pantry").glob("*.py"))
    assert breaches(pantry) == []


def test_a_correction_of_a_step_that_was_there_before_is_taken_back_and_no_more(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.write("notes.txt", "x")
    pantry.commit_all("Notes")
    pantry.git.run("replace", "--graft", "HEAD")  # as if the history began here
    correct(pantry, "pantry/jar.py")
    fix(pantry, 1)
    [item] = rollback_plan(pantry.target(1), pantry.git, cascade=False)
    roll_back(pantry.target(1), pantry.git, item)
    with pytest.raises(UsageError, match="no commit in this branch"):
        rollback_plan(pantry.target(1), pantry.git, cascade=False)


def test_a_step_that_is_done_again_leaves_no_breach(pantry: Pantry) -> None:
    complete(pantry, 1, 2)
    pantry.change(DOC, "grams: int = 0", "grams: int = 1")
    update_document(pantry.root / DOC, lambda document: started(document, 1, unreviewed=True))
    pantry.change("pantry/jar.py", "grams: int = 0", "grams: int = 1")
    pantry.change("tests/test_jar.py", "== 5", "== 6")
    finish(pantry, 1)
    assert breaches(pantry) == []


def test_a_commit_of_the_code_outside_the_steps_is_found(pantry: Pantry) -> None:
    complete(pantry, 1)
    base = str(pantry.git.head())
    correct(pantry, "pantry/jar.py")
    pantry.commit_all("Quick fix")
    pantry.write("notes.txt", "x")
    pantry.commit_all("Notes")
    [found] = breaches(pantry, since=base)
    assert found.startswith("STEP026") and found.endswith("(Quick fix) changes pantry/jar.py and belongs to no step")
    assert breaches(pantry, since="HEAD") == []


def test_a_base_that_is_not_there_is_an_error(pantry: Pantry) -> None:
    complete(pantry, 1)
    with pytest.raises(UsageError, match=r"no commit of this repository"):
        strays(pantry.git, {DOC: pantry.document}, "0123456")


def test_a_shallow_clone_and_an_archive_say_what_they_cannot_check(
    pantry: Pantry,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    complete(pantry, 1, 2)
    base = str(pantry.git.head())
    correct(pantry, "pantry/jar.py")
    fix(pantry, 1)
    clone = tmp_path_factory.mktemp("shallow") / "pantry"
    subprocess.run(["git", "clone", "--quiet", "--depth=2", pantry.root.as_uri(), str(clone)], check=True)
    assert Git(clone).is_shallow()
    monkeypatch.chdir(clone)
    assert main(["step", "log", "--check", "--since", f"{base}~2"]) == 0
    assert "a shallow clone" in capsys.readouterr().err
    archive = tmp_path_factory.mktemp("outer") / "archive"
    archive.mkdir()
    subprocess.run(f"git archive HEAD | tar -x -C {archive}", shell=True, cwd=clone, check=True)
    monkeypatch.chdir(archive)
    assert main(["step", "log", "--check", "--since", base]) == 0
    assert "no history here" in capsys.readouterr().err
    subprocess.run(["git", "init", "--quiet", str(archive.parent)], check=True)
    assert main(["step", "log", "--check", "--since", base]) == 0


def test_the_command_commits_a_correction_that_verifies_and_no_other(
    pantry: Pantry, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    complete(pantry, 1)
    monkeypatch.chdir(pantry.root)
    head = pantry.git.head()
    pantry.change("tests/test_jar.py", "== 5", "== 6")
    correct(pantry, "pantry/jar.py")
    assert main(["step", "commit", "--fix", "jars close", "--no-review"]) == 1
    assert pantry.git.head() == head
    pantry.change("tests/test_jar.py", "== 6", "== 5")
    assert main(["step", "commit", "--fix", "jars\nclose", "--no-review"]) == 0
    assert capsys.readouterr().out.splitlines()[-2].endswith("Step 1: jars close")
    assert main(["step", "commit", "--fix", " "]) == 2
    assert main(["step", "commit"]) == 2


def test_the_project_names_the_base(pantry: Pantry, monkeypatch: pytest.MonkeyPatch) -> None:
    complete(pantry, 1)
    base = str(pantry.git.head())
    correct(pantry, "pantry/jar.py")
    pantry.write("pyproject.toml", f'[tool.codegen.step]\nsince = "{base}"\n')
    pantry.commit_all("Quick fix")
    monkeypatch.chdir(pantry.root)
    assert main(["step", "log", "--check"]) == 1
    pantry.write("pyproject.toml", f'[tool.codegen.step]\nsince = "{pantry.git.head()}"\n')
    assert main(["step", "log", "--check"]) == 0
    assert Path(DOC).is_file()
