"""Names in a piece of code: which are used, which are bound where, which are still free."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache

from codegen.expand.reading.parsing import Function, own_nodes

DYNAMIC = frozenset({"locals", "vars", "eval", "exec", "dir"})


def names_in(node: ast.AST) -> frozenset[str]:
    """Every identifier that the code uses, nested scopes included."""
    found: set[str] = set()
    for inner in ast.walk(node):
        found.update(_names_of(inner))
    return frozenset(found)


def _names_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.alias):
        yield bound_by(node)
    elif isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest


def bound_by(alias: ast.alias) -> str:
    """The name that one part of an import statement binds."""
    return alias.asname or alias.name.partition(".")[0]


def imported_names(statement: str) -> list[str]:
    """The names that the text of an import statement binds."""
    return [bound_by(node) for node in ast.walk(ast.parse(statement)) if isinstance(node, ast.alias)]


def parameters_of(function: Function) -> list[ast.arg]:
    """All parameters in the order they are written, `self` or `cls` included."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args]
    every += [arguments.vararg] if arguments.vararg else []
    every += arguments.kwonlyargs
    return every + ([arguments.kwarg] if arguments.kwarg else [])


def own_parameters(function: Function) -> list[ast.arg]:
    """The parameters without a leading `self`, `cls` or `mcs`."""
    every = parameters_of(function)
    return every[1:] if every and every[0].arg in ("self", "cls", "mcs") else every


@lru_cache(maxsize=64)
def bound_in(scope: ast.AST, skipped: frozenset[int] = frozenset()) -> frozenset[str]:
    """Names that the scope itself binds: parameters, assignments, imports, definitions; not `global` ones.

    `skipped` holds the `id` of nodes that do not count.
    """
    found: set[str] = set()
    foreign: set[str] = set()
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        found.update(parameter.arg for parameter in parameters_of(scope))
    inner = _comprehension_names(scope)
    for node in own_nodes(scope):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load) and id(node) not in inner:
                found.add(node.id)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            foreign.update(node.names)
        elif not isinstance(node, ast.arg):
            found.update(_names_of(node))
    return frozenset(found - foreign)


def _comprehension_names(scope: ast.AST) -> set[int]:
    found: set[int] = set()
    for node in own_nodes(scope):
        if isinstance(node, ast.comprehension):
            found.update(id(name) for name in ast.walk(node.target))
    return found


def shadowed(names: Iterable[str], tree: ast.Module, functions: Iterable[Function]) -> list[str]:
    """Those of the built-in names that are something else where code in the innermost function runs."""
    scopes = [bound_in(tree), *map(bound_in, functions)]
    return sorted(name for name in set(names) if any(name in bound for bound in scopes))


def free_names(text: str) -> frozenset[str]:
    """Names that an expression takes from around it; what its lambdas and comprehensions bind is not among them."""
    try:
        tree = ast.parse(text.strip() or "None", mode="eval")
    except (SyntaxError, ValueError):
        return frozenset()
    return frozenset(_free(tree.body, frozenset()))


def _free(node: ast.AST, bound: frozenset[str]) -> Iterable[str]:
    if isinstance(node, ast.Name):
        return [] if node.id in bound else [node.id]
    if isinstance(node, ast.Lambda):
        inner = bound | {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        return [*_free(node.args, bound), *_free(node.body, inner)]
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        inner = bound | captured_names(node)
        first = node.generators[0].iter
        rest = [name for child in ast.iter_child_nodes(node) for name in _free_except(child, first, inner)]
        return [*_free(first, bound), *rest]
    return [name for child in ast.iter_child_nodes(node) for name in _free(child, bound)]


def _free_except(node: ast.AST, skipped: ast.AST, bound: frozenset[str]) -> Iterable[str]:
    if node is skipped:
        return []
    if isinstance(node, ast.comprehension):
        return [name for child in ast.iter_child_nodes(node) for name in _free_except(child, skipped, bound)]
    return _free(node, bound)


def captured_names(node: ast.AST) -> frozenset[str]:
    """Names bound by comprehensions and lambdas anywhere inside."""
    found: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.comprehension):
            found.update(name.id for name in ast.walk(inner.target) if isinstance(name, ast.Name))
        elif isinstance(inner, ast.Lambda):
            found.update(argument.arg for argument in ast.walk(inner.args) if isinstance(argument, ast.arg))
    return frozenset(found)


def dynamic_calls(scope: ast.AST) -> list[str]:
    """Calls that see or run with the scope's local names, such as `locals()`."""
    return sorted(
        {
            node.func.id
            for node in own_nodes(scope)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DYNAMIC
        }
    )


class Fresh:
    """Gives names that are not in use. One instance serves one scope; a name is given once."""

    def __init__(self, used: Iterable[str]) -> None:
        self._used = set(used)

    def __call__(self, stem: str) -> str:
        """`_stem`, or the nearest free name."""
        stem = stem.strip("_") or "value"
        name, number = f"_{stem}", 2
        while name in self._used:
            name, number = f"_{stem}_{number}", number + 1
        self._used.add(name)
        return name

    def fork(self) -> Fresh:
        """A copy whose names do not use up this one's: temporary names of separate blocks may repeat."""
        return Fresh(self._used)
