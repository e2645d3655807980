"""The imports that scaffolded code needs and its module lacks.

Known are the names of other modules of the document, the standard library's usual ones, and the standard library's
modules themselves. Any other name is left to the author: guessing would import the wrong thing.
"""

from __future__ import annotations

import ast
import builtins
import sys

from codegen.document.model import Document
from codegen.drift.promises import read_promises
from codegen.drift.section import documented_definitions
from codegen.drift.signatures import read_definitions

_USUAL = {
    "dataclasses": ("dataclass", "field", "replace", "asdict"),
    "collections.abc": ("Callable", "Iterable", "Iterator", "Mapping", "Sequence", "Awaitable", "AsyncIterator"),
    "typing": ("Any", "Literal", "NamedTuple", "Protocol", "TypedDict", "Self", "Optional", "Union", "ClassVar"),
    "enum": ("Enum", "IntEnum", "StrEnum"),
    "abc": ("ABC", "abstractmethod"),
    "pathlib": ("Path",),
    "collections": ("Counter", "defaultdict", "deque"),
    "functools": ("cached_property", "cache", "partial"),
    "contextlib": ("contextmanager", "asynccontextmanager"),
}
_STANDARD = {name: module for module, names in _USUAL.items() for name in names}


def with_imports(text: str, module: str, document: Document) -> str:
    """The module's text with the imports its names need, after the docstring and the imports it has."""
    tree = ast.parse(text)
    bound = _bound(tree)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    used |= _in_annotations(text)
    wanted: list[str] = []
    homes = _homes(document, module)
    for name in sorted(used - bound):
        line = _import_of(name, homes)
        if line:
            wanted.append(line)
    if not wanted:
        return text
    merged: dict[str, list[str]] = {}
    for line in wanted:
        head, _, names = line.partition(" import ")
        merged.setdefault(head if names else line, []).extend([names] if names else [])
    new = [f"{head} import {', '.join(names)}" if names else head for head, names in sorted(merged.items())]
    standard = [line for line in new if line.split()[1].partition(".")[0] in sys.stdlib_module_names]
    own = [line for line in new if line not in standard]
    new = [*sorted(standard, key=lambda line: line.startswith("from")), *([""] if standard and own else []), *own]
    at = _after_imports(tree)
    lines = text.split("\n")
    before = lines[:at]
    gap = [] if before and before[-1].startswith(("import ", "from ")) and "__future__" not in before[-1] else [""]
    return "\n".join([*before, *gap, *new, *lines[at:]])


def _in_annotations(text: str) -> set[str]:
    """Names that VAL and AST comments use: their expansion will need them."""
    definitions = read_definitions(ast.parse(text))
    names: set[str] = set()
    for group in read_promises(text, definitions.values()).promises.values():
        for promise in group:
            expression = ast.parse(promise.text.partition(": ")[2], mode="eval")
            names |= {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    return {name for name in names if not name.isupper()}


def _bound(tree: ast.Module) -> set[str]:
    """Every name that the module binds anywhere, and the builtins: none of them needs an import."""
    names = set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names


def _homes(document: Document, module: str) -> dict[str, str]:
    """Name → module, for what other modules of the document define."""
    found: dict[str, str] = {}
    for each in documented_definitions(document)[0]:
        if each.module and each.module != module and not each.definition.owner:
            found.setdefault(each.definition.name, each.module)
    return found


def _import_of(name: str, homes: dict[str, str]) -> str | None:
    if name in homes:
        return f"from {homes[name]} import {name}"
    if name in _STANDARD:
        return f"from {_STANDARD[name]} import {name}"
    if name in sys.stdlib_module_names:
        return f"import {name}"
    return None


def _after_imports(tree: ast.Module) -> int:
    at = 0
    for number, node in enumerate(tree.body):
        is_docstring = number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_docstring or isinstance(node, (ast.Import, ast.ImportFrom)):
            at = node.end_lineno or node.lineno
        else:
            break
    return at
