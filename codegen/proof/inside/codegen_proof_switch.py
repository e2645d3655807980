"""Loaded by every Python process of a judged run: compiles the functions in question with a switch before their body.

The switch notes in `reached` which test came by, and when its function is the one that is removed it returns nothing
or raises. Lines and sources stay as they were written. Standard library only: the project's interpreter runs it.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
from importlib.machinery import SourceFileLoader
from typing import Any

FOLDER = os.environ.get("CODEGEN_PROOF", "")
NAME = "__codegen_proof__"
# tests may replace these while they run
_open, _write, _close, _realpath = os.open, os.write, os.close, os.path.realpath


class Removed(Exception):
    """Stands where a function's body was."""


class Switch:
    """What is removed in this process, and which test runs."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.test = os.environ.get("CODEGEN_PROOF_TEST", "")
        self.number: int | None = None
        self.how = ""
        self.remove(os.environ.get("CODEGEN_PROOF_REMOVE", ""))

    def remove(self, order: str) -> None:
        """Switch one function off: "7 nothing" or "7 raise", "" for none. Child processes follow."""
        number, _, self.how = order.partition(" ")
        self.number = int(number) if number else None
        os.environ["CODEGEN_PROOF_REMOVE"] = order

    def enter(self, test: str) -> None:
        """From here on `test` runs, "" for none."""
        self.test = test
        self.seen = set()
        os.environ["CODEGEN_PROOF_TEST"] = test

    def __call__(self, number: int) -> bool:
        if number not in self.seen:
            self.seen.add(number)
            out = _open(os.path.join(FOLDER, "reached"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            _write(out, (json.dumps([number, self.test]) + "\n").encode())
            _close(out)
        if number != self.number:
            return False
        if self.how == "raise":
            raise Removed("this function was taken away to see whether a test misses it")
        return True


switch = Switch()


class _Instrument(ast.NodeTransformer):
    """Puts the switch into the functions at these lines."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self.numbers = numbers

    def visit_FunctionDef(self, node: Any) -> Any:
        self.generic_visit(node)
        number = self.numbers.get(str(node.lineno))
        if number is None:
            return node
        first = node.body[0]
        documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        documented = documented and isinstance(first.value.value, str)
        at = 1 if documented else 0
        call = ast.Call(ast.Name(NAME, ast.Load()), [ast.Constant(number)], [])
        guard = ast.If(call, [ast.Return(None)], [])
        place = node.body[min(at, len(node.body) - 1)]
        for each in ast.walk(guard):
            ast.copy_location(each, place)
            if isinstance(each, (ast.stmt, ast.expr)):
                each.end_lineno, each.end_col_offset = each.lineno, each.col_offset
        node.body.insert(at, guard)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef


def install() -> None:
    """Compile the files of `spec.json` with the switch from now on."""
    with open(os.path.join(FOLDER, "spec.json"), encoding="utf-8") as spec:
        files = json.load(spec)
    setattr(builtins, NAME, switch)
    plain = SourceFileLoader.source_to_code

    def source_to_code(self: SourceFileLoader, data: Any, path: Any, *rest: Any, **options: Any) -> Any:
        numbers = files.get(_realpath(os.fspath(path)))
        if numbers is None or isinstance(data, ast.AST):
            return plain(self, data, path, *rest, **options)
        tree = _Instrument(numbers).visit(ast.parse(data, path))
        return plain(self, tree, path, *rest, **options)

    SourceFileLoader.source_to_code = source_to_code  # type: ignore[assignment,method-assign]
