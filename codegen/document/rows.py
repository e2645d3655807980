"""Table rows as source text: where the cells stand, and how one is changed without touching the others."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping

from codegen.diagnostics import UsageError
from codegen.document.model import Document, Table


class EditError(UsageError):
    """An edit did not have the effect asked for. Nothing was written."""


def bare(document: Document, line: int) -> str:
    """A source line without its end."""
    return document.lines[line - 1].rstrip("\r\n")


def format_row(cells: Iterable[str]) -> str:
    """A table row with its cells escaped."""
    return "| " + " | ".join(escape_cell(cell) for cell in cells) + " |"


def escape_cell(text: str) -> str:
    """Text that stands in one cell: no line break, pipes escaped."""
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def table_at(document: Document, line: int) -> Table:
    """The table that has this line. Raises EditError when there is none."""
    at = bisect_right(document.tables, line, key=lambda table: table.line) - 1
    table = document.tables[at] if at >= 0 else None
    if table is None or line > table.line_end:
        raise EditError(f"{document.path}:{line}: there is no table row")
    return table


def new_row(columns: Iterable[str], values: Mapping[str, str]) -> str:
    """A row for a table with these columns (lower case); a column without a value gets an empty cell."""
    return format_row(values.get(column, "") for column in columns)


def changed_row(document: Document, line: int, cells: Mapping[str, str]) -> str:
    """The table row in this line with some cells changed, by column title.

    A table whose lines are all of one length is padded: there the cell keeps its width. A row that is too short gets
    the cells it lacks.
    """
    table = table_at(document, line)
    source = bare(document, line)
    lengths = {len(bare(document, n)) for n in (table.line, table.line + 1, line)}
    for column, value in cells.items():
        at = _column(document, table, column)
        while at >= len(cell_spans(source)):
            source = source.rstrip() + (" |" if not source.rstrip().endswith("|") else "") + "  |"
        start, end = cell_spans(source)[at]
        new = _cell(source[start:end], escape_cell(value), keep_width=len(lengths) == 1)
        source = source[:start] + new + source[end:]
    return source


def _column(document: Document, table: Table, name: str) -> int:
    if name not in table.columns:
        raise UsageError(f"{document.path}:{table.line}: the table has no column `{name.capitalize()}`; add it")
    return table.columns.index(name)


def cell_spans(row: str) -> list[tuple[int, int]]:
    """Where the cells of a table row stand, between the pipes that are not escaped."""
    pipes = [at for at, character in enumerate(row) if character == "|" and row[at - 1 : at] != "\\"]
    content = row.rstrip()
    start = len(row) - len(row.lstrip())
    if pipes and pipes[0] == start:
        start, pipes = pipes[0] + 1, pipes[1:]
    spans = []
    for pipe in pipes:
        spans.append((start, pipe))
        start = pipe + 1
    if start < len(content):
        spans.append((start, len(content)))
    return spans


def _cell(old: str, new: str, keep_width: bool) -> str:
    left = len(old) - len(old.lstrip()) if old.strip() else 1
    cell = " " * left + new
    if keep_width and len(cell) < len(old):
        return cell.ljust(len(old))
    right = len(old) - len(old.rstrip()) if old.strip() and not keep_width else 1
    return cell + " " * min(right, 1)
