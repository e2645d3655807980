"""Comments that speak to the expander: annotations, openings of remote sites, end marks and managed imports.

An annotation is the author's line, `# TAG: …`. A remote site opens with `# TAG on PLACE: …`, written by the tool.
`# END TAG 0a1b2c` seals the block above it. `import x  # TAG import` is a managed import.

An annotation on its own line goes on in the comment line right below it while a bracket is open, and where that
line's text is indented further than the tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from codegen.expand.reading.comments import Comment
from codegen.expand.reading.grammar import FreeText, Notation, NotationError, OpenBracket, parse_notation

HANGING = 2
DIRECTIVE = re.compile(r"#[ \t]*(?:[A-Za-z][\w-]*:|noqa\b)")
_FOR_TOOLS = re.compile(
    r"\s+#\s*(?:noqa(?::[\sA-Z0-9,]*)?|nosec\b[\sA-Z0-9,]*|type:\s*ignore(?:\[[\w\s,-]*\])?|pragma:\s*no\s*cover"
    r"|fmt:\s*skip|py(?:lint|right):\s*[\w=,-]+(?:\[[\w\s,]*\])?)\s*\Z"
)
"""A comment for another tool behind an annotation: it stays in the line and is no part of what is said."""
REMOTE_PLACES = ("entry", "return", "else", "elif", "except", "finally", "case", "module")


@dataclass(frozen=True)
class Opener:
    """An annotation, or the opening of a remote site when `place` is set.

    `notation` is None when the text could not be parsed; `problem` then says why. `below` is a comment right below
    that may have been meant to go on with the note, and does not; one that begins `word:` or `noqa` is for a tool.
    """

    tag: str
    comment: Comment
    last_line: int
    notation: Notation | None
    problem: NotationError | None = None
    problem_place: tuple[int, int] = (0, 0)
    place: str | None = None
    below: Comment | None = None

    @property
    def line(self) -> int:
        """First line of the annotation."""
        return self.comment.line

    @property
    def text(self) -> str:
        """The annotation's items on one line, without its note."""
        if self.notation is None:
            return ""
        return join_items(self.notation, self.tag)


@dataclass(frozen=True)
class EndMark:
    """`# END TAG digits`. `digits` is "" when the mark is damaged."""

    tag: str
    comment: Comment
    digits: str

    @property
    def line(self) -> int:
        """Line of the mark."""
        return self.comment.line


@dataclass(frozen=True)
class ImportMark:
    """A line `import x  # TAG import`."""

    tag: str
    comment: Comment

    @property
    def line(self) -> int:
        """Line of the import."""
        return self.comment.line


Mark = Opener | EndMark | ImportMark
Kind = Literal["annotation", "remote"]


class Marks:
    """Finds marks for one set of tags."""

    def __init__(self, tags: Iterable[str]) -> None:
        self.tags = frozenset(tags)
        names = "|".join(sorted(map(re.escape, self.tags), key=len, reverse=True))
        places = "|".join(REMOTE_PLACES)
        self._opener = re.compile(rf"#[ \t]*({names})(?:[ \t]+on[ \t]+({places}))?[ \t]*:(?!:)[ \t]*")
        self._end = re.compile(rf"#[ \t]*END[ \t]+({names})\b\s*(.*?)\s*\Z")
        self._import = re.compile(rf"#[ \t]*({names})[ \t]+import\s*\Z")
        self.prefilter = re.compile(rf"#[ \t]*(?:END[ \t]+)?(?:{names})\b".encode())

    def find(self, comments: Sequence[Comment]) -> list[Mark]:
        """Marks in source order; prose after a tag is an Opener whose problem is FreeText."""
        found: list[Mark] = []
        index = 0
        while index < len(comments):
            comment = comments[index]
            index += 1
            if end := self._end.match(comment.text):
                digits = end[2] if re.fullmatch(r"[0-9a-f]{6}", end[2]) else ""
                found.append(EndMark(end[1], comment, digits))
            elif mark := self._import.match(comment.text):
                found.append(ImportMark(mark[1], comment))
            elif opening := self._opener.match(comment.text):
                opener, used = self._read(opening, comments, index)
                found.append(opener)
                index += used
        return found

    def _read(self, opening: re.Match[str], comments: Sequence[Comment], index: int) -> tuple[Opener, int]:
        """Parse an annotation, taking the further comment lines that belong to it."""
        comment = comments[index - 1]
        tag, place = opening[1], opening[2]
        text = _FOR_TOOLS.sub("", comment.text[opening.end() :]).rstrip()
        pieces = [(0, comment.line, comment.column + opening.end())]
        used = 0
        while True:
            below = comments[index + used] if index + used < len(comments) else None
            if below is not None and not self._adjoins(comment, below, used):
                below = None
            goes_on = comment.own_line and below is not None and not place and _hangs(comment, below)
            notation: Notation | None = None
            problem: NotationError | None = None
            try:
                notation = parse_notation(tag, text, self.tags)
            except OpenBracket as error:
                if not comment.own_line or below is None:
                    return self._bad(tag, comment, used, _closable(error, comment), pieces, place), 0
                problem, goes_on = error, True
            except NotationError as error:
                problem, goes_on = error, goes_on and not isinstance(error, FreeText)
            if goes_on and below is not None:
                text += "\n"
                pieces.append((len(text), below.line, below.column + 1))
                text += below.text.removeprefix("#").rstrip()
                used += 1
            elif problem is not None:
                return self._bad(tag, comment, used, problem, pieces, place), used
            else:
                meant = below is not None and not place and not DIRECTIVE.match(below.text)
                stray = below if meant and notation and notation.note else None
                return Opener(tag, comment, comment.line + used, notation, place=place, below=stray), used

    def _adjoins(self, first: Comment, line: Comment, used: int) -> bool:
        """Whether a comment stands right below an annotation and is no mark."""
        adjacent = line.own_line and line.line == first.line + used + 1 and line.column == first.column
        return adjacent and not (self._opener.match(line.text) or self._end.match(line.text))

    @staticmethod
    def _bad(
        tag: str,
        comment: Comment,
        used: int,
        problem: NotationError,
        pieces: Sequence[tuple[int, int, int]],
        place: str | None,
    ) -> Opener:
        start, line, column = max(piece for piece in pieces if piece[0] <= max(problem.offset, 0))
        where = (line, column + problem.offset - start)
        last = comment.line + (0 if isinstance(problem, OpenBracket) else used)
        return Opener(tag, comment, last, None, problem, where, place)


def _hangs(first: Comment, line: Comment) -> bool:
    """Whether a comment's text is indented further than the tag of the annotation above."""
    return _indent(line) >= _indent(first) + HANGING


def _indent(comment: Comment) -> int:
    text = comment.text[1:]
    return len(text) - len(text.lstrip()) if text.strip() else 0


def _closable(problem: OpenBracket, comment: Comment) -> OpenBracket:
    """The problem with a fix that fits: only an annotation on its own line goes on in the next one."""
    if comment.own_line:
        return problem
    return OpenBracket(problem.message, problem.offset, "Close the bracket, or give the annotation a line of its own.")


def join_items(notation: Notation, tag: str) -> str:
    """`A(x), AST: B`: the items, naming a tag where it changes."""
    parts: list[str] = []
    for item in notation.items:
        parts.append(item.source if item.tag == tag else f"{item.tag}: {item.source}")
        tag = item.tag
    return ", ".join(parts)


def is_prose(opener: Opener) -> bool:
    """Whether the comment only looks like an annotation."""
    return isinstance(opener.problem, FreeText)
