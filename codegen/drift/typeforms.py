"""Whether two expressions of a signature say the same: type annotations and default values.

`List[int]` is `list[int]`, `Optional[X]` and `Union[X, None]` are `X | None`, the order of a union and quotes
around a forward reference do not count, and a dotted name equals any dotted tail of itself (`np.ndarray` is
`ndarray`). Everything else is compared as written.
"""

from __future__ import annotations

import ast
from typing import Any

from codegen.drift.signatures import dotted

# A form is a nested tuple: ("name", dotted), ("subscript", base, arguments…), ("union", members…), ("text", source).
Form = tuple[Any, ...]

_MODERN = {
    "List": "list",
    "Dict": "dict",
    "Tuple": "tuple",
    "Set": "set",
    "FrozenSet": "frozenset",
    "Type": "type",
    "Text": "str",
    "Deque": "deque",
    "DefaultDict": "defaultdict",
    "AbstractSet": "Set",
}
_TYPING = ("typing.", "typing_extensions.", "collections.abc.", "t.")


def same_annotation(left: ast.expr | None, right: ast.expr | None) -> bool:
    """Whether two annotations name the same type, as far as their texts tell."""
    if left is None or right is None:
        return left is right
    return _same(type_form(left), type_form(right))


def same_value(left: ast.expr | None, right: ast.expr | None) -> bool:
    """Whether two default values are the same. `...` means any default, as in a stub file."""
    if left is None or right is None:
        return left is right
    if any(isinstance(side, ast.Constant) and side.value is ... for side in (left, right)):
        return True
    return ast.unparse(left) == ast.unparse(right) or _same(_value_form(left), _value_form(right))


def type_form(node: ast.expr) -> Form:
    """The canonical form of an annotation."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return type_form(ast.parse(node.value.strip(), mode="eval").body)
        except SyntaxError:
            return ("text", node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([type_form(node.left), type_form(node.right)])
    if isinstance(node, (ast.Name, ast.Attribute)):
        name = dotted(node)
        return ("text", ast.unparse(node)) if name is None else ("name", _modern(name))
    if isinstance(node, ast.Subscript):
        return _subscript(node)
    if isinstance(node, (ast.List, ast.Tuple)):
        return ("list", *map(type_form, node.elts))
    return ("text", ast.unparse(node))


def _subscript(node: ast.Subscript) -> Form:
    base = type_form(node.value)
    arguments = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    name = base[1] if base[0] == "name" else ""
    if name == "Literal":
        # the strings of a Literal are values, not forward references
        return ("literal", *sorted(ast.unparse(each) for each in arguments))
    if name == "Optional":
        return _union([type_form(arguments[0]), ("text", "None")])
    if name == "Union":
        return _union([type_form(each) for each in arguments])
    return ("subscript", base, *map(type_form, arguments))


def _union(members: list[Form]) -> Form:
    flat: list[Form] = []
    for member in members:
        flat.extend(member[1:] if member[0] == "union" else [member])
    unique = sorted(set(flat), key=_union_order)
    return unique[0] if len(unique) == 1 else ("union", *unique)


def _union_order(form: Form) -> str:
    """Order members by what a dotted tail leaves, so that `np.ndarray | None` lines up with `ndarray | None`."""
    return form[1].rpartition(".")[2] if form[0] == "name" else repr(form)


def _modern(name: str) -> str:
    for prefix in _TYPING:
        name = name.removeprefix(prefix)
    return _MODERN.get(name, name)


def _value_form(node: ast.expr) -> Form:
    name = dotted(node)
    return ("text", ast.unparse(node)) if name is None else ("name", name)


def _same(left: Form, right: Form) -> bool:
    if left[0] == right[0] == "name":
        one, other = sorted((left[1], right[1]), key=len)
        return one == other or other.endswith(f".{one}")
    if left[0] != right[0] or len(left) != len(right):
        return False
    return all(
        _same(one, other) if isinstance(one, tuple) and isinstance(other, tuple) else one == other
        for one, other in zip(left[1:], right[1:], strict=True)
    )
