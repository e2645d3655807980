"""What a name promises to those who use it, as a digest that does not depend on where or how it is written.

The contract of a function: parameters, return type, async, decorators, annotations and the types it raises; of a class:
bases, decorators, fields, annotations; of a constant: type and value. An implementation, a docstring, the order of
annotations and layout are no part of it, so that a stub has the contract of the whole.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from codegen.document.digests import digest
from codegen.document.trees import children

ANNOTATION = re.compile(r"#\s*(VAL|AST)\s*:\s*(.*?)\s*$")
RAISED = re.compile(r"\s*`?([A-Za-z_][\w.]*)`?\s*(,|/|\bor\b|\band\b)?")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Piece:
    """One definition of a fence: its name in the fence ("Till.total"), and its lines (1-based in the fence).

    `first` is where the comments right above it and its decorators begin; `last` takes in the comments that close it.
    """

    name: str
    node: ast.stmt
    first: int
    last: int

    @property
    def lines(self) -> range:
        return range(self.first, self.last + 1)


@lru_cache(maxsize=20_000)
def pieces_of(code: str) -> tuple[Piece, ...]:
    """The definitions of a fence in order: functions, classes, their methods and nested classes, constants.

    () for a fence that is not Python.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return ()
    lines = code.split("\n")
    return tuple(_pieces(tree.body, "", lines, len(lines)))


def _pieces(body: Sequence[ast.stmt], prefix: str, lines: list[str], end: int) -> Iterator[Piece]:
    for at, node in enumerate(body):
        name = _name_of(node)
        if not name or (prefix and not isinstance(node, Function | ast.ClassDef)):
            continue
        last = _with_comments(node, lines, _first_line(body[at + 1]) - 1 if at + 1 < len(body) else end)
        yield Piece(prefix + name, node, _top(node, lines), last)
        if isinstance(node, ast.ClassDef):
            yield from _pieces(node.body, f"{prefix}{name}.", lines, last)


def _top(node: ast.stmt, lines: list[str]) -> int:
    """The first line of a definition with the comments right above it."""
    first = _first_line(node)
    while first > 1 and lines[first - 2].startswith(" " * node.col_offset + "#"):
        first -= 1
    return first


def _name_of(node: ast.stmt) -> str:
    if isinstance(node, Function | ast.ClassDef):
        return node.name
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return ""


def _first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])


def _with_comments(node: ast.stmt, lines: list[str], most: int) -> int:
    """The last line of a definition with the comments behind it that are indented deeper than its head."""
    last = node.end_lineno or node.lineno
    for at in range(last, most):
        text = lines[at].lstrip()
        if text and not (text.startswith("#") and len(lines[at]) - len(text) > node.col_offset):
            break
        if text:
            last = at + 1
    return last


def contract(piece: Piece, code: str, errors: Iterable[str] = ()) -> str:
    """The digest of what a definition of `code` promises; `errors` are types that it raises besides those it shows."""
    return _contract(piece, code, frozenset(last_part(name) for name in errors))


# The audit of a history reads the same definitions in every version of a document.
@lru_cache(maxsize=50_000)
def _contract(piece: Piece, code: str, errors: frozenset[str]) -> str:
    node = piece.node
    raised = set(errors)
    if isinstance(node, Function):
        raised |= set(shown_raises(node.body))
        parts = ["async" if isinstance(node, ast.AsyncFunctionDef) else "def", ast.unparse(node.args)]
        parts += [ast.unparse(node.returns) if node.returns else "", "with", *_decorators(node)]
    elif isinstance(node, ast.ClassDef):
        raised |= set(shown_raises([each for each in node.body if isinstance(each, ast.Raise)]))
        parts = ["class", *map(ast.unparse, node.bases), *(ast.unparse(each) for each in node.keywords)]
        parts += ["with", *_decorators(node), "fields", *(ast.unparse(each) for each in fields_of(node))]
    else:
        parts = [ast.unparse(node)]
    return digest([*parts, "annotated", *sorted(annotations_of(piece, code)), "raises", *sorted(raised)])


def _decorators(node: Function | ast.ClassDef) -> list[str]:
    return sorted(ast.unparse(each) for each in node.decorator_list)


def fields_of(node: ast.ClassDef) -> list[ast.stmt]:
    """The assignments of a class body."""
    return [each for each in node.body if isinstance(each, ast.AnnAssign | ast.Assign)]


def shown_raises(body: Sequence[ast.stmt]) -> list[str]:
    """The last parts of the names that a body raises itself, each once, in order; `raise` alone says nothing."""
    found: dict[str, None] = {}
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        if isinstance(node, Function | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Raise) and node.exc is not None:
            exc = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(exc, ast.Name | ast.Attribute) and last_part(ast.unparse(exc))[:1].isupper():
                found[last_part(ast.unparse(exc))] = None
        stack += reversed(children(node))
    return list(found)


def error_names(items: Iterable[str]) -> list[str]:
    """The types at the head of the items of `errors:`: "KeyError or ValueError when …"."""
    names: list[str] = []
    for item in items:
        at = 0
        while (match := RAISED.match(item, at)) and match[1].rpartition(".")[2][:1].isupper():
            names.append(match[1])
            at = match.end()
            if not match[2]:
                break
    return names


def last_part(name: str) -> str:
    return name.rpartition(".")[2]


def annotations_of(piece: Piece, code: str) -> list[str]:
    """The annotations of a definition itself, not those of its members: one above it, and those inside it."""
    lines = code.split("\n")
    members = members_of(piece, code)
    found: list[str] = []
    for at in piece.lines:
        match = ANNOTATION.match(lines[at - 1].strip())
        if match and not any(at in each.lines for each in members):
            found.append(f"{match[1]}: {_normal(_whole(match[2], lines, at))}")
    return found


def members_of(piece: Piece, code: str) -> list[Piece]:
    """The definitions inside a class, at any depth."""
    if not isinstance(piece.node, ast.ClassDef):
        return []
    return [each for each in pieces_of(code) if each.name.startswith(f"{piece.name}.") and each.first in piece.lines]


def _whole(text: str, lines: list[str], at: int) -> str:
    """An annotation with the comment lines that it goes on in, while brackets are open."""
    while text.count("(") > text.count(")") and at < len(lines) and lines[at].lstrip().startswith("#"):
        text += " " + lines[at].lstrip().lstrip("#").strip()
        at += 1
    return text


def _normal(text: str) -> str:
    """The annotation as Python prints it, without the note behind it; folded text where it is no expression."""
    for end in [len(text), *(match.start() for match in re.finditer(r"\s+[-–—]\s", text))]:
        try:
            return ast.unparse(ast.parse(text[:end].strip(), mode="eval"))
        except (SyntaxError, ValueError):
            continue
    return " ".join(text.split())
