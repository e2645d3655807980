"""The record's cells Tests and Proof: what the tests of a name were when it was proven, and whether they still are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from codegen.diagnostics import Finding
from codegen.document.model import Document
from codegen.proof.judge import Proof, Removal
from codegen.proof.seal import is_test_file, read_seal, seal_of
from codegen.workflow.target import Target
from codegen.workflow.verify import python_files

NOTHING = "nothing to remove"
WAIVED = "waived: "
EXIT = "exit status of "


def sealed_cells(target: Target, proof: Proof) -> dict[str, dict[str, str]]:
    """The cells Tests and Proof of every name of the step."""
    own = [path for path in python_files(target) if is_test_file(path)]
    verdicts = {each.function.name: each for each in proof.removals}
    cells: dict[str, dict[str, str]] = {}
    for entry in target.entries:
        for name in dict.fromkeys([entry.id, *entry.contracts]):
            removal = verdicts.get(name)
            said, more = _proof(target.root, removal) if removal else (NOTHING, [])
            files = dict.fromkeys([*own, *more])
            seals = [f"{path} {seal}" for path in files if (seal := seal_of(target.root / path))]
            cells[name] = {"tests": ", ".join(seals), "proof": said}
    return cells


def weakened(document: Document, root: Path) -> dict[str, str]:
    """By name why the proof of something DONE is gone: its tests were deleted or say less."""
    found: dict[str, str] = {}
    for row in document.record_rows:
        if row.status != "DONE":
            continue
        reasons = [_lost(root, cell) for cell in row.tests.split(", ") if cell]
        if row.proof.partition(" ")[0].count("::"):
            reasons.append(_lost(root, row.proof))
        if reason := next(filter(None, reasons), ""):
            found[row.item] = reason
    return found


def seal_findings(document: Document, root: Path, path: str, severity: str = "error") -> list[Finding]:
    """`weakened` as findings, one a file or test that lost something."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in weakened(document, root).items():
        by_reason.setdefault(reason, []).append(name)
    findings = []
    for reason, names in by_reason.items():
        row = document.record[names[0]]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        message = f"{reason}: {', '.join(names[:3])}{more} {'are' if len(names) > 1 else 'is'} no longer proven"
        step = row.step or _step_of(document, names[0])
        fix = f"Put the tests back, or run `codegen step done {step}`, which proves them again."
        findings.append(
            Finding(path, row.line, 1, "STEP030", message, "warning" if severity == "warning" else "error", fix)
        )
    return findings


def unproven(document: Document) -> list[str]:
    """Names that are DONE and whose record says nothing of a proof."""
    return [row.item for row in document.record_rows if row.status == "DONE" and not row.proof]


def _proof(root: Path, removal: Removal) -> tuple[str, Iterable[str]]:
    """The cell, and the test file that it rests on."""
    if removal.verdict == "waived":
        return f"{WAIVED}{removal.by}", []
    if removal.verdict == NOTHING:
        return NOTHING, []
    file, _, test = removal.by.partition("[")[0].partition("::")
    seal = seal_of(root / file, test) if test else None
    if seal is None:
        return f"{EXIT}`{removal.by}`", []
    return f"{file}::{test} {seal}", [file]


def _lost(root: Path, cell: str) -> str:
    """Why a sealed file or test is less than it was, "" when it is not."""
    what, _, rest = cell.partition(" ")
    before = read_seal(rest)
    if before is None:
        return ""
    file, _, test = what.partition("::")
    now = seal_of(root / file, test)
    if now is None:
        return f"{what} is gone"
    less = now.weaker_than(before)
    return f"{what} checks less ({less})" if less else ""


def _step_of(document: Document, name: str) -> str:
    for step in document.steps:
        for method in step.methods:
            entry = document.entry_of(method)
            if method.name == name or (entry is not None and name in (entry.id, *entry.contracts)):
                return str(step.number)
    return "N"
