"""Which quantities are numbers, words or truth values: as Section 5 says, else as the constraints use them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codegen.constraints.language import FUNCTIONS, MEMBER, ORDER, Kind, literal, member, quantity


class Clash(ValueError):
    """A quantity that is used as two kinds."""


def infer(trees: Iterable[ast.expr], known: dict[str, Kind]) -> dict[str, Kind]:
    """The kind of every quantity in some constraints. Clash: one is used as two kinds.

    What nothing settles, like `a == b` alone, is a number.
    """
    kinds = dict(known)
    trees = list(trees)
    while True:
        before = dict(kinds)
        for tree in trees:
            _formula(tree, kinds)
        if kinds == before:
            break
    return kinds


def kind_of(node: ast.expr, kinds: dict[str, Kind]) -> Kind | None:
    """The kind of a term, as far as known."""
    name = quantity(node)
    if name is not None:
        return "number" if name.startswith("len(") else kinds.get(name)
    value = literal(node)
    return _kind(value) if value is not None else "number"


def _formula(node: ast.expr, kinds: dict[str, Kind]) -> None:
    name = quantity(node)
    if name is not None:
        _settle(name, "flag", kinds)
    elif isinstance(node, ast.BoolOp):
        for each in node.values:
            _formula(each, kinds)
    elif isinstance(node, ast.UnaryOp):
        _formula(node.operand, kinds)
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            if isinstance(operator, MEMBER) and isinstance(right, ast.Set):
                for each in right.elts:
                    value = member(each)
                    if value is not None:
                        _equal(left, _kind(value), kinds)
            elif isinstance(operator, ORDER):
                _numbers(left, kinds)
                _numbers(right, kinds)
            else:
                for one, other in ((left, right), (right, left)):
                    kind = kind_of(one, kinds)
                    if kind is not None:
                        _equal(other, kind, kinds)


def _equal(node: ast.expr, kind: Kind, kinds: dict[str, Kind]) -> None:
    """A term is compared with something of a kind."""
    name = quantity(node)
    if name is not None:
        _settle(name, kind, kinds)
        return
    _numbers_inside(node, kinds)
    found = kind_of(node, kinds)
    if found != kind:
        raise Clash(f"`{ast.unparse(node)}` is a {found} and is compared with a {kind}")


def _numbers(node: ast.expr, kinds: dict[str, Kind]) -> None:
    _equal(node, "number", kinds)


def _numbers_inside(node: ast.expr, kinds: dict[str, Kind]) -> None:
    if isinstance(node, ast.BinOp):
        _numbers(node.left, kinds)
        _numbers(node.right, kinds)
    elif isinstance(node, ast.UnaryOp) and literal(node) is None:
        _numbers(node.operand, kinds)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        for each in node.args:
            _numbers(each, kinds)


def _settle(name: str, kind: Kind, kinds: dict[str, Kind]) -> None:
    found = "number" if name.startswith("len(") else kinds.setdefault(name, kind)
    if found != kind:
        raise Clash(f"`{name}` is a {found} and is used as a {kind}")


def _kind(value: int | float | bool | str) -> Kind:
    if isinstance(value, bool):
        return "flag"
    return "word" if isinstance(value, str) else "number"
