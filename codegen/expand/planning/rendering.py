"""Render one check into statements, and say whether they can stand where they have to."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

from codegen.expand.meaning.checks import Check
from codegen.expand.meaning.snapshots import RESULT
from codegen.expand.meaning.trust import Guard, guard_of
from codegen.expand.meaning.types import scope_at
from codegen.expand.model import Options, SiteError
from codegen.expand.planning.planned import HOLE_NAME
from codegen.expand.reading.scopes import Fresh, captured_names, free_names, shadowed
from codegen.expand.reading.suites import Suite
from codegen.patterns import RenderError, Site, render
from codegen.patterns.claims import replace_names

_PLAIN_VALUE = (ast.Name,)


_NARROWEST = 40


def _room(suite: Suite, options: Options, optional: bool) -> int:
    """Columns for a line of the block before its message is split. An optional value is checked one level deeper."""
    if options.line is None:
        return options.width
    margin = suite.indent + suite.unit if optional else suite.indent
    return max(options.line - len(margin.expandtabs()), _NARROWEST)


def render_check(
    check: Check, tree: ast.Module, fresh: Fresh, suite: Suite, options: Options, result: str | None
) -> str:
    """Code of a check at zero indentation. `result` names the returned value at a return. Raises SiteError."""
    bound, target, label = check.bound, check.target, ""
    words = {RESULT: result} if check.uses_result and result else {}
    if target is not None:
        label = target.source
        source = replace_names(target.source, words)
    else:
        source = None
    if words and check.pattern.target != "expression":
        bound = type(bound)(
            {
                name: replace_names(text, words) if RESULT in free_names(text) else text
                for name, text in bound.values.items()
            },
            source if source is not None else bound.target,
            bound.each,
            bound.error,
        )
    site = Site(
        target=source,
        label=label,
        function=(check.place.speaks_of or check.place.suite).function_name,
        each=target.each if target else "none",
        result=result if check.uses_result else None,
        indent_unit=suite.unit,
        fresh=fresh.fork(),
        expression=bound.target if check.pattern.target == "expression" else None,
        note=check.note,
        old=check.olds,
        body=HOLE_NAME if check.placement == "wrap" else "",
        guarded=_guarded(check, options),
        ast_mode=options.ast_mode,
        width=_room(suite, options, target is not None and target.optional),
    )
    try:
        code = render(check.pattern, bound, site)
    except RenderError as error:
        raise SiteError("pattern-defect", str(error).splitlines()[0], f"Correct {check.pattern.path}.") from error
    if target is not None and target.optional and (target.each != "none" or not _judges_none(code, source or "")):
        inner = "".join(f"{suite.unit}{line}\n" for line in code.splitlines())
        code = f"if {source} is not None:\n{inner}"
    _no_shadow(check, tree)
    return code


def _guarded(check: Check, options: Options) -> Guard:
    """Whether the check has to expect values that its condition cannot judge."""
    target = check.target
    if options.guard == "never" or target is None or check.pattern.tag == "AST" or target.each != "none":
        return "never"
    return guard_of(target.source, scope_at(check.place.speaks_of or check.place.suite), check.uses_result)


def _judges_none(code: str, source: str) -> bool:
    """Whether the check compares the value by membership, identity or equality, which is defined for None, too."""
    judging = (ast.In, ast.NotIn, ast.Is, ast.IsNot, ast.Eq, ast.NotEq)
    return any(
        isinstance(node, ast.Compare)
        and ast.unparse(node.left) == source
        and any(isinstance(operator, judging) for operator in node.ops)
        for node in ast.walk(ast.parse(code))
    )


def _no_shadow(check: Check, tree: ast.Module) -> None:
    functions = check.place.suite.functions if not check.place.speaks_of else check.place.speaks_of.functions
    relied = [*check.pattern.builtins]
    error = check.bound.error or check.pattern.error
    if hasattr(builtins, error):
        relied.append(error)
    hidden = shadowed(relied, tree, functions)
    if hidden:
        raise SiteError(
            "shadowed-builtin",
            f"{check.pattern.id} relies on the built-in {', '.join(hidden)}, which is another thing here",
            f"Rename the variable {hidden[0]}.",
        )


def result_source(value: ast.expr | None, checks: Sequence[Check]) -> str | None:
    """The returned name, when the checks can use it instead of a binding: nothing inside them captures it."""
    if not isinstance(value, _PLAIN_VALUE):
        return None
    for check in checks:
        texts = [check.bound.target or "None", *check.bound.values.values()]
        for text in texts:
            if RESULT in free_names(text) and value.id in captured_names(
                ast.parse(text.strip() or "None", mode="eval")
            ):
                return None
    return value.id
