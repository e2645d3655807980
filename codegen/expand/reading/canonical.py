"""The canonical form of statements and its digest: what an end mark seals.

The form holds node kinds, field values and constants; no positions, contexts, string kinds, type comments or empty
fields, so it is the same for every supported Python and after black or ruff reflowed the text. It is our own
format because the text of `ast.dump` differs between Python versions.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping, Sequence

MARK_DIGITS = 6
HOLE = "\N{WHITE SQUARE}"

_SKIPPED = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)


def canonical(statements: Sequence[ast.AST], holes: Mapping[int, str] | None = None) -> str:
    """Canonical text. `holes` maps `id(node)` to what is written in that node's place.

    Raises RecursionError on trees deeper than the interpreter's limit.
    """
    parts: list[str] = []
    for statement in statements:
        _write(statement, parts, holes or {})
    return "".join(parts)


def digest(statements: Sequence[ast.AST], holes: Mapping[int, str] | None = None) -> str:
    """The six hex digits of an end mark."""
    return digest_of(canonical(statements, holes))


def digest_of(form: str) -> str:
    """The six hex digits for a canonical text."""
    return hashlib.sha256(form.encode("utf-8", "surrogatepass")).hexdigest()[:MARK_DIGITS]


def _write(node: object, parts: list[str], holes: Mapping[int, str]) -> None:
    if isinstance(node, ast.AST):
        if id(node) in holes:
            parts.append(holes[id(node)])
            return
        if isinstance(node, ast.Constant):
            parts.append(_constant(node.value))
            return
        parts.append(type(node).__name__)
        parts.append("(")
        for name in node._fields:
            value = _normal(node, name, getattr(node, name, None))
            if name in _SKIPPED or value is None or value == []:
                continue
            parts.append(f"{name}=")
            _write(value, parts, holes)
            parts.append(",")
        parts.append(")")
    elif isinstance(node, list):
        parts.append("[")
        for item in node:
            _write(item, parts, holes)
            parts.append(",")
        parts.append("]")
    else:
        parts.append(_constant(node))


def _constant(value: object) -> str:
    if isinstance(value, frozenset):
        return "frozenset" + repr(sorted(map(repr, value)))
    return f"{type(value).__name__}:{value!r}"


def _normal(node: ast.AST, name: str, value: object) -> object:
    """Undo what formatters may change: docstring margins, brackets of `del`, the split of f-string literals."""
    if isinstance(node, ast.Delete) and name == "targets" and len(node.targets) == 1:
        only = node.targets[0]
        return only.elts if isinstance(only, ast.Tuple | ast.List) and only.elts else value
    if isinstance(node, ast.JoinedStr) and name == "values":
        return _joined(node.values)
    if isinstance(node, _DOCUMENTED) and name == "body" and ast.get_docstring(node, clean=False) is not None:
        import inspect

        first = node.body[0]
        assert isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        text = inspect.cleandoc(str(first.value.value)).rstrip()
        return [ast.Expr(ast.Constant(text)), *node.body[1:]]
    return value


def _joined(values: Sequence[ast.expr]) -> list[ast.expr]:
    merged: list[ast.expr] = []
    for value in values:
        if isinstance(value, ast.Constant) and value.value == "":
            continue
        last = merged[-1] if merged else None
        if isinstance(value, ast.Constant) and isinstance(last, ast.Constant):
            merged[-1] = ast.Constant(str(last.value) + str(value.value))
        else:
            merged.append(value)
    return merged
