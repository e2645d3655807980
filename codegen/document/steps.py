"""Section 6: the table of steps, and each step with its fields and its names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from codegen.diagnostics import Finding
from codegen.document.blocks import HeadingBlock
from codegen.document.ledger import cells_of, rows_of
from codegen.document.model import (
    NOTHING,
    Entry,
    RecordRow,
    Step,
    StepMethod,
    StepRow,
    clean_name,
    split_names,
)
from codegen.document.outline import Outline, find_table, read_fields

HEADING = re.compile(r"Step\s+(\d{1,9})\s*(?:[:.—–-]\s*(.*))?$", re.IGNORECASE)
NUMBER = re.compile(r"(?<!\d)\d{1,9}(?!\d)")


def read_step_rows(outline: Outline, path: Path, problems: list[Finding]) -> tuple[StepRow, ...]:
    """The rows of the table of steps. A row without a number becomes a problem."""
    chapter = outline.chapter(6)
    table = find_table(outline.body(chapter), "step", "status") if chapter else None
    found: list[StepRow] = []
    for row in rows_of(table):
        columns = ("step", "title", "depends", "status", "commit", "names")
        number, title, depends, status, commit, names = cells_of(table, row, *columns)
        if not (digits := NUMBER.search(number)):
            message = f"the step in this row has no number: {number!r}"
            problems.append(Finding(str(path), row.line, 1, "DOC003", message, fix="Write the step's number."))
            continue
        found.append(
            StepRow(
                int(digits.group()),
                title,
                _numbers(depends),
                status,
                _blank(commit),
                row.line,
                next(iter(_numbers(names)), None),
            )
        )
    return tuple(found)


def read_steps(
    outline: Outline,
    rows: tuple[StepRow, ...],
    path: Path,
    problems: list[Finding],
    record: Sequence[RecordRow] = (),
    entries: Sequence[Entry] = (),
) -> tuple[Step, ...]:
    """Rows and headings joined by number, in the order of the table; headings without a row come last.

    An open step's names are those it lists, a finished one's those that the record gives to it.
    """
    by_number: dict[int, HeadingBlock] = {}
    for heading in outline.below(outline.chapter(6)):
        if match := HEADING.match(heading.text):
            number = int(match.group(1))
            if number in by_number:
                message = f"Step {number} has two headings (the other is in line {by_number[number].line})"
                problems.append(Finding(str(path), heading.line, 1, "DOC004", message, fix="Renumber one of them."))
            else:
                by_number[number] = heading
    row_by_number: dict[int, StepRow] = {}
    for row in rows:
        if row.number in row_by_number:
            message = f"Step {row.number} has two rows (the other is in line {row_by_number[row.number].line})"
            problems.append(Finding(str(path), row.line, 1, "DOC004", message, fix="Renumber one of them."))
        else:
            row_by_number[row.number] = row
    numbers = [*row_by_number, *(number for number in by_number if number not in row_by_number)]
    ledger = _Ledger(record, entries)
    return tuple(_step(outline, number, row_by_number.get(number), by_number.get(number), ledger) for number in numbers)


class _Ledger:
    """Which names the record gives to which step, and the printed number of each name's entry."""

    def __init__(self, record: Sequence[RecordRow], entries: Sequence[Entry]) -> None:
        self.rows: dict[str, RecordRow] = {}
        self.of_step: dict[str, list[RecordRow]] = {}
        for row in record:
            if row.item not in self.rows:
                self.rows[row.item] = row
                self.of_step.setdefault(row.step, []).append(row)
        self.entries: dict[str, Entry] = {}
        for entry in entries:
            for name in (entry.id, *entry.full_names, *entry.contracts):
                self.entries.setdefault(name, entry)

    def finished(self, number: int) -> Iterator[StepMethod]:
        """The names of a finished step; an open entry's members are not listed beside it."""
        rows = self.of_step.get(str(number), [])
        items = {row.item for row in rows}
        for row in rows:
            entry = self.entries.get(row.item)
            if entry is None or row.item in (entry.id, *entry.full_names) or entry.id not in items:
                yield self._method(row.item, row)

    def listed(self, names: Sequence[str], line: int) -> Iterator[StepMethod]:
        """The names that an open step lists. One that has no row yet is not started."""
        for name in names:
            yield self._method(name, self.rows.get(name), line)

    def _method(self, name: str, row: RecordRow | None, line: int = 0) -> StepMethod:
        entry = self.entries.get(name)
        section = entry.number if entry else ""
        if row is None or not row.status:
            status = "NOT_STARTED"
            return StepMethod(
                name, section, status, row.digest if row else "", row.line if row else line, recorded=True
            )
        return StepMethod(name, section, row.status, row.digest, row.line, row.tests, row.proof, True)


def _step(outline: Outline, number: int, row: StepRow | None, heading: HeadingBlock | None, ledger: _Ledger) -> Step:
    blocks = outline.body(heading) if heading else []
    fields = read_fields(blocks)

    def text(name: str) -> str:
        return fields[name].value if name in fields else ""

    match = HEADING.match(heading.text) if heading else None
    if heading is None:
        methods = tuple(ledger.finished(number))
    elif "names" in fields:
        methods = tuple(ledger.listed(split_names(text("names")), fields["names"].line))
    else:
        methods = _methods(blocks)
    return Step(
        number=number,
        title=row.title if row else (match.group(2) or "" if match else ""),
        depends=row.depends if row else _numbers(text("depends")),
        status=row.status if row else text("status"),
        commit=row.commit if row else "",
        purpose=text("purpose"),
        files=split_names(text("files")),
        checkpoints=text("checkpoints"),
        tests=text("tests"),
        rollback=text("rollback"),
        methods=methods,
        fields=fields,
        row_line=row.line if row else 0,
        line=heading.line if heading else 0,
        line_end=outline.end(heading) if heading else 0,
        names=row.names if row else None,
    )


def _methods(blocks: list) -> tuple[StepMethod, ...]:
    table = find_table(blocks, "method", "status")
    found = []
    for row in rows_of(table):
        name, section, status, seal = cells_of(table, row, "method", "section", "status", "digest")
        found.append(StepMethod(clean_name(name), _blank(section), status, _blank(seal), row.line))
    return tuple(found)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in NUMBER.findall(text))


def _blank(text: str) -> str:
    value = clean_name(text)
    return "" if value.lower() in NOTHING else value
