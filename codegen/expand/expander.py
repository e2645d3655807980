"""Expand one file's text: read what stands there, plan what should, compare, splice.

Text in, report out; nothing is written here. The report's `text` is None when the file must be left alone.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, replace

from codegen.diagnostics import Finding
from codegen.expand.blocks import Block, read_blocks
from codegen.expand.comments import Layout, read_layout
from codegen.expand.compare import compare
from codegen.expand.imports import NeededImport, import_on, needed_imports
from codegen.expand.marks import EndMark, ImportMark, Marks, Opener
from codegen.expand.model import FileReport, Options
from codegen.expand.parsing import parse_python, statements_between
from codegen.expand.places import Places
from codegen.expand.plan import make_plan
from codegen.expand.planning import Plan, Planning
from codegen.expand.salvage import salvage
from codegen.expand.source import Source, Unreadable, read_source
from codegen.expand.strip import Base, strip_blocks
from codegen.expand.suites import read_suites
from codegen.patterns import Library


@dataclass(frozen=True)
class Reading:
    """A file taken apart: its blocks, the base text below them, and the annotations of that base."""

    source: Source
    tree: ast.Module
    blocks: tuple[Block, ...]
    orphans: tuple[Block, ...]
    loose: tuple[EndMark, ...]
    imports: tuple[ImportMark, ...]
    strange: tuple[ImportMark, ...]
    base: Base
    base_tree: ast.Module
    base_layout: Layout
    openers: tuple[Opener, ...]

    @property
    def all_blocks(self) -> tuple[Block, ...]:
        """Blocks in the order of `base.after`."""
        return (*self.blocks, *self.orphans)


def read_file(source: Source, marks: Marks, library: Library | None = None, unmarked: bool = False) -> Reading | None:
    """Take the text apart; None when it has no mark of ours, unless `unmarked`. Raises SyntaxError."""

    def wraps(id: str) -> bool:
        return library is not None and id in library and library.get(id).placement == "wrap"

    broken: frozenset[int] = frozenset()
    try:
        layout = read_layout(source.lines)
        found = marks.find(layout.comments)
        if not found and not unmarked:
            return None
        tree = parse_python(source.text)
    except SyntaxError:
        salvaged = salvage(source.lines, marks)
        if salvaged is None:
            raise
        broken = salvaged.broken
        layout, tree = read_layout(salvaged.lines), parse_python("".join(salvaged.lines))
        found = marks.find(layout.comments)
    blocks, orphans, loose = read_blocks(tree, found, layout.comments, wraps)
    blocks = [_damaged(block) if block.end and block.end.line in broken else block for block in blocks]
    marked = [mark for mark in found if isinstance(mark, ImportMark)]
    imports = tuple(mark for mark in marked if import_on(tree, mark))
    strange = tuple(mark for mark in marked if not import_on(tree, mark))
    every = (*blocks, *orphans)
    base = strip_blocks(source.lines, every, [mark.line for mark in imports])
    if not every and not imports:
        base_tree, base_layout, base_found = tree, layout, found
    else:
        base_tree = parse_python("".join(base.lines))
        number = {line: index for index, line in enumerate(base.origin, 1)}
        base_layout = layout.mapped(number.get)
        base_found = marks.find(base_layout.comments)
    openers = tuple(mark for mark in base_found if isinstance(mark, Opener) and mark.place is None)
    return Reading(
        source,
        tree,
        tuple(blocks),
        tuple(orphans),
        tuple(loose),
        imports,
        strange,
        base,
        base_tree,
        base_layout,
        openers,
    )


def _damaged(block: Block) -> Block:
    """A block that was blanked out because its text is not Python; one at a return may have held the author's code."""
    return replace(block, seal="broken" if block.place == "return" else "edited")


@dataclass(frozen=True)
class Expansion:
    """The report on one file, and the file taken apart where it holds marks."""

    report: FileReport
    reading: Reading | None = None


def expand_bytes(path: str, data: bytes, library: Library, marks: Marks, options: Options) -> FileReport:
    """Expand the bytes of one file."""
    return expand_file(path, data, library, marks, options).report


def expand_file(
    path: str, data: bytes, library: Library, marks: Marks, options: Options, unmarked: bool = False
) -> Expansion:
    """Expand the bytes of one file, and keep what was read. `unmarked` sends files without marks all the way, too."""
    try:
        source = read_source(data)
        reading = read_file(source, marks, library, unmarked)
    except Unreadable as error:
        return Expansion(_refuse(path, error.line, "unreadable", str(error), error.fix))
    except SyntaxError as error:
        return Expansion(_not_python(path, error))
    if reading is None:
        return Expansion(FileReport(path, text=source.text))
    plan, imports = plan_reading(path, reading, library, options)
    report = compare(path, reading, plan, imports, options)
    if report.text is None:
        return Expansion(report, reading)
    try:
        source.encode(report.text)
    except Unreadable as error:
        finding = Finding(path, error.line, 1, "unreadable", str(error), "error", error.fix)
        report = replace(report, findings=(*report.findings, finding), text=None, changed=False, refused=True)
    return Expansion(report, reading)


def plan_reading(path: str, reading: Reading, library: Library, options: Options) -> tuple[Plan, list[NeededImport]]:
    """The fresh plan for a file that was taken apart, and the imports to go with it."""
    base, layout = reading.base, reading.base_layout

    def line_of(line: int) -> int:
        return base.origin[line - 1] if 0 < line <= len(base.origin) else line

    places = Places(read_suites(reading.base_tree, layout, base.lines), layout, base.lines)
    planning = Planning(
        path,
        reading.base_tree,
        base.lines,
        layout,
        places,
        library,
        options,
        line_of,
        reading.openers,
        _extracted(reading),
    )
    plan = make_plan(planning)
    return plan, needed_imports(planning)


def _extracted(reading: Reading) -> frozenset[str]:
    """Names of the functions that an earlier expansion made of long checks."""
    names: set[str] = set()
    for block in reading.blocks:
        if block.place == "module" and block.seal not in ("broken", "cut"):
            inside = statements_between(reading.tree, block.body_first, block.body_last) or []
            names.update(s.name for s in inside if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(names)


def strip_bytes(path: str, data: bytes, marks: Marks, options: Options) -> FileReport:
    """Take all generated code out of one file; the annotations stay."""
    try:
        source = read_source(data)
        reading = read_file(source, marks)
    except Unreadable as error:
        return _refuse(path, error.line, "unreadable", str(error), error.fix)
    except SyntaxError as error:
        return _not_python(path, error)
    if reading is None:
        return FileReport(path, text=source.text)
    findings = [
        Finding(
            path,
            block.first,
            1,
            "edited",
            f"{block.tag} block: edited since it was generated, or with a comment in it",
            "error",
            "Restore it, or drop it with `codegen expand --strip --force`.",
        )
        for block in reading.all_blocks
        if block.seal not in ("whole", "empty") or block.has_comments
    ]
    if findings and not (options.force and all(block.replaceable for block in reading.all_blocks)):
        return FileReport(path, findings=tuple(findings), refused=True)
    text = "".join(reading.base.lines)
    return FileReport(path, text=text, changed=text != source.text)


def _not_python(path: str, error: SyntaxError) -> FileReport:
    version = ".".join(map(str, sys.version_info[:2]))
    message = f"not Python {version}: {error.msg}"
    return _refuse(path, error.lineno or 1, "syntax", message, "Correct the file, or run a newer Python.")


def _refuse(path: str, line: int, code: str, message: str, fix: str) -> FileReport:
    return FileReport(path, findings=(Finding(path, line, 1, code, message, "error", fix),), refused=True)
