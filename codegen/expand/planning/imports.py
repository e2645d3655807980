"""Imports that generated code needs: one line each, `import x  # VAL import`, below the docstring and __future__.

A managed import is known by its comment wherever an import sorter puts it. It binds one name; a line that came to
bind more is the author's, and is never removed.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from codegen.expand.meaning.checks import Check
from codegen.expand.meaning.names import deleted_later, surely_runs_before
from codegen.expand.planning.state import Planning
from codegen.expand.reading.marks import Opener
from codegen.expand.reading.parsing import first_line, is_docstring, last_line, own_nodes
from codegen.expand.reading.scopes import bound_by, bound_in
from codegen.expand.reading.suites import Suite


@dataclass(frozen=True)
class NeededImport:
    """An import statement and the base line below which it goes.

    `before` is the base line of the first annotation, or of the top-level statement around it, whose check runs while
    the module is imported; the import has to stand above.
    """

    statement: str
    tag: str
    after: int
    line: int
    what: str
    before: int | None = None

    @property
    def text(self) -> str:
        """The managed line."""
        return f"{self.statement}  # {self.tag} import"


def needed_imports(planning: Planning) -> list[NeededImport]:
    """Imports to add. A name that is already something else is a finding at the annotation that needs it."""
    found: list[NeededImport] = []
    present: dict[str, list[ast.stmt]] = {}
    for node in own_nodes(planning.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                present.setdefault(ast.unparse(_single(node, alias)), []).append(node)
    unseen = _for_type_checkers(planning.tree)
    for statement, checks in sorted(planning.plan.imports.items()):
        wanted = ast.parse(statement).body[0]
        assert isinstance(wanted, ast.Import | ast.ImportFrom)
        standing = present.get(ast.unparse(wanted), [])
        need = _needed(planning, statement, wanted, checks, standing, unseen)
        if need is not None:
            found.append(need)
    return found


def _needed(
    planning: Planning,
    statement: str,
    wanted: ast.Import | ast.ImportFrom,
    checks: Sequence[Check],
    standing: Sequence[ast.stmt],
    unseen: frozenset[int],
) -> NeededImport | None:
    """The import to add; None when the file has it, or when a finding says why it cannot be had."""
    name = bound_by(wanted.names[0])
    for check in checks:
        if any(name in bound_in(function) for function in check.place.functions):
            _clash(planning, check.opener, name, statement)
            return None
    before = min((_begin(planning.tree, c) for c in checks if c.place.function is None), default=None)
    root = planning.places.root
    if deleted_later(name, root):
        _refuse(planning, checks[0].opener, f"`{statement}` is needed, but the module deletes {name}", f"Keep {name}.")
        return None
    # An import that the file has counts only if it has run whenever one of these checks runs: not in a branch that they
    # are not in, not below code that may call them while the module is imported.
    if standing and all(_in_time(standing, check, root) for check in checks):
        return None
    if any(node in planning.tree.body for node in standing):
        opener = next((c.opener for c in checks if not _in_time(standing, c, root)), checks[0].opener)
        message = f"`{statement}` is below this check, which may run before it when the module is imported"
        planning.report(opener, "error", "late-import", message, "Move the import above the annotation.")
        return None
    branch = next((node for node in standing if id(node) not in unseen), None)
    if branch is not None:
        line = planning.line_of(branch.lineno)
        why = f"`{statement}` on line {line} is in a branch that may not have run when this check does"
        _refuse(planning, checks[0].opener, why, "Move the import out of the branch.")
        return None
    if name in bound_in(planning.tree, unseen):
        _clash(planning, checks[0].opener, name, statement)
        return None
    first = checks[0]
    after = _line_above(planning, wanted)
    if before is not None:
        after = min(after, before - 1)
    return NeededImport(statement, first.opener.tag, after, first.opener.line, first.item.id, before)


def _in_time(standing: Sequence[ast.stmt], check: Check, root: Suite) -> bool:
    place = check.place
    suite = place.speaks_of or place.suite
    return any(surely_runs_before(node, suite, check.opener.line, root) for node in standing)


def _refuse(planning: Planning, opener: Opener, message: str, fix: str) -> None:
    planning.report(opener, "error", "uncertain-import", message, fix)


def _begin(tree: ast.Module, check: Check) -> int:
    """The line above which whatever the check needs has to stand."""
    line = check.opener.line
    if check.place.suite.parent is None:
        return line
    return max((first_line(statement) for statement in tree.body if first_line(statement) <= line), default=line)


def _clash(planning: Planning, opener: Opener, name: str, statement: str) -> None:
    message = f"`{statement}` is needed, but {name} is another thing here"
    planning.report(opener, "error", "name-clash", message, f"Rename {name} in this code.")


def _for_type_checkers(tree: ast.Module) -> frozenset[int]:
    """Nodes below `if TYPE_CHECKING:`, which bind nothing when the module runs; aliases included."""
    return frozenset(
        id(inner)
        for node in own_nodes(tree)
        if isinstance(node, ast.If) and _asks_for_type_checking(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    )


def _asks_for_type_checking(test: ast.expr) -> bool:
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"


def _single(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> ast.stmt:
    if isinstance(node, ast.Import):
        return ast.Import([alias])
    return ast.ImportFrom(node.module, [alias], node.level)


def _line_above(planning: Planning, wanted: ast.Import | ast.ImportFrom) -> int:
    """Where the line goes: sorted into the first group of imports, or below docstring and __future__ imports."""
    body = planning.tree.body
    start = 0
    after = _header_lines(planning.lines)
    while start < len(body) and (
        (start == 0 and is_docstring(body[0])) or getattr(body[start], "module", None) == "__future__"
    ):
        after = planning.layout.logical_end(last_line(body[start]))
        start += 1
    group = _first_group(body[start:])
    if not group:
        return after
    for statement in group:
        if _sort_key(statement) > _sort_key(wanted):
            return first_line(statement) - 1
    return planning.layout.logical_end(last_line(group[-1]))


def _first_group(statements: Sequence[ast.stmt]) -> list[ast.Import | ast.ImportFrom]:
    group: list[ast.Import | ast.ImportFrom] = []
    for statement in statements:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            break
        if group and first_line(statement) != last_line(group[-1]) + 1:
            break
        group.append(statement)
    return group


def _sort_key(statement: ast.Import | ast.ImportFrom) -> tuple[bool, str]:
    if isinstance(statement, ast.Import):
        return False, statement.names[0].name.lower()
    return True, (statement.module or "").lower()


def _header_lines(lines: Sequence[str]) -> int:
    """Lines that have to stay first: an interpreter line and a coding line."""
    count = 0
    while (
        count < min(2, len(lines))
        and lines[count].startswith("#")
        and ("!" in lines[count][:2] or "coding" in lines[count])
    ):
        count += 1
    return count
