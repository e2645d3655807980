"""One file taken apart: its blocks, the text below them as its author wrote it, and the annotations in that text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from codegen.expand.reading.blocks import Block, read_blocks
from codegen.expand.reading.comments import Layout, read_layout
from codegen.expand.reading.marks import EndMark, ImportMark, Mark, Marks, Opener, is_prose
from codegen.expand.reading.parsing import last_line, parse_python
from codegen.expand.reading.salvage import salvage
from codegen.expand.reading.source import Source
from codegen.expand.reading.strip import Base, strip_blocks


@dataclass(frozen=True)
class Reading:
    """A file taken apart: its blocks, the base text below them, and the annotations of that base.

    `inside` are annotations that somebody wrote into a generated block, where they are no part of the base.
    """

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
    inside: tuple[Opener, ...] = ()

    @property
    def all_blocks(self) -> tuple[Block, ...]:
        """Blocks in the order of `base.after`."""
        return (*self.blocks, *self.orphans)


def read_file(
    source: Source, marks: Marks, wraps: Callable[[str], bool] = lambda id: False, unmarked: bool = False
) -> Reading | None:
    """Take the text apart; None when it has no mark of ours, unless `unmarked`. Raises SyntaxError.

    `wraps` says whether the pattern of an id encloses a statement.
    """
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
    blocks, orphans, loose = read_blocks(tree, found, layout, wraps)
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
    openers = _annotations(base_found)
    outside = {base.origin[opener.line - 1] for opener in openers}
    inside = tuple(opener for opener in _annotations(found) if opener.line not in outside and not is_prose(opener))
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
        inside,
    )


def _annotations(marks: Sequence[Mark]) -> tuple[Opener, ...]:
    return tuple(mark for mark in marks if isinstance(mark, Opener) and mark.place is None)


def _damaged(block: Block) -> Block:
    """A block that was blanked out because its text is not Python; one at a return may have held the author's code."""
    return replace(block, seal="broken" if block.place == "return" else "edited")


def import_on(tree: ast.Module, mark: ImportMark) -> ast.Import | ast.ImportFrom | None:
    """The import statement that a mark ends, when it binds one name and stands alone at module level."""
    for statement in tree.body:
        if statement.lineno == mark.line and last_line(statement) == mark.line:
            if isinstance(statement, ast.Import | ast.ImportFrom) and len(statement.names) == 1:
                return statement
            return None
    return None
