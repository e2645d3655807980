"""The head of a function as a document shows it: one line, or its parameters wrapped where that is too wide."""

from __future__ import annotations

import ast
from collections.abc import Iterator

WIDTH = 120
UNIT = "    "


def function_head(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """`def name(…) -> T:`, without decorators; each line leaves room for a class around it."""
    start = f"{'async ' if isinstance(node, ast.AsyncFunctionDef) else ''}def {node.name}("
    end = f"){f' -> {ast.unparse(node.returns)}' if node.returns else ''}:"
    parts = list(parameters(node.args))
    line = start + ", ".join(parts) + end
    if len(line) <= WIDTH - 2 * len(UNIT):
        return [line]
    return [start, *(UNIT + row for row in _rows(parts)), end]


def _rows(parts: list[str]) -> Iterator[str]:
    """The parameters in as few lines as hold them whole."""
    row = ""
    for part in parts:
        if row and len(row) + len(part) + 2 > WIDTH - 3 * len(UNIT):
            yield f"{row},"
            row = part
        else:
            row = f"{row}, {part}" if row else part
    yield row


def parameters(arguments: ast.arguments) -> Iterator[str]:
    """The text of each parameter, the bare `/` and `*` between them included."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for index, (each, default) in enumerate(zip(positional, defaults, strict=True), 1):
        yield _parameter(each, default)
        if index == len(arguments.posonlyargs):
            yield "/"
    if arguments.vararg:
        yield f"*{_parameter(arguments.vararg, None)}"
    elif arguments.kwonlyargs:
        yield "*"
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(each, default)
    if arguments.kwarg:
        yield f"**{_parameter(arguments.kwarg, None)}"


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    text = argument.arg + (f": {ast.unparse(argument.annotation)}" if argument.annotation is not None else "")
    if default is None:
        return text
    return text + (" = " if argument.annotation is not None else "=") + ast.unparse(default)
