"""Read the definitions of a piece of Python: the same reader for a document's fence and for a module.

Nothing is imported or run. Both sides of a comparison come from this one reader, so a difference between two
`Definition`s is a difference between the texts and never one between two parsers. Definitions inside `if`, `try`
and `with` at module or class level are seen; of several definitions of one name the first counts, except that
`@overload`s give way to the implementation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

ParameterKind = Literal["positional-only", "positional", "*args", "keyword-only", "**kwargs"]

# Decorators that change how a caller uses the thing; others are an implementation's own business.
STRUCTURAL = frozenset(
    {
        "property",
        "cached_property",
        "staticmethod",
        "classmethod",
        "abstractmethod",
        "dataclass",
        "contextmanager",
        "asynccontextmanager",
    }
)
_BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")
_FIELD_BASES = frozenset({"NamedTuple", "TypedDict", "Protocol", "BaseModel"})
_ENUM_BASES = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: ParameterKind
    annotation: ast.expr | None
    default: ast.expr | None


@dataclass(frozen=True)
class Field:
    """A data member of a dataclass, named tuple, typed dict or enumeration."""

    name: str
    annotation: ast.expr | None
    default: ast.expr | None
    line: int


@dataclass(frozen=True)
class Definition:
    """One function or class. `name` is qualified inside its module; lines are 1-based in the parsed text."""

    name: str
    kind: Literal["function", "class"]
    line: int
    end_line: int
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    parameters: tuple[Parameter, ...] = ()
    returns: ast.expr | None = None
    is_async: bool = False
    decorators: frozenset[str] = frozenset()
    fields: tuple[Field, ...] = ()
    bases: tuple[ast.expr, ...] = ()
    docstring: str | None = None
    elided: bool = False
    partial: bool = False

    @property
    def last_name(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def owner(self) -> str:
        """The enclosing class, or the empty string."""
        return self.name.rpartition(".")[0]

    @property
    def is_public(self) -> bool:
        return all(not part.startswith("_") for part in self.name.split("."))


def read_definitions(tree: ast.Module) -> dict[str, Definition]:
    """All functions and classes of a module, methods and nested classes included, in source order by qualified
    name. Functions local to a function are left out."""
    found: dict[str, Definition] = {}
    for definition in _walk(tree.body, ""):
        known = found.get(definition.name)
        if known is None or "overload" in known.decorators:
            found[definition.name] = definition
        elif "setter" in definition.decorators:
            found[definition.name] = replace(known, decorators=known.decorators | {"setter"})
    return found


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements of a block and of the blocks in it, definitions included, in source order. Expressions hold no
    statement, so this is much less than `ast.walk`."""
    for statement in body:
        yield statement
        for name in _BLOCKS:
            for inner in getattr(statement, name, ()):
                if isinstance(inner, ast.stmt):
                    yield from statements([inner])
                else:
                    yield from statements(inner.body)


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` of a chain of names, or None for any other expression."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def _walk(body: list[ast.stmt], prefix: str) -> Iterator[Definition]:
    for statement in _flat(body):
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield _function(statement, prefix)
        elif isinstance(statement, ast.ClassDef):
            yield _class(statement, prefix)
            yield from _walk(statement.body, f"{prefix}{statement.name}.")


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _flat(statement.body)
            yield from _flat(statement.orelse)
        elif isinstance(statement, (ast.Try, ast.TryStar)):
            for block in (statement.body, statement.orelse, statement.finalbody):
                yield from _flat(block)
            for handler in statement.handlers:
                yield from _flat(handler.body)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            yield from _flat(statement.body)
        else:
            yield statement


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, prefix: str) -> Definition:
    return Definition(
        name=prefix + node.name,
        kind="function",
        line=node.lineno,
        end_line=node.end_lineno or node.lineno,
        node=node,
        parameters=_parameters(node.args),
        returns=node.returns,
        is_async=isinstance(node, ast.AsyncFunctionDef),
        decorators=frozenset(_decorator_names(node.decorator_list)),
        docstring=ast.get_docstring(node),
        elided=_is_elided(node.body),
    )


def _class(node: ast.ClassDef, prefix: str) -> Definition:
    return Definition(
        name=prefix + node.name,
        kind="class",
        line=node.lineno,
        end_line=node.end_lineno or node.lineno,
        node=node,
        decorators=frozenset(_decorator_names(node.decorator_list)),
        fields=tuple(_fields(node)),
        bases=tuple(node.bases),
        docstring=ast.get_docstring(node),
        elided=_is_elided(node.body),
        partial=any(_is_ellipsis(statement) for statement in node.body),
    )


def _parameters(arguments: ast.arguments) -> tuple[Parameter, ...]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    only = len(arguments.posonlyargs)
    found = [
        Parameter(each.arg, "positional-only" if index < only else "positional", each.annotation, default)
        for index, (each, default) in enumerate(zip(positional, defaults, strict=True))
    ]
    if arguments.vararg:
        found.append(Parameter(arguments.vararg.arg, "*args", arguments.vararg.annotation, None))
    found += [
        Parameter(each.arg, "keyword-only", each.annotation, default)
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    if arguments.kwarg:
        found.append(Parameter(arguments.kwarg.arg, "**kwargs", arguments.kwarg.annotation, None))
    return tuple(found)


def _decorator_names(decorators: list[ast.expr]) -> Iterator[str]:
    for decorator in decorators:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = (dotted(call.func if call else decorator) or "").rpartition(".")[2]
        if name == "dataclass" and call:
            # frozen, slots, order … are part of what a user of the class relies on
            yield from (f"dataclass({key.arg}={ast.unparse(key.value)})" for key in call.keywords)
        if name in STRUCTURAL or name in ("overload", "setter"):
            yield name


def _fields(node: ast.ClassDef) -> Iterator[Field]:
    bases = {(dotted(base) or "").rpartition(".")[2] for base in node.bases}
    is_dataclass = "dataclass" in _decorator_names(node.decorator_list)
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if is_dataclass or bases & _FIELD_BASES:
                yield Field(statement.target.id, statement.annotation, statement.value, statement.lineno)
        elif isinstance(statement, ast.Assign) and bases & _ENUM_BASES:
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield Field(target.id, None, statement.value, statement.lineno)


def _is_ellipsis(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and (
        isinstance(statement.value, ast.Constant) and statement.value.value is ...
    )


def _is_elided(body: list[ast.stmt]) -> bool:
    """Whether the body says nothing: `...`, perhaps after a docstring."""
    first = body[0]
    has_docstring = isinstance(first, ast.Expr) and (
        isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    rest = body[1:] if has_docstring else body
    return all(_is_ellipsis(statement) for statement in rest)
