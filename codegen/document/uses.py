"""What the code of a name uses, read with `ast`: full names through the imports of its module, helpers looked into."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from codegen.document.codebase import Codebase
from codegen.document.definitions import used_names
from codegen.document.model import Entry

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class ModuleCode:
    """The definitions of a module by name inside it, and what its imports bind, to full names."""

    definitions: dict[str, Definition]
    imports: dict[str, str]


class CodeUses:
    """Reads the modules below a project; one that is missing or no Python uses nothing."""

    def __init__(self, root: Path) -> None:
        self._codebase = Codebase(root)
        self._root = root
        self._found: dict[tuple[str, str], tuple[str, ...]] = {}

    def of(self, entry: Entry) -> tuple[str, ...]:
        """The names that the code of an entry uses: full ones where an import says so, else as written. Functions and
        classes of its module that are no part of a document are looked into by the caller's `known`."""
        # every document of a project, and the project itself, ask for the same names
        key = (entry.module, entry.name)
        if key not in self._found:
            self._found[key] = self._read_uses(entry)
        return self._found[key]

    def _read_uses(self, entry: Entry) -> tuple[str, ...]:
        module = self._module(entry.module)
        local = entry.name.removeprefix(f"{entry.module}.")
        node = module.definitions.get(local)
        if node is None:
            return ()
        found: dict[str, None] = {}
        seen = {local}
        todo: list[Definition] = [node]
        for each in todo:
            members = {f"{local}.{name}" for name in _members(node)} if each is node else set()
            for name in used_names(_without_members(each)):
                head, _, rest = name.partition(".")
                full = module.imports.get(head)
                found[f"{full}.{rest}".rstrip(".") if full else name] = None
                helper = self._helper(module, name, local)
                if helper and helper not in seen | members and _is_private(helper):
                    seen.add(helper)
                    todo.append(module.definitions[helper])
        return tuple(found)

    @staticmethod
    def _helper(module: ModuleCode, name: str, local: str) -> str:
        head, _, rest = name.partition(".")
        owner = local.rpartition(".")[0]
        inside = f"{owner}.{rest.partition('.')[0]}" if head in ("self", "cls") and owner else head
        return inside if inside in module.definitions else ""

    def _module(self, name: str) -> ModuleCode:
        path = self._root / self._codebase.module_path(name)
        return _read(path, path.stat().st_mtime_ns) if path.is_file() else ModuleCode({}, {})


def _is_private(name: str) -> bool:
    return name.rpartition(".")[2].startswith("_")


@lru_cache(maxsize=2_000)
def _read(path: Path, _changed: int) -> ModuleCode:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return ModuleCode({}, {})
    definitions: dict[str, Definition] = {}
    imports: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imports |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            imports |= {each.asname: each.name for each in node.names if each.asname}
    _define(tree.body, "", definitions)
    return ModuleCode(definitions, imports)


def _define(body: list[ast.stmt], prefix: str, found: dict[str, Definition]) -> None:
    for node in body:
        if isinstance(node, Definition):
            found.setdefault(prefix + node.name, node)
            if isinstance(node, ast.ClassDef):
                _define(node.body, f"{prefix}{node.name}.", found)
        elif isinstance(node, ast.If | ast.Try):
            _define(node.body, prefix, found)


def _members(node: Definition) -> list[str]:
    return [each.name for each in node.body if isinstance(each, Definition)] if isinstance(node, ast.ClassDef) else []


def _without_members(node: Definition) -> ast.AST:
    """A class without its methods, which are names of their own."""
    if not isinstance(node, ast.ClassDef):
        return node
    body = [each for each in node.body if not isinstance(each, Definition)] or [ast.Pass()]
    return ast.ClassDef(node.name, node.bases, node.keywords, body, node.decorator_list)
