"""Comments and logical lines of a file, found by the tokenizer: text in strings is never a comment."""

from __future__ import annotations

import tokenize
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Comment:
    """One comment. Lines start at 1, columns at 0 (characters). `depth` counts the brackets open around it."""

    line: int
    column: int
    text: str
    own_line: bool
    depth: int


@dataclass(frozen=True)
class LogicalLine:
    """One logical line: its first and last physical line, and its first word."""

    first: int
    last: int
    word: str


@dataclass(frozen=True)
class Layout:
    """Comments and logical lines in order."""

    comments: tuple[Comment, ...]
    logical: tuple[LogicalLine, ...]
    logical_ends: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "logical_ends", tuple(line.last for line in self.logical))

    def logical_end(self, line: int) -> int:
        """Last physical line of the logical line that holds `line`."""
        at = bisect_left(self.logical_ends, line)
        return self.logical_ends[at] if at < len(self.logical_ends) else line

    def next_code(self, line: int) -> LogicalLine | None:
        """The first logical line that begins below `line`."""
        at = bisect_left(self.logical_ends, line + 1)
        while at < len(self.logical) and self.logical[at].first <= line:
            at += 1
        return self.logical[at] if at < len(self.logical) else None

    def mapped(self, line_of: Callable[[int], int | None]) -> Layout:
        """The layout of a text that holds some of the lines: `line_of` gives a line's new number, None if it is out."""
        comments = [
            replace(comment, line=line) for comment in self.comments if (line := line_of(comment.line)) is not None
        ]
        logical: list[LogicalLine] = []
        for each in self.logical:
            first, last = line_of(each.first), line_of(each.last)
            if first is not None and last is not None:
                logical.append(LogicalLine(first, last, each.word))
        return Layout(tuple(comments), tuple(logical))


_SILENT = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER)


def read_layout(lines: Sequence[str]) -> Layout:
    """Tokenize the lines. Raises SyntaxError when the text is not Python."""
    comments: list[Comment] = []
    logical: list[LogicalLine] = []
    start: tuple[int, str] | None = None
    depth = last_code_line = 0
    try:
        for kind, text, (row, column), (end_row, _), _ in tokenize.generate_tokens(iter(lines).__next__):
            if kind == tokenize.COMMENT:
                comments.append(Comment(row, column, text, last_code_line != row, depth))
            elif kind == tokenize.NEWLINE:
                if start:
                    logical.append(LogicalLine(start[0], row, start[1]))
                start = None
            elif kind not in _SILENT:
                start = start or (row, text)
                last_code_line = end_row
                if kind == tokenize.OP:
                    depth += (text in "([{") - (text in ")]}")
    except tokenize.TokenError as error:
        raise SyntaxError(str(error.args[0])) from error
    return Layout(tuple(comments), tuple(logical))
