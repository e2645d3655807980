"""Write a schedule into Section 6: rows and headings added, cells changed, the drawing made again; nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable

from codegen.document.edit import LineEdit, apply_edits
from codegen.document.model import Document, Heading, Section, Step, Table
from codegen.document.parse import parse_document
from codegen.document.recording import set_record
from codegen.document.rows import EditError, bare, changed_row
from codegen.plan.compose import STEP_COLUMNS, listed, numbers, step_lines, step_row, table_head
from codegen.plan.draw import mermaid, step_drawing
from codegen.plan.schedule import Schedule

GRAPH = "<!-- codegen:graph -->"
END = "<!-- codegen:end -->"
DEPENDS = re.compile(r"(\s*[-*+]\s+(?:\*\*|__)?depends(?:\*\*|__)?\s*:(?:\*\*|__)?[ \t]*)(.*?)([ \t]*)$", re.IGNORECASE)


def merge(document: Document, schedule: Schedule) -> str:
    """The document with the schedule in it. Raises EditError when an existing status or commit would not survive."""
    chapter = next((s for s in document.sections if s.level == 2 and s.id == "6"), None)
    edits = [*_cells(document, schedule), *_hosted(document, schedule)]
    drawing = _drawing(document, schedule)
    steps = [line for step in (*schedule.reopened, *schedule.new) for line in step_lines(step)]
    if chapter is None:
        edits.append(_chapter(document, schedule, drawing, steps))
    else:
        edits += _graph(document, chapter, drawing)
        edits += _steps(document, chapter, schedule, steps)
    text = apply_edits(document, edits)
    stale = {m.name: {"status": "STALE"} for _, m in schedule.stale if m.recorded and m.status != "STALE"}
    if stale:
        text = set_record(parse_document(text, document.path), stale)
    _verify(document, schedule, parse_document(text, document.path))
    return text


def _cells(document: Document, schedule: Schedule) -> list[LineEdit]:
    """Cells of existing rows: at most one edit a line."""
    cells: dict[int, dict[str, str]] = {}
    edits: list[LineEdit] = []
    for number, depends in schedule.depends.items():
        step = document.step_by_number[number]
        value = numbers(depends)
        if step.row_line:
            cells.setdefault(step.row_line, {})["depends"] = value
        field = step.fields.get("depends")
        match = DEPENDS.match(bare(document, field.line)) if field else None
        if field and match:
            edits.append(LineEdit(field.line, field.line, (f"{match.group(1)}{value}{match.group(3)}",)))
    for step, method in schedule.stale:
        if method.status != "STALE" and not method.recorded:
            cells.setdefault(method.line, {})["status"] = "STALE"
        if step.status == "DONE" and step.row_line:
            cells.setdefault(step.row_line, {})["status"] = "STALE"
    rows = [LineEdit(line, line, (changed_row(document, line, values),)) for line, values in cells.items()]
    return [*edits, *rows]


def _hosted(document: Document, schedule: Schedule) -> list[LineEdit]:
    """The lists of names of steps that take some in."""
    more: dict[int, list[str]] = {}
    for number, method in schedule.hosted:
        more.setdefault(number, []).append(method.name)
    edits: list[LineEdit] = []
    for number, names in more.items():
        step = document.step_by_number[number]
        known = [method.name for method in step.methods]
        field = step.fields["names"]
        edits.append(LineEdit(field.line, field.line_end, (f"- names: {listed([*known, *names])}",)))
    return edits


def _drawing(document: Document, schedule: Schedule) -> list[str]:
    depends = {step.number: step.depends for step in document.steps} | dict(schedule.depends)
    known = [(step.number, step.title, depends[step.number]) for step in document.steps]
    known += [(step.number, step.title, step.depends) for step in schedule.new]
    text = mermaid(step_drawing(known))
    return [GRAPH, "", "```mermaid", *text.rstrip("\n").split("\n"), "```", "", END]


def _chapter(document: Document, schedule: Schedule, drawing: list[str], steps: list[str]) -> LineEdit:
    five = next((s for s in document.sections if s.level == 2 and s.id == "5"), None)
    at = (five.line_end if five else len(document.lines)) + 1
    rows = [step_row(step) for step in schedule.new]
    head = [
        "## 6. Plan",
        "",
        "### 6.1 Dependency graph",
        "",
        *drawing,
        "",
        "### 6.2 Steps",
        "",
        *table_head(STEP_COLUMNS),
        *rows,
        "",
    ]
    return _block(document, at, [*head, *steps])


def _block(document: Document, at: int, lines: Iterable[str]) -> LineEdit:
    """Lines put in before line `at` as a block of their own, with a blank line before it."""
    block = list(lines)
    if at > 1 and bare(document, at - 1).strip():
        block.insert(0, "")
    if at > len(document.lines):
        while block and not block[-1]:
            block.pop()
    elif block[-1]:
        block.append("")
    return LineEdit(at, at - 1, tuple(block))


def _graph(document: Document, chapter: Section, drawing: list[str]) -> list[LineEdit]:
    fenced = {n for fence in document.fences for n in range(fence.line, fence.line_end + 1)}
    marks: dict[str, int] = {}
    for number in range(chapter.line, chapter.line_end + 1):
        text = bare(document, number).strip()
        if text in (GRAPH, END) and number not in fenced:
            marks.setdefault(text, number)
    if GRAPH in marks and marks.get(END, 0) > marks[GRAPH]:
        inside = [bare(document, n) for n in range(marks[GRAPH], marks[END] + 1)]
        if [line.strip() for line in inside if line.strip()] == [line.strip() for line in drawing if line]:
            return []
        return [LineEdit(marks[GRAPH], marks[END], tuple(drawing))]
    if marks:
        line = next(iter(marks.values()))
        raise EditError(f"{document.path}:{line}: `{GRAPH}` and `{END}` do not pair; write both, or neither")
    heading = next((h for h in _headings(document, chapter) if "dependency graph" in h.text.lower()), None)
    if heading is not None:
        return [_block(document, heading.line + 1, drawing)]
    title = "Dependency graph"
    if all(section.id != "6.1" for section in document.sections):
        title = f"6.1 {title}"
    first = next((h.line for h in _headings(document, chapter)), chapter.line_end + 1)
    return [_block(document, first, [f"### {title}", "", *drawing, ""])]


def _headings(document: Document, chapter: Section) -> list[Heading]:
    return [h for h in document.headings if chapter.line < h.line <= chapter.line_end and h.level > 2]


def _steps(document: Document, chapter: Section, schedule: Schedule, steps: list[str]) -> list[LineEdit]:
    """Rows below the last row of the table of steps, headings at the end of the chapter."""
    if not steps:
        return []
    end = chapter.line_end + 1
    table = _table_of_steps(document, chapter)
    if table is None:
        title = "Steps" if any(section.id == "6.2" for section in document.sections) else "6.2 Steps"
        rows = [step_row(step) for step in schedule.new]
        return [_block(document, end, [f"### {title}", "", *table_head(STEP_COLUMNS), *rows, "", *steps])]
    last = max([table.line + 1, *(row.line for row in table.rows)])
    rows = [step_row(step, table.columns) for step in schedule.new]
    if all(not bare(document, line).strip() for line in range(last + 1, end)):
        # Nothing but blank lines between the table and the end of the chapter: one block does both.
        tail = [""] if end <= len(document.lines) and not steps[-1] else []
        return [LineEdit(last + 1, chapter.line_end, (*rows, "", *steps[:-1], *tail))]
    if rows and bare(document, last + 1).strip():
        rows.append("")
    return [*([LineEdit(last + 1, last, tuple(rows))] if rows else []), _block(document, end, steps)]


def _table_of_steps(document: Document, chapter: Section) -> Table | None:
    for table in document.tables:
        if chapter.line < table.line <= chapter.line_end and {"step", "status"} <= set(table.columns):
            return table
    return None


def _verify(old: Document, schedule: Schedule, new: Document) -> None:
    stale = {(step.number, method.name) for step, method in schedule.stale}
    stale_steps = {step.number for step, _ in schedule.stale}
    for step in old.steps:
        seen = new.step_by_number.get(step.number)
        kept = seen is not None and seen.commit == step.commit and seen.title == step.title
        kept = kept and (step.number in stale_steps or seen.status == step.status)  # type: ignore[union-attr]
        rows = {(method.name, method.status, method.digest) for method in seen.methods} if seen else set()
        rows |= {(row.item, row.status, row.digest) for row in new.record_rows}
        for method in step.methods:
            status = "STALE" if (step.number, method.name) in stale else method.status
            kept = kept and (method.name, status, method.digest) in rows
        if not kept:
            raise EditError(f"{old.path}:{step.row_line or step.line}: planning would lose Step {step.number}")
    planned: dict[int, Step] = new.step_by_number
    for step in schedule.new:
        if step.number not in planned or len(planned[step.number].methods) != len(step.methods):
            raise EditError(f"{old.path}: Step {step.number} would not be read back; correct Section 6 by hand")
