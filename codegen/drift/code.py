"""A project's Python code by module name: definitions, imports, call targets. Read from text, never imported.

`Code.find` follows re-exports (`from .ranks import RankTable`) and inheritance inside the project, so a document may
name an API where its users find it.
"""

from __future__ import annotations

import ast
import os
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from codegen.diagnostics import UsageError
from codegen.drift.promises import Annotated, read_promises
from codegen.drift.signatures import Definition, dotted, read_definitions, statements


@dataclass(frozen=True)
class Place:
    """One definition and the module it stands in."""

    module: Module
    definition: Definition

    @property
    def full_name(self) -> str:
        return f"{self.module.name}.{self.definition.name}"

    @property
    def where(self) -> str:
        return f"{self.module.shown}:{self.definition.line}"


@dataclass(frozen=True, eq=False)
class Module:
    """One source file. `shown` is its path relative to the project, with forward slashes."""

    name: str
    path: Path
    shown: str
    text: str
    tree: ast.Module

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        return read_definitions(self.tree)

    @cached_property
    def annotated(self) -> Annotated:
        """The annotations of its definitions, and its managed blocks."""
        return read_promises(self.text, self.definitions.values())

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def imports(self) -> dict[str, str]:
        """Local name → dotted name it means, of every import statement in the file."""
        found: dict[str, str] = {}
        for node in statements(self.tree.body):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    found[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom):
                base = self.imported_from(node)
                for alias in node.names:
                    if alias.name != "*":
                        found[alias.asname or alias.name] = f"{base}.{alias.name}"
        return found

    @cached_property
    def star_imports(self) -> tuple[str, ...]:
        """The modules whose public names a `from … import *` of this file takes, in source order."""
        nodes = [node for node in statements(self.tree.body) if isinstance(node, ast.ImportFrom)]
        return tuple(self.imported_from(node) for node in nodes if any(alias.name == "*" for alias in node.names))

    def imported_from(self, node: ast.ImportFrom) -> str:
        """The full dotted name of the module that a `from … import` of this file names."""
        base = node.module or ""
        if not node.level:
            return base
        parts = self.name.split(".")
        parts = parts[: len(parts) - node.level + (self.path.name == "__init__.py")]
        return ".".join([*parts, base] if base else parts)


class Code:
    """The Python files below one project folder, parsed when first asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._modules: dict[str, Module | None] = {}
        self._places: dict[tuple[str, str], Place | None] = {}

    def module(self, name: str) -> Module | None:
        """The module with this dotted name, or None where the project has no such file."""
        if name not in self._modules:
            self._modules[name] = self._load(name)
        return self._modules[name]

    def modules_under(self, path: str, left_out: Callable[[str], bool] | None = None) -> list[Module]:
        """Every module of a folder or file named relative to the project, in path order, but for those whose path
        below the project is `left_out`.

        UsageError: there is no such folder or file, or it is outside of the project.
        """
        start = self.root / path
        if not start.exists() and (self.root / f"{path}.py").is_file():
            start = self.root / f"{path}.py"
        if not Path(os.path.normpath(start)).is_relative_to(self.root):
            raise UsageError(f"{path}: is not below {self.root}; call the command in the project that holds it")
        if not start.exists():
            raise UsageError(f"{path}: no such folder or Python file below {self.root}")
        files = [start] if start.is_file() else sorted(start.rglob("*.py"))
        relative = [file.relative_to(self.root) for file in files]
        shown = [each for each in relative if not _is_hidden(each)]
        kept = [each for each in shown if left_out is None or not left_out(each.as_posix())]
        return [module for module in map(self.module, (self.name_of(self.root / each) for each in kept)) if module]

    def packaged_modules(self, left_out: Callable[[str], bool]) -> list[Module]:
        """Every module of the project's top-level packages and its top-level modules, also in `src/`; what is no
        Python is passed over, like what is `left_out`."""
        found: list[Module] = []
        for base in (self.root, self.root / "src"):
            tops = [path.parent for path in sorted(base.glob("*/__init__.py"))] + sorted(base.glob("*.py"))
            for top in tops:
                for file in [top] if top.is_file() else sorted(top.rglob("*.py")):
                    relative = file.relative_to(self.root)
                    if not _is_hidden(relative) and not left_out(relative.as_posix()):
                        found += self._readable(self.name_of(file))
        return found

    def _readable(self, name: str) -> list[Module]:
        try:
            module = self.module(name)
        except UsageError:
            return []
        return [module] if module else []

    def name_of(self, file: Path) -> str:
        """The dotted name a file is imported by: its path below the project, without a leading `src`."""
        parts = list(file.relative_to(self.root).with_suffix("").parts)
        if parts[0] == "src":
            parts = parts[1:]
        if parts and parts[-1] == "__init__":
            parts = parts[:-1]
        return ".".join(parts)

    def find(self, module: str, name: str) -> Place | None:
        """The definition that `name` means in `module`, through re-exports and base classes of the project."""
        key = (module, name)
        if key not in self._places:
            self._places[key] = self._find(module, name, set())
        return self._places[key]

    def resolve(self, full_name: str) -> Place | None:
        """The definition behind a full dotted name, wherever the module part ends."""
        parts = full_name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            if self.module(".".join(parts[:cut])):
                return self.find(".".join(parts[:cut]), ".".join(parts[cut:]))
        return None

    def bases(self, place: Place) -> Iterator[Place]:
        """The base classes of a class that are defined in the project, nearest first."""
        for base in place.definition.bases:
            name = dotted(base.value if isinstance(base, ast.Subscript) else base)
            found = self.find(place.module.name, name) if name else None
            if found and found != place:
                yield found

    def _find(self, module_name: str, name: str, seen: set[tuple[str, str]]) -> Place | None:
        module = self.module(module_name)
        if module is None or (module_name, name) in seen:
            return None
        seen.add((module_name, name))
        definition = module.definitions.get(name)
        if definition:
            return Place(module, definition)
        head, _, rest = name.partition(".")
        if head in module.imports:
            target = module.imports[head] + (f".{rest}" if rest else "")
            parts = target.split(".")
            for cut in range(len(parts) - 1, 0, -1):
                if self.module(".".join(parts[:cut])):
                    return self._find(".".join(parts[:cut]), ".".join(parts[cut:]), seen)
            return None
        if not head.startswith("_") and head not in module.definitions:
            # of two star imports the later one wins
            for source in reversed(module.star_imports):
                found = self._find(source, name, seen)
                if found:
                    return found
        owner_name, _, last = name.rpartition(".")
        owner = self._find(module_name, owner_name, seen) if owner_name else None
        if owner is None:
            return None
        if f"{owner.module.name}.{owner.definition.name}" != f"{module_name}.{owner_name}":
            return self._find(owner.module.name, f"{owner.definition.name}.{last}", seen)
        for base in self.bases(owner):
            found = self._find(base.module.name, f"{base.definition.name}.{last}", seen)
            if found:
                return found
        return None

    def _load(self, name: str) -> Module | None:
        if not all(part.isidentifier() for part in name.split(".")):
            return None
        relative = Path(*name.split("."))
        for base in (self.root, self.root / "src"):
            for file in (base / relative.with_suffix(".py"), base / relative / "__init__.py"):
                if file.is_file():
                    return self._read(name, file)
        return None

    def _read(self, name: str, file: Path) -> Module:
        shown = file.relative_to(self.root).as_posix()
        try:
            with tokenize.open(file) as stream:
                text = stream.read()
            return Module(name, file, shown, text, ast.parse(text))
        except (SyntaxError, UnicodeDecodeError, ValueError, RecursionError, MemoryError) as error:
            raise UsageError(f"{shown}: cannot be read as Python: {error}") from error


def _is_hidden(relative: Path) -> bool:
    return any(part.startswith(".") or part in ("__pycache__", "node_modules") for part in relative.parts)


def is_public_module(name: str) -> bool:
    """Whether users may import it: no part begins with an underscore."""
    return not any(part.startswith("_") for part in name.split("."))
