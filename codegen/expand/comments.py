"""Comments of a file with what stands around them, found by the tokenizer: text in strings is never a comment."""

from __future__ import annotations

import tokenize
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Comment:
    """One comment. `depth` counts open brackets; `next_line`, `next_column`, `next_word` are the next code token.

    Lines start at 1, columns at 0 (characters). After the last code, `next_word` is "".
    """

    line: int
    column: int
    text: str
    own_line: bool
    depth: int
    next_line: int = 0
    next_column: int = 0
    next_word: str = ""


@dataclass(frozen=True)
class Layout:
    """Comments in order, and the last line of each logical line in order."""

    comments: tuple[Comment, ...]
    logical_ends: tuple[int, ...]

    def logical_end(self, line: int) -> int:
        """Last physical line of the logical line that holds `line`."""
        at = bisect_left(self.logical_ends, line)
        return self.logical_ends[at] if at < len(self.logical_ends) else line


_SILENT = (
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
)


def read_layout(lines: Sequence[str]) -> Layout:
    """Tokenize the lines. Raises SyntaxError when the text is not Python."""
    comments: list[Comment] = []
    waiting: list[Comment] = []
    ends: list[int] = []
    depth = 0
    last_code_line = 0
    try:
        for kind, text, (row, column), (end_row, _), _ in tokenize.generate_tokens(iter(lines).__next__):
            if kind == tokenize.COMMENT:
                waiting.append(Comment(row, column, text, last_code_line != row, depth))
            elif kind == tokenize.NEWLINE:
                ends.append(row)
            elif kind not in _SILENT:
                word = "" if kind == tokenize.ENDMARKER else text
                comments.extend(
                    Comment(c.line, c.column, c.text, c.own_line, c.depth, row, column, word) for c in waiting
                )
                waiting.clear()
                last_code_line = end_row
                if kind == tokenize.OP:
                    depth += (text in "([{") - (text in ")]}")
    except tokenize.TokenError as error:
        raise SyntaxError(str(error.args[0])) from error
    comments.extend(waiting)
    return Layout(tuple(comments), tuple(ends))
