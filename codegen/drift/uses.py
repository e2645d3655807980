"""Which names of a project's modules the other modules use, read from their imports.

`from a.b import c` uses `a.b.c`; of an imported module (`import a.b`, `from a import b`, `import_module("a.b")`) each
attribute that is read is used, and all of it where the module itself goes somewhere as a value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.document.trees import children
from codegen.drift.code import Code, Module
from codegen.drift.signatures import dotted, statements

WHOLE = "*"


@dataclass(frozen=True)
class Use:
    """`name` of `module` (full dotted name) is used; WHOLE: every name that it offers."""

    module: str
    name: str


def uses(module: Module, code: Code) -> frozenset[Use]:
    """What a module uses of the project's modules, itself left out."""
    found: set[Use] = set()
    bound: dict[str, str] = {}
    for node in statements(module.tree.body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                bound[alias.asname or top] = alias.name if alias.asname else top
                if code.module(alias.name):
                    found.add(Use(alias.name, ""))
        elif isinstance(node, ast.ImportFrom):
            source = module.imported_from(node)
            for alias in node.names:
                inner = f"{source}.{alias.name}" if source else alias.name
                other = code.module(source) if source else None
                if alias.name == "*":
                    found |= {Use(source, WHOLE)} if other else set()
                elif other and (alias.name in other.definitions or alias.name in other.imports):
                    found.add(Use(source, alias.name))
                elif code.module(inner):
                    found.add(Use(inner, ""))
                    bound[alias.asname or alias.name] = inner
                elif other:
                    found.add(Use(source, alias.name))
    ours = {local: target for local, target in bound.items() if _is_ours(target, code)}
    if ours or "import_module" in module.text:
        found |= set(_attributes(module.tree, ours, code))
    return frozenset(each for each in found if each.module != module.name)


def _is_ours(target: str, code: Code) -> bool:
    return code.module(target) is not None


def _attributes(node: ast.AST, bound: dict[str, str], code: Code) -> Iterator[Use]:
    """What is read of the modules that local names mean, below a node."""
    if isinstance(node, (ast.Attribute, ast.Name)):
        name = dotted(node)
        head, _, rest = (name or "").partition(".")
        if head in bound:
            yield _use(bound[head], rest.split(".") if rest else [], code)
            return
        if name:
            return
        outer = _loaded(node.value) if isinstance(node, ast.Attribute) else None
        if isinstance(node, ast.Attribute) and outer and code.module(outer):
            yield _use(outer, [node.attr], code)
            return
    loaded = _loaded(node)
    if loaded and code.module(loaded):
        yield Use(loaded, WHOLE)
    for child in children(node):
        yield from _attributes(child, bound, code)


def _use(module: str, rest: list[str], code: Code) -> Use:
    while rest and code.module(f"{module}.{rest[0]}"):
        module, rest = f"{module}.{rest[0]}", rest[1:]
    return Use(module, rest[0] if rest else WHOLE)


def _loaded(node: ast.AST) -> str | None:
    """The module that `import_module("a.b")` loads."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Constant):
        called = (dotted(node.func) or "").rpartition(".")[2]
        name = node.args[0].value
        if called in ("import_module", "__import__") and isinstance(name, str) and name:
            return name
    return None
