"""Move a document of the old form over: statuses, digests and approvals into the record, names into their steps.

The old form kept statuses in a method table of each step and approvals in a "Review record", both by section number.
Nothing is lost and nothing is made up: a digest that was of the present text is written as that text's new digest, one
that was of another text as the old one, so that the name is stale and the approval withdrawn as before.
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen.document.ledger import REVIEWS
from codegen.document.lines import LineEdit, apply_edits
from codegen.document.model import Document, Heading, Step
from codegen.document.outline import split_number
from codegen.document.parse import parse_document
from codegen.document.recording import set_record
from codegen.document.review import subjects
from codegen.document.rows import bare


def is_old(document: Document) -> bool:
    """Whether anything of the old form is left."""
    return bool(document.old_approvals) or _old_heading(document) is not None or any(map(_is_old_step, document.steps))


def modern(document: Document) -> Document:
    """The document in the present form; the same one where nothing of the old form is left."""
    if not is_old(document):
        return document
    rows: dict[str, dict[str, str]] = {}
    edits: list[LineEdit] = []
    for step in document.steps:
        if _is_old_step(step):
            edits += _step_edits(document, step)
            for name, cells in _statuses(document, step):
                rows.setdefault(name, {}).update(cells)
    for name, cells in _verdicts(document):
        rows.setdefault(name, {}).update(cells)
    heading = _old_heading(document)
    if heading is not None:
        edits.append(LineEdit(heading.line, heading.line_end, ()))
    moved = parse_document(apply_edits(document, edits), document.path)
    return parse_document(set_record(moved, rows), document.path)


def _is_old_step(step: Step) -> bool:
    return bool(step.line) and "names" not in step.fields and any(not method.recorded for method in step.methods)


def _old_heading(document: Document) -> Heading | None:
    return next((h for h in document.headings if h.level == 2 and split_number(h.text)[1].lower() == REVIEWS), None)


def _step_edits(document: Document, step: Step) -> Iterator[LineEdit]:
    """The method table goes, a list of names comes behind the last field."""
    lines = [method.line for method in step.methods]
    table = next(t for t in document.tables if t.line < lines[0] <= t.line_end)
    end = table.line_end
    if end < step.line_end and not bare(document, end + 1).strip():
        end += 1
    yield LineEdit(table.line, end, ())
    entries = (document.entry_of(method) for method in step.methods)
    names = [entry.id if entry else method.name for method, entry in zip(step.methods, entries, strict=True)]
    last = max([step.line, *(field.line_end for field in step.fields.values())])
    lead = () if step.fields else ("",)
    listed = ", ".join(f"`{name}`" for name in dict.fromkeys(names))
    yield LineEdit(last + 1, last, (*lead, f"- names: {listed}"))


def _statuses(document: Document, step: Step) -> Iterator[tuple[str, dict[str, str]]]:
    """The cells of every name of a step, less those of names that are not started and have no digest."""
    for method in step.methods:
        if method.status == "NOT_STARTED" and not method.digest:
            continue
        entry = document.entry_of(method)
        if entry is None:
            yield method.name, {"status": method.status, "digest": method.digest}
            continue
        for name in dict.fromkeys([entry.id, *entry.contracts]):
            if method.digest == entry.digest:
                seal = entry.cell(name)
            else:
                seal = f"{entry.contracts.get(name, entry.digest)}.{method.digest}" if method.digest else ""
            yield name, {"status": method.status, "digest": seal}


def _verdicts(document: Document) -> Iterator[tuple[str, dict[str, str]]]:
    known = subjects(document)
    old = {approval.line for approval in document.old_approvals}
    for approval in document.approvals:
        if approval.line not in old:
            continue
        subject = known.get(approval.item)
        holds = subject is not None and subject.verdict == approval.verdict
        digest = subject.digest if subject is not None and holds else approval.digest
        cells = {"verdict": approval.verdict, "reviewer": approval.reviewer, "date": approval.date}
        yield approval.item, {**cells, "approved": digest}
