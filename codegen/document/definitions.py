"""What the fences of an entry define and what they use, read with `ast` and never run."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from codegen.document.model import Entry
from codegen.document.trees import children

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Api:
    """One entry's fences. `defined` are names inside the module ("Table.release"), each with its source line.

    `used` are names the code reads, as written ("self.state", "alphabet.Release"), in order of first use.
    `error` is (source line, reason) of the first fence that is not Python.
    """

    defined: dict[str, int]
    used: tuple[str, ...]
    error: tuple[int, str] | None = None


def read_api(entry: Entry) -> Api:
    """The definitions and uses of an entry."""
    local = tuple(name.removeprefix(f"{entry.module}.") for name in entry.names)
    defined: dict[str, int] = {}
    used: dict[str, None] = {}
    for fence in entry.fences:
        part = _read_code(fence.code, local)
        if part.error:
            return Api(defined, tuple(used), (fence.line + part.error[0], part.error[1]))
        defined |= {name: fence.line + line for name, line in part.defined.items() if name not in defined}
        used |= dict.fromkeys(part.used)
    return Api(defined, tuple(used))


@lru_cache(maxsize=20_000)
def _read_code(code: str, names: tuple[str, ...]) -> Api:
    try:
        tree = ast.parse(textwrap.dedent(code))
    except (SyntaxError, ValueError) as error:
        return Api({}, (), (getattr(error, "lineno", None) or 1, getattr(error, "msg", None) or str(error)))
    defined: dict[str, int] = {}
    for node in tree.body:
        for name, line in _defined(node, ""):
            defined.setdefault(placed(name, node, names), line)
    return Api(defined, tuple(dict.fromkeys(used_names(tree))))


def _defined(node: ast.stmt, prefix: str) -> Iterator[tuple[str, int]]:
    if isinstance(node, Function):
        yield prefix + node.name, node.lineno
    elif isinstance(node, ast.ClassDef):
        yield prefix + node.name, node.lineno
        for child in node.body:
            yield from _defined(child, f"{prefix}{node.name}.")
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield prefix + target.id, node.lineno
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield prefix + node.target.id, node.lineno
    elif isinstance(node, ast.If | ast.Try):
        for child in node.body:
            yield from _defined(child, prefix)


def placed(name: str, node: ast.stmt, headings: tuple[str, ...]) -> str:
    """The name inside its module of what a fence defines: a method may be alone there, and its class in the heading."""
    for heading in headings:
        if heading == name or heading.endswith(f".{name}"):
            return heading
    if isinstance(node, Function) and headings and _is_method(node):
        owner = headings[0].rpartition(".")[0] or (headings[0] if headings[0][:1].isupper() else "")
        return f"{owner}.{name}" if owner else name
    return name


def _is_method(node: Function) -> bool:
    arguments = node.args.posonlyargs + node.args.args
    return bool(arguments) and arguments[0].arg in ("self", "cls")


def used_names(tree: ast.AST) -> Iterator[str]:
    """Names and dotted names that are read, less those that a function binds itself (but for self and cls)."""
    stack: list[tuple[ast.AST, frozenset[str]]] = [(tree, frozenset())]
    while stack:
        node, bound = stack.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node.id not in bound:
                yield node.id
            continue
        if isinstance(node, ast.Attribute) and (chain := _chain(node)):
            if chain.partition(".")[0] not in bound:
                yield chain
            continue
        below = children(node)
        if isinstance(node, Function | ast.Lambda):
            inside = bound | _bound(node)
            body = node.body if isinstance(node.body, list) else [node.body]
            stack += [(child, inside) for child in reversed(body)]
            stack += [(child, bound) for child in reversed(below) if child not in body]
        else:
            stack += [(child, bound) for child in reversed(below)]


def _bound(function: Function | ast.Lambda) -> frozenset[str]:
    """The names that a function binds anywhere: parameters, targets, handlers, imports, definitions inside it."""
    names: set[str] = set()
    stack: list[ast.AST] = [function]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                names.add(node.id)
            continue
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, Function | ast.ClassDef) and node is not function:
            names.add(node.name)
        stack += children(node)
    return frozenset(names - {"self", "cls"})


def _chain(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])
