"""Wrong variants of a pattern: each has to fail at least one of the examples of the same annotation.

Of the rendered check: a condition, or one operand of `and`/`or`, replaced by True or False; a bound of a comparison
shifted by one; a comparison made strict, lax or the opposite; `and` for `or`, `any` for `all`. Of the template: the
two sides of a branch exchanged.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from codegen.patterns.arguments import UNBOUNDED
from codegen.patterns.examples import render_example, run_example
from codegen.patterns.model import Example, Pattern, RenderError

_ORDER: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_QUANTIFIERS = {"any": "all", "all": "any"}
_BRANCH = re.compile(r"\{%-?\s*(?:if|elif)\s+(.*?)\s*-?%\}", re.DOTALL)


@dataclass(frozen=True)
class Survivor:
    """A wrong variant that every example of one annotation lets pass. `line` is that annotation's first case."""

    use: str
    change: str
    line: int


def survivors(pattern: Pattern) -> list[Survivor]:
    """Wrong variants that no example notices; the examples themselves have to hold. Raises RenderError."""
    found = []
    groups: dict[object, list[Example]] = {}
    for example in pattern.examples:
        groups.setdefault((example.use, example.each, example.note, example.body), []).append(example)
    for examples in groups.values():
        for change, code in mutants(render_example(pattern, examples[0])):
            if all(run_example(pattern, example, code).status == "passed" for example in examples):
                found.append(Survivor(examples[0].use, change, examples[0].line))
    for change, wrong in branch_mutants(pattern):
        if all(_passes(wrong, example) for example in pattern.examples):
            found.append(Survivor(pattern.id, change, pattern.examples[0].line))
    return found


def _passes(wrong: Pattern, example: Example) -> bool:
    """Whether the example lets the pattern pass; one that was skipped decides nothing, so it notices nothing."""
    try:
        return run_example(wrong, example).status in ("passed", "skipped")
    except RenderError:
        return False


def branch_mutants(pattern: Pattern) -> Iterator[tuple[str, Pattern]]:
    """(what was changed, pattern) with the sides of one branch of the template exchanged."""
    for match in _BRANCH.finditer(pattern.template):
        begin, end = match.span(1)
        template = f"{pattern.template[:begin]}not ({match.group(1)}){pattern.template[end:]}"
        yield f"template: if {match.group(1)} → if not {match.group(1)}", replace(pattern, template=template)


def mutants(rendered: str) -> Iterator[tuple[str, str]]:
    """(what was changed, source) for each wrong variant of rendered statements."""
    tree = ast.parse(rendered)
    for index, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.If | ast.Assert | ast.IfExp | ast.While):
            yield from _conditions(tree, index, node)
        elif isinstance(node, ast.comprehension):
            yield from _filters(tree, index, node)
    for index, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.Compare):
            yield from _comparison(tree, index, node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _QUANTIFIERS:
            other = _QUANTIFIERS[node.func.id]

            def exchange(n: ast.Call, o: str = other) -> None:
                n.func = ast.Name(o, ast.Load())

            yield _changed(tree, index, f"{ast.unparse(node)}: {other}", exchange)


def _conditions(
    tree: ast.Module, index: int, node: ast.If | ast.Assert | ast.IfExp | ast.While
) -> Iterator[tuple[str, str]]:
    for value in (True, False):
        if value and isinstance(node, ast.While):
            continue  # A loop without end is no variant that an example could judge.
        yield _changed(tree, index, f"{ast.unparse(node.test)} → {value}", lambda n, v=value: _set(n, "test", v))
    for inner_index, inner in enumerate(ast.walk(node.test)):
        if not isinstance(inner, ast.BoolOp):
            continue
        swapped: ast.boolop = ast.Or() if isinstance(inner.op, ast.And) else ast.And()

        def swap(n: ast.If, i: int = inner_index, op: ast.boolop = swapped) -> None:
            list(ast.walk(n.test))[i].op = op  # type: ignore[attr-defined]

        yield _changed(tree, index, f"{ast.unparse(inner)}: {type(swapped).__name__.lower()}", swap)
        for position, operand in enumerate(inner.values):
            for value in (True, False):

                def change(n: ast.If, i: int = inner_index, p: int = position, v: bool = value) -> None:
                    list(ast.walk(n.test))[i].values[p] = ast.Constant(v)  # type: ignore[attr-defined]

                yield _changed(tree, index, f"{ast.unparse(operand)} → {value}", change)


def _filters(tree: ast.Module, index: int, node: ast.comprehension) -> Iterator[tuple[str, str]]:
    for position, test in enumerate(node.ifs):
        for value in (True, False):

            def change(n: ast.comprehension, p: int = position, v: bool = value) -> None:
                n.ifs[p] = ast.Constant(v)

            yield _changed(tree, index, f"{ast.unparse(test)} → {value}", change)


def _comparison(tree: ast.Module, index: int, node: ast.Compare) -> Iterator[tuple[str, str]]:
    ordered = any(type(op) in _ORDER for op in node.ops)
    # Beside infinity a shift by one changes nothing.
    infinite = any(ast.unparse(operand) in UNBOUNDED for operand in (node.left, *node.comparators))
    for position, operand in enumerate([node.left, *node.comparators]):
        number = isinstance(operand, ast.Constant) and type(operand.value) in (int, float)
        if (not number and not ordered) or infinite:
            continue
        for shift in (1, -1):

            def move(n: ast.Compare, p: int = position, s: int = shift) -> None:
                shifted = ast.BinOp(n.left if p == 0 else n.comparators[p - 1], ast.Add(), ast.Constant(s))
                if p == 0:
                    n.left = shifted
                else:
                    n.comparators[p - 1] = shifted

            yield _changed(tree, index, f"{ast.unparse(node)}: {ast.unparse(operand)} {shift:+d}", move)
    for position, op in enumerate(node.ops):
        other = _ORDER.get(type(op)) or _OPPOSITE.get(type(op))
        if other is not None:

            def turn(n: ast.Compare, p: int = position, o: type[ast.cmpop] = other) -> None:
                n.ops[p] = o()

            yield _changed(tree, index, f"{ast.unparse(node)}: {other.__name__}", turn)


def _set(node: ast.AST, name: str, value: bool) -> None:
    setattr(node, name, ast.Constant(value))


def _changed(tree: ast.Module, index: int, what: str, change: Callable[..., None]) -> tuple[str, str]:
    other = copy.deepcopy(tree)
    change(list(ast.walk(other))[index])
    return what, ast.unparse(ast.fix_missing_locations(other))
