"""The quantities that Section 5 defines: parameters and fields by full name, with kind, domain and default.

A constraint names one by its full dotted name (`shop.till.Settings.limit`, `shop.till.total.limit` for a parameter) or
by a tail of it that only one has; where only one field has it, parameters of the same tail are passed over, because
most parameters are called like the setting they carry. Any other name is a quantity of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from codegen.constraints.language import Kind, literal
from codegen.document.model import Document
from codegen.drift.section import Documented, documented_definitions
from codegen.drift.signatures import dotted


@dataclass(frozen=True)
class Quantity:
    """A parameter or field. `domain` are the words it may be, if its type says so; `default` its default, if that is a
    number, a truth value or a word. `is_scalar` is False where its type says that it is none of the three. `line` is
    that of its definition in the document, `entry` the identity of its entry."""

    name: str
    is_field: bool
    kind: Kind | None
    whole: bool
    domain: tuple[str, ...]
    default: int | float | bool | str | None
    is_scalar: bool
    document: Document
    line: int
    entry: str


class Ambiguous(ValueError):
    """A name that is a tail of several quantities."""


class Quantities:
    """All quantities of some documents, found by full name or tail."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.by_name: dict[str, Quantity] = {}
        self._tails: dict[str, list[Quantity]] = {}
        self._below: dict[str, list[str]] = {}
        for document in documents:
            for documented in documented_definitions(document)[0]:
                for each in quantities_of(documented, document):
                    if self.by_name.setdefault(each.name, each) is each:
                        parts = each.name.split(".")
                        self._below.setdefault(".".join(parts[:-1]), []).append(parts[-1])
                        for at in range(1, len(parts)):
                            self._tails.setdefault(".".join(parts[at:]), []).append(each)

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """The kind of each quantity whose type says it."""
        return {name: each.kind for name, each in self.by_name.items() if each.kind is not None}

    def below(self, owner: str) -> list[str]:
        """The last names of the parameters of a function, or the fields of a class, by full name."""
        return self._below.get(owner, [])

    def resolve(self, name: str) -> str:
        """The full name that a name in a constraint means, the name itself where Section 5 has no such quantity.

        Ambiguous: several have that tail.
        """
        if name.startswith("len("):
            return f"len({self.resolve(name[4:-1])})"
        if name in self.by_name:
            return name
        found = self._tails.get(name, [])
        fields = [each for each in found if each.is_field]
        if len(fields) == 1:
            return fields[0].name
        if len(found) > 1:
            raise Ambiguous(f"`{name}` may be {' or '.join(f'`{each.name}`' for each in (fields or found)[:4])}")
        return found[0].name if found else name


def quantities_of(documented: Documented, document: Document) -> Iterator[Quantity]:
    """The parameters of a documented function, the fields of a documented class."""
    definition = documented.definition
    if definition.kind == "class":
        for each in definition.fields:
            if each.annotation is not None:
                line = documented.fence_line + each.line
                name = f"{documented.full_name}.{each.name}"
                yield _quantity(name, True, each.annotation, each.default, document, line, documented.entry.id)
        return
    for parameter in definition.parameters:
        if parameter.name not in ("self", "cls") and not parameter.kind.startswith("*"):
            name = f"{documented.full_name}.{parameter.name}"
            line, entry = documented.line, documented.entry.id
            yield _quantity(name, False, parameter.annotation, parameter.default, document, line, entry)


def _quantity(
    name: str,
    is_field: bool,
    annotation: ast.expr | None,
    default: ast.expr | None,
    document: Document,
    line: int,
    entry: str,
) -> Quantity:
    kind, whole, domain = _type(annotation)
    value = literal(_plain(default)) if default is not None else None
    is_scalar = annotation is None or kind is not None
    return Quantity(name, is_field, kind, whole, domain, value if is_scalar else None, is_scalar, document, line, entry)


def _plain(default: ast.expr) -> ast.expr:
    """The default in `field(default=3)`, and any other as it is."""
    if isinstance(default, ast.Call) and (dotted(default.func) or "").rpartition(".")[2] == "field":
        return next((key.value for key in default.keywords if key.arg == "default"), default)
    return default


def _type(annotation: ast.expr | None) -> tuple[Kind | None, bool, tuple[str, ...]]:
    """Kind, whether a number is whole, and the words of a `Literal`; None for a type that is none of these."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return _type(ast.parse(annotation.value, mode="eval").body)
        except SyntaxError:
            return None, False, ()
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        sides = [side for side in (annotation.left, annotation.right) if not _is_none(side)]
        return _type(sides[0]) if len(sides) == 1 else (None, False, ())
    if isinstance(annotation, ast.Subscript):
        base = (dotted(annotation.value) or "").rpartition(".")[2]
        inner = annotation.slice
        if base in ("Optional", "Final", "Annotated", "ClassVar"):
            return _type(inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner)
        if base == "Literal":
            words = [literal(each) for each in (inner.elts if isinstance(inner, ast.Tuple) else [inner])]
            if words and all(isinstance(word, str) for word in words):
                return "word", False, tuple(str(word) for word in words)
        return None, False, ()
    name = (dotted(annotation) or "").rpartition(".")[2] if annotation is not None else ""
    kinds: dict[str, tuple[Kind, bool]] = {
        "int": ("number", True), "float": ("number", False), "bool": ("flag", False), "str": ("word", False)
    }  # fmt: skip
    kind, whole = kinds.get(name, (None, False))
    return kind, whole, ()


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
