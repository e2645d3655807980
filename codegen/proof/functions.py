"""The functions whose removal a test must notice, found in source text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOUD = {"NotImplementedError"}


@dataclass(frozen=True)
class Function:
    """A function by its full name, its file (relative to the project) and its name inside the file."""

    name: str
    path: str
    qualname: str


@dataclass(frozen=True)
class Removable:
    """One body of a function, by number; a property has one for each accessor. `line` is the line of its `def`."""

    number: int
    function: Function
    line: int


def removables(root: Path, functions: list[Function]) -> list[Removable]:
    """The bodies that do something, numbered from 1: not those of `...`, `pass`, a plain `return` or
    NotImplementedError. A class is nothing here: its methods are asked about by name."""
    found: list[Removable] = []
    read: dict[str, list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]] = {}
    for function in dict.fromkeys(functions):
        if function.path not in read:
            tree = ast.parse((root / function.path).read_bytes())
            read[function.path] = list(_functions(tree.body, ""))
        for name, node in read[function.path]:
            if name == function.qualname and does_something(node):
                found.append(Removable(len(found) + 1, function, node.lineno))
    return found


def does_something(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a body could be missed."""
    if any(_last(each) == "overload" for each in node.decorator_list):
        return False
    return not all(_is_idle(each) for each in node.body)


def _is_idle(node: ast.stmt) -> bool:
    if isinstance(node, ast.Pass):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Return):
        return node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)
    if isinstance(node, ast.Raise) and node.exc is not None:
        return _last(node.exc.func if isinstance(node.exc, ast.Call) else node.exc) in _LOUD
    return False


def _last(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def _functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Functions and methods by qualified name, also those under `if` and `try`; not those inside of functions."""
    for node in body:
        if isinstance(node, _DEFS):
            yield f"{prefix}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        else:
            for name in ("body", "orelse", "handlers", "finalbody"):
                inner = getattr(node, name, [])
                for each in inner if isinstance(inner, list) else ():
                    if isinstance(each, ast.ExceptHandler):
                        yield from _functions(each.body, prefix)
                    elif isinstance(each, ast.stmt):
                        yield from _functions([each], prefix)
