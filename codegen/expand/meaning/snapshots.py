"""What `old(…)` means: values at the function's entry, and claims that can fail when it is left.

A snapshot is a reference. If what it refers to can change in place, the claim would compare a thing with itself, so
such a snapshot is refused: it has to be of a type that cannot change, or made by a call, `old(len(xs))`,
`old(copy(xs))`. For the same reason a claim at an exit may not name a parameter that the body gives another value.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise

from codegen.expand.meaning.classes import classes_of, last_word
from codegen.expand.meaning.types import IMMUTABLE, MUTABLE, Scope, infer, members_of, scope_at
from codegen.expand.model import SiteError
from codegen.expand.reading.parsing import Function, own_nodes
from codegen.expand.reading.places import Place
from codegen.expand.reading.scopes import bound_in, captured_names, free_names, parameters_of
from codegen.patterns import Bound, Pattern

OLD = "old"
RESULT = "result"
_COPIES = ("copy", "deepcopy")
MUTATORS = frozenset(
    {"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "add", "discard", "update"}
    | {"setdefault", "popitem", "popleft", "appendleft", "extendleft", "rotate", "fill", "resize", "put"}
    | {"put_nowait", "difference_update", "intersection_update", "symmetric_difference_update", "move_to_end"}
)


@dataclass(frozen=True)
class Snapshots:
    """The snapshots of one item: name of each by its source, and the imports that making them needs."""

    olds: Mapping[str, str] = field(default_factory=dict)
    imports: tuple[str, ...] = ()


def texts_of(bound: Bound) -> list[str]:
    """Source of all that an item says."""
    return [*([bound.target] if bound.target is not None else []), *bound.values.values()]


def uses_old(bound: Bound, place: Place) -> bool:
    """Whether the item speaks of values at the entry, not of a function called old."""
    names = any(OLD in free_names(text) for text in texts_of(bound))
    return names and not any(OLD in bound_in(function) for function in place.functions)


class _Snapshots(ast.NodeTransformer):
    """Replaces each `old(expression)` by the name of its snapshot."""

    def __init__(self, snapshot: Callable[[str], str], copies: Mapping[str, str]) -> None:
        self.snapshot, self.copies = snapshot, copies
        self.found: dict[str, str] = {}
        self.nodes: dict[str, ast.expr] = {}
        self.imports: list[str] = []

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not isinstance(node.func, ast.Name) or node.func.id != OLD:
            return self.generic_visit(node)
        if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
            raise SiteError("bad-argument", "old takes one expression", "Write old(expression).")
        value = node.args[0]
        source = ast.unparse(value)
        if any(isinstance(n, ast.Name) and n.id == OLD for n in ast.walk(value)):
            raise SiteError("bad-argument", f"old inside old({source})", "Use one old around the whole expression.")
        self.nodes[source] = value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in self.copies:
            called = ast.parse(self.copies[value.func.id], mode="eval").body
            value = ast.Call(called, value.args, value.keywords)
            self.imports.append("import copy")
        made = ast.unparse(value)
        self.found[made] = self.snapshot(made)
        return ast.Name(self.found[made], ast.Load())


def take_snapshots(
    pattern: Pattern, bound: Bound, place: Place, snapshot: Callable[[str], str]
) -> tuple[Bound, Snapshots]:
    """The item with the names of its snapshots in place of each `old(…)`. Raises SiteError."""
    if not uses_old(bound, place):
        return bound, Snapshots()
    function = place.function
    if function is None:
        raise SiteError(
            "bad-argument", f"{pattern.id}: old(…) outside a function", "Use it in a function's annotation."
        )
    if pattern.placement in ("on_entry", "wrap"):
        raise SiteError(
            "bad-argument", f"{pattern.id} is judged at the entry, where old(…) is no earlier value", "Leave old out."
        )
    scope = scope_at(place.suite)
    transformer = _Snapshots(snapshot, _copies(scope))

    def rewrite(text: str) -> str:
        if OLD not in free_names(text):
            return text
        tree = ast.parse(text.strip(), mode="eval")
        inner = captured_names(tree)
        before = dict(transformer.found)
        result = ast.unparse(transformer.visit(tree))
        for source in transformer.found.keys() - before.keys():
            _known_at_entry(source, function, inner)
        _no_alias(ast.parse(text.strip(), mode="eval").body, pattern, bound, scope)
        return result

    values = {name: rewrite(text) for name, text in bound.values.items()}
    target = rewrite(bound.target) if bound.target is not None else None
    _can_fail(pattern, bound, function)
    taken = Snapshots(dict(transformer.found), tuple(dict.fromkeys(transformer.imports)))
    return replace(bound, values=values, target=target), taken


@lru_cache(maxsize=8)
def _imports_copy(tree: ast.Module) -> bool:
    """Whether the module imports `copy` under its own name."""
    return any(
        isinstance(node, ast.Import) and any(a.name == "copy" and a.asname is None for a in node.names)
        for node in own_nodes(tree)
    )


def _copies(scope: Scope) -> dict[str, str]:
    """How `copy(x)` and `deepcopy(x)` are written here: as the module's own function, or by the module `copy`."""
    local = frozenset().union(*(bound_in(function) for function in scope.suite.functions))
    found = {}
    for name in _COPIES:
        ours = name == "copy" and _imports_copy(scope.tree)
        taken = name in local or "copy" in local or (name in bound_in(scope.tree) and not ours)
        if not taken:
            found[name] = f"copy.{name}"
    return found


def _known_at_entry(source: str, function: Function, inner: frozenset[str]) -> None:
    names = free_names(source)
    parameters = {parameter.arg for parameter in parameters_of(function)}
    unknown = sorted((names & bound_in(function)) - parameters | (names & inner))
    if unknown:
        raise SiteError(
            "bad-argument",
            f"old({source}) uses {', '.join(unknown)}, which has no value at the function's entry",
            "Use parameters and what they hold.",
        )


def _no_alias(claim: ast.expr, pattern: Pattern, bound: Bound, scope: Scope) -> None:
    """Refuse snapshots of what can change in place. Raises SiteError."""
    ordered = {id(part) for node in ast.walk(claim) for part in _in_order(node)}
    if pattern.parameter("falling") is not None:
        ordered.add(id(claim))
    for node in ast.walk(claim):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == OLD):
            continue
        if len(node.args) != 1:
            continue
        value = node.args[0]
        why = _may_change(value, scope, id(node) in ordered)
        if why:
            source = ast.unparse(value)
            raise SiteError(
                "mutable-snapshot",
                f"old({source}) would keep a reference, not a value: {why}",
                f"Write old(copy({source})) to compare with a copy, or old(len({source})) for a figure of it.",
            )


def _in_order(node: ast.AST) -> Sequence[ast.expr]:
    """Operands of arithmetic and of `<`, which only values have that are not changed in place, as far as is known."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Compare) and all(isinstance(o, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for o in node.ops):
        return [node.left, *node.comparators]
    return []


def _may_change(node: ast.expr, scope: Scope, ordered: bool) -> str:
    """Why the object that an expression gives may be changed in place by the body; "" when it cannot, or is new."""
    if isinstance(node, ast.BoolOp):
        return next((why for part in node.values if (why := _may_change(part, scope, ordered))), "")
    if isinstance(node, ast.IfExp):
        return _may_change(node.body, scope, ordered) or _may_change(node.orelse, scope, ordered)
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return ""
    source = ast.unparse(node)
    kind = infer(node, scope)
    if kind is not None:
        members = members_of(kind)
        changing = [ast.unparse(member) for member in members if _is_mutable(member, scope)]
        if changing:
            return f"{source} is {changing[0]}, which can change in place"
        if members and all(_is_immutable(member, scope) for member in members):
            return ""
    if line := _changed_in_place(source, scope.tree):
        return f"line {line} changes {source} in place"
    return "" if ordered else f"nothing here says that {source} is of a type that cannot change"


def _is_mutable(kind: ast.expr, scope: Scope) -> bool:
    shape = classes_of(scope.tree).get(last_word(kind))
    if shape is not None:
        frozen = any(
            isinstance(d, ast.Call) and any(k.arg == "frozen" and _is_true(k.value) for k in d.keywords)
            for d in shape.node.decorator_list
        )
        bases = {last_word(base) for base in shape.node.bases}
        fixed = bases & {"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "NamedTuple", "int", "float", "str", "tuple"}
        return not frozen and not fixed
    return last_word(kind) in MUTABLE


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_immutable(kind: ast.expr, scope: Scope) -> bool:
    if last_word(kind) in ("tuple", "Tuple"):
        inner = kind.slice if isinstance(kind, ast.Subscript) else None
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner] if inner is not None else []
        return not any(_is_mutable(part, scope) for part in parts)
    if classes_of(scope.tree).get(last_word(kind)) is not None:
        return not _is_mutable(kind, scope)
    return last_word(kind) in IMMUTABLE


def _changed_in_place(source: str, tree: ast.Module) -> int:
    """The first line of the file that changes the object in place: a mutator's call, an item set or deleted."""
    for node in ast.walk(tree):
        value: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            value = node.func.value
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            value = node.value
        if value is not None and ast.unparse(value) == source:
            return node.lineno  # type: ignore[attr-defined]
    return 0


def _can_fail(pattern: Pattern, bound: Bound, function: Function) -> None:
    """Refuse a claim that compares a thing with its own snapshot where nothing can lie in between. Raises SiteError."""
    pairs = [pair for text in texts_of(bound) for pair in _pairs(text)]
    since = bound.values.get("since")
    if since is not None and bound.target is not None and pattern.target == "required":
        pairs.append((ast.parse(bound.target, mode="eval").body, ast.parse(since, mode="eval").body))
    for left, right in pairs:
        for now, before in ((left, right), (right, left)):
            inner = _inside_old(before)
            if inner is None:
                continue
            source = ast.unparse(inner)
            if ast.unparse(now) not in (source, ast.unparse(before)):
                continue
            if ast.unparse(now) == ast.unparse(before) or _is_fixed(inner, function):
                raise SiteError(
                    "tautology",
                    f"{source} is compared with its own value at the same point, so the claim says nothing",
                    f"Claim something of what {function.name} changes.",
                )


def _pairs(text: str) -> list[tuple[ast.expr, ast.expr]]:
    try:
        tree = ast.parse(text.strip() or "None", mode="eval")
    except (SyntaxError, ValueError):
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            row = [node.left, *node.comparators]
            found += list(pairwise(row))
    return found


def _inside_old(node: ast.expr) -> ast.expr | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == OLD and len(node.args) == 1:
        return node.args[0]
    return None


def _is_fixed(node: ast.expr, function: Function) -> bool:
    """Whether the body cannot make the expression another value: a parameter that it never binds; else a body that
    stores, calls and awaits nothing."""
    if isinstance(node, ast.Name):
        return not changed_lines(node.id, function)
    effects = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.Delete, ast.Import, ast.ImportFrom, ast.With)
    for inner in own_nodes(function):
        if isinstance(inner, effects):
            return False
        if isinstance(inner, ast.Attribute | ast.Subscript) and not isinstance(inner.ctx, ast.Load):
            return False
    return True


def changed_lines(name: str, function: Function) -> list[int]:
    """Lines on which the body binds or deletes a name again, those of inner functions with `nonlocal` included."""
    found = [
        node.lineno
        for node in own_nodes(function)
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
    ]
    for node in own_nodes(function):
        if getattr(node, "name", None) == name and hasattr(node, "lineno"):
            found.append(node.lineno)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            shared = {n for inner in ast.walk(node) if isinstance(inner, ast.Nonlocal) for n in inner.names}
            found += [node.lineno] if name in shared else []
    captured = {
        id(n) for node in own_nodes(function) if isinstance(node, ast.comprehension) for n in ast.walk(node.target)
    }
    kept = {
        node.lineno
        for node in own_nodes(function)
        if isinstance(node, ast.Name) and id(node) in captured and node.id == name
    }
    return sorted(set(found) - kept)


def no_changed_parameter(pattern: Pattern, bound: Bound, function: Function) -> None:
    """Refuse a claim at the exits that names a parameter which the body binds again: the reader takes it for the value
    that was given. Raises SiteError."""
    names = {parameter.arg for parameter in parameters_of(function)}
    for text in texts_of(bound):
        for name in sorted(free_names(text) & names):
            if lines := changed_lines(name, function):
                raise SiteError(
                    "changed-parameter",
                    f"{pattern.id}: {name} is another value at the exit than the one given: line {lines[0]} binds it",
                    f"Write old({name}) for the value given, or give the new value a name of its own.",
                )
