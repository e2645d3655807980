"""What a document still lacks to be done, beyond its status words: digests, proofs, tests, and code that agrees."""

from __future__ import annotations

from pathlib import Path

from codegen.document.model import Document
from codegen.document.staleness import statuses
from codegen.drift.code import Code
from codegen.drift.report import drift
from codegen.workflow.gaps import open_gap
from codegen.workflow.ledger import came_before
from codegen.workflow.sealing import weakened


def not_done(document: Document, root: Path) -> list[str]:
    """One line for each reason why the document is not done; empty when it is."""
    reasons: list[str] = []
    for step in document.steps:
        if step.status != "DONE":
            reasons.append(f"Step {step.number} is {step.status or 'without a status'}")
        if gap := open_gap(document, step):
            reasons.append(f"Step {step.number}: {gap}")
    exempt = {
        entry.id
        for step in document.steps
        if came_before(step)
        for method in step.methods
        if (entry := document.entry_of(method)) is not None
    }
    state = statuses(document)
    recorded = {method.name: method for step in document.steps for method in step.methods}
    for name, status in state.items():
        method, row = recorded.get(name), document.record.get(name)
        if status not in ("DONE", "ADOPTED"):
            reasons.append(f"{name} is {status}")
        elif status == "DONE" and not (row.digest if row else method.digest if method else ""):
            reasons.append(f"{name} is DONE without a digest")
        elif status == "DONE" and name not in exempt and (row is None or not row.proof):
            reasons.append(f"{name} is DONE without a proof; `codegen step done` of its step proves it")
    reasons += [f"{name} is no longer proven: {reason}" for name, reason in weakened(document, root).items()]
    errors = [f for f in drift(document, Code(root)).findings if f.severity == "error"]
    if errors:
        reasons.append(
            f"the code is not what Section 5 says: {len(errors)} findings, see `codegen drift {document.id}`"
        )
    return reasons
