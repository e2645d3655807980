"""What a check has to expect of its target: whether a type vouches that it can be judged.

A declared `int` is trusted: the type checker sees who breaks it. An array, a tensor or an `Any` may raise in the middle
of a comparison, and so may whatever a signature says nothing about.
"""

from __future__ import annotations

import ast
from typing import Literal

from codegen.expand.meaning.classes import last_word
from codegen.expand.meaning.types import Scope, annotation_of, infer, members_of, result_type
from codegen.expand.reading.parsing import Function
from codegen.expand.reading.scopes import bound_in, own_parameters, parameters_of

Guard = Literal["never", "arrays", "always"]

_ARRAYS = frozenset(
    {"ndarray", "NDArray", "ArrayLike", "Array", "Tensor", "FloatTensor", "LongTensor", "DataFrame", "Series", "matrix"}
)
_ANYTHING = frozenset({"Any", "object", "complex", "Decimal"})


def guard_of(source: str, scope: Scope, of_result: bool) -> Guard:
    """What a check has to expect of its target: nothing, a value without a truth of its own, or anything."""
    function = scope.function
    if function is None:
        return "never"
    if of_result and source == "result":
        returned = result_type(function)
        return _of_type(returned) if returned is not None else "always"
    node = ast.parse(source.strip(), mode="eval").body
    kind = infer(node, scope)
    if kind is not None:
        return _of_type(kind)
    root = _root(node)
    owner = next((f for f in reversed(scope.suite.functions) if root in bound_in(f)), None)
    if owner is not None and any(parameter.arg == root for parameter in own_parameters(owner)):
        return "always" if annotation_of(root, owner) is None else "never"
    return "never" if _typed(owner or function) else "always"


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _of_type(kind: ast.expr) -> Guard:
    names = {last_word(member) for member in members_of(kind)}
    return "always" if names & _ANYTHING else "arrays" if names & _ARRAYS else "never"


def _typed(function: Function) -> bool:
    """Whether the function has a signature that a type checker reads."""
    return function.returns is not None or any(parameter.annotation for parameter in parameters_of(function))
