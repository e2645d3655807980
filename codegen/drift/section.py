"""What Section 5 says, definition by definition, ready to be compared with code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from codegen.document.model import Document, Entry, Fence
from codegen.drift.code import Code, Place
from codegen.drift.promises import Annotated, read_promises
from codegen.drift.signatures import Definition, dotted, read_definitions, statements

_ERROR_NAMES = re.compile(r"\s*`?(?P<name>[A-Za-z_][\w.]*)`?\s*(?P<joint>,|/|\bor\b|\band\b)?")
_DELEGATED = re.compile(r"\s*(?:from|via)\s+`?(?P<call>[A-Za-z_][\w.]*)")
_METHOD_DECORATORS = frozenset({"property", "cached_property", "staticmethod", "classmethod", "abstractmethod"})


@dataclass(frozen=True)
class DocumentedError:
    """An exception of an `errors:` list; `source` is the call it comes from (`ValueError from json.loads`)."""

    name: str
    source: str | None


@dataclass(frozen=True)
class Documented:
    """One definition in a fence. `line` is its line in the document; lines of `definition` count in the fence.
    `key` is its name without the class that the heading gives; `siblings` are all definitions of the fence, placed."""

    entry: Entry
    module: str
    definition: Definition
    fence_line: int
    fence_lines: tuple[str, ...]
    annotated: Annotated
    siblings: tuple[Definition, ...]
    key: str

    @property
    def full_name(self) -> str:
        return f"{self.module}.{self.definition.name}" if self.module else self.definition.name

    @property
    def line(self) -> int:
        return self.fence_line + self.definition.line

    @cached_property
    def promises(self) -> tuple[tuple[str, int], ...]:
        """The promised validations, each with its line in the document."""
        found = self.annotated.promises.get(self.key, ())
        return tuple((promise.text, self.fence_line + promise.line) for promise in found)


@dataclass(frozen=True)
class BadFence:
    """A fence that is not Python."""

    entry: Entry
    line: int
    reason: str


def documented_definitions(document: Document) -> tuple[list[Documented], list[BadFence]]:
    """All definitions of Section 5 in document order, and the fences that cannot be read."""
    found: list[Documented] = []
    bad: list[BadFence] = []
    for entry in document.entries:
        names = [name.removeprefix(f"{entry.module}.") for name in entry.names if name != entry.module]
        for fence in entry.fences:
            try:
                found.extend(_read_fence(entry, fence, names))
            except SyntaxError as error:
                bad.append(BadFence(entry, fence.line + (error.lineno or 1), error.msg))
    return found, bad


def documented_errors(entry: Entry) -> list[DocumentedError]:
    """The exceptions an entry's `errors:` names, in order."""
    field = entry.fields.get("errors")
    items = [*entry.errors, *(field.items if field else ())]
    return [error for item in items for error in parse_error(item)]


def parse_error(item: str) -> Iterator[DocumentedError]:
    """The exceptions at the head of one item: "KeyError or ValueError when …", "ValueError from json.loads"."""
    at = 0
    names: list[str] = []
    while match := _ERROR_NAMES.match(item, at):
        if not match["name"].rpartition(".")[2][:1].isupper():
            break
        names.append(match["name"])
        at = match.end()
        if not match["joint"]:
            break
    delegated = _DELEGATED.match(item, at)
    source = delegated["call"].rstrip(".") if delegated and names else None
    for name in names:
        yield DocumentedError(name, source)


def raised_in_fence(definition: Definition) -> set[str]:
    """Exceptions that the pseudo-code itself raises: they need not be repeated under `errors:`."""
    names = set()
    for node in statements(definition.node.body):
        if isinstance(node, ast.Raise) and node.exc is not None:
            name = dotted(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
            if name:
                names.add(name)
    return names


def _read_fence(entry: Entry, fence: Fence, names: list[str]) -> Iterator[Documented]:
    definitions = read_definitions(ast.parse(fence.code))
    annotated = read_promises(fence.code, definitions.values())
    tops = {name: top_prefix(each, names) for name, each in definitions.items() if not each.owner}
    placed = {
        name: replace(definition, name=tops.get(name.partition(".")[0], "") + name)
        for name, definition in definitions.items()
    }
    lines = tuple(fence.code.split("\n"))
    siblings = tuple(placed.values())
    for name, definition in placed.items():
        yield Documented(entry, entry.module, definition, fence.line, lines, annotated, siblings, name)


def place_of(documented: Documented, code: Code) -> Place | None:
    """The definition in the code that a documented one means."""
    if documented.module:
        return code.find(documented.module, documented.definition.name)
    return code.resolve(documented.full_name)


def top_prefix(definition: Definition, names: Iterable[str]) -> str:
    """The class (with its dot) that a top-level definition of a fence belongs to, given the heading's names.

    A heading `Table.release` over `def release(self)` means the method; so does a heading `Table` over it.
    """
    owner = ""
    for name in names:
        parent, _, last = name.rpartition(".")
        if last == definition.name:
            return f"{parent}." if parent else ""
        if not owner:
            owner = name if last[:1].isupper() else parent
    first = definition.parameters[0].name if definition.parameters else ""
    is_method = first in ("self", "cls") or definition.decorators & _METHOD_DECORATORS
    return f"{owner}." if owner and is_method and definition.kind == "function" else ""
