"""Build the source of an error message: an f-string that parses on every supported Python.

A message template marks each embedded expression with a field; the text around the fields, whatever it holds,
is escaped here, in one place. An expression that an f-string of Python 3.11 cannot hold (quotes, backslashes)
is passed to `str.format` instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from codegen.patterns.source import enclosed, parse

MAX_REPR = 200
_MARK = re.compile("\x00([0-9]+)\x00")
_BARE = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.Constant)


@dataclass(frozen=True)
class Field:
    """An expression inside a message, with its conversion, e.g. `!r:.200`."""

    source: str
    conversion: str


@dataclass
class Fields:
    """Hands out marks for expressions while a message template renders.

    `renamed` gives the source by which the value of an expression is read, where the check has bound it to a name.
    """

    found: list[Field] = field(default_factory=list)
    renamed: Callable[[str], str] = str

    def value(self, source: str) -> str:
        """The value's repr, cut after MAX_REPR characters."""
        return self._mark(source, f"!r:.{MAX_REPR}")

    def small(self, source: str) -> str:
        """The value's repr, for values that cannot be long."""
        return self._mark(source, "!r")

    def plain(self, source: str) -> str:
        """The value as `str` shows it, for values that cannot be long."""
        return self._mark(source, "")

    def text(self, source: str) -> str:
        """The value as `str` shows it, cut after MAX_REPR characters."""
        return self._mark(source, f"!s:.{MAX_REPR}")

    def _mark(self, source: str, conversion: str) -> str:
        self.found.append(Field(self.renamed(source), conversion))
        return f"\x00{len(self.found) - 1}\x00"

    def parts(self, rendered: str) -> list[str | Field]:
        """Split a rendered message into text and fields, in order, without empty texts."""
        pieces = _MARK.split(rendered)
        mixed = [self.found[int(p)] if n % 2 else " ".join(p.split("\n")) for n, p in enumerate(pieces)]
        return [part for part in mixed if part != ""]


def escape(text: str) -> str:
    """Text as it is written between the double quotes of an f-string."""
    return _escape_quoted(text).replace("{", "{{").replace("}", "}}")


def source(parts: list[str | Field]) -> str:
    """The message as one expression on one line."""
    if not all(isinstance(p, str) or _fits(p) for p in parts):
        text = "".join(escape(p) if isinstance(p, str) else "{" + p.conversion + "}" for p in parts)
        arguments = ", ".join(p.source for p in parts if isinstance(p, Field))
        return f'"{text}".format({arguments})'
    return _literal(parts)


def lines(parts: list[str | Field], width: int) -> list[str]:
    """The message as adjacent literals, each at most `width` long where words and fields allow it."""
    if not all(isinstance(p, str) or _fits(p) for p in parts):
        return [source(parts)]
    rows: list[list[str | Field]] = [[]]
    for word in _words(parts):
        if rows[-1] and len(_literal([*rows[-1], *word])) > width:
            rows.append([])
        rows[-1] += word
    return [_literal(row) for row in rows]


def _words(parts: list[str | Field]) -> list[list[str | Field]]:
    """Runs that must not be split: a word with the space behind it, and a field with what touches it."""
    words: list[list[str | Field]] = [[]]
    for part in parts:
        if isinstance(part, Field):
            words[-1].append(part)
            continue
        for piece in re.findall(r"\S*\s+|\S+", part):
            words[-1].append(piece)
            if piece[-1].isspace():
                words.append([])
    return [word for word in words if word]


def _literal(parts: list[str | Field]) -> str:
    if not any(isinstance(p, Field) for p in parts):
        return '"' + "".join(_escape_quoted(p) for p in parts if isinstance(p, str)) + '"'
    return 'f"' + "".join(escape(p) if isinstance(p, str) else _field(p) for p in parts) + '"'


def _field(part: Field) -> str:
    node = parse(part.source)
    text = part.source if '"' not in part.source else ast.unparse(node)
    if (
        not isinstance(node, (*_BARE, ast.Tuple))
        or text.startswith("{")
        or (isinstance(node, ast.Tuple) and not enclosed(text, node))
    ):
        text = f"({text})"
    return "{" + text + part.conversion + "}"


def _fits(part: Field) -> bool:
    """Whether an f-string in double quotes can hold the expression on Python 3.11."""
    text = _field(part)
    nested = any(isinstance(node, ast.JoinedStr) for node in ast.walk(parse(part.source)))
    return not nested and not any(mark in text for mark in '"\\#\n')


def _escape_quoted(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
