"""What a document records about itself: version history, iteration log, to-dos, review record."""

from __future__ import annotations

import re

from codegen.document.blocks import HeadingBlock, Item
from codegen.document.model import (
    NOTHING,
    Approval,
    Goal,
    HistoryRow,
    LogRow,
    RecordRow,
    Table,
    TableRow,
    Todo,
    clean_name,
)
from codegen.document.outline import Outline, find_table

TODO = re.compile(r"(?:\[([ xX])\]\s*)?(T-\d+)\s*[:.—–-]\s*(.*)$", re.DOTALL)
GOAL = re.compile(r"(?:\*\*)?(G-\d+)(?:\*\*)?\s*[:.—–-](?:\*\*)?\s*(.*)$", re.DOTALL)
HISTORY = "version history"
LOG = "iteration log"
TODOS = "open to-dos"
REVIEWS = "review record"
RECORD = "record"
RECORD_COLUMNS = ("item", "status", "step", "digest", "tests", "proof", "verdict", "reviewer", "date", "approved")


def read_history(outline: Outline) -> tuple[HistoryRow, ...]:
    """The rows of the version history."""
    table = table_below(outline, outline.titled(HISTORY), "version")
    found: list[HistoryRow] = []
    for row in rows_of(table):
        version, date, change = cells_of(table, row, "version", "date", "change")
        found.append(HistoryRow(version, date, change, row.line))
    return tuple(found)


def read_log(outline: Outline) -> tuple[LogRow, ...]:
    """The rows of the iteration log."""
    table = table_below(outline, outline.titled(LOG), "round")
    found: list[LogRow] = []
    for row in rows_of(table):
        cells = cells_of(table, row, "round", "date", "asked", "changed", "decisions")
        number, date, asked, changed, decisions = cells
        found.append(LogRow(number, date, asked, changed, decisions, row.line))
    return tuple(found)


def read_todos(outline: Outline) -> tuple[Todo, ...]:
    """The items of the list of to-dos that carry a number."""
    heading = outline.titled(TODOS)
    found: list[Todo] = []
    for block in outline.body(heading) if heading else []:
        if isinstance(block, Item) and (match := TODO.match(block.text)):
            box, ident, text = match.groups()
            found.append(Todo(ident, text.strip(), bool(box and box.strip()), block.line))
    return tuple(found)


def read_goals(outline: Outline) -> tuple[Goal, ...]:
    """The numbered goals of Section 1."""
    chapter = outline.chapter(1)
    found: list[Goal] = []
    for block in outline.body(chapter) if chapter else []:
        if isinstance(block, Item) and (match := GOAL.match(block.text)):
            found.append(Goal(match.group(1), match.group(2).strip(), block.line))
    return tuple(found)


def read_approvals(outline: Outline) -> tuple[Approval, ...]:
    """The rows of a review record of the old form."""
    table = table_below(outline, outline.titled(REVIEWS), "item", "verdict")
    found: list[Approval] = []
    for row in rows_of(table):
        cells = cells_of(table, row, "item", "verdict", "reviewer", "date", "digest")
        item, verdict, reviewer, date, seal = cells
        found.append(Approval(item, verdict, reviewer, date, seal, row.line))
    return tuple(found)


def read_record(outline: Outline) -> tuple[RecordRow, ...]:
    """The rows of the record."""
    table = table_below(outline, outline.titled(RECORD), "item", "status", "verdict")
    found: list[RecordRow] = []
    for row in rows_of(table):
        cells = [clean_name(cell) for cell in cells_of(table, row, *RECORD_COLUMNS)]
        values = {
            name: "" if cell.lower() in NOTHING else cell for name, cell in zip(RECORD_COLUMNS, cells, strict=True)
        }
        found.append(RecordRow(**values, line=row.line))
    return tuple(found)


def table_below(outline: Outline, heading: HeadingBlock | None, *columns: str) -> Table | None:
    """The table with these columns below a heading."""
    return find_table(outline.body(heading), *columns) if heading else None


def rows_of(table: Table | None) -> tuple[TableRow, ...]:
    return table.rows if table else ()


def cells_of(table: Table | None, row: TableRow, *columns: str) -> tuple[str, ...]:
    """The cells of a row by column title, "" where the table lacks the column or the row the cell."""
    values: list[str] = []
    for column in columns:
        at = table.columns.index(column) if table and column in table.columns else len(row.cells)
        values.append(row.cells[at] if at < len(row.cells) else "")
    return tuple(values)
