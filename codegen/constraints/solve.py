"""Ask z3 whether claims can hold together, and find the smallest set that cannot.

The smallest set is found by hitting sets (Ignatiev et al., 2015): whatever cannot hold together shares a claim with
every set whose removal makes the rest hold; the smallest such hitting set that cannot hold is the answer.
"""

from __future__ import annotations

import ast
import importlib.util
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

from codegen.constraints.language import Kind, literal, member, quantity

_LARGEST = 6
"""Up to this many claims a smallest set is searched for; a larger one lacks nothing, and there may be a smaller."""
_CORRECTIONS = 200


def has_solver() -> bool:
    """Whether the extra `smt` is installed."""
    return importlib.util.find_spec("z3") is not None


@dataclass(frozen=True)
class Verdict:
    """`core`: positions of the claims of a smallest set that cannot hold, empty when all can. `decided` is False
    where the solver gave up before its deadline or at it, also while it made the core smaller."""

    core: tuple[int, ...] = ()
    decided: bool = True


class Solver:
    """Claims over quantities of known kinds; `whole` are the numbers that are whole."""

    def __init__(self, kinds: Mapping[str, Kind], whole: frozenset[str], seconds: float) -> None:
        import z3

        self.z3: Any = z3
        self.kinds = kinds
        self.whole = whole
        self.deadline = time.monotonic() + seconds
        self.words: dict[str, int] = {}

    def judge(self, trees: Sequence[ast.expr]) -> Verdict:
        """Whether all claims can hold together."""
        solver = self.z3.Solver()
        marks = [self.z3.Bool(f"claim!{at}") for at in range(len(trees))]
        for mark, tree in zip(marks, trees, strict=True):
            solver.add(self.z3.Implies(mark, self.formula(tree)))
        for name in dict.fromkeys(name for tree in trees for name in _lengths(tree)):
            solver.add(self._variable(name) >= 0)
        holds = self._check(solver, marks)
        if holds is not False:
            return Verdict(decided=holds is True)
        core = self._reduced(solver, marks)
        smaller = self._smallest(solver, marks, len(core)) if len(core) > 1 else None
        return Verdict(smaller or core, time.monotonic() < self.deadline)

    def _check(self, solver: Any, marks: Sequence[Any]) -> bool | None:
        """Whether the claims of these marks can hold together; None: not decided in the time that is left."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            return None
        solver.set("timeout", max(1, int(left * 1000)))
        answer = solver.check(*marks)
        return None if answer == self.z3.unknown else bool(answer == self.z3.sat)

    def _reduced(self, solver: Any, marks: Sequence[Any]) -> tuple[int, ...]:
        """A set that cannot hold, each claim of which is needed for that (as far as the time allows)."""
        names = {str(mark) for mark in solver.unsat_core()}
        core = [at for at, mark in enumerate(marks) if str(mark) in names]
        for at in list(core):
            rest = [each for each in core if each != at]
            if self._check(solver, [marks[each] for each in rest]) is False:
                core = rest
        return tuple(core)

    def _smallest(self, solver: Any, marks: Sequence[Any], bound: int) -> tuple[int, ...] | None:
        """A smallest set that cannot hold, below `bound` claims; None: there is none, or no time is left."""
        corrections: list[frozenset[int]] = []
        while True:
            chosen = _hitting(corrections, min(bound - 1, _LARGEST))
            if chosen is None:
                return None
            holds = self._check(solver, [marks[at] for at in sorted(chosen)])
            if holds is None:
                return None
            if holds is False:
                return tuple(sorted(chosen))
            grown = set(chosen)
            for at in range(len(marks)):
                if at not in grown and self._check(solver, [marks[each] for each in sorted({*grown, at})]) is True:
                    grown.add(at)
            correction = frozenset(range(len(marks))) - grown
            if not correction or len(corrections) > _CORRECTIONS:
                return None
            corrections.append(correction)

    def formula(self, node: ast.expr) -> Any:
        """A constraint as a term of z3."""
        z3 = self.z3
        if isinstance(node, ast.BoolOp):
            join = z3.And if isinstance(node.op, ast.And) else z3.Or
            return join(*map(self.formula, node.values))
        if isinstance(node, ast.UnaryOp):
            return z3.Not(self.formula(node.operand))
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            pairs = zip(node.ops, sides, sides[1:], strict=False)
            return z3.And(*(self._comparison(operator, left, right) for operator, left, right in pairs))
        return self._term(node)

    def _comparison(self, operator: ast.cmpop, left: ast.expr, right: ast.expr) -> Any:
        z3 = self.z3
        if isinstance(right, ast.Set):
            value = self._term(left)
            any_of = z3.Or(*(value == self._value(member(each)) for each in right.elts))
            return any_of if isinstance(operator, ast.In) else z3.Not(any_of)
        one, other = self._term(left), self._term(right)
        if isinstance(operator, ast.Eq):
            return one == other
        if isinstance(operator, ast.NotEq):
            return one != other
        if isinstance(operator, ast.Lt):
            return one < other
        if isinstance(operator, ast.LtE):
            return one <= other
        return one > other if isinstance(operator, ast.Gt) else one >= other

    def _term(self, node: ast.expr) -> Any:
        z3 = self.z3
        name = quantity(node)
        if name is not None:
            return self._variable(name)
        value = literal(node)
        if value is not None:
            return self._value(value)
        if isinstance(node, ast.UnaryOp):
            term = self._term(node.operand)
            return -term if isinstance(node.op, ast.USub) else term
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node)
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name), ast.dump(node)
        terms = [self._term(each) for each in node.args]
        if node.func.id == "abs":
            return z3.If(terms[0] >= 0, terms[0], -terms[0])
        if node.func.id == "min":
            return reduce(lambda a, b: z3.If(a <= b, a, b), terms)
        return reduce(lambda a, b: z3.If(a >= b, a, b), terms)

    def _arithmetic(self, node: ast.BinOp) -> Any:
        z3 = self.z3
        left, right = self._term(node.left), self._term(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        left, right = (z3.ToReal(each) if z3.is_int(each) else each for each in (left, right))
        if isinstance(node.op, ast.Div):
            return left / right
        floor = z3.ToInt(left / right)  # the divisor is positive, so that this is Python's floor
        return floor if isinstance(node.op, ast.FloorDiv) else left - right * z3.ToReal(floor)

    def _variable(self, name: str) -> Any:
        kind = "number" if name.startswith("len(") else self.kinds.get(name, "number")
        if kind == "flag":
            return self.z3.Bool(name)
        whole = kind == "word" or name in self.whole or name.startswith("len(")
        return self.z3.Int(name) if whole else self.z3.Real(name)

    def _value(self, value: int | float | bool | str | None) -> Any:
        if isinstance(value, bool):
            return self.z3.BoolVal(value)
        if isinstance(value, str):
            return self.z3.IntVal(self.words.setdefault(value, len(self.words)))
        assert value is not None
        if isinstance(value, int):
            return self.z3.IntVal(value)
        # as written: 0.1 is a tenth, not the binary number next to it
        exact = Fraction(repr(value))
        return self.z3.Q(exact.numerator, exact.denominator)


def _hitting(corrections: list[frozenset[int]], largest: int) -> frozenset[int] | None:
    """A smallest set that shares a member with each correction; None where it needs more than `largest` members."""
    for size in range(largest + 1):
        found = _hitting_of(corrections, size)
        if found is not None:
            return found
    return None


def _hitting_of(corrections: list[frozenset[int]], size: int) -> frozenset[int] | None:
    if not corrections:
        return frozenset()
    if size == 0:
        return None
    for at in sorted(corrections[0]):
        rest = _hitting_of([each for each in corrections[1:] if at not in each], size - 1)
        if rest is not None:
            return rest | {at}
    return None


def _lengths(node: ast.expr) -> list[str]:
    found = []
    for each in ast.walk(node):
        name = quantity(each) if isinstance(each, ast.Call) else None
        if name is not None:
            found.append(name)
    return found
