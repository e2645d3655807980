"""The language of constraints: comparisons of quantities, numbers, words and truth values.

    async_ratio >= 0 and not (mode == "sync" and async_ratio > 0)
    state in {idle, busy}
    0 < batch <= groups * group_size

It is a small part of Python's expressions, read with Python's grammar and never evaluated: `and`, `or`, `not`;
`<`, `<=`, `>`, `>=`, `==`, `!=`, also in chains; `in` and `not in` of a set in braces, whose bare names are words;
`+`, `-`, `*`, `/`, and `//` and `%` by a positive whole number; `min`, `max`, `abs`; `len(x)`, which is a quantity.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["number", "flag", "word"]
ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
EQUAL = (ast.Eq, ast.NotEq)
MEMBER = (ast.In, ast.NotIn)
FUNCTIONS = ("min", "max", "abs")
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_LONGEST = 2_000


class NotInLanguage(ValueError):
    """A text that is no constraint; the message says what is wrong with it."""


@dataclass(frozen=True)
class Constraint:
    """One constraint: its text, its checked syntax tree and the quantities in it, in order of first use."""

    text: str
    tree: ast.expr
    names: tuple[str, ...]


def read_constraint(text: str) -> Constraint:
    """Read one constraint. NotInLanguage: it is none."""
    text = " ".join(text.split())
    if len(text) > 1 and text[0] == text[-1] == "`" and "`" not in text[1:-1]:
        text = text[1:-1].strip()
    if not text:
        raise NotInLanguage("there is no constraint behind the colon")
    if len(text) > _LONGEST:
        raise NotInLanguage(f"the constraint is longer than {_LONGEST} characters")
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise NotInLanguage(f"`{text}` is no expression: {reason}") from error
    _formula(tree)
    return Constraint(text, tree, tuple(dict.fromkeys(quantities(tree))))


def quantities(node: ast.expr) -> Iterator[str]:
    """The quantities below a node, `len(x)` as itself; the bare names of a set are words and none."""
    name = quantity(node)
    if name is not None:
        yield name
        return
    if isinstance(node, ast.Set):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and not (isinstance(node, ast.Call) and child is node.func):
            yield from quantities(child)


def quantity(node: ast.expr) -> str | None:
    """The name of a quantity: `a.b`, or `len(a.b)`; None for every other expression."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
        inner = quantity(node.args[0])
        return None if inner is None or node.keywords or inner.startswith("len(") else f"len({inner})"
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def literal(node: ast.expr) -> int | float | bool | str | None:
    """The value of a number, a truth value or a word; None for every other expression."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = literal(node.operand)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return -value if isinstance(node.op, ast.USub) else value
        return None
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float, str)):
        return node.value
    return None


def member(node: ast.expr) -> int | float | bool | str | None:
    """The value of a member of a set: a literal, or a bare name, which is a word."""
    return node.id if isinstance(node, ast.Name) else literal(node)


def _formula(node: ast.expr) -> None:
    """Whether something is true or false."""
    if isinstance(node, ast.BoolOp):
        for each in node.values:
            _formula(each)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        _formula(node.operand)
    elif isinstance(node, ast.Compare):
        _comparison(node)
    elif not (quantity(node) or (isinstance(node, ast.Constant) and isinstance(node.value, bool))):
        raise NotInLanguage(f"`{ast.unparse(node)}` is neither true nor false: write a comparison")


def _comparison(node: ast.Compare) -> None:
    sides = [node.left, *node.comparators]
    for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
        if isinstance(operator, MEMBER):
            if not isinstance(right, ast.Set):
                raise NotInLanguage(f"`{ast.unparse(right)}` is no set: write `in {{a, b}}`")
            for each in right.elts:
                if member(each) is None:
                    raise NotInLanguage(f"`{ast.unparse(each)}` in the braces is neither a word nor a number")
            _term(left)
        elif isinstance(operator, (*ORDER, *EQUAL)):
            _term(left)
            _term(right)
        else:
            raise NotInLanguage(f"`{ast.unparse(node)}`: `is` compares objects, write `==`")


def _term(node: ast.expr) -> None:
    """Whether something has a value: a number, a word or a truth value."""
    if quantity(node) is not None or literal(node) is not None:
        if isinstance(value := literal(node), float) and value - value != 0:
            raise NotInLanguage(f"`{ast.unparse(node)}` is no finite number: leave the bound out")
        return
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        _term(node.operand)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        _term(node.left)
        _term(node.right)
        divisor = literal(node.right)
        whole = isinstance(divisor, int) and not isinstance(divisor, bool) and divisor > 0
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and not whole:
            raise NotInLanguage(f"`{ast.unparse(node)}` divides by something else than a positive whole number")
        if isinstance(node.op, ast.Div) and divisor == 0:
            raise NotInLanguage(f"`{ast.unparse(node)}` divides by zero")
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        if node.keywords or not node.args or (node.func.id == "abs") != (len(node.args) == 1):
            raise NotInLanguage(f"`{ast.unparse(node)}`: {node.func.id} takes {_ARGUMENTS[node.func.id]}")
        for each in node.args:
            _term(each)
    else:
        raise NotInLanguage(f"`{ast.unparse(node)}` is not in the language of constraints")


_ARGUMENTS = {"min": "two or more terms", "max": "two or more terms", "abs": "one term"}
