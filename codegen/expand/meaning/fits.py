"""Whether a check can be applied to the types that are known of what it reads.

The question is put to the code that the pattern gives, so it holds for a project's own patterns, too: `len(x)` needs a
length, `x > 0` an order against numbers, `x.strip()` the attribute. What is not known passes.
"""

from __future__ import annotations

import ast
import collections.abc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from codegen.expand.meaning.classes import classes_of, last_word
from codegen.expand.meaning.types import Scope, arguments_of, built_in, infer, members_of

_ITERATING = frozenset(
    {"set", "sorted", "list", "tuple", "frozenset", "sum", "any", "all", "min", "max", "pairwise", "prod", "enumerate"}
)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_NOT_NUMBERS = (str, bytes, bytearray, list, dict, set, frozenset, tuple, range, complex)
_INSTEAD = {"VAL_KEY_IN": "VAL_ONE_OF", "VAL_KEY_ABSENT": "VAL_NOT_IN"}


@dataclass(frozen=True)
class Misfit:
    """An operation of a check that the type of its operand does not have."""

    source: str
    kind: str
    lack: str


@dataclass
class _Reader(ast.NodeVisitor):
    """Goes through the code of a check. `loops` holds the element types of the loop variables it makes up."""

    scope: Scope
    found: list[Misfit] = field(default_factory=list)
    loops: dict[str, ast.expr | None] = field(default_factory=dict)

    def kinds(self, node: ast.expr) -> list[ast.expr]:
        """The types that the value may have, [] when they are not known."""
        made_up = isinstance(node, ast.Name) and node.id in self.loops
        kind = self.loops[node.id] if made_up else infer(node, self.scope)  # type: ignore[attr-defined]
        return [k for k in members_of(kind) if last_word(k) != "NoneType"] if kind is not None else []

    def need(self, node: ast.expr, names: tuple[str, ...], lack: str) -> None:
        """The value needs one of the methods."""
        kinds = self.kinds(node)
        if kinds and all(_lacks(kind, names, self.scope) for kind in kinds):
            self.found.append(Misfit(ast.unparse(node), " | ".join(map(ast.unparse, kinds)), lack))

    def visit_For(self, node: ast.For) -> None:
        self.need(node.iter, ("__iter__", "__getitem__"), "cannot be gone through")
        if isinstance(node.target, ast.Name):
            self.loops[node.target.id] = _element(self.kinds(node.iter))
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.need(node.iter, ("__iter__", "__getitem__"), "cannot be gone through")
        for name in ast.walk(node.target):
            if isinstance(name, ast.Name):
                self.loops[name.id] = None
        self.generic_visit(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node)

    def _comprehension(self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp) -> None:
        """Generators first: their variables are what the element's expression reads."""
        before = dict(self.loops)
        for generator in node.generators:
            self.visit(generator)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(part)
        self.loops = before

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Nothing is known of what a lambda is called with."""

    def visit_Call(self, node: ast.Call) -> None:
        name, first = last_word(node.func), node.args[0] if node.args else None
        if first is not None and not isinstance(first, ast.Starred):
            if isinstance(node.func, ast.Name) and name == "len":
                self.need(first, ("__len__",), "has no length")
            elif name in _ITERATING and len(node.args) == 1:
                self.need(first, ("__iter__", "__getitem__"), "cannot be gone through")
            elif ast.unparse(node.func) in ("math.isfinite", "math.isnan", "math.isinf"):
                self.need(first, ("__float__", "__index__"), "is no number")
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.need(node.value, (node.attr,), f"has no {node.attr}")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Mod | ast.BitAnd) and self._number(node.right):
            self._not_a_number(node.left, "does not divide")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, _ORDER):
                for one, other in ((left, right), (right, left)):
                    if self._number(other):
                        self._not_a_number(one, "has no order against a number")
            elif isinstance(operator, ast.In | ast.NotIn):
                self.need(right, ("__contains__", "__iter__", "__getitem__"), "contains nothing")
            left = right
        self.generic_visit(node)

    def _number(self, node: ast.expr) -> bool:
        names = {last_word(kind) for kind in self.kinds(node)}
        return bool(names) and names <= {"int", "float", "bool"}

    def _not_a_number(self, node: ast.expr, lack: str) -> None:
        kinds = self.kinds(node)
        if kinds and all(built_in(kind) in _NOT_NUMBERS for kind in kinds):
            self.found.append(Misfit(ast.unparse(node), " | ".join(map(ast.unparse, kinds)), lack))


def misfits(code: str, scope: Scope, imported: Iterable[str] = ()) -> list[Misfit]:
    """What the check does with values whose type cannot do it. `imported`: names that the check's own imports bind."""
    reader = _Reader(scope, loops=dict.fromkeys(imported))
    for statement in ast.parse(code).body:
        reader.visit(statement)
    return reader.found


def other_pattern(id: str, mapping: str | None, scope: Scope) -> tuple[str, str] | None:
    """The type of what is no mapping in a check of keys, and the pattern for it."""
    if id not in _INSTEAD or mapping is None:
        return None
    kind = infer(ast.parse(mapping, mode="eval").body, scope)
    kinds = members_of(kind) if kind is not None else []
    if kinds and all(_lacks(each, ("keys",), scope) for each in kinds):
        return " | ".join(map(ast.unparse, kinds)), _INSTEAD[id]
    return None


def _lacks(kind: ast.expr, names: tuple[str, ...], scope: Scope) -> bool:
    """Whether values of the type surely have none of these."""
    word = last_word(kind)
    shape = classes_of(scope.tree).get(word)
    if shape is not None:
        return shape.lacks(*names)
    known = built_in(kind) or (getattr(collections.abc, word, None) if word in collections.abc.__all__ else None)
    return known is not None and not any(hasattr(known, name) for name in names)


def _element(kinds: list[ast.expr]) -> ast.expr | None:
    if len(kinds) != 1:
        return None
    inner = arguments_of(kinds[0])
    if last_word(kinds[0]) in ("dict", "Dict", "Mapping", "MutableMapping"):
        return inner[0] if len(inner) == 2 else None
    rest = [part for part in inner if not (isinstance(part, ast.Constant) and part.value is ...)]
    return rest[0] if len(rest) == 1 else None


def words(found: list[Misfit]) -> Iterator[str]:
    """`start is float, which has no length`."""
    for each in dict.fromkeys(found):
        yield f"{each.source} is {each.kind}, which {each.lack}"
