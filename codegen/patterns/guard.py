"""Evaluate a condition so that a value it cannot judge fails the check, in the check's own words.

`x > 0` raises for an array, a string, an object without order; the error names neither the parameter nor the rule.
Where no type vouches for the value, the condition is evaluated in a `try`, and what it raises becomes the cause of the
check's error. Only the condition is in the `try`: the check's own error, and what evaluating the target raises, pass.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from codegen.patterns.source import parse, quiet_parse

_UNIT = "    "
_IF = re.compile(r"if (?P<condition>.*):\Z")
_FOR = re.compile(r"for (?P<each>.*) in (?P<over>.*):\Z")
_SAFE_CALLS = frozenset({"isinstance", "callable", "hasattr", "type", "id", "issubclass"})


def guarded(rows: Sequence[str], fresh: Callable[[str], str], failure: str) -> list[str]:
    """The rows of a check, its condition in a `try`. `failure` raises the check's error in the handler.

    Rows of another form than `… if condition: raise …`, in a loop or not, are given back as they are, and so are
    conditions that cannot raise.
    """
    depth = 2 if len(rows) >= 3 and _FOR.match(rows[-3]) and rows[-2].startswith(_UNIT) else 1
    if len(rows) < depth + 1:
        return list(rows)
    head, body = list(rows[: -depth - 1]), [row[len(_UNIT) * (depth - 1) :] for row in rows[-2:]]
    test = _IF.match(body[0])
    if test is None or any(row.startswith(" ") for row in head):
        return list(rows)
    condition = test["condition"]
    if depth == 1 and not head and _cannot_raise(condition):
        return list(rows)
    cause = fresh("cause")
    if depth == 2:
        loop = _FOR.match(rows[-3])
        assert loop is not None
        name, value = fresh("holds"), f"not [None for {loop['each']} in {loop['over']} if {condition}]"
    elif isinstance(parse(condition), ast.UnaryOp):
        name, value = fresh("fails"), condition
    else:
        # `not` asks for the truth inside of the `try`, where an array may refuse to have one.
        loose = isinstance(parse(condition), ast.BoolOp | ast.IfExp | ast.Lambda)
        name, value = fresh("holds"), f"not ({condition})" if loose else f"not {condition}"
    fails = name if name == fresh("fails") else f"not {name}"
    return [
        "try:",
        *(_UNIT + row for row in head),
        f"{_UNIT}{name} = {value}",
        f"except Exception as {cause}:",
        f"{_UNIT}{failure} from {cause}",
        f"if {fails}:",
        body[1],
    ]


def judges_whole(code: str, value: str) -> bool:
    """Whether the code reads the value itself, not only attributes such as its shape."""
    wanted = ast.dump(parse(value))
    tree = quiet_parse(re.sub("\x01[a-z]+\x01", "0", code), "exec")
    through = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return any(
        isinstance(node, ast.expr) and id(node) not in through and ast.dump(node) == wanted for node in ast.walk(tree)
    )


def _cannot_raise(condition: str) -> bool:
    """Whether the condition only asks what a value is."""
    tree = quiet_parse(condition, "eval").body
    waiting: list[ast.expr] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.BoolOp):
            waiting += node.values
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            waiting.append(node.operand)
        elif isinstance(node, ast.Compare):
            if not all(isinstance(o, ast.Is | ast.IsNot) for o in node.ops):
                return False
        elif not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SAFE_CALLS):
            return False
    return True


def unguarded(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of a check without the `try` around its condition, as somebody would write them by hand."""
    if len(statements) < 2 or not isinstance(statements[-2], ast.Try) or not isinstance(statements[-1], ast.If):
        return list(statements)
    outer, judged = statements[-2], statements[-1]
    last = outer.body[-1]
    caught = [ast.unparse(handler.type) for handler in outer.handlers if handler.type is not None]
    raises = all(isinstance(handler.body[0], ast.Raise) for handler in outer.handlers)
    if caught != ["Exception"] or not raises or not isinstance(last, ast.Assign):
        return list(statements)
    condition = last.value
    if isinstance(judged.test, ast.UnaryOp):
        if not isinstance(condition, ast.UnaryOp):
            return list(statements)
        condition = condition.operand
    check: ast.stmt = ast.If(condition, judged.body, [])
    if isinstance(condition, ast.ListComp):
        (loop,) = condition.generators
        check = ast.For(loop.target, loop.iter, [ast.If(loop.ifs[0], judged.body, [])], [], None)
    return [*statements[:-2], *outer.body[:-1], ast.fix_missing_locations(ast.copy_location(check, judged))]
