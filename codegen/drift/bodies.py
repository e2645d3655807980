"""Names that the body of a documented function uses and that nothing binds: what a rename left behind.

A body in Section 5 may be pseudo-code and leave statements out: a name counts as bound that the function binds in
the code, or that its module knows. A body of `...` uses no name.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from codegen.document.trees import children
from codegen.drift.code import Module, Place
from codegen.drift.section import Documented
from codegen.drift.signatures import Definition

_BUILTINS = frozenset(dir(builtins)) | {"__class__"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def unbound_names(documented: Documented, place: Place) -> Iterator[tuple[int, str]]:
    """Line (in the fence) and name of each use of a name that nothing binds, the first use in a line only."""
    definition = documented.definition
    if definition.kind != "function" or definition.elided or place.module.star_imports:
        return
    known = {each.name.partition(".")[0] for each in documented.siblings}
    known |= bound_names([definition.node]) | bound_names([place.definition.node]) | module_names(place.module)
    seen: set[tuple[int, str]] = set()
    for node in loaded_names(definition):
        use = (node.lineno, node.id)
        if node.id not in known and node.id not in _BUILTINS and use not in seen:
            seen.add(use)
            yield use


def loaded_names(definition: Definition) -> Iterator[ast.Name]:
    """The names that a function's body reads, in source order."""
    todo: list[ast.AST] = list(reversed(definition.node.body))
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node
        todo += reversed(children(node))


def bound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Every name that something below these nodes binds: parameters, targets, imports, definitions, handlers."""
    found: set[str] = set()
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name):
            found |= set() if isinstance(node.ctx, ast.Load) else {node.id}
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found |= set(node.names)
        todo += children(node)
    return found


def module_names(module: Module) -> set[str]:
    """The names that a module's functions can read: what its own level binds."""
    tops = {name for name in module.definitions if "." not in name} | set(module.imports)
    level = [node for node in module.tree.body if not isinstance(node, (*_FUNCTIONS, ast.ClassDef))]
    return tops | bound_names(level)


def renamed_parameters(documented: Definition, coded: Definition) -> dict[str, str] | None:
    """The parameters that the body reads and that the code's signature calls otherwise, in the same place: old name →
    new name. None where the body reads one that the code has no more, or uses the new name for something else."""
    ours, theirs = ([each.name for each in side.parameters] for side in (documented, coded))
    bound = bound_names(documented.node.body)
    read = {node.id for node in loaded_names(documented)}
    found: dict[str, str] = {}
    for at, old in enumerate(ours):
        if old in read and old not in theirs and old not in bound:
            new = theirs[at] if at < len(theirs) else ""
            if not new or new in ours or new in bound | read:
                return None
            found[old] = new
    return found
