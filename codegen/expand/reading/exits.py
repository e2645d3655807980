"""Where a function gives back its result: its own return statements, and the end of its body if control gets there."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from codegen.expand.reading.parsing import own_nodes
from codegen.expand.reading.suites import Suite

_SWALLOWING = frozenset({"suppress", "raises", "assertRaises", "assertRaisesRegex", "ExitStack", "AsyncExitStack"})


@dataclass(frozen=True)
class Exit:
    """One return statement with its suite."""

    statement: ast.Return
    suite: Suite
    index: int
    in_finally: bool


def returns_of(body: Suite) -> list[Exit]:
    """The function's own returns in source order; those of nested functions, classes and lambdas do not count."""
    found: list[Exit] = []
    waiting: list[tuple[Suite, bool]] = [(body, False)]
    while waiting:
        suite, in_finally = waiting.pop(0)
        for index, statement in enumerate(suite.statements):
            if isinstance(statement, ast.Return):
                found.append(Exit(statement, suite, index, in_finally))
        for child in suite.children:
            if child.kind == "block":
                waiting.append((child, in_finally or child.clause == "finally"))
    return sorted(found, key=lambda each: (each.statement.lineno, each.statement.col_offset))


def is_generator(function: ast.AST) -> bool:
    """Whether the function has a yield of its own."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(function))


def falls_off(statements: Sequence[ast.stmt]) -> bool:
    """Whether control may reach the end of the statements. A `with` counts as passing exceptions on, unless it is
    known to swallow them."""
    return not any(_leaves(statement) for statement in statements)


def _leaves(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
        return True
    if isinstance(statement, ast.If):
        return bool(statement.orelse) and not falls_off(statement.body) and not falls_off(statement.orelse)
    if isinstance(statement, ast.With | ast.AsyncWith):
        return not falls_off(statement.body) and not any(_swallows(item) for item in statement.items)
    if isinstance(statement, ast.While | ast.For | ast.AsyncFor):
        test = getattr(statement, "test", None)
        endless = isinstance(test, ast.Constant) and bool(test.value)
        after = bool(statement.orelse) and not falls_off(statement.orelse)
        return (endless or after) and not _breaks(statement.body)
    if isinstance(statement, ast.Try | ast.TryStar):
        if statement.finalbody and not falls_off(statement.finalbody):
            return True
        main = [*statement.body, *statement.orelse]
        return not falls_off(main) and all(not falls_off(handler.body) for handler in statement.handlers)
    if isinstance(statement, ast.Match):
        last = statement.cases[-1]
        total = last.guard is None and isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None
        return total and all(not falls_off(case.body) for case in statement.cases)
    return False


def _swallows(item: ast.withitem) -> bool:
    call = item.context_expr
    if not isinstance(call, ast.Call):
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in _SWALLOWING


def _breaks(statements: Sequence[ast.stmt]) -> bool:
    """Whether a break in the statements ends the loop they are the body of."""
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Break):
            return True
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            waiting.extend(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))
    return False
