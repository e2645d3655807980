"""Changes of a step's state in its document: start, done, failed, taken back. Text out; the caller writes it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from codegen.diagnostics import UsageError
from codegen.document.edit import (
    LineEdit,
    add_log_row,
    apply_edits,
    find_step,
    set_method_statuses,
    set_step_commit,
    set_step_status,
)
from codegen.document.model import Document, Step, StepMethod
from codegen.document.modern import modern
from codegen.document.parse import parse_document
from codegen.document.project import project_of
from codegen.document.reasons import Reasons
from codegen.document.recording import set_record
from codegen.document.review import unapproved
from codegen.document.rows import EditError
from codegen.document.staleness import effective_status, step_status
from codegen.plan.elsewhere import not_ready_elsewhere
from codegen.workflow.target import waits_for

PROVEN = "proven"


class NotReady(UsageError):
    """The step may not be started now; the message says what comes first."""


def started(document: Document, number: int, unreviewed: bool = False) -> str:
    """The text with the step and its open methods IN_PROGRESS.

    NotReady: it is in progress or done already, a step it depends on is not done, or its entries and their decisions
    are not approved; `unreviewed` starts it nevertheless and records that in the iteration log.
    """
    step = find_step(document, number)
    status = step_status(document, step)
    if status in ("IN_PROGRESS", "DONE"):
        word = "in progress" if status == "IN_PROGRESS" else "done"
        raise NotReady(f"Step {number} is {word} already")
    _refuse_before_its_dependencies(document, step)
    waiting = not_ready_elsewhere(document, step, project_of(document))
    if waiting:
        raise NotReady(f"Step {number} needs {', '.join(waiting)}; do that first")
    missing = [subject.id for subject in unapproved(document, reviewed_items(document, step))]
    if missing and not unreviewed:
        names = ", ".join(missing)
        raise NotReady(f"Step {number}: not approved: {names}; run `codegen review next`, or give --unreviewed")
    changes = {
        method_key(step, method): ("IN_PROGRESS", None)
        for method in step.methods
        if effective_status(document, method) != "DONE"
    }
    text = _with(document, number, "IN_PROGRESS", changes)
    if missing:
        asked = f"Step {number} was started before its review"
        text = add_log_row(_again(document, text), asked, ", ".join(missing), "", today())
    return text


def _refuse_before_its_dependencies(document: Document, step: Step) -> None:
    waiting = waits_for(document, step)
    if waiting:
        names = ", ".join(f"Step {each.number} ({step_status(document, each)})" for each in waiting)
        raise NotReady(f"Step {step.number} depends on {names}; do that first")


def reviewed_items(document: Document, step: Step) -> list[str]:
    """Ids of what must be approved before a step starts: the decisions its entries follow, and the entries."""
    reasons = Reasons(document)
    entries = [entry for method in step.methods if (entry := document.entry_of(method))]
    decisions = dict.fromkeys(ident for entry in entries for ident in reasons.of_entry(entry))
    return [*decisions, *dict.fromkeys(entry.id for entry in entries)]


def finished(
    document: Document, number: int, cells: Mapping[str, Mapping[str, str]] | None = None, sealed: str = ""
) -> str:
    """The text, in the present form, with the step and all its methods DONE, each with the digest of its entry.

    `cells` are what the record says of the names' tests and proof; `sealed` is the digest of what was proven.
    NotReady: a step it depends on is not done.
    """
    document = modern(document)
    step = find_step(document, number)
    _refuse_before_its_dependencies(document, step)
    changes: dict[str, tuple[str, str | None]] = {}
    for method in step.methods:
        entry = document.entry_of(method)
        if entry is None:
            raise UsageError(f"{document.path}:{method.line}: `{method.name}` is not in Section 5; correct the row")
        changes[method_key(step, method)] = ("DONE", entry.digest)
    text = _with(document, number, "DONE", changes)
    if cells:
        text = set_record(_again(document, text), cells)
    if sealed and not step.folded:
        text = with_field(_again(document, text), number, PROVEN, f"on {today()}, digest {sealed}")
    return text


def adopted(document: Document, number: int) -> str:
    """The text with the step DONE because its code was there before the plan: DONE without a commit, and saying so."""
    text = finished(document, number)
    return with_field(_again(document, text), number, "adopted", f"{today()}, the code was there before the plan")


def came_before(step: Step) -> bool:
    """Whether the step's code was there before the ledger: no commit and no brief can be asked of it."""
    return bool(step.fields.keys() & {"adopted", "imported"})


def failed(document: Document, number: int, methods: list[str]) -> str:
    """The text with the step FAILED and these methods (by default all that are not done) FAILED."""
    step = find_step(document, number)
    open_ones = [method_key(step, m) for m in step.methods if effective_status(document, m) != "DONE"]
    changes: dict[str, tuple[str, str | None]] = {name: ("FAILED", None) for name in methods or open_ones}
    return _with(document, number, "FAILED", changes)


def with_commits(document: Document, commits: Mapping[int, str]) -> str:
    """The text with the Commit column saying what git's trailers say, for steps that are DONE."""
    for number, commit in commits.items():
        step = document.step_by_number.get(number)
        if step and step.row_line and step.status == "DONE" and not _same_commit(step.commit, commit):
            document = _again(document, set_step_commit(document, number, commit))
    return document.text


def with_field(document: Document, number: int, name: str, value: str) -> str:
    """The text with one `- name: value` of the step's fields set; a new one goes after the last field."""
    step = find_step(document, number)
    line = f"- {name}: {value}"
    if name in step.fields:
        field = step.fields[name]
        edit = LineEdit(field.line, field.line_end, (line,))
    elif step.fields:
        last = max(field.line_end for field in step.fields.values())
        edit = LineEdit(last + 1, last, (line,))
    else:
        raise UsageError(f"{document.path}: Step {number} has no heading with fields; add `- purpose: …`")
    text = apply_edits(document, [edit])
    seen = find_step(_again(document, text), number).fields.get(name)
    if seen is None or seen.value != value:
        raise EditError(f"{document.path}:{edit.first}: the edit would not be read back as {line!r}")
    return text


def method_key(step: Step, method: StepMethod) -> str:
    """What names one row of the step's method table: its name, or its section where two rows share the name."""
    alike = [each for each in step.methods if each.name == method.name]
    return method.name if len(alike) == 1 and method.name else method.section


def today() -> str:
    """The date that ledger rows carry."""
    return datetime.date.today().isoformat()


def _with(document: Document, number: int, status: str, changes: Mapping[str, tuple[str, str | None]]) -> str:
    text = set_method_statuses(document, number, changes)
    return set_step_status(_again(document, text), number, status)


def _again(document: Document, text: str) -> Document:
    return parse_document(text, document.path)


def _same_commit(cell: str, commit: str) -> bool:
    return bool(cell) and (commit.startswith(cell) or cell.startswith(commit))
