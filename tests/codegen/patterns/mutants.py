"""Wrong variants of a rendered check: each must fail at least one of the examples of the same annotation.

Kinds: a condition (or one operand of `and`/`or`) replaced by True or False; a bound of a comparison shifted by one;
a comparison made strict or lax.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

_ORDER: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}


def mutants(rendered: str) -> Iterator[tuple[str, str]]:
    """(what was changed, source) for each mutant of the rendered statements."""
    tree = ast.parse(rendered)
    for index, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.If | ast.Assert):
            yield from _conditions(tree, index, node)
    for index, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.Compare):
            yield from _comparison(tree, index, node)


def _conditions(tree: ast.Module, index: int, node: ast.If | ast.Assert) -> Iterator[tuple[str, str]]:
    for value in (True, False):
        yield _changed(tree, index, f"{ast.unparse(node.test)} → {value}", lambda n, v=value: _set(n, "test", v))
    for inner_index, inner in enumerate(ast.walk(node.test)):
        if not isinstance(inner, ast.BoolOp):
            continue
        for position, operand in enumerate(inner.values):
            for value in (True, False):

                def change(n: ast.AST, i: int = inner_index, p: int = position, v: bool = value) -> None:
                    list(ast.walk(n.test))[i].values[p] = ast.Constant(v)

                yield _changed(tree, index, f"{ast.unparse(operand)} → {value}", change)


def _comparison(tree: ast.Module, index: int, node: ast.Compare) -> Iterator[tuple[str, str]]:
    ordered = any(type(op) in _ORDER for op in node.ops)
    for position, operand in enumerate([node.left, *node.comparators]):
        number = isinstance(operand, ast.Constant) and type(operand.value) in (int, float)
        if not number and not ordered:
            continue
        for shift in (1, -1):

            def change(n: ast.AST, p: int = position, s: int = shift) -> None:
                shifted = ast.BinOp(n.left if p == 0 else n.comparators[p - 1], ast.Add(), ast.Constant(s))
                if p == 0:
                    n.left = shifted
                else:
                    n.comparators[p - 1] = shifted

            yield _changed(tree, index, f"{ast.unparse(node)}: {ast.unparse(operand)} {shift:+d}", change)
    for position, op in enumerate(node.ops):
        if type(op) in _ORDER:

            def change(n: ast.AST, p: int = position, o: type[ast.cmpop] = _ORDER[type(op)]) -> None:
                n.ops[p] = o()

            yield _changed(tree, index, f"{ast.unparse(node)}: {_ORDER[type(op)].__name__}", change)


def _set(node: ast.AST, name: str, value: object) -> None:
    setattr(node, name, ast.Constant(value))


def _changed(tree: ast.Module, index: int, what: str, change: Callable[[ast.AST], None]) -> tuple[str, str]:
    other = copy.deepcopy(tree)
    change(list(ast.walk(other))[index])
    return what, ast.unparse(ast.fix_missing_locations(other))
