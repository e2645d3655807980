"""The headings of a document and the blocks below each of them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain

from codegen.document.blocks import Block, HeadingBlock, Item, Paragraph
from codegen.document.digests import digest, normal_block
from codegen.document.model import Fence, Field, Section, Table

NUMBERED = re.compile(r"(\d+(?:\.\d+)*)(?:\.|:)?(?:\s+(.*))?$")
FIELD = re.compile(r"(\*\*|__|\*|_)?([^\W\d_][\w /-]{0,30}?)(?:\1)?\s*:(?:\1)?(?:\s+(.*)|$)", re.DOTALL)


class Outline:
    """Blocks sorted by line, with quick access to a heading's own blocks."""

    def __init__(self, blocks: Sequence[Block], last_line: int) -> None:
        self.blocks = sorted(blocks, key=lambda block: block.line)
        self.starts = [block.line for block in self.blocks]
        self.headings = [block for block in self.blocks if isinstance(block, HeadingBlock)]
        self._ends = self._find_ends(last_line)
        self._texts = [normal_block(block) for block in self.blocks]

    def _find_ends(self, last_line: int) -> dict[int, int]:
        ends: dict[int, int] = {}
        open_headings: list[HeadingBlock] = []
        for heading in self.headings:
            while open_headings and open_headings[-1].level >= heading.level:
                ends[open_headings.pop().line] = heading.line - 1
            open_headings.append(heading)
        for heading in open_headings:
            ends[heading.line] = last_line
        return ends

    def end(self, heading: HeadingBlock) -> int:
        """The last line before the next heading of the same or a higher level."""
        return self._ends[heading.line]

    def body(self, heading: HeadingBlock) -> list[Block]:
        """All blocks below a heading, those of its sub-headings included."""
        return self.between(heading.line_end + 1, self.end(heading))

    def own(self, heading: HeadingBlock) -> list[Block]:
        """The blocks below a heading up to the next heading of any level."""
        blocks: list[Block] = []
        for block in self.body(heading):
            if isinstance(block, HeadingBlock):
                break
            blocks.append(block)
        return blocks

    def between(self, first: int, last: int) -> list[Block]:
        return self.blocks[bisect_left(self.starts, first) : bisect_left(self.starts, last + 1)]

    def below(self, heading: HeadingBlock | None) -> list[HeadingBlock]:
        """The headings under a heading."""
        if heading is None:
            return []
        return [block for block in self.body(heading) if isinstance(block, HeadingBlock)]

    def titled(self, title: str, level: int = 2) -> HeadingBlock | None:
        """The first heading with this text, case aside, numbered or not."""
        for heading in self.headings:
            titles = (split_number(heading.text)[1].lower(), heading.text.lower())
            if heading.level == level and title in titles:
                return heading
        return None

    def chapter(self, number: int) -> HeadingBlock | None:
        """The level-2 heading of a section of the document, 1 to 6."""
        for heading in self.headings:
            if heading.level == 2 and split_number(heading.text)[0] == str(number):
                return heading
        return None

    def digest(self, heading: HeadingBlock) -> str:
        """Digest of the text of a heading and all below it."""
        first = bisect_left(self.starts, heading.line)
        last = bisect_left(self.starts, self.end(heading) + 1)
        return digest(chain.from_iterable(self._texts[first:last]))

    def seal(self, heading: HeadingBlock) -> str:
        """Digest of the text of a heading and all below it, the numbers of headings left out."""
        first = bisect_left(self.starts, heading.line)
        last = bisect_left(self.starts, self.end(heading) + 1)
        texts: list[str] = []
        for at in range(first, last):
            block = self.blocks[at]
            texts += [split_number(block.text)[1]] if isinstance(block, HeadingBlock) else self._texts[at]
        return digest(texts)

    def sections(self) -> tuple[Section, ...]:
        """All numbered headings. Section 6 changes with every status, so that it has no digest."""
        found: list[Section] = []
        for heading in self.headings:
            number, title = split_number(heading.text)
            if number:
                sealed = number.split(".")[0] != "6"
                old, new = (self.digest(heading), self.seal(heading)) if sealed else ("", "")
                found.append(Section(number, title, heading.level, heading.line, self.end(heading), old, new))
        return tuple(found)


def split_number(text: str) -> tuple[str, str]:
    """("5.1.2", "the rest") of a numbered heading, ("", text) of another."""
    match = NUMBERED.match(text)
    return (match.group(1), (match.group(2) or "").strip()) if match else ("", text)


def read_fields(blocks: Sequence[Block]) -> dict[str, Field]:
    """The `- name: value` items among blocks, by lower-case name; the first one where a name comes twice."""
    fields: dict[str, Field] = {}
    for block in blocks:
        if isinstance(block, Item) and (match := FIELD.match(block.text)):
            name = match.group(2).strip().lower()
            own = (match.group(3) or "").strip()
            value = "; ".join(filter(None, [own, *block.nested]))
            fields.setdefault(name, Field(name, value, block.line, block.line_end, tuple(block.nested)))
    return fields


def first_paragraph(blocks: Sequence[Block]) -> str:
    """The paragraphs before the first list, fence or table, one after another."""
    texts: list[str] = []
    for block in blocks:
        if isinstance(block, Item | Fence | Table):
            break
        if isinstance(block, Paragraph):
            texts.append(block.text)
    return "\n".join(texts)


def find_table(blocks: Sequence[Block], *columns: str) -> Table | None:
    """The first table that has all these columns."""
    for block in blocks:
        if isinstance(block, Table) and all(column in block.columns for column in columns):
            return block
    return None
