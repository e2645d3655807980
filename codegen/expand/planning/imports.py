"""Imports that generated code needs: one line each, `import x  # VAL import`, below the docstring and __future__.

A managed import is known by its comment wherever an import sorter puts it. It binds one name; a line that came to
bind more is the author's, and is never removed.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from codegen.expand.meaning.checks import Check
from codegen.expand.model import SiteError
from codegen.expand.planning.state import Planning
from codegen.expand.reading.parsing import first_line, is_docstring, last_line, own_nodes
from codegen.expand.reading.scopes import bound_by, bound_in


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
    unseen = _for_type_checkers(planning.tree)
    present: dict[str, int] = {}
    for node in own_nodes(planning.tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in unseen:
            for alias in node.names:
                text = ast.unparse(_single(node, alias))
                present[text] = min(node.lineno, present.get(text, node.lineno))
    for statement, checks in sorted(planning.plan.imports.items()):
        wanted = ast.parse(statement).body[0]
        assert isinstance(wanted, ast.Import | ast.ImportFrom)
        name, canonical = bound_by(wanted.names[0]), ast.unparse(wanted)
        for check in checks:
            functions = (check.place.speaks_of or check.place.suite).functions
            if any(name in bound_in(function) for function in functions):
                _clash(planning, check.opener, name, statement)
                break
        else:
            before = min((_begin(planning.tree, c) for c in checks if c.place.function is None), default=None)
            if canonical in present:
                if before is not None and present[canonical] > before:
                    _late(planning, checks, before, statement)
                continue
            if name in bound_in(planning.tree, unseen):
                _clash(planning, checks[0].opener, name, statement)
                continue
            first = checks[0]
            after = _line_above(planning, wanted)
            if before is not None:
                after = min(after, before - 1)
            found.append(NeededImport(statement, first.opener.tag, after, first.opener.line, first.item.id, before))
    return found


def _begin(tree: ast.Module, check: Check) -> int:
    """The line above which whatever the check needs has to stand."""
    line = check.opener.line
    if check.place.suite.parent is None:
        return line
    return max((first_line(statement) for statement in tree.body if first_line(statement) <= line), default=line)


def _late(planning: Planning, checks: Sequence[Check], before: int, statement: str) -> None:
    opener = next(check.opener for check in checks if check.opener.line >= before)
    message = f"`{statement}` stands below this check, which needs it when the module is imported"
    planning.report(opener, "error", "late-import", message, "Move the import above the annotation.")


def _clash(planning: Planning, opener: object, name: str, statement: str) -> None:
    error = SiteError(
        "name-clash", f"`{statement}` is needed, but {name} is another thing here", f"Rename {name} in this code."
    )
    planning.report(opener, "error", error.code, error.message, error.fix)  # type: ignore[arg-type]


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
