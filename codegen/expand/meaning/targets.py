"""Which value an annotation checks, and whether it checks the value or its elements.

A target is certain or refused. In this order: the explicit argument; the parameter that the annotation stands on; above
a `def` and at the head of its body the only parameter besides self; else the name that the statement directly above, in
the same block, binds. Two names, or none, are refused with the candidates.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from codegen.expand.meaning.classes import last_word
from codegen.expand.meaning.types import ONE_PASS, arguments_of, declared_type, result_type, scope_at, unwrapped
from codegen.expand.reading.places import Place
from codegen.expand.reading.scopes import own_parameters
from codegen.patterns import Bound, Pattern
from codegen.patterns.model import Each

_ITEMS = frozenset(
    {"list", "List", "tuple", "Tuple", "set", "Set", "frozenset", "FrozenSet", "Sequence", "MutableSequence"}
    | {"Collection", "AbstractSet", "MutableSet", "deque", "Deque", "KeysView", "ValuesView"}
)
_MAPPINGS = frozenset(
    {"dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "DefaultDict", "OrderedDict", "Counter"}
)
_NUMBERS = frozenset({"int", "float", "complex"})
_NONE_TEST = re.compile(r"\{\{\s*(each|target)\s*\}\} is (not )?None")


class TargetError(Exception):
    """The target or its elements cannot be told; `fix` says what to write."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix


@dataclass(frozen=True)
class Target:
    """What is checked. `optional`: its annotation allows None, which a check passes where it could not judge None."""

    source: str
    each: Each = "none"
    optional: bool = False


def find_target(pattern: Pattern, bound: Bound, place: Place, of_result: bool = False) -> Target:
    """The target of one item at a place; `of_result` when it speaks of the returned value. Raises TargetError."""
    source = bound.target if bound.target is not None else _infer(pattern, place)
    shape = _shape(source, place, of_result)
    optional = shape.optional and pattern.tag != "AST" and not _NONE_TEST.search(pattern.template)
    if not pattern.elementwise:
        return Target(source, "none", optional)
    each = bound.each or _about_value(pattern, bound, shape)
    if each is not None:
        return Target(source, each, optional)
    if shape.problem:
        raise TargetError(f"{source} is {shape.problem}", shape.fix)
    return Target(source, shape.each, optional)


def _about_value(pattern: Pattern, bound: Bound, shape: _Shape) -> Each | None:
    """ "none" for patterns that ask about a container itself: what type it is, or whether it is None."""
    if _NONE_TEST.search(pattern.template):
        element = shape.element
        return None if element is not None and unwrapped(element)[1] else "none"
    classes = [bound.values[p.name] for p in pattern.parameters if p.type == "type"]
    if not classes:
        return None
    element = unwrapped(shape.element)[0] if shape.element is not None else None
    asked = {node.id for text in classes for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    return None if element is not None and last_word(element) in asked else "none"


def _infer(pattern: Pattern, place: Place) -> str:
    if place.parameter:
        return place.parameter
    function = place.function
    parameters = [parameter.arg for parameter in own_parameters(function)] if function else []
    # Below the head a parameter is as far away as any other name: code in between may have made something of it, and
    # a reader takes the annotation for the line above it. So a bare annotation never reaches for the parameter there.
    candidates = parameters if place.head or place.speaks_of else bound_above(place)
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        near = bound_by_header(place) or parameters
        example = near[0] if len(near) == 1 else "target"
        raise TargetError(f"{pattern.id} has no target here", f"Name it: {pattern.id}({example}, …).")
    raise TargetError(
        f"{pattern.id} could mean {', '.join(candidates[:-1])} or {candidates[-1]}",
        f"Name the target: {pattern.id}({candidates[0]}, …).",
    )


def bound_above(place: Place) -> list[str]:
    """Names that the statement directly above binds, in the same block: a plain, annotated or augmented assignment.

    Not those of a header: `for row in rows:` binds row for the whole block, and what is first in it is no more about
    row than about rows.
    """
    above = place.above if place.index else None
    if isinstance(above, ast.Assign):
        return _names(above.targets)
    if isinstance(above, ast.AugAssign) or (isinstance(above, ast.AnnAssign) and above.value is not None):
        return _names([above.target])
    return []


def bound_by_header(place: Place) -> list[str]:
    """Names that the header of the block binds; they are proposed, never taken."""
    owner = None if place.index else place.above
    if isinstance(owner, ast.For | ast.AsyncFor):
        return _names([owner.target])
    if isinstance(owner, ast.With | ast.AsyncWith):
        return _names([item.optional_vars for item in owner.items if item.optional_vars])
    return []


def _names(targets: Sequence[ast.expr]) -> list[str]:
    found: list[str] = []
    for target in targets:
        elements = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        found.extend(e.id if isinstance(e, ast.Name) else ast.unparse(e) for e in elements)
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class _Shape:
    each: Each = "none"
    optional: bool = False
    problem: str = ""
    fix: str = ""
    element: ast.expr | None = None


def _shape(source: str, place: Place, of_result: bool) -> _Shape:
    """What the target's type annotation says about its elements. Only what the author declared counts: a key that
    happens to be a tuple is still one key."""
    function = place.function
    if function is None:
        return _Shape()
    arguments = function.args
    star: dict[str, Each] = {arguments.vararg.arg: "items"} if arguments.vararg else {}
    if arguments.kwarg:
        star[arguments.kwarg.arg] = "values"
    if source in star:
        inner_type = arguments.vararg if star[source] == "items" else arguments.kwarg
        return _Shape(star[source], element=inner_type.annotation if inner_type else None)
    of_return = of_result and source == "result"
    scope = scope_at(place.speaks_of or place.suite)
    annotation = result_type(function) if of_return else declared_type(source, scope)
    if annotation is None:
        return _Shape()
    kind, optional = unwrapped(annotation)
    if kind is None:
        return _Shape("none", optional)
    inner = arguments_of(kind)
    each = _each(last_word(kind), inner)
    element = {"items": inner[:1], "keys": inner[:1], "values": inner[1:2]}.get(each.each, [])
    return _Shape(each.each, optional, each.problem, each.fix, element[0] if element else None)


def _each(base: str, inner: list[ast.expr]) -> _Shape:
    """Items, keys or values, from a container's name and its type arguments."""
    if base in ONE_PASS:
        return _Shape(
            problem=f"annotated {base}, which a check could use up",
            fix="Annotate it as Sequence or Collection, or check a list made of it.",
        )
    if base in _MAPPINGS:
        numeric = [last_word(unwrapped(part)[0] or part) in _NUMBERS for part in inner[:2]]
        if numeric == [True, False]:
            return _Shape("keys")
        if numeric == [False, True]:
            return _Shape("values")
        return _Shape(problem="a mapping", fix="Say which part: each=keys or each=values.")
    if base not in _ITEMS:
        return _Shape()
    elements = [part for part in inner if not (isinstance(part, ast.Constant) and part.value is ...)]
    kinds = {ast.unparse(part) for part in elements}
    if len(kinds) > 1:
        return _Shape(problem="a tuple of different types", fix="Name one element, or say each=items.")
    if elements and last_word(unwrapped(elements[0])[0] or elements[0]) in _ITEMS | _MAPPINGS:
        return _Shape(problem="a container of containers", fix="Check the inner ones in a loop, or say each=items.")
    return _Shape("items")
