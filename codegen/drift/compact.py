"""A definition in as few lines as keep its contract: signature, annotations, and what it raises under which condition.

For methods that are done: their code stands in the repository, and Section 5 only has to say what callers rely on.
The lines are valid Python; `...` means all that is left out, so that no name is read that nothing defines.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.drift.signatures import Definition
from codegen.drift.sketch import Sketcher, one_line_signature, signature_lines

WIDTH = 120
_INDENT = "    "
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def compact_function(sketcher: Sketcher, definition: Definition) -> list[str]:
    """Decorators, signature and contract of a function or method."""
    node = definition.node
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    statements = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    local = _locals(node)
    lines = _lines(_Contract(sketcher, definition.name, local), statements, node.lineno, (node.end_lineno or 0) + 1)
    body = _folded(lines)
    decorators = sketcher.decorators(definition)
    short = one_line_signature(definition)
    if body == ["..."] and len(short) + len(" ...") <= WIDTH:
        return [*decorators, f"{short} ..."]
    head = [short] if len(short) <= WIDTH else signature_lines(definition)
    return [*decorators, *head, *(_INDENT + line for line in body)]


@dataclass(frozen=True)
class _Contract:
    """What the lines of one definition are made with. `local` are its own variables: their assignments are left out."""

    sketcher: Sketcher
    owner: str
    local: frozenset[str]

    def annotations(self, after: int, before: int) -> list[str]:
        return self.sketcher.annotations(self.owner, after, before)

    def hides(self, node: ast.AST) -> bool:
        return any(isinstance(each, ast.Name) and each.id in self.local for each in ast.walk(node))

    def condition(self, statement: ast.If) -> str:
        if self.hides(statement.test):
            return "if ...:"
        return self.sketcher.head(statement.lineno, f"if {ast.unparse(statement.test)}:")

    def raised(self, statement: ast.Raise) -> str:
        assert statement.exc is not None
        if isinstance(statement.exc, ast.Call) and self.hides(statement):
            return f"raise {ast.unparse(statement.exc.func)}(...)"
        return "..." if self.hides(statement) else self.sketcher.one_line(statement)


def _locals(node: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """The names that a function's statements bind; its parameters stand in the signature and stay."""
    inside = [each for statement in node.body for each in ast.walk(statement)]
    names = {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    names |= {each.name for each in inside if isinstance(each, (*_SCOPES, ast.ExceptHandler)) and each.name}
    return frozenset(names | {each.arg for each in inside if isinstance(each, ast.arg)})


def _lines(contract: _Contract, statements: list[ast.stmt], after: int, before: int) -> Iterator[str]:
    """The annotations of the source lines from `after` to before `before`, raises with the `if` right around them, and
    `...` for the rest."""
    for statement in statements:
        if contract.sketcher.annotated.is_managed(statement.lineno):
            continue
        yield from contract.annotations(after, statement.lineno)
        after = (statement.end_lineno or statement.lineno) + 1
        yield from _statement(contract, statement, after)
    yield from contract.annotations(after, before)


def _statement(contract: _Contract, statement: ast.stmt, before: int) -> Iterator[str]:
    first = statement.lineno
    if isinstance(statement, ast.If) and not statement.orelse and isinstance(statement.body[-1], ast.Raise):
        yield contract.condition(statement)
        yield from (_INDENT + line for line in _folded(_lines(contract, statement.body, first, before)))
        return
    blocks = [] if isinstance(statement, _SCOPES) else list(_blocks(statement))
    if not blocks:
        yield from contract.annotations(first, before)
        yield contract.raised(statement) if isinstance(statement, ast.Raise) and statement.exc else "..."
        return
    yield "..."
    for block in blocks:
        end = (block[-1].end_lineno or first) + 1
        yield from _lines(contract, block, first, end)
        first = end
    yield from contract.annotations(first, before)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks inside a compound statement, in source order."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        part = getattr(statement, name, [])
        if part and isinstance(part[0], ast.stmt):
            yield part
        else:
            yield from (inner.body for inner in part)


def _folded(lines: Iterator[str]) -> list[str]:
    """The lines with runs of `...` made one; a block must not consist of comments alone."""
    kept: list[str] = []
    for line in lines:
        if not (line == "..." and kept[-1:] == ["..."]):
            kept.append(line)
    return kept if any(not line.lstrip().startswith("#") for line in kept) else [*kept, "..."]
