"""The statement lists of a module, with what is known of each: owner, function, header, column."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from codegen.expand.reading.comments import Layout
from codegen.expand.reading.parsing import Function, first_line, suites_of
from codegen.expand.reading.source import column_of, indent_of

SuiteKind = Literal["module", "function", "class", "block"]


@dataclass(eq=False)
class Suite:
    """One statement list. `clause` is the word of a header that is not its statement's first (else, except …).

    `header_end` is the last line of the header, `outer` its indentation; `inline` means that the statements share
    that line.
    `functions` are the enclosing functions, the innermost last.
    """

    owner: ast.AST
    statements: list[ast.stmt]
    kind: SuiteKind
    functions: tuple[Function, ...]
    header_end: int
    column: int
    indent: str
    inline: bool
    clause: str | None = None
    parent: Suite | None = None
    outer: str = ""
    children: list[Suite] = field(default_factory=list)
    _by_statement: dict[int, list[Suite]] = field(default_factory=dict, repr=False)

    def adopt(self, child: Suite, statement: ast.stmt) -> None:
        """Hang a suite below the statement that it belongs to."""
        self.children.append(child)
        self._by_statement.setdefault(id(statement), []).append(child)

    def under(self, statement: ast.stmt) -> list[Suite]:
        """The suites of one statement, in source order."""
        return self._by_statement.get(id(statement), [])

    @property
    def unit(self) -> str:
        """One level of indentation as this suite shows it."""
        if self.parent is None:
            return next((child.unit for child in self.children if not child.inline), "    ")
        inner = self.indent[len(self.outer) :] if self.indent.startswith(self.outer) else ""
        return inner if inner and not self.inline else "    "

    @property
    def function(self) -> Function | None:
        """The innermost function around the statements."""
        return self.functions[-1] if self.functions else None

    @property
    def function_name(self) -> str:
        """What messages call that function: its qualified name, without `<locals>`. "" at module level.

        A bare method name does not say whose it is, and a function called `_` is known by what it is registered for.
        """
        names: list[str] = []
        suite: Suite | None = self
        while suite is not None:
            owner = suite.owner
            if isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef):
                names.append(_called(owner) if suite.kind == "function" else owner.name)
            elif isinstance(owner, ast.ClassDef) and names:
                names.append(owner.name)
            suite = suite.parent
        return ".".join(reversed(names))


def _called(function: Function) -> str:
    """A function's name, or for `_` that of the function that its decorator registers it with."""
    if function.name.strip("_"):
        return function.name
    for decorator in function.decorator_list:
        register = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(register, ast.Attribute) and isinstance(register.value, ast.Name | ast.Attribute):
            return ast.unparse(register.value).rpartition(".")[2]
    return function.name


def read_suites(tree: ast.Module, layout: Layout, lines: Sequence[str]) -> Suite:
    """The module's suite; the others hang below it, in source order."""
    root = Suite(tree, tree.body, "module", (), 0, 0, "", False)
    waiting = [root]
    while waiting:
        suite = waiting.pop()
        for statement in suite.statements:
            for owner, body, clause in _clauses(statement, lines):
                child = _suite(owner, body, clause, suite, layout, lines)
                suite.adopt(child, statement)
                waiting.append(child)
    return root


def _clauses(statement: ast.stmt, lines: Sequence[str]) -> list[tuple[ast.AST, list[ast.stmt], str | None]]:
    """Suites under one statement, those of `elif` chains at the same level."""
    found: list[tuple[ast.AST, list[ast.stmt], str | None]] = []
    waiting: list[tuple[ast.stmt, str | None]] = [(statement, None)]
    while waiting:
        node, word = waiting.pop()
        for owner, suite in suites_of(node):
            if owner is node and suite is getattr(node, "body", None):
                found.append((owner, suite, word))
            elif isinstance(owner, ast.ExceptHandler):
                found.append((owner, suite, "except"))
            elif isinstance(owner, ast.match_case):
                found.append((owner, suite, "case"))
            elif suite is getattr(node, "finalbody", None):
                found.append((owner, suite, "finally"))
            elif isinstance(node, ast.If) and _is_elif(suite, lines):
                waiting.append((suite[0], "elif"))
            else:
                found.append((owner, suite, "else"))
    return found


def _is_elif(suite: list[ast.stmt], lines: Sequence[str]) -> bool:
    if len(suite) != 1 or not isinstance(suite[0], ast.If):
        return False
    return characters(lines[suite[0].lineno - 1], suite[0].col_offset, None).startswith("elif")


def characters(line: str, start: int | None, end: int | None) -> str:
    """Part of a line by the byte offsets that trees carry."""
    return line.encode("utf-8", "surrogatepass")[start:end].decode("utf-8", "surrogatepass")


def _suite(
    owner: ast.AST,
    body: list[ast.stmt],
    clause: str | None,
    parent: Suite,
    layout: Layout,
    lines: Sequence[str],
) -> Suite:
    kind: SuiteKind = "block"
    functions = parent.functions
    if isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef):
        kind, functions = "function", (*functions, owner)
    elif isinstance(owner, ast.ClassDef):
        kind, functions = "class", ()
    first = first_line(body[0])
    line = lines[first - 1]
    decorated = bool(getattr(body[0], "decorator_list", None))
    inline = not decorated and characters(line, 0, body[0].col_offset).strip(" \t\f") != ""
    at = bisect_left(layout.logical_ends, first)
    header_end = first if inline else (layout.logical_ends[at - 1] if at else 0)
    outer = indent_of(lines[layout.logical[at - 1].first - 1]) if at else ""
    return Suite(
        owner, body, kind, functions, header_end, column_of(line), indent_of(line), inline, clause, parent, outer
    )


def open_suites(root: Suite, line: int) -> list[Suite]:
    """The suites that may still go on at a line that holds no code, the innermost last."""
    chain = [root]
    while True:
        owner = last_before(chain[-1], line)
        below = chain[-1].under(owner) if owner is not None else []
        inside = [child for child in below if child.header_end < line and not child.inline]
        if not inside:
            return chain
        chain.append(inside[-1])


def last_before(suite: Suite, line: int) -> ast.stmt | None:
    """The last statement of a suite that begins before the line."""
    at = bisect_left(suite.statements, line, key=first_line)
    return suite.statements[at - 1] if at else None


def all_suites(root: Suite) -> list[Suite]:
    """Every suite, outer ones first."""
    found = [root]
    for suite in found:  # The list grows while it is read.
        found.extend(suite.children)
    return found
