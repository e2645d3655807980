"""The annotation grammar: `TAG: ID[(args)] {, [TAG:] ID[(args)]} [ - note]`.

Text in, data out. Arguments are parsed with `ast` and kept as source text; nothing is evaluated. Offsets count
from the start of the text that was given, so that the caller can point at line and column.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

_ID = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_WORD = re.compile(r"[A-Z][A-Z0-9_]*(?![A-Za-z0-9_])")
_NOTE = re.compile(r"\s+[-\N{EN DASH}\N{EM DASH}]\s+(\S.*)\Z", re.DOTALL)
_SEPARATOR = re.compile(r"\s*,\s*")
_BLANK = re.compile(r"\s*")
_OPENING, _CLOSING = "([{", ")]}"


class NotationError(Exception):
    """The text after the tag is not an annotation. `offset` is where, `fix` what to write."""

    def __init__(self, message: str, offset: int, fix: str) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.fix = fix


class OpenBracket(NotationError):
    """The text ends inside brackets: the annotation may go on in the next comment line."""


class FreeText(NotationError):
    """The text names no pattern; it is prose for people and expands to nothing."""


@dataclass(frozen=True)
class Item:
    """One pattern with its arguments as source text."""

    tag: str
    id: str
    positional: tuple[str, ...] = ()
    keywords: tuple[tuple[str, str], ...] = ()
    offset: int = 0

    @property
    def source(self) -> str:
        """The item in its shortest spelling."""
        arguments = [*self.positional, *(f"{name}={value}" for name, value in self.keywords)]
        return f"{self.id}({', '.join(arguments)})" if arguments else self.id


@dataclass(frozen=True)
class Notation:
    """All that one annotation says."""

    items: tuple[Item, ...]
    note: str | None = None


def parse_notation(tag: str, text: str, tags: frozenset[str]) -> Notation:
    """Parse what follows `TAG:`. Raises NotationError, OpenBracket, or FreeText for prose."""
    position = _skip_blank(text, 0)
    items: list[Item] = []
    while True:
        tag, position = _switch_tag(tag, text, position, tags)
        item, position = _parse_item(tag, text, position, first=not items)
        items.append(item)
        separator = _SEPARATOR.match(text, position)
        if not separator:
            break
        position = separator.end()
    if note := _NOTE.match(text, position):
        return Notation(tuple(items), " ".join(note[1].split()))
    if text[position:].strip():
        rest = text[position:].strip()
        raise NotationError(
            f"unexpected text {rest[:40]!r} after {items[-1].id}",
            _skip_blank(text, position),
            "Put a comma before the next pattern, ` - ` before a note, a blank line before another comment.",
        )
    return Notation(tuple(items), None)


def _skip_blank(text: str, position: int) -> int:
    found = _BLANK.match(text, position)
    return found.end() if found else position


def _switch_tag(tag: str, text: str, position: int, tags: frozenset[str]) -> tuple[str, int]:
    for other in tags:
        if text.startswith(f"{other}:", position):
            return other, _skip_blank(text, position + len(other) + 1)
    return tag, position


def _parse_item(tag: str, text: str, position: int, first: bool) -> tuple[Item, int]:
    found = _ID.match(text, position) or _WORD.match(text, position)
    after = text[found.end() : found.end() + 1] if found else ""
    if found is None or (after.isalnum() or after == "_"):
        error = FreeText if first else NotationError
        raise error(
            f"{text[position : position + 40].strip()!r} is not a pattern id"
            if text[position:].strip()
            else "a pattern id is missing",
            position,
            f"Write `# {tag}: ID(arguments)`; `codegen expand --suggest` proposes what it could be.",
        )
    if first and "_" not in found[0] and text[found.end() :].strip() and after not in ("(", ","):
        raise FreeText(
            f"{text[position : position + 40].strip()!r} is not a pattern id",
            position,
            f"Write `# {tag}: ID(arguments)`; `codegen expand --suggest` proposes what it could be.",
        )
    if after != "(":
        return Item(tag, found[0], offset=position), found.end()
    end = matching_bracket(text, found.end())
    if end is None:
        raise OpenBracket(
            f"the bracket of {found[0]} is not closed",
            found.end(),
            "Close the bracket in this comment or the next line.",
        )
    positional, keywords = _parse_arguments(found[0], text, found.end() + 1, end)
    return Item(tag, found[0], positional, keywords, position), end + 1


def matching_bracket(text: str, start: int) -> int | None:
    """Offset of the bracket that closes the one at `start`, skipping string literals; None if there is none."""
    depth, position = 0, start
    while position < len(text):
        character = text[position]
        if character in "'\"":
            quote = character * 3 if text.startswith(character * 3, position) else character
            position += len(quote)
            while position < len(text) and not text.startswith(quote, position):
                position += 2 if text[position] == "\\" else 1
            position += len(quote)
            continue
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
            if depth == 0:
                return position
        position += 1
    return None


def _parse_arguments(id: str, text: str, start: int, end: int) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    inner = text[start:end]
    call = _parse_call(id, inner, start)
    lines = f"f({inner}\n)"
    positional: list[str] = []
    for value in call.args:
        if isinstance(value, ast.Starred):
            raise NotationError(f"{id}: an argument with *", start, "Write the arguments out.")
        positional.append(_segment(lines, value))
    keywords: list[tuple[str, str]] = []
    for keyword in call.keywords:
        if keyword.arg is None:
            raise NotationError(f"{id}: an argument with **", start, "Write the arguments out.")
        if keyword.arg in dict(keywords):
            raise NotationError(f"{id}: {keyword.arg} is given twice", start, "Keep one of them.")
        keywords.append((keyword.arg, _segment(lines, keyword.value)))
    return tuple(positional), tuple(keywords)


def _segment(lines: str, node: ast.expr) -> str:
    """Source of an argument on one line; a multi-line or parenthesised one is written again from its tree."""
    found = ast.get_source_segment(lines, node)
    if found is None or "\n" in found or "#" in found:
        return ast.unparse(node)
    return f"({found})" if isinstance(node, ast.GeneratorExp | ast.NamedExpr) and found[0] != "(" else found


def _parse_call(id: str, inner: str, start: int) -> ast.Call:
    try:
        tree = ast.parse(f"f({inner}\n)", mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        message = error.msg if isinstance(error, SyntaxError) else type(error).__name__
        column = _offset(inner, error) if isinstance(error, SyntaxError) else 0
        fix = "Correct the expression."
        if "positional argument follows keyword" in message:
            fix = "Give a flag as a keyword argument: flag=True."
        raise NotationError(f"{id}: {message}", start + max(0, min(column, len(inner))), fix) from error
    if not isinstance(tree.body, ast.Call) or not isinstance(tree.body.func, ast.Name):
        raise NotationError(f"{id}: unbalanced brackets", start, "Balance the brackets.")
    return tree.body


def _offset(inner: str, error: SyntaxError) -> int:
    """Where in the arguments an error of `f(<arguments>` lies."""
    above = inner.split("\n")[: (error.lineno or 1) - 1]
    return sum(len(line) + 1 for line in above) + (error.offset or 1) - (1 if above else 3)
