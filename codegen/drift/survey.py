"""What code shows about itself, for the questions of Sections 1 to 4: its modules and who imports whom, its states,
what it raises, what it needs, and what runs beside what.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.document.cycles import components
from codegen.drift.code import Code, Module, Place
from codegen.drift.commands import entry_points
from codegen.drift.signatures import dotted, statements
from codegen.drift.uses import uses

_ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})
_BESIDE = ("asyncio", "threading", "multiprocessing", "concurrent", "anyio", "trio", "signal", "subprocess")


@dataclass(frozen=True)
class ModuleFacts:
    """A module: what its docstring says, how many lines it has, which modules beside it it imports."""

    name: str
    says: str
    lines: int
    imports: tuple[str, ...]


@dataclass(frozen=True)
class States:
    """An enumeration, its values, and the functions that assign one of them to an attribute."""

    name: str
    values: tuple[str, ...]
    set_by: tuple[str, ...]


@dataclass(frozen=True)
class Failure:
    """An exception class of the code, its bases, and the functions that raise it."""

    name: str
    bases: tuple[str, ...]
    raised_by: tuple[str, ...]


@dataclass(frozen=True)
class Survey:
    """All of it. `cycles` are groups of modules that import each other; `needs` the packages that the code imports from
    outside of the project and the standard library; `beside` the modules that use each of threads, tasks, processes."""

    modules: tuple[ModuleFacts, ...]
    cycles: tuple[tuple[str, ...], ...]
    needs: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]
    states: tuple[States, ...]
    failures: tuple[Failure, ...]
    beside: dict[str, tuple[str, ...]]


def survey(code: Code, modules: list[Module]) -> Survey:
    """Read the facts of some modules of a project."""
    inner = {module.name for module in modules}
    imports = {
        module.name: tuple(sorted({use.module for use in uses(module, code)} & inner - {module.name}))
        for module in modules
    }
    outside = {module.name: set(_outside(module, code)) for module in modules}
    beside = {what: tuple(name for name, tops in outside.items() if what in tops) for what in _BESIDE}
    tops = {top for found in outside.values() for top in found}
    commands = [(what, name) for name, what in entry_points(code.root).items() if name.rpartition(".")[0] in inner]
    return Survey(
        tuple(ModuleFacts(m.name, says(m), len(m.lines), imports[m.name]) for m in modules),
        tuple(tuple(group) for group in components(imports) if len(group) > 1),
        tuple(sorted(tops - sys.stdlib_module_names)),
        tuple(sorted(commands)),
        tuple(_states(modules, code)),
        tuple(_failures(modules, code)),
        {what: names for what, names in beside.items() if names},
    )


def says(module: Module) -> str:
    """The first sentence of a module's docstring, the empty string without one."""
    text = ast.get_docstring(module.tree) or ""
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    first = paragraph.split(". ")[0].rstrip(".:")
    return f"{first}." if first and any(character.isalpha() for character in first) else ""


def _outside(module: Module, code: Code) -> Iterator[str]:
    """The top-level packages that a module imports and the project does not have."""
    for node in statements(module.tree.body):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [node.module]
        for name in names:
            top = name.partition(".")[0]
            if top != "__future__" and code.module(top) is None:
                yield top


def _states(modules: list[Module], code: Code) -> Iterator[States]:
    found: dict[str, tuple[str, ...]] = {}
    for module in modules:
        for definition in module.definitions.values():
            bases = {(dotted(base) or "").rpartition(".")[2] for base in definition.bases}
            if definition.kind == "class" and bases & _ENUMS:
                values = tuple(field.name for field in definition.fields if not field.name.startswith("_"))
                found[f"{module.name}.{definition.name}"] = values
    setters: dict[str, dict[str, None]] = {name: {} for name in found}
    for place in _functions(modules):
        for node in statements(place.definition.node.body):
            value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
            name = dotted(value) if value is not None else None
            targets = node.targets if isinstance(node, ast.Assign) else []
            if name and "." in name and any(isinstance(target, ast.Attribute) for target in targets):
                owner = code.find(place.module.name, name.rpartition(".")[0])
                if owner and owner.full_name in setters:
                    setters[owner.full_name][place.full_name] = None
    for name, values in found.items():
        if values:
            yield States(name, values, tuple(setters[name]))


def _failures(modules: list[Module], code: Code) -> Iterator[Failure]:
    raised: dict[str, dict[str, None]] = {}
    for place in _functions(modules):
        for node in statements(place.definition.node.body):
            if isinstance(node, ast.Raise) and node.exc is not None:
                name = dotted(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
                target = code.find(place.module.name, name) if name else None
                if target and target.definition.kind == "class":
                    raised.setdefault(target.full_name, {})[place.full_name] = None
    for module in modules:
        for definition in module.definitions.values():
            full = f"{module.name}.{definition.name}"
            bases = tuple(ast.unparse(base) for base in definition.bases)
            named = definition.last_name.endswith(("Error", "Exception", "Warning"))
            if definition.kind == "class" and (full in raised or (named and bases)):
                yield Failure(full, bases, tuple(raised.get(full, {})))


def _functions(modules: list[Module]) -> Iterator[Place]:
    for module in modules:
        for definition in module.definitions.values():
            if definition.kind == "function":
                yield Place(module, definition)
