"""The normal form of a check: what makes it fail, and with which error, whatever way it is written.

Equal forms mean equal checks; checks whose forms differ may still be equal. A negated order (`not n > 0`, `n <= 0`)
counts as the same unless a float or a tensor is compared: NaN fails the first and passes the second.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
}  # fmt: skip
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_SYMMETRIC = (ast.Eq, ast.NotEq)
UNORDERED = ("float", "complex", "Tensor", "ndarray", "Decimal", "Series", "DataFrame")
"""Words of type annotations whose values need not be ordered: the opposite of `<` is not `>=` for NaN."""


@dataclass(frozen=True)
class Form:
    """When a check fails, and how. `shown` is the condition as it is written; `names` are those that it reads."""

    kind: str
    error: str
    failing: str
    shown: str
    names: frozenset[str]


def form_of(
    statements: Sequence[ast.stmt],
    unordered: frozenset[str] = frozenset(),
    containers: frozenset[str] = frozenset(),
) -> Form | None:
    """The form of a run of statements that do nothing but check; None for any other code.

    `unordered` are names whose values need not be ordered, `containers` expressions whose truth asks for their length.
    """
    found = _checks(list(copy.deepcopy(list(statements))), {})
    if not found:
        return None
    kinds = {(kind, error) for kind, error, _ in found}
    if len(kinds) != 1:
        return None
    conditions = [condition for _, _, condition in found]
    failing = conditions[0] if len(conditions) == 1 else ast.BoolOp(ast.Or(), conditions)
    ((kind, error),) = kinds
    names = frozenset(n.id for n in ast.walk(failing) if isinstance(n, ast.Name)) - _bound(failing)
    shown = ast.unparse(ast.fix_missing_locations(copy.deepcopy(failing)))
    normal = _Normal(unordered, containers).true(failing)
    return Form(kind, error, _text(normal), shown, names)


def forms_of(
    statements: Sequence[ast.stmt],
    unordered: frozenset[str] = frozenset(),
    containers: frozenset[str] = frozenset(),
) -> list[Form]:
    """A form for each single condition under which the statements fail, so that two checks written as one equal the
    two; none where the statements do more than check."""
    found: list[Form] = []
    for kind, error, failing in _checks(list(copy.deepcopy(list(statements))), {}) or ():
        normal = _Normal(unordered, containers).true(failing)
        either = normal.values if isinstance(normal, ast.BoolOp) and isinstance(normal.op, ast.Or) else [normal]
        shown = ast.unparse(ast.fix_missing_locations(copy.deepcopy(failing)))
        names = frozenset(n.id for n in ast.walk(failing) if isinstance(n, ast.Name)) - _bound(failing)
        found += [Form(kind, error, _text(each), shown, names) for each in either]
    return found


def measured(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """What the statements ask the length of. Beside such a check, `not x` asks whether x is empty; alone it may as well
    ask for None or zero."""
    nodes = [node for statement in statements for node in ast.walk(statement)]
    return frozenset(ast.unparse(node.args[0]) for node in nodes if _called(node, "len"))  # type: ignore[attr-defined]


def _checks(statements: list[ast.stmt], known: Mapping[str, ast.expr]) -> list[tuple[str, str, ast.expr]] | None:
    """(kind, error, failing condition) of each statement; None when one does anything else."""
    known = dict(known)
    found: list[tuple[str, str, ast.expr]] = []
    for statement in statements:
        if isinstance(statement, ast.Assert):
            found.append(("assert", "AssertionError", _not(_put(statement.test, known))))
        elif isinstance(statement, ast.If):
            inner = _of_if(statement, known)
            if inner is None:
                return None
            found += inner
        elif isinstance(statement, ast.For) and not statement.orelse:
            inner = _checks(statement.body, known)
            if not inner:
                return None
            found += [(kind, error, _any(statement, known, failing)) for kind, error, failing in inner]
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if not isinstance(target, ast.Name):
                return None
            known[target.id] = _put(statement.value, known)
        else:
            return None
    return found


def _of_if(statement: ast.If, known: Mapping[str, ast.expr]) -> list[tuple[str, str, ast.expr]] | None:
    test = _put(statement.test, known)
    error = _raised(statement.body)
    if error is not None:
        rest = _checks(statement.orelse, known) if statement.orelse else []
        return None if rest is None else [("raise", error, test), *rest]
    if statement.orelse:
        error = _raised(statement.orelse)
        passes = all(isinstance(s, ast.Pass) for s in statement.body)
        return [("raise", error, _not(test))] if error is not None and passes else None
    inner = _checks(statement.body, known)
    if not inner:
        return None
    return [(kind, name, ast.BoolOp(ast.And(), [copy.deepcopy(test), failing])) for kind, name, failing in inner]


def _raised(body: Sequence[ast.stmt]) -> str | None:
    """The class that a suite raises, when it does nothing else but make the message."""
    if not body or not all(isinstance(s, ast.Assign) for s in body[:-1]):
        return None
    last = body[-1]
    if not isinstance(last, ast.Raise) or last.exc is None or last.cause is not None:
        return None
    made = last.exc.func if isinstance(last.exc, ast.Call) else last.exc
    return ast.unparse(made) if isinstance(made, ast.Name | ast.Attribute) else None


def _any(loop: ast.For, known: Mapping[str, ast.expr], failing: ast.expr) -> ast.expr:
    generator = ast.comprehension(loop.target, _put(loop.iter, known), [], 0)
    return ast.Call(ast.Name("any", ast.Load()), [ast.GeneratorExp(failing, [generator])], [])


class _Known(ast.NodeTransformer):
    def __init__(self, known: Mapping[str, ast.expr]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self.known[node.id]) if node.id in self.known else node


def _put(node: ast.expr, known: Mapping[str, ast.expr]) -> ast.expr:
    """The expression with temporaries replaced by what they hold."""
    replaced = _Known(known).visit(copy.deepcopy(node)) if known else copy.deepcopy(node)
    assert isinstance(replaced, ast.expr)
    return replaced


def _not(node: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), node)


def _bound(node: ast.AST) -> frozenset[str]:
    return frozenset(
        n.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.comprehension)
        for n in ast.walk(inner.target)
        if isinstance(n, ast.Name)
    )


class _Normal:
    """Rewrites a condition of which only the truth counts."""

    def __init__(self, unordered: frozenset[str], containers: frozenset[str]) -> None:
        self.unordered = unordered
        self.containers = containers
        self.bound = 0

    def true(self, node: ast.expr) -> ast.expr:
        """The normal form of the condition."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.false(node.operand)
        if isinstance(node, ast.BoolOp):
            return self._joined(node.op, [self.true(value) for value in node.values])
        if isinstance(node, ast.Compare):
            return self._joined(ast.And(), [self._pair(*pair) for pair in _pairs(node)])
        if quantified := self._quantified(node, False):
            return quantified
        if _called(node, "bool"):
            return self.true(node.args[0])  # type: ignore[attr-defined]
        if _called(node, "len"):
            return self._pair(node, ast.NotEq(), ast.Constant(0))
        return self._length(node, ast.NotEq()) or node

    def false(self, node: ast.expr) -> ast.expr:
        """The normal form of the opposite."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.true(node.operand)
        if isinstance(node, ast.BoolOp):
            other: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            return self._joined(other, [self.false(value) for value in node.values])
        if isinstance(node, ast.Compare):
            return self._joined(ast.Or(), [self._opposite(*pair) for pair in _pairs(node)])
        if quantified := self._quantified(node, True):
            return quantified
        if _called(node, "bool"):
            return self.false(node.args[0])  # type: ignore[attr-defined]
        if _called(node, "len"):
            return self._pair(node, ast.Eq(), ast.Constant(0))
        return self._length(node, ast.Eq()) or _not(node)

    def _length(self, node: ast.expr, op: ast.cmpop) -> ast.expr | None:
        """The truth of a container, as a question about its length."""
        if _text(node) not in self.containers:
            return None
        return self._pair(ast.Call(ast.Name("len", ast.Load()), [node], []), op, ast.Constant(0))

    def _opposite(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
        if isinstance(op, _ORDERS) and self._may_be_unordered(left, right):
            return _not(self._pair(left, op, right))
        return self._pair(left, _OPPOSITE[type(op)](), right)

    def _may_be_unordered(self, *operands: ast.expr) -> bool:
        return any(
            (isinstance(n, ast.Name) and n.id in self.unordered)
            or (isinstance(n, ast.Constant) and isinstance(n.value, float))
            for operand in operands
            for n in ast.walk(operand)
        )

    def _pair(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
        """One comparison in one direction; lengths against 0 and 1 as `== 0` and `!= 0`."""
        if type(op) in _SWAPPED:
            left, op, right = right, _SWAPPED[type(op)](), left
        empty = _emptiness(left, op, right)
        if empty is not None:
            measured, is_empty = empty
            return ast.Compare(measured, [ast.Eq() if is_empty else ast.NotEq()], [ast.Constant(0)])
        if isinstance(op, ast.Lt) and _set_of(left, right):
            op = ast.NotEq()  # A set has never more elements than what it was made of.
        if isinstance(op, _SYMMETRIC) and (isinstance(left, ast.Constant), _text(left)) > (
            isinstance(right, ast.Constant),
            _text(right),
        ):
            left, right = right, left
        return ast.Compare(left, [op], [right])

    def _joined(self, op: ast.boolop, values: Sequence[ast.expr]) -> ast.expr:
        flat: list[ast.expr] = []
        for value in values:
            same = isinstance(value, ast.BoolOp) and type(value.op) is type(op)
            flat += value.values if same else [value]  # type: ignore[attr-defined]
        texts = {_text(value): value for value in flat}
        if all(_total(value) for value in flat):
            texts = dict(sorted(texts.items()))  # In any order: none of them can fail, or guard another.
        kept = list(texts.values())
        return kept[0] if len(kept) == 1 else ast.BoolOp(op, kept)

    def _quantified(self, node: ast.expr, negated: bool) -> ast.expr | None:
        """`any(…)` and `not all(…)` over one generator, as `any` with its own names; None for another expression."""
        word = next((name for name in ("any", "all") if _called(node, name)), None)
        if word is None:
            return None
        made = node.args[0]  # type: ignore[attr-defined]
        if not isinstance(made, ast.GeneratorExp | ast.ListComp):
            return None
        inner = made.elt
        outer: list[ast.comprehension] = []
        for generator in made.generators:
            outer.append(ast.comprehension(generator.target, generator.iter, [], generator.is_async))
            for test in generator.ifs:
                inner = (
                    ast.BoolOp(ast.And(), [test, inner]) if word == "any" else ast.BoolOp(ast.Or(), [_not(test), inner])
                )
        if not isinstance(made.generators[0].target, ast.Name) or len(outer) > 1:
            condition = self.true(inner) if (word == "any") else self.false(inner)
        else:
            name = f"v{self.bound}"
            self.bound += 1
            renamed = {made.generators[0].target.id: ast.Name(name, ast.Load())}
            outer[0].target = ast.Name(name, ast.Store())
            inner = _put(inner, renamed)
            condition = self.true(inner) if word == "any" else self.false(inner)
        # any(p) and not all(p) ask whether one fails; all(p) is not any(not p).
        call = ast.Call(ast.Name("any", ast.Load()), [ast.GeneratorExp(condition, outer)], [])
        return call if (word == "any") != negated else _not(call)


def _pairs(node: ast.Compare) -> list[tuple[ast.expr, ast.cmpop, ast.expr]]:
    operands = [node.left, *node.comparators]
    return list(zip(operands, node.ops, operands[1:], strict=False))


def _called(node: ast.AST, name: str) -> bool:
    """Whether the node is a call of that built-in with one plain argument."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == name
        and len(node.args) == 1
        and not node.keywords
        and not isinstance(node.args[0], ast.Starred)
    )


def _emptiness(left: ast.expr, op: ast.cmpop, right: ast.expr) -> tuple[ast.expr, bool] | None:
    """For a comparison that asks whether something is empty: its length, and whether empty makes it true."""
    number = _number(right)
    if _called(left, "len") and number is not None:
        return {(ast.Eq, 0): (left, True), (ast.NotEq, 0): (left, False), (ast.Lt, 1): (left, True),
                (ast.LtE, 0): (left, True)}.get((type(op), number))  # fmt: skip
    number = _number(left)
    if _called(right, "len") and number is not None:
        return {(ast.Eq, 0): (right, True), (ast.NotEq, 0): (right, False), (ast.Lt, 0): (right, False),
                (ast.LtE, 1): (right, False)}.get((type(op), number))  # fmt: skip
    return None


def _number(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _set_of(left: ast.expr, right: ast.expr) -> bool:
    """Whether the comparison is `len(set(x)) < len(x)`."""
    if not (_called(left, "len") and _called(right, "len")):
        return False
    made, whole = left.args[0], right.args[0]  # type: ignore[attr-defined]
    return _called(made, "set") and ast.dump(made.args[0]) == ast.dump(whole)


def _total(node: ast.expr) -> bool:
    """Whether a part neither fails nor depends on the part before it: names, numbers and lengths compared."""
    plain = (ast.Compare, ast.Name, ast.Constant, ast.UnaryOp, ast.operator, ast.unaryop, ast.cmpop, ast.expr_context)
    return all(isinstance(n, plain) or _called(n, "len") for n in ast.walk(node)) and not any(
        isinstance(n, ast.Is | ast.IsNot) for n in ast.walk(node)
    )


def _text(node: ast.expr) -> str:
    return ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))
