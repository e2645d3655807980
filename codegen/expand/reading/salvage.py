"""Find the block that makes a file unparsable, so that it can be reported as edited and repaired.

A half-deleted block often leaves text that is not Python. Marks are then found line by line instead of by the
tokenizer, and the blocks at fault are blanked out for the analysis; the file's own text is not touched here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codegen.expand.reading.comments import Comment, read_layout
from codegen.expand.reading.marks import EndMark, Marks, Opener
from codegen.expand.reading.parsing import parse_python
from codegen.expand.reading.source import ending, indent_of


@dataclass(frozen=True)
class Salvaged:
    """Lines that parse, and the lines of the end marks whose blocks were blanked out."""

    lines: tuple[str, ...]
    broken: frozenset[int]


def salvage(lines: Sequence[str], marks: Marks) -> Salvaged | None:
    """Blank out the blocks without which the text parses; None when they are not the cause."""
    blocks = _blocks(lines, marks)
    if not blocks or not _parses(_blank(lines, blocks)):
        return None
    broken = [block for block in blocks if not _parses(_blank(lines, [other for other in blocks if other != block]))]
    if not broken or not _parses(_blank(lines, broken)):
        broken = blocks
    return Salvaged(tuple(_blank(lines, broken)), frozenset(block.stop for block in broken))


def _blocks(lines: Sequence[str], marks: Marks) -> list[range]:
    """Line ranges between an opening comment line and its end mark."""
    comments = [
        Comment(number, len(indent_of(line)), line.strip(), True, 0)
        for number, line in enumerate(lines, 1)
        if line.lstrip(" \t\f").startswith("#")
    ]
    found: list[range] = []
    start: int | None = None
    for mark in marks.find(comments):
        if isinstance(mark, Opener):
            start = mark.last_line + 1
        elif isinstance(mark, EndMark):
            if start is not None and start < mark.line:
                found.append(range(start, mark.line))
            start = None
    return found


def _blank(lines: Sequence[str], blocks: Sequence[range]) -> list[str]:
    blanked = {number for block in blocks for number in block}
    return [ending(line) if number in blanked else line for number, line in enumerate(lines, 1)]


def _parses(lines: Sequence[str]) -> bool:
    try:
        parse_python("".join(lines))
        read_layout(lines)
    except SyntaxError:
        return False
    return True
