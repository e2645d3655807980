"""The document before a finished step was folded, with everything that was written since.

A commit of a step takes its part out of Section 6 and folds its entries. Taking the commit back puts the part, the open
entries and the rows of the record back as the commit's parent had them; all else stays as it is now.
"""

from __future__ import annotations

from codegen.document.edit import find_step
from codegen.document.fold import unfolded
from codegen.document.lines import LineEdit, apply_edits
from codegen.document.model import Document, Entry, Step
from codegen.document.modern import modern
from codegen.document.parse import parse_document
from codegen.document.recording import set_record
from codegen.document.rows import changed_row


def reopened(document: Document, number: int, before: Document | None, exact: bool = False) -> str:
    """The text with a step as it was in `before`; NOT_STARTED where that did not have it. What was in progress before
    is not started any more, for the files of the commit are gone; with `exact` it is in progress."""
    document = modern(document)
    before = modern(before) if before is not None else None
    step = find_step(document, number)
    old = before.step_by_number.get(number) if before is not None else None
    names = _names(document, step)
    if step.folded and old is not None and before is not None and not old.folded:
        document = _open_entries(document, before, old)
        document = _with_part(document, before, old)
    cells: dict[str, dict[str, str] | None] = {}
    for name in dict.fromkeys([*names, *(_names(before, old) if before is not None and old is not None else ())]):
        was = before.record.get(name) if before is not None else None
        done = was is not None and was.status == "DONE"
        kept = {"status": "NOT_STARTED", "step": "", "digest": "", "tests": "", "proof": ""}
        if exact and was is None:
            kept["status"] = ""
        if was is not None and (done or exact):
            kept = {key: getattr(was, key) for key in kept}
        if was is None and not _is_method(document, number, name):
            kept["status"] = ""
        cells[name] = kept
        if was is not None and was.approved:
            cells[name] = kept | {key: getattr(was, key) for key in ("verdict", "reviewer", "date", "approved")}
    document = parse_document(set_record(document, cells), document.path)
    step = find_step(document, number)
    done = old is not None and (old.status == "DONE" or exact)
    row = {"status": old.status if old is not None and done else "NOT_STARTED", "commit": "-"}
    if exact and old is not None:
        row["commit"] = old.commit or "-"
    table = next(table for table in document.tables if table.line < step.row_line <= table.line_end)
    if "names" in table.columns and not step.folded:
        row["names"] = "-"
    text = apply_edits(document, [LineEdit(step.row_line, step.row_line, (changed_row(document, step.row_line, row),))])
    return text


def _open_entries(document: Document, before: Document, old: Step) -> Document:
    """Entries that were open before, open again, with the text they had where that still says the same."""
    wanted = [entry for method in old.methods if (entry := before.entry_of(method)) is not None and not entry.folded]
    for entry in wanted:
        now = document.entry_by_name.get(entry.id)
        if now is None or not now.folded:
            continue
        opened = parse_document(unfolded(document, [now.id]), document.path)
        fresh = opened.entry_by_name[entry.id]
        if fresh.contracts == entry.contracts:
            lines = (opened.lines[fresh.line - 1].rstrip("\r\n"), *_text(before, entry)[1:])
            edit = LineEdit(fresh.line, fresh.line_end, lines)
            opened = parse_document(apply_edits(opened, [edit]), document.path)
        document = opened
    return document


def _text(document: Document, entry: Entry) -> list[str]:
    lines = [line.rstrip("\r\n") for line in document.lines[entry.line - 1 : entry.line_end]]
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    return lines


def _with_part(document: Document, before: Document, old: Step) -> Document:
    """The step's part of Section 6 where it was: before the next open step, else at the end of the chapter."""
    part = [line.rstrip("\r\n") for line in before.lines[old.line - 1 : old.line_end]]
    while part and not part[-1].strip():
        part.pop()
    later = [step.line for step in document.steps if step.line and step.number > old.number]
    if later:
        at = min(later)
    else:
        chapter = next(h for h in document.headings if h.level == 2 and h.text.lstrip().startswith("6"))
        at = chapter.line_end + 1
        while at - 2 >= 0 and not document.lines[at - 2].strip():
            at -= 1
        part = ["", *part]
    return parse_document(apply_edits(document, [LineEdit(at, at - 1, (*part, ""))]), document.path)


def _names(document: Document, step: Step) -> list[str]:
    entries = [entry for method in step.methods if (entry := document.entry_of(method)) is not None]
    return list(dict.fromkeys(name for entry in entries for name in (entry.id, *entry.contracts)))


def _is_method(document: Document, number: int, name: str) -> bool:
    return any(method.name == name for method in document.step_by_number[number].methods)
