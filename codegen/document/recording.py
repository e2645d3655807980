"""Write the record: one row an item, in an order that two branches agree on, so that git merges what both add."""

from __future__ import annotations

import re
from collections.abc import Mapping

from codegen.document.ledger import RECORD, RECORD_COLUMNS
from codegen.document.lines import LineEdit, apply_edits
from codegen.document.model import NOTHING, Document, Table
from codegen.document.parse import parse_document
from codegen.document.rows import EditError, changed_row, format_row, new_row

TITLE = "Record"
DIGITS = re.compile(r"(\d+)")
NAMED = re.compile(r"[^\W\d]\w*(\.\w+)+$")


def record_key(item: str) -> tuple[object, ...]:
    """The place of an item: sections, then decisions and goals by number, then names."""
    if item[:1].isdigit():
        return (0, item)
    if re.fullmatch(r"[DG]-\d+", item):
        return (1, item[0], int(item[2:]))
    return (2, item)


def shown_item(item: str) -> str:
    """How the record writes an item: names in backticks, so that no formatter takes their underscores for emphasis."""
    return f"`{item}`" if NAMED.fullmatch(item) or "_" in item else item


def set_record(document: Document, changes: Mapping[str, Mapping[str, str] | None]) -> str:
    """The text with cells of the record set, by item and column ("status", "approved", …); None removes the row.

    New rows go where they belong in the order; the table is made at the end of the document when there is none. A row
    all of whose cells become empty is removed.
    """
    rows = {row.item: {name: str(getattr(row, name)) for name in RECORD_COLUMNS} for row in document.record_rows[::-1]}
    edits: list[LineEdit] = []
    added: dict[str, dict[str, str]] = {}
    for item, cells in changes.items():
        known = document.record.get(item)
        merged = {**rows.get(item, {"item": item}), **(cells or {})}
        empty = cells is None or not any(value for name, value in merged.items() if name != "item")
        if known is None:
            added |= {} if empty else {item: merged}
        elif empty:
            edits.append(LineEdit(known.line, known.line, ()))
        else:
            values = {name: value or "-" for name, value in (cells or {}).items()}
            edits.append(LineEdit(known.line, known.line, (changed_row(document, known.line, values),)))
    edits = _with_new_rows(document, edits, added)
    text = apply_edits(document, edits)
    _verify(document, text, changes)
    return text


def _with_new_rows(document: Document, edits: list[LineEdit], added: Mapping[str, Mapping[str, str]]) -> list[LineEdit]:
    if not added:
        return edits
    table = _table(document)
    columns = table.columns if table else RECORD_COLUMNS
    lines = {item: _row(columns, cells) for item, cells in added.items()}
    ordered = sorted(lines, key=record_key)
    if table is None:
        head = [
            "",
            f"## {TITLE}",
            "",
            format_row(name.capitalize() for name in RECORD_COLUMNS),
            "|" + "---|" * len(columns),
        ]
        end = len(document.lines)
        while end and not document.lines[end - 1].strip():
            end -= 1
        return [*edits, LineEdit(end + 1, len(document.lines), (*head, *(lines[item] for item in ordered)))]
    places: dict[int, list[str]] = {}
    for item in ordered:
        before = [row.line for row in document.record_rows if record_key(row.item) <= record_key(item)]
        places.setdefault(max([table.line + 1, *before]), []).append(lines[item])
    # rows that are put in before a line that is itself changed are one edit with it
    own = {edit.first: edit for edit in edits}
    for after, rows in places.items():
        if after in own:
            old = own.pop(after)
            own[after] = LineEdit(after, after, (*old.lines, *rows))
        else:
            own[-after] = LineEdit(after + 1, after, tuple(rows))
    return list(own.values())


def _row(columns: tuple[str, ...], cells: Mapping[str, str]) -> str:
    values = {name: (cells.get(name) or "-") for name in RECORD_COLUMNS}
    return new_row(columns, values | {"item": shown_item(cells["item"])})


def _table(document: Document) -> Table | None:
    found = next((h for h in document.headings if h.level == 2 and h.text.lower() == RECORD), None)
    for table in document.tables if found else ():
        if found and found.line < table.line <= found.line_end and {"item", "status", "verdict"} <= set(table.columns):
            return table
    return None


def sorted_record(document: Document) -> str:
    """The text with the rows of the record in order and the ones that say the same word for word joined."""
    table = _table(document)
    if table is None:
        return document.text
    lines = [document.lines[row.line - 1].rstrip("\r\n") for row in document.record_rows]
    order = sorted(range(len(lines)), key=lambda at: record_key(document.record_rows[at].item))
    wanted = list(dict.fromkeys(lines[at] for at in order))
    if wanted == lines:
        return document.text
    first = document.record_rows[0].line
    return apply_edits(document, [LineEdit(first, first + len(lines) - 1, tuple(wanted))])


def _verify(document: Document, text: str, changes: Mapping[str, Mapping[str, str] | None]) -> None:
    seen = parse_document(text, document.path).record
    for item, cells in changes.items():
        row = seen.get(item)
        for name, value in (cells or {}).items():
            wanted = "" if value.lower() in NOTHING else value
            if (getattr(row, name) if row else "") != wanted:
                raise EditError(
                    f"{document.path}: the row of {item} in the record would not be read back as {name} {value}"
                )
