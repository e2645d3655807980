"""Python text to trees, and the few questions about trees that the expander asks. Nothing is executed."""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_left
from collections.abc import Iterator
from weakref import WeakKeyDictionary

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda

_SUITES = ("body", "orelse", "finalbody")


def parse_python(text: str) -> ast.Module:
    """Parse a module without printing warnings about it. Raises SyntaxError, also for too deep nesting."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (RecursionError, MemoryError) as error:
            raise SyntaxError(f"nested too deeply for this interpreter ({type(error).__name__})") from error
        except ValueError as error:
            raise SyntaxError(str(error)) from error


def first_line(statement: ast.stmt) -> int:
    """Line on which the statement begins, its decorators included."""
    decorators = getattr(statement, "decorator_list", None)
    return min(statement.lineno, decorators[0].lineno) if decorators else statement.lineno


def last_line(statement: ast.stmt) -> int:
    """Line on which the statement ends."""
    return statement.end_lineno or statement.lineno


def suites_of(node: ast.AST) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """The statement lists directly under a node, each with the node that owns its header, in source order."""
    for name in _SUITES[:1]:
        suite = getattr(node, name, None)
        if isinstance(suite, list) and suite:
            yield node, suite
    for handler in getattr(node, "handlers", ()):
        yield handler, handler.body
    for case in getattr(node, "cases", ()):
        yield case, case.body
    for name in _SUITES[1:]:
        suite = getattr(node, name, None)
        if isinstance(suite, list) and suite:
            yield node, suite


def is_docstring(statement: ast.stmt) -> bool:
    """Whether the statement is a string literal, which is a docstring when it comes first."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def statements_between(tree: ast.Module, first: int, last: int) -> list[ast.stmt] | None:
    """Whole sibling statements that fill the lines first..last; None if some statement is cut or suites differ."""
    found: list[ast.stmt] = []
    homes: set[int] = set()
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        for _, suite in suites_of(node):
            for statement in suite[bisect_left(suite, first, key=last_line) :]:
                begin, end = first_line(statement), last_line(statement)
                if begin > last:
                    break
                if begin >= first and end <= last:
                    found.append(statement)
                    homes.add(id(suite))
                    continue
                if begin >= first or not any(True for _ in suites_of(statement)):
                    return None
                stack.append(statement)
    if len(homes) > 1:
        return None
    return sorted(found, key=lambda statement: (statement.lineno, statement.col_offset))


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a function's own scope: nested functions, lambdas and classes are named but not entered."""
    stack: list[ast.AST] = list(reversed(getattr(function, "body", [])))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


_DEFINITIONS: WeakKeyDictionary[ast.Module, dict[str, list[ast.stmt]]] = WeakKeyDictionary()


def definitions(tree: ast.Module, name: str) -> list[ast.stmt]:
    """Functions and classes of that name at the top level of a module, which nobody may change meanwhile."""
    if tree not in _DEFINITIONS:
        found: dict[str, list[ast.stmt]] = {}
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.setdefault(statement.name, []).append(statement)
        _DEFINITIONS[tree] = found
    return _DEFINITIONS[tree].get(name, [])


def same_tree(left: ast.AST, right: ast.AST) -> bool:
    """Whether two trees are equal but for positions. Iterative, so that depth does not matter."""
    pairs: list[tuple[object, object]] = [(left, right)]
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, ast.AST):
            if type(a) is not type(b):
                return False
            pairs.extend((getattr(a, name, None), getattr(b, name, None)) for name in a._fields)
        elif isinstance(a, list):
            if not isinstance(b, list) or len(a) != len(b):
                return False
            pairs.extend(zip(a, b, strict=True))
        elif type(a) is not type(b) or repr(a) != repr(b):
            return False
    return True
