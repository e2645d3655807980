"""Green means true: deleted tests, unset guards, unknown statuses and open design gaps are seen by default."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from codegen.cli import main
from codegen.document.lint import lint
from codegen.document.store import update_document
from codegen.workflow.git import GitError
from codegen.workflow.ledger import started
from codegen.workflow.strays import FIRST
from tests.codegen.workflow.conftest import Pantry, complete, implement

DOC = "design/pantry.md"
Output = pytest.CaptureFixture[str]


@pytest.fixture
def here(pantry: Pantry, monkeypatch: pytest.MonkeyPatch) -> Pantry:
    monkeypatch.chdir(pantry.root)
    return pantry


def set_first(pantry: Pantry) -> None:
    pantry.write("pyproject.toml", f'[tool.codegen.step]\nsince = "{FIRST}"\n')
    pantry.commit_all("Settings")


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (None, "tests/test_jar.py is gone"),
        ("", "tests/test_jar.py checks less"),
        ("assert True\n", "tests/test_jar.py checks less"),
        ("from pantry.jar import Jar, fill\n\nassert fill(Jar('rice'), 5)\n", "checks less"),
    ],
    ids=["deleted", "emptied", "constant", "weakened"],
)
def test_weaker_tests_of_a_done_step_are_seen_everywhere(
    here: Pantry, capsys: Output, new: str | None, reason: str
) -> None:
    complete(here, 1)
    set_first(here)
    assert main(["step", "log", "--check", "--strict"]) == 0
    assert main(["drift"]) in (0, 1)
    clean = capsys.readouterr().out
    assert "STEP030" not in clean
    (here.root / "tests/test_jar.py").unlink() if new is None else here.write("tests/test_jar.py", new)
    here.commit_all("Tests")
    for command in (["step", "log", "--check"], ["lint", "--strict"], ["drift"]):
        assert main(command) == 1
        out = capsys.readouterr().out
        assert "STEP030" in out and reason in out, command
    assert main(["status", "--require", "done"]) == 1
    assert "is no longer proven" in capsys.readouterr().err


def test_another_test_and_another_layout_weaken_nothing(here: Pantry) -> None:
    complete(here, 1)
    set_first(here)
    text = (here.root / "tests/test_jar.py").read_text()
    here.write("tests/test_jar.py", f"# a comment\n{text}\nassert fill(Jar('tea'), 6) == 6\n")
    here.commit_all("More tests")
    assert main(["step", "log", "--check"]) == 0


def test_without_since_the_check_says_that_it_guards_nothing(here: Pantry, capsys: Output) -> None:
    complete(here, 1)
    assert main(["step", "log", "--check"]) == 0
    assert "STEP027" in capsys.readouterr().out
    assert main(["step", "log", "--check", "--strict"]) == 1


def test_init_sets_what_the_check_needs(tmp_path: Path, capsys: Output) -> None:
    assert main(["init", str(tmp_path)]) == 0
    table = tomllib.loads((tmp_path / "pyproject.toml").read_text())
    assert table["tool"]["codegen"]["step"]["since"] == FIRST
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n\n[tool.codegen.step]\nsince = "1a2b"\n')
    assert main(["init", str(tmp_path)]) == 0
    assert 'since = "1a2b"' in (tmp_path / "pyproject.toml").read_text()


def test_after_the_first_step_a_plain_commit_of_its_code_is_found(here: Pantry, capsys: Output) -> None:
    set_first(here)
    here.write("pantry/early.py", "x = 1\n")
    here.commit_all("Before any step")
    assert main(["step", "log", "--check"]) == 0
    complete(here, 1)
    here.change("pantry/jar.py", "jar.grams += grams", "jar.grams -= grams")
    here.commit_all("Quick fix")
    assert main(["step", "log", "--check"]) == 1
    assert "(Quick fix) changes pantry/jar.py and belongs to no step" in capsys.readouterr().out


@pytest.mark.parametrize("status", ["DEFERRED", "TODO", "done", "STALE", "-"])
def test_a_status_that_is_not_done_is_not_done(here: Pantry, status: str) -> None:
    complete(here, 1, 2, 3)
    assert main(["status", "--require", "done"]) == 0
    here.change(DOC, "| `pantry.jar.fill` | DONE |", f"| `pantry.jar.fill` | {status} |")
    assert main(["status", "--require", "done"]) == 1


@pytest.mark.parametrize("column", ["digest", "proof"])
def test_done_wants_a_digest_and_a_proof(here: Pantry, capsys: Output, column: str) -> None:
    complete(here, 1, 2, 3)
    row = here.document.record["pantry.jar.fill"]
    here.change(DOC, f"| {getattr(row, column)} |", "| - |")
    assert main(["status", "--require", "done"]) == 1
    assert f"without a {column}" in capsys.readouterr().err


def test_done_wants_code_that_agrees(here: Pantry) -> None:
    complete(here, 1, 2, 3)
    here.change("pantry/jar.py", "grams: int) -> int", "weight: int) -> int")
    here.change("pantry/jar.py", "jar.grams += grams", "jar.grams += weight")
    assert main(["status", "--require", "done"]) == 1


def test_a_design_gap_binds_until_its_decision_is_revised(here: Pantry, capsys: Output) -> None:
    implement(here, 1)
    assert main(["step", "fail", "1", "--kind", "design-gap", "--reason", "grams are too coarse"]) == 0
    update_document(here.root / DOC, lambda document: started(document, 1, True))
    assert main(["step", "done", "1"]) == 2
    assert "grams are too coarse" in capsys.readouterr().err
    here.change(DOC, "- outcome: an int everywhere", "- outcome: an int everywhere, of milligrams")
    assert main(["step", "done", "1"]) == 0


def test_a_design_gap_is_withdrawn_with_a_reason_only(here: Pantry) -> None:
    implement(here, 1)
    assert main(["step", "fail", "1", "--kind", "design-gap", "--reason", "grams are too coarse"]) == 0
    assert main(["step", "fail", "1", "--withdraw", " "]) == 2
    assert main(["step", "fail", "1", "--withdraw", "a scale shows grams"]) == 0
    assert "the design gap is withdrawn: a scale shows grams" in (here.root / DOC).read_text()
    assert main(["step", "fail", "1", "--withdraw", "again"]) == 2
    update_document(here.root / DOC, lambda document: started(document, 1, True))
    assert main(["step", "done", "1"]) == 0


@pytest.mark.parametrize("arguments", [[], ["--kind", "code-bug"], ["--kind", "code-bug", "--reason", " "]])
def test_a_failure_needs_a_kind_and_a_reason(here: Pantry, arguments: list[str]) -> None:
    implement(here, 1)
    assert main(["step", "fail", "1", *arguments]) == 2


def test_parts_of_a_step_are_accepted_and_the_last_commit_finishes_it(here: Pantry) -> None:
    set_first(here)
    implement(here, 1)
    assert main(["step", "commit", "1", "--part", "jars, not tested yet"]) == 0
    assert here.statuses()[1] == "IN_PROGRESS"
    assert main(["step", "log", "--check"]) == 0
    assert main(["step", "done", "1"]) == 0
    assert main(["step", "commit", "1", "--no-review"]) == 0
    assert main(["step", "log", "--check", "--strict"]) == 0
    assert main(["step", "rollback", "1"]) == 0
    assert not (here.root / "pantry/jar.py").exists() and here.statuses()[1] == "NOT_STARTED"
    assert main(["step", "log", "--check", "--strict"]) == 0


def test_a_part_that_leaves_its_step_done_is_a_breach(here: Pantry, capsys: Output) -> None:
    complete(here, 1)
    here.write("pantry/jar.py", (here.root / "pantry/jar.py").read_text() + "\n")
    here.commit_all("Step 1: more\n\nDesign-Doc: design/pantry.md\nStep: 1\nStep-Part: the step goes on\n")
    assert main(["step", "log", "--check"]) == 1
    assert "is a part of Step 1 and leaves it DONE" in capsys.readouterr().out


def test_steps_that_are_done_in_one_worktree_are_committed_in_order(here: Pantry) -> None:
    set_first(here)
    implement(here, 1)
    assert main(["step", "done", "1"]) == 0
    implement(here, 2)
    assert main(["step", "done", "2"]) == 0
    assert main(["step", "commit", "1", "2", "--no-review"]) == 0
    assert here.git.run("log", "-2", "--format=%s").splitlines() == ["Step 2: The shelf", "Step 1: Jars"]
    assert here.git.changes() == []
    assert main(["step", "log", "--check", "--strict"]) == 0


@pytest.mark.parametrize("status", ["DEFERRED", "FAILED", "BLOCKED", "NOT_STARTED"])
def test_a_step_with_a_name_that_is_not_done_is_not_shown_as_done(here: Pantry, capsys: Output, status: str) -> None:
    complete(here, 1)
    here.change(DOC, "| `pantry.jar.fill` | DONE", f"| `pantry.jar.fill` | {status}")
    assert main(["status"]) == 0
    out = capsys.readouterr().out
    assert "Step 1   STALE" in out and "Step 1   DONE" not in out
    here.git.run("checkout", "--quiet", "--", DOC)
    assert main(["status"]) == 0
    assert "Step 1   DONE" in capsys.readouterr().out


def test_a_step_is_not_committed_before_what_it_builds_on(here: Pantry, capsys: Output) -> None:
    set_first(here)
    for number in (1, 2):
        implement(here, number)
        assert main(["step", "done", str(number)]) == 0
    head = here.git.head()
    assert main(["step", "commit", "2", "--no-review"]) == 2
    assert "Step 2 builds on Step 1, not committed yet; run `codegen step commit 1 2`" in capsys.readouterr().err
    assert here.git.head() == head
    assert main(["step", "commit", "1", "2", "--no-review"]) == 0


def test_a_correction_of_two_steps_is_proven_with_the_changes_of_both(here: Pantry) -> None:
    set_first(here)
    complete(here, 1, 2, 3)
    for path, old, new in (
        ("pantry/shelf.py", "def weight", "def total"),
        ("pantry/report.py", "shelf.weight", "shelf.total"),
        ("tests/test_shelf.py", ".weight()", ".total()"),
    ):
        here.change(path, old, new)
    assert main(["rename", "pantry.shelf.Shelf.weight", "pantry.shelf.Shelf.total", "--no-code"]) == 0
    assert main(["step", "commit", "--fix", "A shelf has a total", "--no-review"]) == 0
    assert here.git.run("log", "-1", "--format=%s").strip() == "Step 2, 3: A shelf has a total"
    assert main(["step", "log", "--check", "--strict"]) == 0
    assert here.git.changes() == []


@pytest.mark.parametrize("kind", ["code-bug", "doc-error", "design-gap"])
def test_a_finished_step_that_fails_is_open_again_and_its_gap_binds(here: Pantry, capsys: Output, kind: str) -> None:
    set_first(here)
    complete(here, 1)
    assert main(["step", "fail", "1", "--kind", kind, "--reason", "grams are too coarse"]) == 0
    assert here.statuses()[1] == "FAILED"
    assert {method.status for method in here.document.step_by_number[1].methods} == {"FAILED"}
    update_document(here.root / DOC, lambda document: started(document, 1, True))
    if kind == "design-gap":
        assert main(["step", "done", "1"]) == 2
        assert main(["step", "commit", "1", "--fix", "x", "--no-review"]) == 2
        assert "a design gap is open since" in capsys.readouterr().err
        assert main(["step", "fail", "1", "--withdraw", "a scale shows grams"]) == 0
    assert main(["step", "done", "1"]) == 0
    assert main(["step", "commit", "1", "--no-review"]) == 2
    assert "this commit would flip no status" in capsys.readouterr().err
    assert main(["step", "commit", "1", "--fix", "grams are fine", "--no-review"]) == 0
    assert here.git.changes() == []
    assert here.document.step_by_number[1].folded
    assert main(["step", "log", "--check", "--strict"]) == 0
    assert main(["step", "brief", "--check"]) == 0


def test_a_finished_step_whose_commit_is_not_here_cannot_be_opened_again(here: Pantry, capsys: Output) -> None:
    complete(here, 1)
    here.git.run("checkout", "--quiet", "--orphan", "new")
    here.commit_all("All at once")
    before = (here.root / DOC).read_text()
    assert main(["step", "fail", "1", "--kind", "code-bug", "--reason", "x"]) == 2
    assert "no commit of it is in this branch" in capsys.readouterr().err
    assert (here.root / DOC).read_text() == before


def test_the_record_of_a_finished_step_is_never_written_over_and_is_missed(here: Pantry, capsys: Output) -> None:
    complete(here, 1, 2)
    record = here.root / "steps/pantry/step_01.md"
    before = record.read_text()
    assert main(["step", "brief", "--all"]) == 0
    assert main(["step", "brief", "1"]) == 2
    assert "is its record" in capsys.readouterr().err
    assert record.read_text() == before
    record.unlink()
    assert main(["step", "brief", "--check"]) == 1
    assert "the record of Step 1 is gone" in capsys.readouterr().out


def _conflict(pantry: Pantry) -> None:
    """Two branches that each add a decision, a module, a planned step and rows; git cannot merge them."""
    for name, title in (("salt", "Salt is weighed apart"), ("spice", "Spices are counted")):
        pantry.git.run("checkout", "--quiet", "-b", name, "main")
        path = pantry.root / DOC
        text = path.read_text()
        decision = (
            f"### D-2: {title}\n\n- status: accepted\n- drivers: x\n- options: a; b\n- outcome: {title}\n"
            f"- consequences: y\n- affects: `pantry.{name}`\n- confirmation: z\n\n"
        )
        entry = (
            f"### 5.4 `pantry.{name}`\n\n#### 5.4.1 `{name}`\n\n{title}.\n\n- deps: `pantry.jar.Jar`\n"
            f"- decisions: D-2\n- tests: tests/test_{name}.py\n\n"
            f"```python\ndef {name}(jar: Jar) -> int:\n    ...\n```\n\n"
        )
        text = text.replace("## 5. APIs", decision + "## 5. APIs").replace("## 6. Plan", entry + "## 6. Plan")
        path.write_text(text)
        assert main(["review", "approve", "D-2", f"pantry.{name}", "--reviewer", name]) == 0
        assert main(["plan", "--unreviewed"]) == 0
        pantry.commit_all(f"Design of {name}")
    with pytest.raises(GitError):
        pantry.git.run("merge", "--quiet", "salt")


def test_what_git_cannot_merge_line_by_line_is_one_command(here: Pantry, capsys: Output) -> None:
    set_first(here)
    complete(here, 1)
    before = {finding.code for finding in lint(here.document)}
    _conflict(here)
    assert "<<<<<<<" in (here.root / DOC).read_text()
    capsys.readouterr()
    main(["lint", "--fix"])
    errors = [line.split()[2] for line in capsys.readouterr().out.splitlines() if " error " in line]
    assert set(errors) <= before
    document = here.document
    titles = {decision.title: decision.id for decision in document.decisions}
    assert (titles["Spices are counted"], titles["Salt is weighed apart"]) == ("D-2", "D-3")
    assert document.entry_by_name["pantry.spice.spice"].decisions == ("D-2",)
    assert document.entry_by_name["pantry.salt.salt"].decisions == ("D-3",)
    assert {step.number: [m.name for m in step.methods] for step in document.steps if step.number > 3} == {
        4: ["pantry.spice.spice"],
        5: ["pantry.salt.salt"],
    }
    assert here.statuses()[1] == "DONE"
    log = [row for row in (here.root / DOC).read_text().split("\n") if "review by s" in row]
    assert len(log) == 2
    here.commit_all("Both")
    assert main(["step", "log", "--check", "--strict"]) == 0


def test_a_renamed_parameter_of_a_done_name_is_one_command_after_the_edit(here: Pantry) -> None:
    complete(here, 1)
    set_first(here)
    for path in (DOC, "pantry/jar.py"):
        text = (here.root / path).read_text()
        here.write(path, text.replace("grams: int) -> int", "more: int) -> int").replace("(grams, min", "(more, min"))
    text = (here.root / "pantry/jar.py").read_text()
    here.write("pantry/jar.py", text.replace("jar.grams += grams", "jar.grams += more"))
    assert main(["expand", "pantry/jar.py"]) == 0
    assert main(["step", "commit", "--fix", "Grams are called more", "--no-review"]) == 0
    assert here.statuses()[1] == "DONE" and here.git.changes() == []
    for command in (["step", "log", "--check"], ["step", "brief", "--check"], ["expand", "--check", "pantry"]):
        assert main(command) == 0, command


def test_a_squash_merge_of_two_steps_is_claimed_by_one_command(here: Pantry, capsys: Output) -> None:
    set_first(here)
    complete(here, 1)
    here.git.run("checkout", "--quiet", "-b", "work")
    complete(here, 2, 3)
    here.git.run("checkout", "--quiet", "main")
    here.git.run("merge", "--quiet", "--squash", "work")
    here.git.run("commit", "--quiet", "-m", "The rest of the pantry")
    assert main(["step", "log", "--check"]) == 1
    out = capsys.readouterr().out
    assert out.count("Run `codegen step claim --doc pantry`.") == 2
    assert main(["step", "claim", "--doc", "pantry"]) == 0
    assert main(["step", "log", "--check", "--strict"]) == 0
    assert here.git.changes() == []
    assert main(["step", "claim"]) == 0


def test_a_plain_commit_of_a_done_step_is_claimed_when_it_verifies(here: Pantry, capsys: Output) -> None:
    set_first(here)
    complete(here, 1)
    here.change("pantry/jar.py", "grams: int = 0", "grams: int = 0  # none yet")
    here.commit_all("Quick fix")
    assert main(["step", "log", "--check"]) == 1
    short = here.git.short("HEAD")
    assert f"Run `codegen step claim --commit {short} --doc pantry`." in capsys.readouterr().out
    here.change("tests/test_jar.py", "== 5", "== 6")
    here.commit_all("A wrong test")
    assert main(["step", "claim", "--commit", short]) == 1
    here.change("tests/test_jar.py", "== 6", "== 5")
    here.commit_all("The right test")
    assert main(["step", "claim", "--commit", short, "--doc", "pantry"]) == 0
    assert main(["step", "log", "--check", "--strict"]) == 0


def test_a_claim_is_held_to_what_its_commit_did(here: Pantry, capsys: Output) -> None:
    set_first(here)
    complete(here, 1)
    here.write("pantry/shelf.py", "x = 1\n")
    here.change("pantry/jar.py", "grams: int = 0", "grams: int = 0  # none yet")
    here.commit_all("Quick fix")
    ident = here.git.head()
    trailers = f"Design-Doc: design/pantry.md\nStep: 1\nStep-Fix: x\nStep-Claims: {ident}\n"
    here.git.run("commit", "--quiet", "--allow-empty", "-m", f"Step 1: claimed\n\n{trailers}")
    assert main(["step", "log", "--check"]) == 1
    assert "touches pantry/shelf.py, not in the step's `files:`" in capsys.readouterr().out


def test_a_rebase_of_a_branch_with_steps_leaves_the_check_green(here: Pantry) -> None:
    set_first(here)
    complete(here, 1)
    here.git.run("checkout", "--quiet", "-b", "work")
    complete(here, 2)
    here.git.run("checkout", "--quiet", "main")
    here.write("notes.txt", "x")
    here.commit_all("Notes")
    here.git.run("checkout", "--quiet", "work")
    here.git.run("rebase", "--quiet", "main")
    assert main(["step", "log", "--write"]) == 0
    if here.git.changes():
        here.commit_all("Commit cells")
    assert main(["step", "log", "--check", "--strict"]) == 0
