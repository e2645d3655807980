"""Repair what two branches numbered alike: decisions and open steps that both added, rows that both changed.

A reference by a doubled number means what it meant on its own branch, so the two sides of the merge say which one; what
neither side tells is left as it is, for lint to name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from codegen.document.lines import LineEdit, apply_edits
from codegen.document.model import Decision, Document, RecordRow, StepRow
from codegen.document.parse import parse_document
from codegen.document.review import subjects
from codegen.document.rows import bare, changed_row
from codegen.document.staleness import same_contract
from codegen.document.steps import HEADING

WORD = r"(?<![\w.:-]){}(?!\w)"


def repaired(document: Document, sides: Sequence[Document] = ()) -> Document:
    """The document with doubled decisions, open steps and rows of the record repaired where that is certain.

    `sides` are the document on the two branches that were merged.
    """
    for edits in (_decisions, _steps, _rows):
        changes = list(edits(document, sides))
        if changes:
            document = parse_document(apply_edits(document, changes), document.path)
    return document


def _decisions(document: Document, sides: Sequence[Document]) -> Iterator[LineEdit]:
    """The second of two decisions of one id gets the next free id, and so do the references that mean it."""
    counts = Counter(decision.id for decision in document.decisions)
    free = max([0, *(int(ident[2:]) for ident in counts)]) + 1
    for ident in [ident for ident, count in counts.items() if count == 2]:
        first, second = [decision for decision in document.decisions if decision.id == ident]
        holders = list(_holders(document, ident, second))
        meant = [_meant(document, sides, ident, line, (first.title, second.title)) for line in holders]
        if None in meant or first.title == second.title:
            continue
        new = f"D-{free}"
        free += 1
        word = re.compile(WORD.format(re.escape(ident)))
        own = range(second.line, second.line_end + 1)
        moved = [line for line, title in zip(holders, meant, strict=True) if title == second.title]
        for line in [*own, *moved]:
            old = bare(document, line)
            if word.search(old):
                yield LineEdit(line, line, (word.sub(new, old),))


def _holders(document: Document, ident: str, second: Decision) -> Iterator[int]:
    """The lines outside of both decisions and of the record that name the id."""
    word = re.compile(WORD.format(re.escape(ident)))
    inside = {at for d in document.decisions if d.id == ident for at in range(d.line, d.line_end + 1)}
    recorded = {row.line for row in document.record_rows} | {row.line for row in document.log}
    for at in range(document.front.line_end + 1, len(document.lines) + 1):
        if at not in inside | recorded and word.search(bare(document, at)):
            yield at


def _meant(document: Document, sides: Sequence[Document], ident: str, line: int, titles: tuple[str, str]) -> str | None:
    """The title that a line's reference means: that of the only side which has the line below the same heading."""
    found: set[str] = set()
    for side in sides:
        known = side.decision_by_id.get(ident)
        if known is not None and known.title in titles and _has_line(side, document, line):
            found.add(known.title)
    return found.pop() if len(found) == 1 else None


def _has_line(side: Document, document: Document, line: int) -> bool:
    """Whether a side has this line below a heading of the same name, its number aside."""
    text, place = bare(document, line), _heading(document, line)
    return any(bare(side, at) == text and _heading(side, at) == place for at in range(1, len(side.lines) + 1))


def _heading(document: Document, line: int) -> str:
    above = [heading for heading in document.headings if heading.line <= line]
    return re.sub(r"^[\d.]+\s*|^Step \d+", "", above[-1].text) if above else ""


def _steps(document: Document, sides: Sequence[Document]) -> Iterator[LineEdit]:
    """The second of two open steps of one number gets the next free one; a finished step keeps its number, which is in
    its commit."""
    counts = Counter(row.number for row in document.step_rows)
    free = max([0, *counts]) + 1
    parts = {(int(m[1]), (m[2] or "").strip()): h for h in document.headings if (m := HEADING.match(h.text))}
    for number in [number for number, count in counts.items() if count == 2]:
        rows = [row for row in document.step_rows if row.number == number]
        movable = [row for row in rows if row.status in ("NOT_STARTED", "IN_PROGRESS") and not row.commit]
        row = movable[-1] if movable else None
        part = parts.get((number, row.title)) if row else None
        if row is None or part is None or rows[0].title == rows[1].title:
            continue
        waiting = [each for each in document.step_rows if number in each.depends]
        meant = [_step_meant(sides, number, each, (rows[0].title, rows[1].title)) for each in waiting]
        if None in meant:
            continue
        yield LineEdit(row.line, row.line, (changed_row(document, row.line, {"step": str(free)}),))
        yield LineEdit(part.line, part.line, (bare(document, part.line).replace(f"Step {number}", f"Step {free}", 1),))
        for each, title in zip(waiting, meant, strict=True):
            if title == row.title:
                depends = ", ".join(str(free if need == number else need) for need in each.depends)
                yield LineEdit(each.line, each.line, (changed_row(document, each.line, {"depends": depends}),))
        free += 1


def _step_meant(sides: Sequence[Document], number: int, row: StepRow, titles: tuple[str, str]) -> str | None:
    """The title of the step that a row's `Depends` means."""
    found = {
        side.step_by_number[number].title
        for side in sides
        if number in side.step_by_number
        and side.step_by_number[number].title in titles
        and any(each.title == row.title and number in each.depends for each in side.step_rows)
    }
    return found.pop() if len(found) == 1 else None


def _rows(document: Document, sides: Sequence[Document]) -> Iterator[LineEdit]:
    """Of two rows of one item the one that is of the present text stays, where only one is."""
    counts = Counter(row.item for row in document.record_rows)
    for item in [item for item, count in counts.items() if count == 2]:
        rows = [row for row in document.record_rows if row.item == item]
        good = [row for row in rows if _holds(document, row)]
        if len(good) == 1:
            gone = next(row for row in rows if row is not good[0])
            yield LineEdit(gone.line, gone.line, ())


def _holds(document: Document, row: RecordRow) -> bool:
    """Whether all digests in a row are of what the document says now."""
    entry = document.entry_by_name.get(row.item)
    subject = subjects(document).get(row.item)
    done = not row.digest or (entry is not None and same_contract(row.digest, entry, row.item))
    approved = not row.approved or (subject is not None and row.approved == subject.digest)
    return done and approved and bool(row.digest or row.approved)
