"""Code shortened to what Section 5 shows: full signature, and a body of at most 15 lines of annotated pseudo-code.

A sketch is valid Python, keeps every annotation, and drops expansions (they are rendered again from their
annotations), comments and the docstring. Long statements keep their shape: `plan = ...`, `raise ValueError(...)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.document.heads import parameters
from codegen.drift.code import Module
from codegen.drift.promises import Annotated
from codegen.drift.signatures import Definition, dotted

MAX_BODY = 15
MAX_WIDTH = 96
_INDENT = "    "
_COMPOUND = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
_DEEPEST = 8


@dataclass(frozen=True)
class Sketcher:
    """Makes the sketches of one module's definitions."""

    module: Module
    annotated: Annotated

    def function(self, definition: Definition) -> list[str]:
        """Decorators, signature and shortened body."""
        return [*self.decorators(definition), *signature_lines(definition), *self._body(definition)]

    def class_(self, definition: Definition, members: list[list[str]]) -> list[str]:
        """Decorators, head and fields, then the given members, already sketched."""
        node = definition.node
        assert isinstance(node, ast.ClassDef)
        bases = ", ".join(ast.unparse(each) for each in [*node.bases, *node.keywords])
        lines = [*self.decorators(definition), f"class {node.name}{f'({bases})' if bases else ''}:"]
        body = [_INDENT + text for text in self.annotations(definition.name, 0, 10**9)]
        shown = {field.line for field in definition.fields}
        for statement in node.body:
            if statement.lineno in shown:
                body.append(_INDENT + self.one_line(statement))
        for member in members:
            body += (
                ["", *(_INDENT + line if line else "" for line in member)]
                if body
                else [_INDENT + line if line else "" for line in member]
            )
        return lines + (body or [f"{_INDENT}..."])

    def decorators(self, definition: Definition) -> list[str]:
        """One line for each decorator."""
        return [f"@{self.one_line(each)}" for each in definition.node.decorator_list]

    def _body(self, definition: Definition) -> list[str]:
        node = definition.node
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        statements = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
        end = node.end_lineno or node.lineno
        for depth, plain in [*((depth, True) for depth in range(_DEEPEST, -1, -1)), (0, False)]:
            lines = list(self._block(definition.name, statements, node.lineno, end + 1, depth, plain))
            if len(lines) <= MAX_BODY:
                break
        return [_INDENT + line for line in _closed(lines)]

    def _block(
        self, owner: str, statements: list[ast.stmt], after: int, before: int, depth: int, plain: bool
    ) -> Iterator[str]:
        """The lines of one block between two source lines, clauses shown down to `depth`. Without `plain` only those
        statements are left that an annotation follows, and returns."""
        lines: list[str] = []
        for statement in statements:
            if self.annotated.is_managed(statement.lineno):
                continue
            noted = self.annotations(owner, after, statement.lineno)
            if not plain and not noted and lines and _may_go(lines[-1]):
                lines[-1] = "..."
            lines += noted
            after = statement.end_lineno or statement.lineno
            promised = self.annotations(owner, statement.lineno, after + 1)
            if isinstance(statement, _COMPOUND):
                shown = promised or depth > 0
                lines += self._compound(owner, statement, depth - 1, plain) if shown else ["..."]
            else:
                lines += [*promised, self.one_line(statement)]
        closing = self.annotations(owner, after, before + 1)
        if not plain and not closing and lines and _may_go(lines[-1]):
            lines[-1] = "..."
        lines += closing
        previous = ""
        for line in lines:
            if not (line == previous == "..."):
                yield line
            previous = line

    def _compound(self, owner: str, statement: ast.stmt, depth: int, plain: bool) -> Iterator[str]:
        if isinstance(statement, ast.Match):
            yield self.head(statement.lineno, ast.unparse(statement).split("\n")[0])
        for head, body, first, last in _clauses(statement):
            indent = _INDENT if isinstance(statement, ast.Match) else ""
            yield indent + self.head(first, head)
            block = list(self._block(owner, body, first, last, depth, plain))
            yield from (indent + _INDENT + line for line in _closed(block))

    def head(self, line: int, head: str) -> str:
        """The head of a clause as written, if it stands on one line, else as the parser gives it, shortened."""
        written = self.module.lines[line - 1].strip()
        if written.endswith(":") and "#" not in written:
            head = written
        return head if len(head) <= MAX_WIDTH else _short_head(head)

    def annotations(self, owner: str, after: int, before: int) -> list[str]:
        """The annotations between two source lines as their author wrote them, notes included."""
        found = self.annotated.promises.get(owner, ())
        spans = {each.line: each.last_line for each in found if after <= each.line < before}
        return [
            line.strip() for first, last in spans.items() for line in _comments(self.module.lines[first - 1 : last])
        ]

    def one_line(self, node: ast.stmt | ast.expr) -> str:
        """The source of a statement or expression on one line, its shape where it is too long."""
        text = self._segment(node) or ast.unparse(node)
        return text if "\n" not in text and len(text) <= MAX_WIDTH else _short(node)

    def _segment(self, node: ast.stmt | ast.expr) -> str:
        """The source of a node that stands on one line: it keeps the author's quotes. Else the empty string."""
        if node.lineno != node.end_lineno:
            return ""
        # column offsets count bytes
        return self.module.lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()


def _may_go(line: str) -> bool:
    """Whether a shortened block can do without this line: a statement of its own that returns nothing."""
    return not line.startswith(("#", " ", "return"))


def _comments(lines: list[str]) -> list[str]:
    return [line[line.index("#") :] for line in lines]


def signature_lines(definition: Definition) -> list[str]:
    """`def name(…) -> T:` on one line, or one parameter a line where it would be too wide."""
    start, parts, end = _signature(definition)
    line = start + ", ".join(parts) + end
    if len(line) <= MAX_WIDTH:
        return [line]
    return [start, *(f"{_INDENT}{part}," for part in parts), end]


def one_line_signature(definition: Definition) -> str:
    """`def name(…) -> T:` on one line, however wide."""
    start, parts, end = _signature(definition)
    return start + ", ".join(parts) + end


def _signature(definition: Definition) -> tuple[str, list[str], str]:
    node = definition.node
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    start = f"{'async ' if definition.is_async else ''}def {node.name}("
    end = f"){f' -> {ast.unparse(node.returns)}' if node.returns else ''}:"
    return start, list(parameters(node.args)), end


def _clauses(statement: ast.stmt) -> Iterator[tuple[str, list[ast.stmt], int, int]]:
    """Head, body and source lines of every clause of a compound statement."""
    head = ast.unparse(statement).split("\n")[0]
    body = getattr(statement, "body", [])
    if isinstance(statement, ast.Match):
        for case in statement.cases:
            text = ast.unparse(case).split("\n")[0]
            yield text, case.body, case.pattern.lineno, case.body[-1].end_lineno or 0
        return
    yield head, body, statement.lineno, body[-1].end_lineno or 0
    for handler in getattr(statement, "handlers", []):
        text = ast.unparse(handler).split("\n")[0]
        yield text, handler.body, handler.lineno, handler.body[-1].end_lineno or 0
    orelse = getattr(statement, "orelse", [])
    if orelse:
        if isinstance(statement, ast.If) and len(orelse) == 1 and isinstance(orelse[0], ast.If):
            clauses = _clauses(orelse[0])
            first = next(clauses)
            yield ("el" + first[0], *first[1:])
            yield from clauses
        else:
            yield "else:", orelse, orelse[0].lineno - 1, orelse[-1].end_lineno or 0
    final = getattr(statement, "finalbody", [])
    if final:
        yield "finally:", final, final[0].lineno - 1, final[-1].end_lineno or 0


def _short_head(head: str) -> str:
    for keyword in ("async for", "async with", "for", "with", "while", "elif", "if"):
        if head.startswith(f"{keyword} "):
            return f"{keyword} _ in ...:" if keyword.endswith("for") else f"{keyword} ...:"
    return head


def _short(node: ast.stmt | ast.expr) -> str:
    """The shape of a statement that is too long for one line."""
    if isinstance(node, ast.Assign):
        return " = ".join(ast.unparse(target) for target in node.targets) + " = ..."
    if isinstance(node, ast.AnnAssign):
        return f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)} = ..."
    if isinstance(node, ast.AugAssign):
        return f"{ast.unparse(node.target)} += ..."
    if isinstance(node, ast.Return):
        return "return ..."
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        return f"raise {ast.unparse(node.exc.func)}(...)"
    if isinstance(node, ast.Expr):
        return _short(node.value)
    if isinstance(node, ast.Await):
        return f"await {_short(node.value)}"
    if isinstance(node, ast.Call) and dotted(node.func):
        return f"{ast.unparse(node.func)}(...)"
    return "..."


def _closed(lines: list[str]) -> list[str]:
    """A block must end in a statement, not in comments alone."""
    return lines if any(not line.lstrip().startswith("#") for line in lines) else [*lines, "..."]
