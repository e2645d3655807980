"""Whether a path or a dotted name exists in a project, read from its source and never imported."""

from __future__ import annotations

import ast
from functools import cached_property
from pathlib import Path


class Codebase:
    """The Python code below one folder, also in `src/`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._members: dict[Path, set[str] | None] = {}

    @cached_property
    def packages(self) -> frozenset[str]:
        """The top-level packages and modules of the project."""
        found: set[str] = set()
        for base in (self.root, self.root / "src"):
            if base.is_dir():
                found |= {path.name for path in base.iterdir() if (path / "__init__.py").is_file()}
                found |= {path.stem for path in base.glob("*.py")}
        return frozenset(found)

    def has_path(self, path: str) -> bool:
        """Whether a file or folder exists; with `*` whether any matches."""
        if "*" in path:
            return any(True for _ in self.root.glob(path.lstrip("/")))
        return any((base / path).exists() for base in (self.root, self.root / "src"))

    def module_path(self, module: str) -> str:
        """The path of a module below the root, whether it exists or is yet to be written."""
        stem = module.replace(".", "/")
        top = module.split(".")[0]
        base = "src/" if not (self.root / top).exists() and (self.root / "src" / top).is_dir() else ""
        if (self.root / base / stem).is_dir():
            return f"{base}{stem}/__init__.py"
        return f"{base}{stem}.py"

    def has_name(self, name: str) -> bool:
        """Whether a dotted name is a package, a module, or a class, function, value, method or attribute in one."""
        parts = name.split(".")
        for base in (self.root, self.root / "src"):
            for length in range(len(parts), 0, -1):
                stem = base.joinpath(*parts[:length])
                for path in (stem.with_suffix(".py"), stem / "__init__.py"):
                    if path.is_file():
                        rest = ".".join(parts[length:])
                        members = self._read(path)
                        # A module that cannot be read says nothing against the name.
                        return not rest or members is None or rest in members
                if length == len(parts) and stem.is_dir():
                    return True
        return False

    def _read(self, path: Path) -> set[str] | None:
        if path not in self._members:
            try:
                tree = ast.parse(path.read_bytes())
            except (OSError, SyntaxError, ValueError):
                self._members[path] = None
            else:
                self._members[path] = set(_members(tree.body, ""))
        return self._members[path]


def _members(body: list[ast.stmt], prefix: str) -> list[str]:
    names: list[str] = []
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.append(prefix + node.name)
            if prefix:
                names += [prefix + name for name in _attributes(node)]
        elif isinstance(node, ast.ClassDef):
            names += [prefix + node.name, *_members(node.body, f"{prefix}{node.name}.")]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [prefix + target.id for target in targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names += [prefix + (alias.asname or alias.name.split(".")[0]) for alias in node.names]
        elif isinstance(node, ast.If | ast.Try):
            names += _members(node.body, prefix)
    return names


def _attributes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    stored = [n for n in ast.walk(function) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
    return [node.attr for node in stored if isinstance(node.value, ast.Name) and node.value.id == "self"]
