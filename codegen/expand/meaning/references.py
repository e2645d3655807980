"""Whether all that an item names exists where its code will run: variables, exception classes, members of classes."""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Iterator, Mapping

from codegen.expand.meaning.checks import Check
from codegen.expand.meaning.classes import Shape, classes_of, last_word, shape_of
from codegen.expand.meaning.names import missing, nearest
from codegen.expand.meaning.snapshots import RESULT, texts_of
from codegen.expand.meaning.types import infer, scope_at, unwrapped
from codegen.expand.model import SiteError
from codegen.expand.reading.scopes import bound_in, captured_names, free_names
from codegen.expand.reading.suites import Suite


def require_names(check: Check, suite: Suite, after: int, where: str = "") -> None:
    """Make sure that the check can run below line `after` of a suite. Raises SiteError.

    `where` says which of several places that is.
    """
    own = {RESULT} if check.uses_result else set()
    for text in texts_of(check.bound):
        _require(check.item.id, text, suite, after, own | set(check.olds.values()), where)
    if check.bound.error is not None:
        _require(check.item.id, check.bound.error, suite, after, set(), where)
        _is_exception(check.item.id, check.bound.error, suite)


def require_snapshots(olds: Mapping[str, str], id: str, suite: Suite, after: int) -> None:
    """Make sure that the snapshots of an item can be taken at the entry. Raises SiteError."""
    for source in olds:
        _require(id, source, suite, after, {"copy"} if source.startswith("copy.") else set(), " at the entry")


def _require(id: str, text: str, suite: Suite, after: int, given: set[str], where: str) -> None:
    for name in sorted(free_names(text) - given):
        why = missing(name, suite, after)
        if why is not None:
            near = nearest(name, suite) if why == "is not defined" else ""
            fix = f"Did you mean {near}?" if near and near != name else "Name what has a value there."
            raise SiteError("unresolved-name", f"{id}: {name} {why}{where}", fix)
    for shape, attribute in _members(text, suite, given):
        if shape.lacks(attribute):
            close = difflib.get_close_matches(attribute, sorted(shape.members), n=1)
            fix = f"Did you mean {close[0]}?" if close else f"Name a member of {shape.node.name}."
            raise SiteError("unresolved-name", f"{id}: {shape.node.name} has no {attribute}", fix)


def _members(text: str, suite: Suite, given: set[str]) -> Iterator[tuple[Shape, str]]:
    """Attributes that the text reads of objects whose class stands in the file."""
    tree = ast.parse(text.strip() or "None", mode="eval")
    inner = captured_names(tree) | given
    scope = scope_at(suite)
    local = frozenset().union(*(bound_in(function) for function in suite.functions))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or any(
            isinstance(name, ast.Name) and name.id in inner for name in ast.walk(node)
        ):
            continue
        shape = None
        if isinstance(node.value, ast.Name):
            shape = shape_of(scope.tree, suite, node.value.id)
            if shape is None and node.value.id not in local:
                shape = classes_of(scope.tree).get(node.value.id)
        if shape is None:
            kind = infer(node.value, scope)
            instance = unwrapped(kind)[0] if kind is not None else None
            shape = classes_of(scope.tree).get(last_word(instance)) if instance is not None else None
        if shape is not None:
            yield shape, node.attr


def _is_exception(id: str, error: str, suite: Suite) -> None:
    scope = scope_at(suite)
    shape = classes_of(scope.tree).get(error)
    known = getattr(builtins, error, None) if error not in bound_in(scope.tree) else None
    plain = isinstance(known, type) and not issubclass(known, BaseException)
    unrelated = shape is not None and shape.lacks("with_traceback")
    if plain or unrelated or (known is not None and not isinstance(known, type)):
        raise SiteError("bad-argument", f"{id}: error is {error}, which is no exception", "Name an exception class.")
