"""The three ways from article to code, on our own documents: in a copy of the tree, with the commands a user types."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from codegen.cli import main
from codegen.document.fold import unfolded
from codegen.document.modern import is_old
from codegen.document.parse import parse_document, read_document
from codegen.document.recording import set_record
from codegen.document.store import write_document
from codegen.drift.code import Code
from codegen.drift.report import drift

ROOT = Path(__file__).parents[2]
POLICIES = "roll_ts.core.policies"
PARTS = ("design", "codegen", "roll_ts", "validation_patterns", "pyproject.toml")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is tracked of the documents and their code, as it lies in the working tree."""
    listed = subprocess.run(["git", "ls-files", "--", *PARTS], cwd=ROOT, capture_output=True, text=True, check=False)
    for name in filter(lambda name: (ROOT / name).is_file(), listed.stdout.splitlines()):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    if not (tmp_path / "design").is_dir():
        pytest.skip("an archive without git: what is tracked cannot be told")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path}: {old!r} stands {text.count(old)} times"
    path.write_text(text.replace(old, new), encoding="utf-8")


def errors(document: str, tree: Path) -> list[str]:
    report = drift(read_document(tree / "design" / f"{document}.md"), Code(tree))
    return [finding.message for finding in report.findings if finding.severity == "error"]


def lines_of(pattern: str) -> int:
    listed = subprocess.run(["git", "ls-files", "--", pattern], cwd=ROOT, capture_output=True, text=True, check=False)
    return sum((ROOT / name).read_text(encoding="utf-8").count("\n") for name in listed.stdout.splitlines())


def test_our_documents_are_at_most_a_fifth_of_the_code_and_folded(tree: Path) -> None:
    documents = [read_document(path) for path in sorted((tree / "design").glob("*.md"))]
    assert len(documents) == 8
    assert lines_of("design/*.md") * 5 <= lines_of("codegen/*.py") + lines_of("roll_ts/*.py")
    for document in documents:
        assert not is_old(document)
        assert [entry.id for entry in document.entries if entry.folded]
    for path in (ROOT / "steps").glob("*/step_*.md"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 20, path


@pytest.mark.slow
def test_section_5_becomes_code_with_its_validations_expanded(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tree / "design" / "time_sharing.md"
    document = read_document(path)
    names = [entry.id for entry in document.entries if entry.module == POLICIES]
    text = unfolded(document, names)
    for bound_elsewhere in ("VAL_KEY_IN(name, mapping=POLICIES)", "VAL_EMPTY(lacks, about=name)"):
        text = text.replace(bound_elsewhere, "VAL_NON_EMPTY(name)")
    rows = dict.fromkeys(names)
    write_document(path, set_record(parse_document(text, path), rows), document.text)
    assert main(["plan", "time_sharing", "--unreviewed"]) == 0
    planned = read_document(path)
    number = max(planned.step_by_number)
    assert {method.name for method in planned.step_by_number[number].methods} == set(names)
    file = tree / planned.step_by_number[number].files[0]
    file.unlink()
    assert main(["step", "start", str(number), "--doc", "time_sharing", "--unreviewed"]) == 0
    assert main(["step", "scaffold", str(number), "--doc", "time_sharing"]) == 0
    code = file.read_text(encoding="utf-8")
    assert code.count("# VAL: ") >= 1 and code.count("# END VAL") == code.count("# VAL: ")
    assert main(["expand", "--check", str(file)]) == 0
    assert not [message for message in errors("time_sharing", tree) if POLICIES in message]


@pytest.mark.slow
def test_code_that_moved_first_is_brought_into_the_document(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert errors("codegen", tree) == []
    cycles = tree / "codegen" / "document" / "cycles.py"
    [line] = [line for line in cycles.read_text(encoding="utf-8").splitlines() if line.startswith("def cycles(")]
    replace(cycles, line, line.replace(")", ", shortest: bool = False)", 1))
    assert len(errors("codegen", tree)) == 1
    assert main(["sync-from-code", "codegen", "--write"]) == 0
    assert errors("codegen", tree) == []
    capsys.readouterr()
    assert main(["status", "codegen"]) == 0
    assert "STALE" not in capsys.readouterr().out  # the document follows what is done, and takes its digest again


@pytest.mark.slow
def test_a_changed_decision_is_carried_down_to_the_plan(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tree / "design" / "time_sharing.md"
    document = read_document(path)
    decision = document.decision_by_id["D-4"]
    outcome = document.lines[decision.fields["outcome"].line - 1].rstrip("\n")
    replace(path, outcome, f"{outcome} But phases may be entered twice.")
    assert main(["impact", "D-4", "time_sharing"]) == 0
    impact = capsys.readouterr().out
    assert "method roll_ts.core.trajectories.Outcome" in impact and "step Step 4" in impact
    assert main(["review", "list", "--doc", "time_sharing"]) == 0
    assert "NEEDS_REVIEW D-4" in capsys.readouterr().out  # its approval is void
    outcome_class = read_document(path).entry_by_id["roll_ts.core.trajectories.Outcome"]
    head = read_document(path).lines[outcome_class.line - 1].rstrip("\n")
    replace(path, f"{head}\n", f"{head}\n    TWICE = 'twice'\n")
    assert main(["plan", "time_sharing", "--unreviewed"]) == 0
    step = read_document(path).step_by_number[4]
    assert [(method.name, method.status) for method in step.methods] == [(outcome_class.id, "STALE")]
    assert not step.folded
    capsys.readouterr()
    assert main(["step", "next", "--doc", "time_sharing"]) == 0
    assert "Step 4" in capsys.readouterr().out
