"""The file as its author wrote it: text without what the expander added, and how its lines map to the file's.

Invariant: for a file that was expanded and not edited since, the base is the text before the expansion, byte for
byte.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codegen.expand.reading.blocks import Block
from codegen.expand.reading.parsing import first_line, last_line
from codegen.expand.reading.source import ending, indent_of

_RETURN = "return"


@dataclass(frozen=True)
class Base:
    """`origin[i]` is the file's line for base line i + 1; `after` maps each block's index to its base line.

    The line in `after` is the last base line before the block; the author's statement in a hole is below it.
    """

    lines: tuple[str, ...]
    origin: tuple[int, ...]
    after: tuple[int, ...]

    def line_of(self, file_line: int) -> int:
        """Base line that corresponds to a line of the file: its own, or the last one before it."""
        low, high = 0, len(self.origin)
        while low < high:
            middle = (low + high) // 2
            if self.origin[middle] <= file_line:
                low = middle + 1
            else:
                high = middle
        return low


def strip_blocks(lines: Sequence[str], blocks: Sequence[Block], imports: Iterable[int] = ()) -> Base:
    """Take blocks and managed import lines out of the text."""
    dropped = set(imports)
    restored: dict[int, str] = {}
    for block in blocks:
        if block.seal == "cut":
            continue
        dropped.update(range(block.first, block.last + 1))
        if block.hole is not None:
            inner = range(first_line(block.hole), last_line(block.hole) + 1)
            dropped.difference_update(inner)
            restored.update(_restore(lines, block, inner))
    kept: list[str] = []
    origin: list[int] = []
    for number, line in enumerate(lines, 1):
        if number in dropped:
            continue
        kept.append(restored.get(number, line))
        origin.append(number)
    if kept and lines and not ending(lines[-1]) and len(lines) in dropped:
        kept[-1] = kept[-1].removesuffix(ending(kept[-1]))
    base = Base(tuple(kept), tuple(origin), ())
    after = tuple(base.line_of(block.first - 1) for block in blocks)
    return Base(base.lines, base.origin, after)


def _restore(lines: Sequence[str], block: Block, inner: range) -> dict[int, str]:
    hole = block.hole
    if block.shape == "return":
        assert isinstance(hole, ast.Assign) and isinstance(hole.targets[0], ast.Name)
        number = hole.lineno
        name = hole.targets[0].id
        line = lines[number - 1]
        return {number: re.sub(rf"\A(\s*){re.escape(name)}\s*=", rf"\1{_RETURN}", line, count=1)}
    assert hole is not None
    outer = indent_of(lines[block.body_first - 1])
    extra = indent_of(lines[inner[0] - 1])[len(outer) :]
    fixed = string_lines(hole)
    return {
        number: lines[number - 1].replace(outer + extra, outer, 1)
        for number in inner
        if number not in fixed and lines[number - 1].startswith(outer + extra)
    }


def string_lines(statement: ast.stmt) -> set[int]:
    """Lines of a statement that begin inside a string literal: their leading blanks are data."""
    found: set[int] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Constant | ast.JoinedStr) and isinstance(getattr(node, "value", ""), str | bytes):
            found.update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
    return found
