"""Plan the checks of a function's result: at each of its own returns, and where control falls off its end.

A returned name is checked as it is. Any other expression is bound first, so that it is evaluated once and the
checks see the state it leaves.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codegen.expand.meaning.references import require_names
from codegen.expand.model import SiteError
from codegen.expand.planning.code import code_of
from codegen.expand.planning.planned import HOLE_NAME
from codegen.expand.planning.rendering import result_source
from codegen.expand.planning.state import RETURN, Planning, Scope
from codegen.expand.reading.canonical import HOLE
from codegen.expand.reading.exits import Exit, falls_off, is_generator, returns_of
from codegen.expand.reading.parsing import first_line, last_line
from codegen.expand.reading.suites import Suite


def plan_returns(planning: Planning, scope: Scope) -> None:
    """Plan all exits of the scope's function. Raises SiteError."""
    checks = scope.on_return
    opener, function = checks[0].opener, checks[0].place.function
    assert function is not None
    body = planning.places.body_of(function)
    if body.inline:
        raise SiteError("no-place", "the function's body is on its header's line", "Give it lines of its own.")
    exits = returns_of(body)
    if is_generator(function):
        _gives_a_result(function.name, exits, scope)
        message = f"{function.name} is a generator: `result` is what its return gives, not what it yields"
        planning.report(opener, "warning", "generator", message, "Check each value where it is yielded.")
    # One block holds all claims of an exit: the result is bound once, and each claim sees the same state.
    for leaving in exits:
        _at_return(planning, scope, leaving)
    if falls_off(function.body):
        _at_end(planning, scope, body)
    elif not exits:
        message = f"{function.name} never returns, so nothing is checked"
        planning.report(opener, "warning", "never-returns", message, "Remove the annotation.")


def _gives_a_result(name: str, exits: Sequence[Exit], scope: Scope) -> None:
    """Refuse a claim about the result of a generator that only yields: its result is always None."""
    if any(check.uses_result for check in scope.on_return) and all(leave.statement.value is None for leave in exits):
        raise SiteError(
            "generator",
            f"{name} yields and returns no value, so `result` is always None",
            "Bind each value before it is yielded, and check it there.",
        )


def _at_return(planning: Planning, scope: Scope, leaving: Exit) -> None:
    statement, suite = leaving.statement, leaving.suite
    # A return in `finally` replaces another return, or an exception on its way out: a check there would judge a value
    # that the function never meant to give.
    if leaving.in_finally:
        message = f"the return on line {planning.line_of(statement.lineno)} is inside finally and overrides any other"
        raise SiteError("return-in-finally", message, "Move it out of the finally clause.", statement.lineno)
    planning.alone(suite, leaving.index, "return")
    after = first_line(statement) - 1
    _require(planning, scope, suite, after, f" at the return on line {planning.line_of(statement.lineno)}")
    # A returned name can be read again; anything else is evaluated once, before the claims, for it may change what they
    # speak of.
    plain = _usable_value(scope, statement.value)
    if plain is not None:
        _add(planning, scope, after, suite, _code(planning, scope, suite, plain), None)
        return
    name = _result_name(scope)
    code = _code(planning, scope, suite, name)
    if statement.value is None:
        _add(planning, scope, after, suite, f"{name} = None\n{code}", None)
    else:
        planning.unmarked(statement, "this return")
        _add(planning, scope, after, suite, f"{name} = {HOLE_NAME}\n{code}return {name}\n", statement)


def _usable_value(scope: Scope, value: ast.expr | None) -> str | None:
    """Source that gives the result without a binding; None when the value has to be bound."""
    if any(check.uses_result for check in scope.on_return):
        return result_source(value, scope.on_return)
    return "None" if value is None or isinstance(value, ast.Name | ast.Constant) else None


def _at_end(planning: Planning, scope: Scope, body: Suite) -> None:
    # Annotations at the end of the body come before the exit's block: what they check is still the body's.
    after = planning.layout.logical_end(last_line(body.statements[-1]))
    own = {block.key[1]: block for block in planning.plan.blocks if block.key[0] == "own"}
    for opener in planning.openers:
        if opener.line > after and opener.line in own and planning.places.find(opener).suite is body:
            after = opener.last_line
    _require(planning, scope, body, after, " where the body ends")
    if any(check.uses_result for check in scope.on_return):
        name = _result_name(scope)
        _add(planning, scope, after, body, f"{name} = None\n{_code(planning, scope, body, name)}", None)
    else:
        _add(planning, scope, after, body, _code(planning, scope, body, "None"), None)


def _require(planning: Planning, scope: Scope, suite: Suite, after: int, where: str) -> None:
    """Refuse a check that names what has no value at one of the exits, at its own annotation."""
    for check in scope.on_return:
        try:
            require_names(check, suite, after, where)
        except SiteError as error:
            planning.report(check.opener, "error", error.code, error.message, error.fix)


def _result_name(scope: Scope) -> str:
    if not scope.result:
        scope.result = scope.fresh("result")
    return scope.result


def _code(planning: Planning, scope: Scope, suite: Suite, name: str) -> str:
    return "".join(code_of(planning, check, suite, name) for check in scope.on_return)


def _add(planning: Planning, scope: Scope, after: int, suite: Suite, code: str, statement: ast.Return | None) -> None:
    body = ast.parse(code).body
    holes: dict[int, str] = {}
    if statement is not None:
        binding = body[0]
        assert isinstance(binding, ast.Assign)
        holes[id(binding.value)] = HOLE
    planning.add(("return", after), after, suite, code, scope.on_return, RETURN, holes, body, statement)
