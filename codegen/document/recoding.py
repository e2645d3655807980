"""Rename in code what can be renamed for certain, and say where a person has to look.

Certain are, of a top-level name: its definition, its uses by bare name where nothing local hides it, imports of it by
name (through re-exports too), `module.name` where the module is imported, `__all__`, annotations; of a method: its
definition and `self.` and `cls.` in its class. All other places that may mean it are listed and left.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codegen.document.contracts import ANNOTATION

SKIPPED = frozenset({"build", "dist", "node_modules", "site-packages", "__pycache__"})
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Recoded:
    """New texts by path, and the places left for a person as `path:line: text`."""

    texts: dict[Path, str]
    left: tuple[str, ...]


@dataclass(frozen=True)
class _Source:
    path: Path
    module: str
    text: str
    tree: ast.Module


def recoded(root: Path, module: str, old: str, new: str) -> Recoded:
    """The code below a project with `old` (a name inside `module`, "Till.total") called `new` (its last part).

    Files that are not Python are skipped; nothing is written.
    """
    sources = list(_sources(root))
    if "." in old:
        return _method(sources, root, module, old, new)
    providers = _providers(sources, module, old)
    texts: dict[Path, str] = {}
    left: list[str] = []
    for source in sources:
        places, hidden = _places(source, module, providers, old)
        if hidden and places:
            left += [f"{_shown(source, root)}:{line}: `{old}` is also a local name here" for line in sorted(hidden)]
        elif places:
            texts[source.path] = _replaced(source.text, places, old, new)
            quoted = ast.walk(ast.parse(texts[source.path]))
            strings = sorted({e.lineno for e in quoted if isinstance(e, ast.Constant) and e.value == old})
            left += [f"{_shown(source, root)}:{line}: a text {old!r}" for line in strings]
        if f"{module}.{old}" in (texts.get(source.path) or source.text):
            left += _mentions(source, root, rf"{re.escape(module)}\.{re.escape(old)}\b")
    return Recoded(texts, tuple(left))


def _sources(root: Path) -> Iterator[_Source]:
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        if any(part in SKIPPED or part.startswith(".") for part in parts):
            continue
        try:
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        names = [*parts[:-1], parts[-1].removesuffix(".py")]
        names = names[1:] if names[0] == "src" else names
        yield _Source(path, ".".join(names).removesuffix(".__init__"), text, tree)


def _shown(source: _Source, root: Path) -> str:
    return source.path.relative_to(root).as_posix()


def _imported(source: _Source, node: ast.ImportFrom) -> str:
    """The module that a `from … import` names, relative ones resolved."""
    if not node.level:
        return node.module or ""
    package = source.module.split(".")
    up = node.level - (1 if source.path.name == "__init__.py" else 0)
    base = package[: len(package) - up] if up else package
    return ".".join([*base, *([node.module] if node.module else [])])


def _imports(source: _Source) -> Iterator[tuple[ast.ImportFrom, str]]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom):
            yield node, _imported(source, node)


def _providers(sources: list[_Source], module: str, old: str) -> set[str]:
    """The modules that offer the name: its own, and those that import it under this name."""
    found = {module}
    more = True
    while more:
        more = False
        for source in sources:
            if source.module not in found and any(
                origin in found and any(each.name == old and each.asname in (None, old) for each in node.names)
                for node, origin in _imports(source)
            ):
                found.add(source.module)
                more = True
    return found


def _places(source: _Source, module: str, providers: set[str], old: str) -> tuple[set[tuple[int, int]], set[int]]:
    """Where the name stands (line, byte column), and the lines where a function binds it itself."""
    places: set[tuple[int, int]] = set()
    own = source.module == module
    bare = own
    modules: set[str] = set()
    for node, origin in _imports(source):
        for each in node.names:
            if origin in providers and each.name == old:
                places.add((each.lineno, each.col_offset))
                bare = bare or each.asname in (None, old)
            elif f"{origin}.{each.name}" in providers:
                modules.add(each.asname or each.name)
    for statement in ast.walk(source.tree):
        if isinstance(statement, ast.Import):
            modules |= {each.asname or each.name for each in statement.names if each.name in providers}
    hidden: set[int] = set()
    for each_node in ast.walk(source.tree):
        if isinstance(each_node, ast.Attribute) and each_node.attr == old and ast.unparse(each_node.value) in modules:
            places.add((each_node.end_lineno or each_node.lineno, (each_node.end_col_offset or 0) - len(old.encode())))
        if not bare:
            continue
        if isinstance(each_node, ast.Name) and each_node.id == old:
            places.add((each_node.lineno, each_node.col_offset))
        elif isinstance(each_node, Function | ast.Lambda):
            hidden |= _bindings(each_node, old)
    if bare:
        places |= _definition(source, old) if own else set()
        places |= _all_and_annotations(source, old)
    return places, hidden


def _bindings(node: Function | ast.Lambda, old: str) -> set[int]:
    """The lines in which a function binds the name as a parameter or a variable."""
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    found = {each.lineno for each in named if each is not None and each.arg == old}
    declared = {n for each in ast.walk(node) if isinstance(each, ast.Global) for n in each.names}
    if old in declared:
        return found
    return found | {
        each.lineno
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and each.id == old and isinstance(each.ctx, ast.Store)
    }


def _definition(source: _Source, old: str) -> set[tuple[int, int]]:
    return {_head(source, node, old) for node in source.tree.body if getattr(node, "name", "") == old}


def _head(source: _Source, node: ast.AST, old: str) -> tuple[int, int]:
    """Where the name stands in `def name` or `class name`."""
    line = int(getattr(node, "lineno", 0))
    text = source.text.split("\n")[line - 1]
    found = re.search(rf"\b(?:def|class)\s+({re.escape(old)})\b", text)
    return line, len(text[: found.start(1)].encode()) if found else 0


def _all_and_annotations(source: _Source, old: str) -> set[tuple[int, int]]:
    places: set[tuple[int, int]] = set()
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["__all__"]:
            for each in ast.walk(node.value):
                if isinstance(each, ast.Constant) and each.value == old:
                    places.add((each.lineno, each.col_offset + 1))
    for at, line in enumerate(source.text.split("\n"), 1):
        if ANNOTATION.match(line.strip()):
            places |= {
                (at, len(line[: found.start()].encode()))
                for found in re.finditer(rf"(?<![\w.]){re.escape(old)}(?!\w)", line)
            }
    return places


def _replaced(text: str, places: set[tuple[int, int]], old: str, new: str) -> str:
    lines = text.split("\n")
    for line, column in sorted(places, reverse=True):
        data = lines[line - 1].encode()
        if data[column : column + len(old.encode())] == old.encode():
            lines[line - 1] = (data[:column] + new.encode() + data[column + len(old.encode()) :]).decode()
    return "\n".join(lines)


def _mentions(source: _Source, root: Path, pattern: str) -> Iterator[str]:
    for at, line in enumerate(source.text.split("\n"), 1):
        if re.search(pattern, line) and not re.match(r"\s*(from|import)\b", line):
            yield f"{_shown(source, root)}:{at}: {line.strip()}"


def _method(sources: list[_Source], root: Path, module: str, old: str, new: str) -> Recoded:
    owner, _, name = old.rpartition(".")
    texts: dict[Path, str] = {}
    left: list[str] = []
    for source in sources:
        places: set[tuple[int, int]] = set()
        node = _class(source.tree, owner) if source.module == module else None
        if node is not None:
            places |= {_head(source, each, name) for each in node.body if getattr(each, "name", "") == name}
            for each in ast.walk(node):
                if isinstance(each, ast.Attribute) and each.attr == name and ast.unparse(each.value) in ("self", "cls"):
                    places.add((each.end_lineno or each.lineno, (each.end_col_offset or 0) - len(name.encode())))
            texts[source.path] = _replaced(source.text, places, name, new)
        for each in ast.walk(source.tree):
            if isinstance(each, ast.Attribute) and each.attr == name:
                place = (each.end_lineno or each.lineno, (each.end_col_offset or 0) - len(name.encode()))
                if place not in places:
                    line = source.text.split("\n")[place[0] - 1].strip()
                    left.append(f"{_shown(source, root)}:{place[0]}: {line}")
    return Recoded(texts, tuple(dict.fromkeys(left)))


def _class(tree: ast.Module, name: str) -> ast.ClassDef | None:
    body: list[ast.stmt] = tree.body
    node: ast.ClassDef | None = None
    for part in name.split("."):
        node = next((each for each in body if isinstance(each, ast.ClassDef) and each.name == part), None)
        if node is None:
            return None
        body = node.body
    return node
