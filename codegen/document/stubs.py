"""Stubs: the text of a folded module's fence, made of definitions and taken apart again.

A definition gives its decorators, its head as written, its annotations, the errors it raises and `...`; a class its
fields and the stubs of its methods. The fence is kept as lines by name, so that adding and removing one name leaves the
others as they are written.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Collection, Sequence

from codegen.document.contracts import (
    Function,
    Piece,
    annotations_of,
    error_names,
    fields_of,
    last_part,
    members_of,
    pieces_of,
    shown_raises,
)
from codegen.document.definitions import placed
from codegen.document.heads import UNIT, function_head
from codegen.document.model import Entry


class Stubs:
    """The names of one module, in order, each with its stub; methods are kept below their classes."""

    def __init__(self, code: str) -> None:
        self._lines: dict[str, list[str]] = {}
        lines = code.split("\n")
        for piece in pieces_of(code):
            gone = {at for member in members_of(piece, code) for at in member.lines}
            own = [lines[at - 1] for at in piece.lines if at not in gone and lines[at - 1].strip()]
            self._lines.setdefault(piece.name, []).extend(textwrap.dedent("\n".join(own)).split("\n"))

    def add(self, entry: Entry) -> None:
        """Take in all that an open entry defines."""
        local = tuple(name.removeprefix(f"{entry.module}.") for name in entry.names)
        for fence in entry.fences:
            code = textwrap.dedent(fence.code)
            pieces = pieces_of(code)
            tops = {p.name: placed(p.name, p.node, local) for p in pieces if "." not in p.name}
            fresh: set[str] = set()
            for piece in pieces:
                top, dot, rest = piece.name.partition(".")
                name = tops[top] + dot + rest
                errors = list(entry.errors) if local and name == local[0] else []
                stub = stub_of(piece, code, errors)
                if name in fresh:
                    self._lines[name] += stub
                else:
                    self._lines[name] = stub
                fresh.add(name)

    def put(self, name: str, lines: Sequence[str], after: str = "") -> None:
        """Take in the stub of one name, without its members, in the place of the one that is there; a new name comes
        behind the name `after` and its members, or at the end."""
        is_new = name not in self._lines
        self._lines[name] = list(lines)
        if is_new and after in self._lines:
            order = [each for each in self._lines if each != name]
            last = max(at for at, each in enumerate(order) if each == after or each.startswith(f"{after}."))
            order.insert(last + 1, name)
            self._lines = {each: self._lines[each] for each in order}

    def without(self, names: Collection[str]) -> str:
        """The fence's text without these names."""
        for name in names:
            self._lines.pop(name, None)
        return self.text()

    @property
    def names(self) -> list[str]:
        return list(self._lines)

    def text(self) -> str:
        """The fence's text."""
        top: list[str] = []
        for name in self._ordered(""):
            block = self.block(name)
            if top and (len(block) > 1 or top[-1].startswith(" ")):
                top.append("")
            top += block
        return "\n".join(top) + "\n"

    def _ordered(self, owner: str) -> list[str]:
        """The names right below a class (or the module): those whose class is not there are shown inside one."""
        found: dict[str, None] = {}
        for name in self._lines:
            if name.startswith(owner):
                first = name.removeprefix(owner).partition(".")[0]
                found[owner + first] = None
        return list(found)

    def block(self, name: str) -> list[str]:
        """The stub of a name with those of its members."""
        members = self._ordered(f"{name}.")
        own = list(self._lines.get(name, [f"class {last_part(name)}:"]))
        if not members:
            bare = name not in self._lines or (own[-1].endswith(":") and own[-1].lstrip().startswith("class "))
            return [*own, f"{UNIT}..."] if bare else own
        if own[-1].strip() == "...":
            own = own[:-1] or own
        own[-1] = own[-1].removesuffix(" ...")
        for member in members:
            own += [f"{UNIT}{line}" if line else "" for line in self.block(member)]
        return own


def stub_of(piece: Piece, code: str, errors: list[str]) -> list[str]:
    """A definition without its body. `errors` are the items of its entry's `errors:`, which go before what the body
    raises itself."""
    node = piece.node
    notes = [f"# {text}" for text in annotations_of(piece, code)]
    if isinstance(node, Function):
        named = {last_part(name) for name in error_names(errors)}
        shown = [name for name in shown_raises(node.body) if name not in named]
        raises = [*_raise_lines(errors), *(f"raise {name}" for name in shown)]
        body = [*notes, *raises]
        head = _head(node)
        if body:
            return [*head, *(f"{UNIT}{line}" for line in body), f"{UNIT}..."]
        return [*head[:-1], f"{head[-1]} ..."]
    if isinstance(node, ast.ClassDef):
        fields = [line for each in fields_of(node) for line in ast.unparse(each).split("\n")]
        body = [*notes, *_raise_lines(errors), *fields] or ["..."]
        return [*_head(node), *(f"{UNIT}{line}" for line in body)]
    return ast.unparse(node).split("\n")


def _raise_lines(errors: list[str]) -> list[str]:
    """`raise KeyError  # when …` for each type that the items of `errors:` name."""
    lines: list[str] = []
    for item in errors:
        names = error_names([item])
        if not names:
            continue
        rest = item[item.index(names[-1]) + len(names[-1]) :].strip("` ").strip()
        lines += [f"raise {name}  # {rest}" if rest else f"raise {name}" for name in names]
    return lines


def _head(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[str]:
    """Decorators and the line up to the colon, wrapped where it is too long."""
    lines = [f"@{ast.unparse(each)}" for each in node.decorator_list]
    if isinstance(node, ast.ClassDef):
        bases = [*map(ast.unparse, node.bases), *(ast.unparse(each) for each in node.keywords)]
        return [*lines, f"class {node.name}{'(' + ', '.join(bases) + ')' if bases else ''}:"]
    return [*lines, *function_head(node)]
