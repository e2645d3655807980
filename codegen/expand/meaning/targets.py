"""Which value an annotation checks, and whether it checks the value or its elements.

In this order: the explicit argument, the parameter that the annotation stands on, at a function's entry its only
parameter, in a body the name bound just above. Two different answers, or none, are refused with the candidates.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from codegen.expand.reading.parsing import Function, own_nodes
from codegen.expand.reading.places import Place
from codegen.expand.reading.scopes import own_parameters, parameters_of
from codegen.patterns import Bound, Pattern
from codegen.patterns.model import Each

_ITEMS = frozenset(
    {"list", "List", "tuple", "Tuple", "set", "Set", "frozenset", "FrozenSet", "Sequence", "MutableSequence"}
    | {"Collection", "AbstractSet", "MutableSet", "deque", "Deque", "KeysView", "ValuesView"}
)
_MAPPINGS = frozenset(
    {"dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "DefaultDict", "OrderedDict", "Counter"}
)
_ONE_PASS = frozenset(["Iterable", "Iterator", "Generator", "AsyncIterable", "AsyncIterator", "AsyncGenerator"])
_NUMBERS = frozenset({"int", "float", "complex"})
_NONE_TEST = re.compile(r"\{\{\s*(each|target)\s*\}\} is (not )?None")
_TRANSPARENT = frozenset({"Annotated", "Final", "ClassVar", "Required", "NotRequired"})


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
        return None if element is not None and _unwrap(element)[1] else "none"
    classes = [bound.values[p.name] for p in pattern.parameters if p.type == "type"]
    if not classes:
        return None
    element = _unwrap(shape.element)[0] if shape.element is not None else None
    asked = {node.id for text in classes for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    return None if element is not None and _base(element) in asked else "none"


def _infer(pattern: Pattern, place: Place) -> str:
    if place.parameter:
        return place.parameter
    function = place.function
    parameters = [parameter.arg for parameter in own_parameters(function)] if function else []
    if place.head or place.speaks_of:
        candidates = parameters
    else:
        above = bound_above(place)
        candidates = list(dict.fromkeys([*above, *(parameters if len(parameters) == 1 else [])]))
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise TargetError(f"{pattern.id} has no target here", f"Name it: {pattern.id}(target, …).")
    raise TargetError(
        f"{pattern.id} could mean {', '.join(candidates[:-1])} or {candidates[-1]}",
        f"Name the target: {pattern.id}({candidates[0]}, …).",
    )


def bound_above(place: Place) -> list[str]:
    """Names that the statement just above binds."""
    above = place.above
    targets: list[ast.expr] = []
    loop = isinstance(above, ast.For | ast.AsyncFor) and not place.index
    annotated = isinstance(above, ast.AnnAssign) and above.value is not None
    if isinstance(above, ast.Assign):
        targets = list(above.targets)
    elif loop or annotated or isinstance(above, ast.AugAssign):
        targets = [above.target]  # type: ignore[union-attr]
    elif isinstance(above, ast.With | ast.AsyncWith) and not place.index:
        targets = [item.optional_vars for item in above.items if item.optional_vars]
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
    """What the target's type annotation says about its elements."""
    function = place.function
    if not source.isidentifier() or function is None:
        return _Shape()
    arguments = function.args
    star: dict[str, Each] = {arguments.vararg.arg: "items"} if arguments.vararg else {}
    if arguments.kwarg:
        star[arguments.kwarg.arg] = "values"
    if source in star:
        inner_type = arguments.vararg if star[source] == "items" else arguments.kwarg
        return _Shape(star[source], element=inner_type.annotation if inner_type else None)
    annotation = function.returns if of_result and source == "result" else _annotation(source, function)
    if annotation is None:
        return _Shape()
    kind, optional = _unwrap(annotation)
    if kind is None:
        return _Shape("none", optional)
    inner = _arguments(kind)
    each = _each(_base(kind), inner)
    element = {"items": inner[:1], "keys": inner[:1], "values": inner[1:2]}.get(each.each, [])
    return _Shape(each.each, optional, each.problem, each.fix, element[0] if element else None)


def _annotation(name: str, function: Function) -> ast.expr | None:
    for parameter in parameters_of(function):
        if parameter.arg == name:
            return parameter.annotation
    for node in own_nodes(function):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return node.annotation
    return None


def _unwrap(node: ast.expr) -> tuple[ast.expr | None, bool]:
    """The annotation without quotes, Optional, `| None` and Annotated, and whether None was allowed."""
    optional = False
    while True:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value.strip(), mode="eval").body
            except (SyntaxError, ValueError):
                return None, optional
        elif isinstance(node, ast.Subscript) and _base(node) in _TRANSPARENT:
            node = _arguments(node)[0]
        elif isinstance(node, ast.Subscript) and _base(node) == "Optional":
            node, optional = node.slice, True
        elif (isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)) or _base(node) == "Union":
            members = _members(node)
            rest = [member for member in members if not _is_none(member)]
            optional = optional or len(rest) < len(members)
            if len(rest) != 1:
                return None, optional
            node = rest[0]
        else:
            return node, optional


def _members(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _members(node.left) + _members(node.right)
    if isinstance(node, ast.Subscript) and _base(node) == "Union":
        return _arguments(node)
    return [node]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _base(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _arguments(node: ast.expr) -> list[ast.expr]:
    if not isinstance(node, ast.Subscript):
        return []
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _each(base: str, inner: list[ast.expr]) -> _Shape:
    """Items, keys or values, from a container's name and its type arguments."""
    if base in _ONE_PASS:
        return _Shape(
            problem=f"annotated {base}, which a check could use up",
            fix="Annotate it as Sequence or Collection, or check a list made of it.",
        )
    if base in _MAPPINGS:
        numeric = [_base(_unwrap(part)[0] or part) in _NUMBERS for part in inner[:2]]
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
    if elements and _base(_unwrap(elements[0])[0] or elements[0]) in _ITEMS | _MAPPINGS:
        return _Shape(problem="a container of containers", fix="Check the inner ones in a loop, or say each=items.")
    return _Shape("items")
