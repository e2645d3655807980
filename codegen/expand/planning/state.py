"""What planning a file shares: the base text, the library, each scope's names, and the plan that grows."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from codegen.diagnostics import Finding, Severity
from codegen.expand.meaning.checks import Check
from codegen.expand.model import Options, SiteError
from codegen.expand.planning.planned import Planned
from codegen.expand.reading.canonical import canonical
from codegen.expand.reading.comments import Layout
from codegen.expand.reading.marks import Opener
from codegen.expand.reading.parsing import first_line, last_line
from codegen.expand.reading.places import Place, PlaceError, Places
from codegen.expand.reading.scopes import Fresh, names_in
from codegen.expand.reading.suites import Suite
from codegen.patterns import Library

HERE, MODULE, ENTRY, RETURN = range(4)
SPARE = 4
"""Statements below a site beyond those of its block: hand-written code may spread the same check over more of them."""


@dataclass
class Scope:
    """Names of a function or of the module, its snapshots by source, those planned already, checks of its result."""

    fresh: Fresh
    result: str = ""
    snapshots: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    on_return: list[Check] = field(default_factory=list)


@dataclass
class Plan:
    """Planned blocks in the order of the base text, the imports they need with who needs them, what is wrong."""

    blocks: list[Planned] = field(default_factory=list)
    imports: dict[str, list[Check]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


@dataclass
class Planning:
    """One base text being planned. `line_of` gives the file's line for a base line."""

    path: str
    tree: ast.Module
    lines: Sequence[str]
    layout: Layout
    places: Places
    library: Library
    options: Options
    line_of: Callable[[int], int]
    openers: Sequence[Opener] = ()
    extracted: frozenset[str] = frozenset()
    plan: Plan = field(default_factory=Plan)
    scopes: dict[int, Scope] = field(default_factory=dict)
    functions: dict[int, str] = field(default_factory=dict)

    def scope_of(self, place: Place) -> Scope:
        """The scope that code at the place runs in."""
        owner: ast.AST = place.function or self.tree
        if id(owner) not in self.scopes:
            self.scopes[id(owner)] = Scope(Fresh(names_in(owner)))
        return self.scopes[id(owner)]

    def report(
        self, opener: Opener, severity: Severity, code: str, message: str, fix: str, line: int | None = None
    ) -> None:
        """Add a finding at the annotation, or at another base line."""
        column = opener.comment.column + 1 if line is None else 1
        place = self.line_of(opener.line if line is None else line)
        self.plan.findings.append(Finding(self.path, place, column, code, message, severity, fix))

    def warn_once(self, opener: Opener, code: str, message: str, fix: str) -> None:
        """Add a warning at the annotation, once however many sites it has."""
        known = any(f.code == code and f.message == message for f in self.plan.findings)
        if not known:
            self.report(opener, "warning", code, message, fix)

    def entry_of(self, checks: Sequence[Check]) -> tuple[Suite, int]:
        """Suite and line of the entry of the function that the checks speak of. Raises SiteError."""
        place = checks[0].place
        if place.speaks_of:
            return place.suite, place.after
        assert place.function is not None
        try:
            about = self.places.about(place.function)
        except PlaceError as error:
            raise SiteError("no-place", error.message, error.fix, place.function.lineno) from error
        return about.suite, about.after

    def alone(self, suite: Suite, index: int, what: str) -> None:
        """Make sure that a statement shares no line with other code. Raises SiteError."""
        statement = suite.statements[index]
        near = suite.statements[max(0, index - 1) : index] + suite.statements[index + 1 : index + 2]
        lines = {first_line(statement), last_line(statement)}
        if suite.inline or any(first_line(other) in lines or last_line(other) in lines for other in near):
            message = f"the {what} on line {self.line_of(statement.lineno)} shares its line with other code"
            raise SiteError("shared-line", message, "Give it a line of its own.", statement.lineno)

    def unmarked(self, statement: ast.stmt, what: str) -> None:
        """Make sure that a statement which a block is to hold has no annotation in it. Raises SiteError."""
        at = bisect_left(self.openers, first_line(statement), key=_line)
        if at < len(self.openers) and self.openers[at].line <= last_line(statement):
            line = self.openers[at].line
            message = f"the annotation on line {self.line_of(line)} is part of {what}, which a block has to hold"
            raise SiteError("nested", message, "Put it on its own line above.", line)

    def add(
        self,
        key: tuple[str, int],
        after: int,
        suite: Suite,
        code: str,
        checks: Sequence[Check],
        rank: int,
        holes: Mapping[int, str] | None = None,
        body: Sequence[ast.stmt] | None = None,
        statement: ast.stmt | None = None,
    ) -> None:
        """Plan a block. `body` is the parsed code when the caller has it, with the canonical text of its `holes`."""
        openers = tuple(dict.fromkeys(check.opener for check in checks))
        remote = key[0] if key[0] != "own" else None
        body = ast.parse(code).body if body is None else body
        below = bisect_right(suite.statements, after, key=first_line)
        self.plan.blocks.append(
            Planned(
                key=key,
                tag=openers[0].tag,
                after=after,
                indent=suite.indent if suite.parent else "",
                unit=suite.unit,
                code=code,
                form=canonical(body, holes),
                annotations=openers,
                patterns=tuple(dict.fromkeys(f"{c.pattern.id} v{c.pattern.version}" for c in checks)),
                openers=tuple(f"# {o.tag} on {remote}: {_items(o, checks)}" for o in openers) if remote else (),
                rank=rank,
                shape="plain" if statement is None else "return" if remote else "wrap",
                statement=statement,
                origin=_origin(openers, checks),
                following=tuple(suite.statements[below : below + len(body) + SPARE]),
            )
        )


def _line(opener: Opener) -> int:
    return opener.line


def _origin(openers: Sequence[Opener], checks: Sequence[Check]) -> tuple[str, str]:
    items = "; ".join(f"{opener.tag}: {_items(opener, checks)}" for opener in openers)
    return items, " ".join(dict.fromkeys(check.pattern.digest[:16] for check in checks))


def _items(opener: Opener, checks: Sequence[Check]) -> str:
    """The items of one annotation that a remote site is about, naming a tag where it changes."""
    parts, tag = [], opener.tag
    for check in checks:
        if check.opener is opener:
            item = check.item
            parts.append(item.source if item.tag == tag else f"{item.tag}: {item.source}")
            tag = item.tag
    return ", ".join(dict.fromkeys(parts))
