"""A design gap binds its step: until what it names was revised, or the gap is withdrawn with a reason.

It is a field of the step, `- gap: open since DATE: reason; at D-1 1a2b3c4d`, with the digest each item had then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from codegen.diagnostics import UsageError
from codegen.document.edit import add_log_row, find_step
from codegen.document.lines import LineEdit, apply_edits
from codegen.document.model import Document, Step
from codegen.document.parse import parse_document
from codegen.workflow.ledger import today, with_field

FIELD = "gap"
_ITEM = re.compile(r"(\S+) ([0-9a-f]{6,})(?:, |$)")


def with_gap(document: Document, number: int, revise: Sequence[str], reason: str) -> str:
    """The text with the gap on its step. Of what must be revised the decisions bind, without one the entries."""
    decisions = [item for item in revise if item in document.decision_by_id]
    items = decisions or [item for item in revise if item in document.entry_by_id]
    at = ", ".join(f"{item} {_digest(document, item)}" for item in items)
    said = " ".join(reason.split()).replace("; at ", ", at ")
    return with_field(document, number, FIELD, f"open since {today()}: {said}; at {at}")


def open_gap(document: Document, step: Step) -> str:
    """Why the step is bound, "" where it is not: no gap, or one of the items it names says another thing by now."""
    field = step.fields.get(FIELD)
    if field is None:
        return ""
    said, _, listed = field.value.rpartition("; at ")
    items = _ITEM.findall(listed)
    if any(_digest(document, item) not in (digest, "") for item, digest in items):
        return ""
    names = ", ".join(item for item, _ in items) or "the design"
    return (
        f"a design gap is {said}; revise {names}, or withdraw it with `codegen step fail {step.number} --withdraw TEXT`"
    )


def withdrawn(document: Document, number: int, reason: str) -> str:
    """The text without the gap, the reason in the iteration log. UsageError: there is none, or no reason is given."""
    step = find_step(document, number)
    if FIELD not in step.fields:
        raise UsageError(f"Step {number} has no design gap; there is nothing to withdraw")
    if not reason.strip():
        raise UsageError("--withdraw: say why the gap is none")
    field = step.fields[FIELD]
    document = parse_document(apply_edits(document, [LineEdit(field.line, field.line_end, ())]), document.path)
    asked = f"Step {number}: the design gap is withdrawn: {' '.join(reason.split())}"
    return add_log_row(document, asked, "", "", today())


def _digest(document: Document, item: str) -> str:
    if item in document.decision_by_id:
        return document.decision_by_id[item].digest
    entry = document.entry_by_id.get(item)
    return entry.digest if entry is not None else ""
