"""What a module offers by name: its own public definitions, and what it takes from another module to hand on.

`__all__` says it where there is one; it is read from the text (lists, tuples, `+`, `+=`, `extend`, another module's
`__all__`). Without one, a module offers its public definitions, an `__init__` also what it imports from its package,
and any module what it imports `as` itself (PEP 484) or with a star.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codegen.drift.code import Code, Module
from codegen.drift.signatures import dotted, statements


def offered(module: Module, code: Code) -> tuple[str, ...]:
    """Local names that a module offers to whoever imports it, callables or not, in source order."""
    return _offered(module, code, frozenset())


def declared(module: Module, code: Code) -> list[str] | None:
    """The names of `__all__`; None where there is none, or where its text does not tell all of them."""
    return _declared(module, code, frozenset())


def handed_on(module: Module, code: Code) -> list[str]:
    """Names that a module offers and does not define."""
    return [name for name in offered(module, code) if name not in module.definitions]


def _offered(module: Module, code: Code, seen: frozenset[str]) -> tuple[str, ...]:
    if module.name in seen:
        return ()
    names = _declared(module, code, seen)
    if names is None:
        own = [name for name, each in module.definitions.items() if not each.owner and each.is_public]
        taken = [name for name in _taken(module, code, seen | {module.name}) if not name.startswith("_")]
        names = [*own, *taken]
    return tuple(dict.fromkeys(names))


def _taken(module: Module, code: Code, seen: frozenset[str]) -> Iterator[str]:
    """Imported names that count as handed on without an `__all__`."""
    is_package = module.path.name == "__init__.py"
    top = module.name.partition(".")[0]
    for node in statements(module.tree.body):
        if not isinstance(node, ast.ImportFrom):
            continue
        source = module.imported_from(node)
        for alias in node.names:
            if alias.name == "*":
                other = code.module(source)
                yield from _offered(other, code, seen) if other else ()
            elif alias.asname == alias.name or (is_package and source.partition(".")[0] == top):
                yield alias.asname or alias.name


def _declared(module: Module, code: Code, seen: frozenset[str]) -> list[str] | None:
    found: list[str] | None = None
    for node in module.tree.body:
        added = _addition(node)
        if added is None:
            continue
        is_start, value = added
        names = _names(value, module, code, seen | {module.name})
        if names is None or (found is None and not is_start):
            return None
        found = names if is_start else [*(found or []), *names]
    return found


def _addition(node: ast.stmt) -> tuple[bool, ast.expr] | None:
    """What a statement gives to `__all__`, and whether it begins it."""
    if isinstance(node, ast.Assign) and any(dotted(target) == "__all__" for target in node.targets):
        return True, node.value
    if isinstance(node, ast.AnnAssign) and dotted(node.target) == "__all__" and node.value:
        return True, node.value
    if isinstance(node, ast.AugAssign) and dotted(node.target) == "__all__":
        return False, node.value
    call = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    if call and call.args and dotted(call.func) in ("__all__.extend", "__all__.append"):
        one = dotted(call.func) == "__all__.append"
        return False, ast.List([call.args[0]], ast.Load()) if one else call.args[0]
    return None


def _names(value: ast.expr, module: Module, code: Code, seen: frozenset[str]) -> list[str] | None:
    if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        names: list[str] = []
        for each in value.elts:
            inner = each.value if isinstance(each, ast.Starred) else None
            found = _names(inner, module, code, seen) if inner else _word(each)
            if found is None:
                return None
            names += found
        return names
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        left, right = (_names(side, module, code, seen) for side in (value.left, value.right))
        return None if left is None or right is None else [*left, *right]
    name = dotted(value) or ""
    if name.endswith(".__all__"):
        head, _, rest = name.removesuffix(".__all__").partition(".")
        target = module.imports.get(head, head) + (f".{rest}" if rest else "")
        other = code.module(target)
        if other and other.name not in seen:
            return _declared(other, code, seen)
    return None


def _word(node: ast.expr) -> list[str] | None:
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
