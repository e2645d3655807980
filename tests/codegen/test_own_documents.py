"""The three ways from article to code, on our own documents: in a copy of the tree, with the commands a user types."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from codegen.cli import main
from codegen.document.edit import set_statuses, set_step_status
from codegen.document.parse import parse_document, read_document
from codegen.document.store import write_document
from codegen.drift.code import Code
from codegen.drift.report import drift
from codegen.workflow.ledger import method_key

ROOT = Path(__file__).parents[2]
LEASES = Path("roll_ts/core/leases.py")
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


@pytest.mark.slow
def test_section_5_becomes_code_with_its_validations_expanded(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tree / "design" / "time_sharing.md"
    document = read_document(path)
    [step] = [step for step in document.steps if LEASES.as_posix() in step.files]
    entries = [document.entry_of(method) for method in step.methods]
    lost = {
        method_key(step, method): ("NOT_STARTED", "")
        for method, entry in zip(step.methods, entries, strict=True)
        if entry is not None and entry.module == "roll_ts.core.leases"
    }
    assert lost
    text = set_statuses(document, {step.number: lost})
    text = set_step_status(parse_document(text, path), step.number, "NOT_STARTED")
    write_document(path, text, document.text)
    LEASES.unlink()
    assert main(["step", "start", str(step.number), "--doc", "time_sharing", "--unreviewed"]) == 0
    assert main(["step", "scaffold", str(step.number), "--doc", "time_sharing"]) == 0
    code = LEASES.read_text(encoding="utf-8")
    assert code.count("# VAL: ") >= 1 and code.count("# END VAL") == code.count("# VAL: ")
    assert main(["expand", "--check", str(LEASES)]) == 0
    assert not [message for message in errors("time_sharing", tree) if "leases" in message]


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
    assert "method 5.7.1 Phase" in impact and "step Step 4" in impact
    assert main(["review", "next", "--document", "time_sharing"]) in (0, 1)
    assert "D-4" in capsys.readouterr().out  # its approval is void
    [phase] = [entry for entry in read_document(path).entries if entry.id == "5.7.1"]
    head = read_document(path).lines[phase.fences[0].line].rstrip("\n")
    replace(path, f"```python\n{head}\n", f"```python\n# entered twice at most\n{head}\n")
    assert main(["plan", "time_sharing", "--unreviewed"]) == 0
    method = next(m for s in read_document(path).steps for m in s.methods if m.section == "5.7.1")
    assert method.status == "STALE"
    capsys.readouterr()
    assert main(["step", "next", "--doc", "time_sharing"]) == 0
    assert "Step 4" in capsys.readouterr().out
