"""Stubs of code: what a folded module of Section 5 shows of each name.

A stub is the signature as written, the annotations, a line `raise X  # when …` for each exception that leaves the
function, and `...`; a class shows its bases and fields, and needs its constructor beside it where that takes arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codegen.document.heads import function_head
from codegen.document.stubs import Stubs
from codegen.drift.calls import CallGraph
from codegen.drift.code import Module, Place
from codegen.drift.section import Documented
from codegen.drift.signatures import Definition, dotted
from codegen.drift.sketch import Sketcher

WIDTH = 120
_UNIT = "    "
_LONGEST_CONDITION = 60
_EVERYWHERE = (0, 10**9)


class Stubber:
    """Makes the stubs of one module's definitions."""

    def __init__(self, module: Module, graph: CallGraph) -> None:
        self.module = module
        self.graph = graph
        self.sketcher = Sketcher(module, module.annotated)

    def shown(self, names: Iterable[str]) -> list[str]:
        """The names to show for these to be shown, in source order: the classes around them and constructors too."""
        wanted = set(names)
        for name in list(wanted):
            while name := name.rpartition(".")[0]:
                wanted.add(name)
        return [
            name
            for name, each in self.module.definitions.items()
            if name in wanted or (each.owner in wanted and is_constructor(each))
        ]

    def code(self, names: Iterable[str]) -> str:
        """The text of a fence that shows these names."""
        stubs = Stubs("")
        for name in self.shown(names):
            stubs.put(name, self.own(name))
        return stubs.text()

    def own(self, name: str, before: Documented | None = None) -> list[str]:
        """The lines of one name without its members. Of the stub `before`, what only the document says is kept: its
        `raise` lines, and annotations that the code does not carry (unless it carries a new one of that pattern)."""
        definition = self.module.definitions[name]
        notes = self.sketcher.annotations(definition.name, *_EVERYWHERE)
        found = self._raises(definition)
        raises = list(found.values())
        if before is not None:
            held = {each.text for each in self.module.annotated.promises.get(name, ())}
            changed = {_pattern(text) for text in held - {text for text, _ in before.promises}}
            kept = [line for text, line in before.promises if text not in held and _pattern(text) not in changed]
            notes += [_line(before, line) for line in kept]
            said = _raise_lines(before)
            raises = [*said.values(), *(line for error, line in found.items() if error not in said)]
        if definition.kind == "class":
            return self._class(definition, notes, raises)
        return [*self._function(definition.node, [*notes, *raises]), *self._setter(definition)]

    def _class(self, definition: Definition, notes: list[str], raises: list[str]) -> list[str]:
        node = definition.node
        assert isinstance(node, ast.ClassDef)
        bases = ", ".join(ast.unparse(each) for each in [*node.bases, *node.keywords])
        head = [*self.sketcher.decorators(definition), f"class {node.name}{f'({bases})' if bases else ''}:"]
        rows = {field.line for field in definition.fields if not field.name.startswith("_")}
        fields = [line for each in node.body if each.lineno in rows for line in _field(each)]
        body = [*notes, *raises, *fields] or ["..."]
        if all(line.startswith("#") for line in body):
            body = [*body, "..."]
        if body == ["..."]:
            return [*head[:-1], f"{head[-1]} ..."]
        return [*head, *(_UNIT + line for line in body)]

    def _setter(self, definition: Definition) -> list[str]:
        """The setter of a property: callers rely on it like on the property."""
        if "setter" not in definition.decorators:
            return []
        owner = self.module.definitions[definition.owner].node
        wanted = f"{definition.last_name}.setter"
        for node in ast.walk(owner):
            if isinstance(node, ast.FunctionDef) and wanted in [dotted(each) for each in node.decorator_list]:
                return self._function(node, [])
        return []

    def _function(self, node: ast.AST, body: list[str]) -> list[str]:
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        lines = [f"@{self.sketcher.one_line(each)}" for each in node.decorator_list]
        lines += function_head(node)
        if not body and len(lines[-1]) <= WIDTH - 2 * len(_UNIT) - len(" ..."):
            return [*lines[:-1], f"{lines[-1]} ..."]
        return [*lines, *(_UNIT + line for line in [*body, "..."])]

    def _raises(self, definition: Definition) -> dict[str, str]:
        """Last name → `raise X  # when …` of each exception that certainly may leave a function and that no annotation
        brings."""
        found: dict[str, str] = {}
        if definition.kind == "function":
            place = Place(self.module, definition)
            for each in sorted(self.graph.escapes(place, False), key=lambda raised: raised.line):
                if not each.module.annotated.is_managed(each.line):
                    condition = _condition(definition.node, each.line) if each.module is self.module else ""
                    found.setdefault(each.name.rpartition(".")[2], f"raise {each.name}{condition}")
        return found


def is_constructor(each: Definition) -> bool:
    """Whether a definition is an `__init__` that takes arguments, so that a caller must know it."""
    return each.last_name == "__init__" and bool(each.owner) and len(each.parameters) > 1


def _raise_lines(before: Documented) -> dict[str, str]:
    """Last name → line of the exceptions that a stub says are raised."""
    found: dict[str, str] = {}
    for node in before.definition.node.body:
        if isinstance(node, ast.Raise) and node.exc is not None:
            name = dotted(node.exc.func if isinstance(node.exc, ast.Call) else node.exc) or ""
            found[name.rpartition(".")[2]] = before.fence_lines[node.lineno - 1].strip()
    return found


def _pattern(promise: str) -> str:
    """`VAL: VAL_INT_RANGE` of `VAL: VAL_INT_RANGE(min=0)`."""
    return promise.partition("(")[0]


def _line(before: Documented, line: int) -> str:
    return before.fence_lines[line - before.fence_line - 1].strip()


def _field(statement: ast.stmt) -> list[str]:
    text = ast.unparse(statement)
    if len(text) <= WIDTH - len(_UNIT):
        return text.split("\n")
    # a default that is too long to be repeated: `...` is any default
    if isinstance(statement, ast.AnnAssign):
        return [f"{ast.unparse(statement.target)}: {ast.unparse(statement.annotation)} = ..."]
    assert isinstance(statement, ast.Assign)
    return [f"{ast.unparse(statement.targets[0])} = ..."]


def _condition(node: ast.AST, line: int) -> str:
    """`  # when …`: the condition right around the raise of a line, where it is short; else nothing."""
    for each in ast.walk(node):
        if isinstance(each, ast.If) and any(isinstance(s, ast.Raise) and s.lineno == line for s in each.body):
            text = " ".join(ast.unparse(each.test).split())
            if len(text) <= _LONGEST_CONDITION:
                return f"  # when {text}"
    return ""
