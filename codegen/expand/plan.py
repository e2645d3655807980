"""The blocks that a fresh expansion of a base text has.

The plan depends on nothing but the base text, the library and the options, so it is the same however often a file
was expanded before.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from codegen.diagnostics import Finding, Severity
from codegen.expand.canonical import HOLE, canonical
from codegen.expand.checks import Check, read_check
from codegen.expand.comments import Layout
from codegen.expand.marks import Opener, is_prose
from codegen.expand.model import HOLE_NAME, Options, Planned, SiteError
from codegen.expand.parsing import Function, first_line, is_docstring, last_line
from codegen.expand.places import Place, PlaceError, Places
from codegen.expand.rendering import render_check, result_source, too_long
from codegen.expand.returns import Exit, falls_off, is_generator, returns_of
from codegen.expand.scopes import Fresh, names_in
from codegen.expand.suites import Suite, read_suites
from codegen.patterns import Library

HERE, ENTRY, RETURN = 0, 1, 2


@dataclass
class Plan:
    """Planned blocks in the order of the base text, import statements they need, and what is wrong."""

    blocks: list[Planned] = field(default_factory=list)
    imports: dict[str, list[Check]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


@dataclass
class Scope:
    """A function's names, snapshots and checks of its result, gathered while planning."""

    fresh: Fresh
    result: str = ""
    snapshots: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    on_return: list[Check] = field(default_factory=list)


class Planner:
    """Plans one base text."""

    def __init__(
        self,
        path: str,
        tree: ast.Module,
        lines: Sequence[str],
        layout: Layout,
        openers: Sequence[Opener],
        library: Library,
        options: Options,
        line_of: Callable[[int], int],
    ) -> None:
        self.path, self.tree, self.lines, self.layout = path, tree, lines, layout
        self.openers, self.library, self.options = openers, library, options
        self.line_of = line_of
        self.root = read_suites(tree, layout, lines)
        self.places = Places(self.root, layout, lines)
        self.plan = Plan()
        self.scopes: dict[int, Scope] = {}

    def run(self) -> Plan:
        """Plan every annotation; those that fail leave a finding."""
        checked: list[tuple[Opener, list[Check]]] = []
        for opener in self.openers:
            checks = self._read(opener)
            if checks:
                checked.append((opener, checks))
        for opener, checks in checked:
            self._guard(opener, lambda opener=opener, checks=checks: self._place(opener, checks))
        for scope in self.scopes.values():
            if scope.on_return:
                opener = scope.on_return[0].opener
                self._guard(opener, lambda scope=scope: self._returns(scope))
        self.plan.blocks.sort(key=lambda block: (block.after, block.rank))
        return self.plan

    def _guard(self, opener: Opener, work: Callable[[], None]) -> None:
        try:
            work()
        except SiteError as error:
            self._find(opener, "error", error.code, error.message, error.fix, error.line)

    def _find(
        self, opener: Opener, severity: Severity, code: str, message: str, fix: str, line: int | None = None
    ) -> None:
        column = opener.comment.column + 1 if line is None else 1
        place = self.line_of(opener.line if line is None else line)
        self.plan.findings.append(Finding(self.path, place, column, code, message, severity, fix))

    def _read(self, opener: Opener) -> list[Check]:
        """The annotation's checks; [] when it is prose or has an error."""
        if opener.notation is None:
            problem = opener.problem
            assert problem is not None
            line, column = opener.problem_place
            severity: Severity = "warning" if is_prose(opener) else "error"
            code = "unexpandable" if is_prose(opener) else "bad-annotation"
            self.plan.findings.append(
                Finding(self.path, self.line_of(line), column + 1, code, problem.message, severity, problem.fix)
            )
            return []
        try:
            place = self.places.find(opener)
        except PlaceError as error:
            self._find(opener, "error", "no-place", error.message, error.fix)
            return []
        for warning in place.warnings:
            self._find(opener, "warning", "odd-indentation", f"the annotation is {warning}", "Indent it alike.")
        if place.speaks_of and (why := stub_reason(place.function, self.path)):
            self._find(opener, "warning", "stub", f"not expanded: {why}", "Annotate the implementation.")
            return []
        checks: list[Check] = []
        for item in opener.notation.items:
            try:
                checks.append(read_check(self.library, opener, item, place, self._snapshot(place)))
            except SiteError as error:
                self._find(opener, "error", error.code, error.message, error.fix, error.line)
        return checks if len(checks) == len(opener.notation.items) else []

    def _scope(self, place: Place) -> Scope:
        owner: ast.AST = place.function or self.tree
        if id(owner) not in self.scopes:
            self.scopes[id(owner)] = Scope(Fresh(names_in(owner)))
        return self.scopes[id(owner)]

    def _snapshot(self, place: Place) -> Callable[[str], str]:
        scope = self._scope(place)

        def name(source: str) -> str:
            if source not in scope.snapshots:
                words = "".join(c if c.isalnum() else " " for c in source).split()
                scope.snapshots[source] = scope.fresh(f"old_{words[-1] if words else 'value'}".lower())
            return scope.snapshots[source]

        return name

    def _place(self, opener: Opener, checks: list[Check]) -> None:
        """Plan the annotation's blocks, but for those at returns."""
        placements = {check.placement for check in checks}
        if "wrap" in placements:
            if len(checks) > 1:
                raise SiteError("wrap", f"{checks[0].pattern.id} has to stand alone", "Give it a line of its own.")
            self._wrap(opener, checks[0])
            return
        self._snapshots(opener, checks)
        here = [check for check in checks if check.placement == "here"]
        entry = [check for check in checks if check.placement == "on_entry"]
        if here:
            self._here(opener, here)
        if entry:
            self._entry(opener, entry)
        for check in checks:
            if check.placement == "on_return":
                self._scope(check.place).on_return.append(check)

    def _code(self, check: Check, unit: str, result: str | None = None) -> str:
        code = render_check(check, self.tree, self._scope(check.place).fresh, unit, self.options, result)
        if too_long(code):
            raise SiteError(
                "too-long",
                f"{check.pattern.id} takes {len(code.splitlines())} lines here, and a block may have 10 for one pattern",
                "Run `codegen expand --extract`: it makes a function of it.",
            )
        for statement in check.pattern.imports:
            self.plan.imports.setdefault(statement, []).append(check)
        return code

    def _here(self, opener: Opener, checks: list[Check]) -> None:
        place = checks[0].place
        unit = place.suite.unit
        code = "".join(self._code(check, unit) for check in checks)
        if place.clause:
            self._add((place.clause, place.after), opener, place.after, place.suite, code, checks, place.clause, ENTRY)
        else:
            self._add(("own", opener.line), opener, place.after, place.suite, code, checks, None, HERE)

    def _entry_place(self, checks: Sequence[Check]) -> tuple[Suite, int]:
        place = checks[0].place
        if place.speaks_of:
            return place.suite, place.after
        assert place.function is not None
        try:
            about = self.places.about(place.function)
        except PlaceError as error:
            raise SiteError("no-place", error.message, error.fix, place.function.lineno) from error
        return about.suite, about.after

    def _entry(self, opener: Opener, checks: list[Check]) -> None:
        place = checks[0].place
        code = "".join(self._code(check, place.suite.unit) for check in checks)
        if place.head and not place.speaks_of:
            self._add(("own", opener.line), opener, place.after, place.suite, code, checks, None, HERE)
            return
        suite, after = self._entry_place(checks)
        self._add(("entry", after), opener, after, suite, code, checks, "entry", ENTRY)

    def _snapshots(self, opener: Opener, checks: list[Check]) -> None:
        olds = {name: source for check in checks for source, name in (check.olds or {}).items()}
        taken = self._scope(checks[0].place).taken
        new = {name: source for name, source in olds.items() if name not in taken}
        taken.update(new)
        if new:
            suite, after = self._entry_place(checks)
            code = "".join(f"{name} = {source}\n" for name, source in new.items())
            self._add(("entry", after), opener, after, suite, code, checks, "entry", ENTRY)

    def _add(
        self,
        key: tuple[str, int],
        opener: Opener,
        after: int,
        suite: Suite,
        code: str,
        checks: Sequence[Check],
        remote: str | None,
        rank: int,
    ) -> None:
        openers = (f"# {opener.tag} on {remote}: {opener.text}",) if remote else ()
        self.plan.blocks.append(
            Planned(
                key, opener.tag, after, suite.indent if suite.parent else "", suite.unit, code,
                canonical(ast.parse(code).body), (opener,), patterns_of(checks), openers, rank,
            )  # fmt: skip
        )

    def _wrap(self, opener: Opener, check: Check) -> None:
        place = check.place
        below = place.below
        if not opener.comment.own_line or place.clause or place.speaks_of or below is None:
            raise SiteError("wrap", f"{check.pattern.id} encloses a statement", "Put it on its own line above that statement.")
        if isinstance(below, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            raise SiteError("wrap", f"{check.pattern.id} cannot enclose a definition", "Put it above a statement.")
        self._alone(place.suite, place.index)
        unit = place.suite.unit
        code = self._code(check, unit)
        tree = ast.parse(code)
        hole = next(
            (n for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Name) and n.value.id == HOLE_NAME),
            None,
        )
        if hole is None:
            raise SiteError("pattern-defect", f"{check.pattern.id} leaves the statement out", f"Correct {check.pattern.path}.")
        waits = any(isinstance(n, ast.AsyncWith | ast.Await | ast.AsyncFor) for n in ast.walk(tree))
        if waits and not isinstance(place.function, ast.AsyncFunctionDef):
            raise SiteError("wrap", f"{check.pattern.id} needs an async function", "Use it where a call is awaited.")
        self.plan.blocks.append(
            Planned(
                ("own", opener.line), opener.tag, first_line(below) - 1, place.suite.indent, unit, code,
                canonical(tree.body, {id(hole): HOLE}), (opener,), (check.pattern.id,), (), HERE, "wrap", below,
            )  # fmt: skip
        )
        if first_line(below) != opener.last_line + 1:
            raise SiteError("wrap", "something stands between the annotation and its statement", "Put it right above.")

    def _alone(self, suite: Suite, index: int, what: str = "statement") -> None:
        statement = suite.statements[index]
        near = suite.statements[max(0, index - 1) : index] + suite.statements[index + 1 : index + 2]
        lines = {first_line(statement), last_line(statement)}
        if suite.inline or any(first_line(other) in lines or last_line(other) in lines for other in near):
            raise SiteError(
                "shared-line",
                f"the {what} on line {self.line_of(statement.lineno)} shares its line with other code",
                "Give it a line of its own.",
                statement.lineno,
            )

    def _returns(self, scope: Scope) -> None:
        """Plan the checks of a function's result, at each of its own returns and where control falls off."""
        checks = scope.on_return
        function = checks[0].place.function
        assert function is not None
        opener = checks[0].opener
        body = self.places.body_of(function)
        if body.inline:
            raise SiteError("no-place", "the function's body stands on its header's line", "Give it lines of its own.")
        exits = returns_of(body)
        if is_generator(function):
            self._find(
                opener, "warning", "generator",
                f"{function.name} is a generator: `result` is what its return gives, not what it yields",
                "Check each value where it is yielded.",
            )  # fmt: skip
        for leaving in exits:
            self._at_return(scope, leaving)
        if falls_off(function.body):
            self._at_end(scope, body)
        elif not exits:
            self._find(
                opener, "warning", "never-returns", f"{function.name} never returns, so nothing is checked",
                "Remove the annotation.",
            )  # fmt: skip

    def _result_name(self, scope: Scope) -> str:
        if not scope.result:
            scope.result = scope.fresh("result")
        return scope.result

    def _at_return(self, scope: Scope, leaving: Exit) -> None:
        statement = leaving.statement
        if leaving.in_finally:
            raise SiteError(
                "return-in-finally", "a return inside finally hides exceptions and other returns",
                "Move the return out of the finally clause.", statement.lineno,
            )  # fmt: skip
        self._alone(leaving.suite, leaving.index, "return")
        uses = any(check.uses_result for check in scope.on_return)
        plain = result_source(statement.value, scope.on_return) if uses else "None"
        if not uses and statement.value is not None and not isinstance(statement.value, ast.Name | ast.Constant):
            plain = None
        name = plain or self._result_name(scope)
        lines = self._return_code(scope, leaving.suite.unit, name)
        after = first_line(statement) - 1
        if plain is not None:
            self._add_return(scope, after, leaving.suite, lines, None)
        elif statement.value is None:
            self._add_return(scope, after, leaving.suite, f"{name} = None\n{lines}", None)
        else:
            code = f"{name} = {HOLE_NAME}\n{lines}return {name}\n"
            self._add_return(scope, after, leaving.suite, code, statement)

    def _at_end(self, scope: Scope, body: Suite) -> None:
        last = body.statements[-1]
        after = self.layout.logical_end(last_line(last))
        for opener in self.openers:
            if opener.line > after and any(
                block.key == ("own", opener.line) and block.after >= after and self._in(body, opener)
                for block in self.plan.blocks
            ):
                after = opener.last_line
        uses = any(check.uses_result for check in scope.on_return)
        name = self._result_name(scope) if uses else "None"
        bind = f"{name} = None\n" if uses else ""
        self._add_return(scope, after, body, bind + self._return_code(scope, body.unit, name), None)

    def _in(self, body: Suite, opener: Opener) -> bool:
        return self.places.find(opener).suite is body

    def _return_code(self, scope: Scope, unit: str, name: str) -> str:
        return "".join(self._code(check, unit, name) for check in scope.on_return)

    def _add_return(self, scope: Scope, after: int, suite: Suite, code: str, statement: ast.Return | None) -> None:
        openers = list(dict.fromkeys(check.opener for check in scope.on_return))
        body = ast.parse(code).body
        holes: dict[int, str] = {}
        if statement is not None:
            binding = body[0]
            assert isinstance(binding, ast.Assign)
            holes[id(binding.value)] = HOLE
        self.plan.blocks.append(
            Planned(
                ("return", after), openers[0].tag, after, suite.indent, suite.unit, code, canonical(body, holes),
                tuple(openers), patterns_of(scope.on_return),
                tuple(f"# {o.tag} on return: {_on_return_text(o, scope)}" for o in openers), RETURN,
                "plain" if statement is None else "return", statement,
            )  # fmt: skip
        )


def _on_return_text(opener: Opener, scope: Scope) -> str:
    items = [check.item for check in scope.on_return if check.opener is opener]
    return ", ".join(item.source for item in items)


def patterns_of(checks: Sequence[Check]) -> tuple[str, ...]:
    """Ids and versions, as messages name them."""
    return tuple(f"{check.pattern.id} v{check.pattern.version}" for check in checks)


def stub_reason(function: Function | None, path: str) -> str:
    """Why a function has no body to put checks in; "" if it has one."""
    if path.endswith(".pyi"):
        return "a stub file"
    if function is None:
        return ""
    names = {ast.unparse(decorator).rpartition(".")[2] for decorator in function.decorator_list}
    if "overload" in names:
        return f"{function.name} is an overload"
    body = function.body[1:] if is_docstring(function.body[0]) else function.body
    only = body[0] if len(body) == 1 else None
    if isinstance(only, ast.Expr) and isinstance(only.value, ast.Constant) and only.value.value is ...:
        return f"the body of {function.name} is `...`"
    return ""
