"""The blocks that a fresh expansion of a base text has.

The plan depends on nothing but the base text, the library, the options and the names of functions extracted before,
so it is the same however often a file was expanded.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Callable

from codegen.diagnostics import Finding, Severity
from codegen.expand.meaning.checks import Check, is_postcondition, read_check
from codegen.expand.meaning.references import require_names, require_snapshots
from codegen.expand.model import SiteError
from codegen.expand.planning.code import code_of
from codegen.expand.planning.returns import plan_returns
from codegen.expand.planning.state import ENTRY, HERE, Plan, Planning
from codegen.expand.planning.wraps import plan_wrap
from codegen.expand.reading.marks import Opener, is_prose
from codegen.expand.reading.parsing import Function, first_line, is_docstring, last_line
from codegen.expand.reading.places import Place, PlaceError
from codegen.expand.reading.scopes import dynamic_calls


def make_plan(planning: Planning) -> Plan:
    """Plan every annotation; those that fail leave a finding."""
    checked = [(opener, checks) for opener in planning.openers if (checks := _read(planning, opener))]
    for opener, checks in checked:
        with _Reporting(planning, opener):
            _place(planning, opener, checks)
    for scope in list(planning.scopes.values()):
        if scope.on_return:
            with _Reporting(planning, scope.on_return[0].opener):
                plan_returns(planning, scope)
    _no_nesting(planning)
    plan = planning.plan
    plan.blocks.sort(key=lambda block: (block.after, block.rank))
    return plan


def _no_nesting(planning: Planning) -> None:
    """A block that holds a statement of the author's cannot hold another block in it."""
    blocks = sorted(planning.plan.blocks, key=lambda block: block.after)
    afters = [block.after for block in blocks]
    for outer in blocks:
        if outer.statement is None:
            continue
        first, last = first_line(outer.statement), last_line(outer.statement)
        # A block beside the statement, one line above, may enclose it as well; all others lie inside its lines.
        for inner in blocks[bisect_left(afters, first - 1) : bisect_left(afters, last)]:
            same = outer.shape == "wrap" and inner is not outer and inner.statement is outer.statement
            if same or (first <= inner.after < last):
                opener = outer.annotations[0]
                message = f"the statement on line {planning.line_of(first)} would need blocks inside one another"
                planning.report(opener, "error", "nested", message, "Split the statement, or drop one annotation.")
                break


class _Reporting:
    """Turns a SiteError inside a `with` into a finding at the annotation."""

    def __init__(self, planning: Planning, opener: Opener) -> None:
        self.planning, self.opener = planning, opener

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, SiteError):
            return False
        self.planning.report(self.opener, "error", error.code, error.message, error.fix, error.line)
        return True


def _read(planning: Planning, opener: Opener) -> list[Check]:
    """The annotation's checks; [] when it is prose or has an error."""
    if opener.notation is None:
        problem = opener.problem
        assert problem is not None
        line, column = opener.problem_place
        severity: Severity = "warning" if is_prose(opener) else "error"
        code = "unexpandable" if is_prose(opener) else "bad-annotation"
        planning.plan.findings.append(
            Finding(planning.path, planning.line_of(line), column + 1, code, problem.message, severity, problem.fix)
        )
        return []
    try:
        place = planning.places.find(opener)
    except PlaceError as error:
        planning.report(opener, "error", "no-place", error.message, error.fix)
        return []
    if opener.below is not None:
        way = "Indent its text by two more columns" if opener.comment.own_line else "Give the annotation its own line"
        planning.report(
            opener,
            "warning",
            "stray-comment",
            f"the comment below is no part of the note: {opener.below.text[:60]}",
            f"{way} to go on with the note, or put a blank line between.",
            opener.below.line,
        )
    for warning in place.warnings:
        planning.report(opener, "warning", "odd-indentation", f"the annotation is {warning}", "Indent it alike.")
    if why := stub_reason(place, planning.path):
        planning.report(opener, "warning", "stub", f"not expanded: {why}", "Annotate the implementation.")
        return []
    checks: list[Check] = []
    for item in opener.notation.items:
        with _Reporting(planning, opener):
            checks.append(read_check(planning.library, opener, item, place, _snapshot(planning, place)))
    return checks if len(checks) == len(opener.notation.items) else []


def _snapshot(planning: Planning, place: Place) -> Callable[[str], str]:
    """Names the snapshot of an expression, the same for the same expression."""
    scope = planning.scope_of(place)

    def name(source: str) -> str:
        if source not in scope.snapshots:
            words = "".join(c if c.isalnum() else " " for c in source).split()
            scope.snapshots[source] = scope.fresh(f"old_{words[-1] if words else 'value'}".lower())
        return scope.snapshots[source]

    return name


def _place(planning: Planning, opener: Opener, checks: list[Check]) -> None:
    """Plan the annotation's blocks, but for those at returns."""
    if any(check.placement == "wrap" for check in checks):
        if len(checks) > 1:
            raise SiteError("wrap", f"{checks[0].item.id} has to be alone", "Give it an annotation of its own.")
        plan_wrap(planning, opener, checks[0])
        return
    # Snapshots before anything else of this annotation: they are the entry's, and other blocks there may need them.
    _snapshots(planning, checks)
    here = [check for check in checks if check.placement == "here"]
    entry = [check for check in checks if check.placement == "on_entry"]
    returning = [check for check in checks if check.placement == "on_return"]
    if here:
        _here(planning, opener, here)
    if entry:
        _entry(planning, opener, entry)
    if returning:
        planning.scope_of(returning[0].place).on_return.extend(returning)


def _here(planning: Planning, opener: Opener, checks: list[Check]) -> None:
    place = checks[0].place
    for check in checks:
        require_names(check, place.suite, place.after)
    code = "".join(code_of(planning, check, place.suite) for check in checks)
    _warn_of_dynamic(planning, opener, place, code)
    key = (place.clause, place.after) if place.clause else ("own", opener.line)
    planning.add(key, place.after, place.suite, code, checks, ENTRY if place.clause else HERE)
    if any(is_postcondition(check.pattern) for check in checks):
        _warn_of_bypass(planning, opener, place)


def _entry(planning: Planning, opener: Opener, checks: list[Check]) -> None:
    place = checks[0].place
    suite, after = planning.entry_of(checks)
    for check in checks:
        require_names(check, suite, after, " at the entry")
    code = "".join(code_of(planning, check, suite) for check in checks)
    _warn_of_dynamic(planning, opener, place, code)
    if place.head and not place.speaks_of:
        planning.add(("own", opener.line), place.after, place.suite, code, checks, HERE)
    else:
        planning.add(("entry", after), after, suite, code, checks, ENTRY)


def _snapshots(planning: Planning, checks: list[Check]) -> None:
    """Plan the entry values that `old(…)` needs and no earlier annotation took."""
    scope = planning.scope_of(checks[0].place)
    olds = {name: source for check in checks for source, name in check.olds.items()}
    new = {name: source for name, source in olds.items() if name not in scope.taken}
    scope.taken.update(new)
    if new:
        suite, after = planning.entry_of(checks)
        for check in checks:
            require_snapshots(check.olds, check.item.id, suite, after)
            for statement in check.imports:
                planning.plan.imports.setdefault(statement, []).append(check)
        code = "".join(f"{name} = {source}\n" for name, source in new.items())
        users = [check for check in checks if new.keys() & set(check.olds.values())]
        planning.add(("entry", after), after, suite, code, users, ENTRY)


def _warn_of_dynamic(planning: Planning, opener: Opener, place: Place, code: str) -> None:
    calls = dynamic_calls(place.function or planning.tree)
    stored = any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) for n in ast.walk(ast.parse(code)))
    if calls and stored:
        planning.report(
            opener,
            "warning",
            "visible-name",
            f"{', '.join(calls)} can see the temporary names of this block",
            "Check that they do not matter there.",
        )


def _warn_of_bypass(planning: Planning, opener: Opener, place: Place) -> None:
    """A postcondition that stands in the body does not see the returns above it."""
    from codegen.expand.reading.exits import returns_of

    if place.function is None:
        return
    earlier = [leave.statement.lineno for leave in returns_of(planning.places.body_of(place.function))]
    passed = [planning.line_of(line) for line in earlier if line < opener.line]
    if passed:
        planning.report(
            opener,
            "warning",
            "bypassed",
            f"the return on line {', '.join(map(str, passed))} leaves before this postcondition",
            "Speak of `result` to check every return.",
        )


def stub_reason(place: Place, path: str) -> str:
    """Why there is no body to put checks in; "" if there is one."""
    function: Function | None = place.function
    if path.endswith(".pyi"):
        return "a stub file"
    if function is None or not place.speaks_of:
        return ""
    names = {ast.unparse(decorator).rpartition(".")[2] for decorator in function.decorator_list}
    if "overload" in names:
        return f"{function.name} is an overload"
    body = function.body[1:] if is_docstring(function.body[0]) else function.body
    only = body[0] if len(body) == 1 else None
    if isinstance(only, ast.Expr) and isinstance(only.value, ast.Constant) and only.value.value is ...:
        return f"the body of {function.name} is `...`"
    return ""
