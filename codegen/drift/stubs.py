"""The fence of a folded module, made from code: one stub for each name that users reach.

A stub is the signature as written, the annotations, a line `raise X  # when …` for each exception that leaves the
function, and `...`; a class shows its bases, its fields, its constructor and the stubs of its members.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Collection, Iterator

from codegen.drift.calls import CallGraph
from codegen.drift.code import Module, Place
from codegen.drift.signatures import Definition, dotted
from codegen.drift.sketch import Sketcher

WIDTH = 120
_UNIT = "    "
_LONGEST_CONDITION = 60


class Stubs:
    """Stubs of one module's definitions. `names` are those that are shown, a class also where only a member is."""

    def __init__(self, module: Module, graph: CallGraph, names: Collection[str]) -> None:
        self.module = module
        self.graph = graph
        self.sketcher = Sketcher(module, module.annotated)
        owners = {name.rpartition(".")[0] for name in names} - {""}
        outer = {owner.rpartition(".")[0] for owner in owners} - {""}
        self.shown = [
            name
            for name, each in module.definitions.items()
            if name in names or name in owners or name in outer or self._is_constructor(each, {*names, *owners})
        ]

    def code(self) -> str:
        """The text of the fence, in source order."""
        lines: list[str] = []
        for name in self.shown:
            if "." not in name:
                block = self.stub(name)
                if lines and (len(block) > 1 or lines[-1].startswith((" ", "@"))):
                    lines.append("")
                lines += block
        return "\n".join(lines) + "\n"

    def stub(self, name: str) -> list[str]:
        """The lines of one definition with the members that are shown, unindented."""
        definition = self.module.definitions[name]
        if definition.kind == "class":
            return self._class(definition)
        return [*self._function(definition, definition.node), *self._setter(definition)]

    def _is_constructor(self, each: Definition, classes: Collection[str]) -> bool:
        """Whether a class's `__init__` takes arguments, so that a caller must know it."""
        return each.last_name == "__init__" and each.owner in classes and len(each.parameters) > 1

    def _class(self, definition: Definition) -> list[str]:
        node = definition.node
        assert isinstance(node, ast.ClassDef)
        bases = ", ".join(ast.unparse(each) for each in [*node.bases, *node.keywords])
        head = [*self.sketcher.decorators(definition), f"class {node.name}{f'({bases})' if bases else ''}:"]
        body = self.sketcher.annotations(definition.name, 0, 10**9)
        rows = {field.line for field in definition.fields if not field.name.startswith("_")}
        for statement in node.body:
            if statement.lineno in rows:
                body += self._field(statement)
        for name in self.shown:
            if name.rpartition(".")[0] == definition.name:
                body += self.stub(name)
        if not body:
            return [*head[:-1], f"{head[-1]} ..."]
        only_notes = all(line.startswith("#") for line in body)
        return [*head, *(_UNIT + line if line else "" for line in [*body, *(["..."] if only_notes else [])])]

    def _field(self, statement: ast.stmt) -> list[str]:
        text = ast.unparse(statement)
        if len(text) <= WIDTH - len(_UNIT):
            return text.split("\n")
        # a default that is too long to be repeated: `...` is any default
        if isinstance(statement, ast.AnnAssign):
            return [f"{ast.unparse(statement.target)}: {ast.unparse(statement.annotation)} = ..."]
        assert isinstance(statement, ast.Assign)
        return [f"{ast.unparse(statement.targets[0])} = ..."]

    def _setter(self, definition: Definition) -> list[str]:
        """The setter of a property: callers rely on it like on the property."""
        if "setter" not in definition.decorators:
            return []
        owner = self.module.definitions[definition.owner].node
        wanted = f"{definition.last_name}.setter"
        for node in ast.walk(owner):
            if isinstance(node, ast.FunctionDef) and wanted in [dotted(each) for each in node.decorator_list]:
                return self._function(definition, node)
        return []

    def _function(self, definition: Definition, node: ast.AST) -> list[str]:
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        lines = [f"@{self.sketcher.one_line(each)}" for each in node.decorator_list]
        lines += _head(node)
        body = []
        if node is definition.node:
            body = [*self.sketcher.annotations(definition.name, 0, 10**9), *self._raises(definition)]
        if not body and len(lines[-1]) + 4 + _UNIT.count(" ") <= WIDTH:
            return [*lines[:-1], f"{lines[-1]} ..."]
        return [*lines, *(_UNIT + line for line in [*body, "..."])]

    def _raises(self, definition: Definition) -> list[str]:
        """`raise X  # when …` for each exception that certainly may leave a function and that no annotation brings."""
        found: dict[str, str] = {}
        place = Place(self.module, definition)
        for each in sorted(self.graph.escapes(place, False), key=lambda raised: raised.line):
            if not each.module.annotated.is_managed(each.line):
                condition = _condition(definition.node, each.line) if each.module is self.module else ""
                found.setdefault(each.name, f"raise {each.name}{condition}")
        return list(found.values())


def _head(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """`def name(…) -> T:`, its parameters wrapped where it is too wide; each line leaves room for a class around it."""
    start = f"{'async ' if isinstance(node, ast.AsyncFunctionDef) else ''}def {node.name}("
    end = f"){f' -> {ast.unparse(node.returns)}' if node.returns else ''}:"
    arguments = ast.unparse(node.args)
    line = start + arguments + end
    if len(line) <= WIDTH - 2 * len(_UNIT):
        return [line]
    wrapped = list(_wrapped(node.args))
    return [start, *(_UNIT + row for row in wrapped), end]


def _wrapped(arguments: ast.arguments) -> Iterator[str]:
    """The parameters in as few lines as hold them whole."""
    row = ""
    for part in _parts(arguments):
        if row and len(row) + len(part) + 2 > WIDTH - 3 * len(_UNIT):
            yield f"{row},"
            row = part
        else:
            row = f"{row}, {part}" if row else part
    if row:
        yield row


def _parts(arguments: ast.arguments) -> Iterator[str]:
    """Each parameter as text, the bare `/` and `*` between them included."""
    text = ast.unparse(arguments)
    depth, start, quote = 0, 0, ""
    for at, character in enumerate(text):
        if quote:
            quote = "" if character == quote and text[at - 1] != "\\" else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()


def _condition(node: ast.AST, line: int) -> str:
    """`  # when …`: the condition right around the raise of a line, where it is short; else nothing."""
    for each in ast.walk(node):
        if isinstance(each, ast.If) and any(isinstance(s, ast.Raise) and s.lineno == line for s in each.body):
            text = " ".join(ast.unparse(each.test).split())
            if len(text) <= _LONGEST_CONDITION:
                return f"  # when {text}"
    return ""


def indented(lines: list[str], depth: int) -> list[str]:
    """Lines of a stub inside `depth` classes."""
    return textwrap.indent("\n".join(lines), _UNIT * depth).split("\n")
