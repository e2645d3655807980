"""From an annotation's items to checks: pattern, arguments, target, placement, and what `result` and `old` mean."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from codegen.expand.meaning.targets import Target, TargetError, find_target
from codegen.expand.model import SiteError
from codegen.expand.reading.grammar import Item
from codegen.expand.reading.marks import Opener
from codegen.expand.reading.places import Place
from codegen.expand.reading.scopes import bound_in, parameters_of
from codegen.patterns import BadArgument, Bound, Library, Pattern, UnknownPattern, bind
from codegen.patterns.model import Placement
from codegen.patterns.source import BadSource

RESULT = "result"
OLD = "old"
POSTCONDITION = "AST_POSTCONDITION"


@dataclass(frozen=True)
class Check:
    """One item, ready to be rendered at its sites. `olds` maps the source of each `old(…)` to its snapshot's name."""

    opener: Opener
    item: Item
    pattern: Pattern
    bound: Bound
    place: Place
    placement: Placement
    target: Target | None
    uses_result: bool = False
    olds: Mapping[str, str] = field(default_factory=dict)

    @property
    def note(self) -> str | None:
        """The annotation's note."""
        return self.opener.notation.note if self.opener.notation else None


def read_check(library: Library, opener: Opener, item: Item, place: Place, snapshot: Callable[[str], str]) -> Check:
    """Look the item's pattern up and match it to its place. Raises SiteError.

    `snapshot(source)` gives the name that holds the entry value of an expression.
    """
    pattern = _pattern(library, item)
    try:
        bound = bind(pattern, list(item.positional), dict(item.keywords))
    except BadArgument as error:
        raise SiteError("bad-argument", error.message, error.fix) from error
    except BadSource as error:
        raise SiteError("bad-argument", f"{item.id}: {error}", "Give plain expressions.") from error
    if pattern.target == "expression" and bound.target is None:
        raise SiteError("bad-argument", f"{pattern.id} has no expression", f"Write {pattern.id}(expression).")
    uses_result = _speaks_of_result(pattern, bound, place)
    bound, olds = _take_snapshots(pattern, bound, place, snapshot)
    placement = _placement(pattern, place, uses_result)
    if placement == "here" and place.dead:
        raise SiteError(
            "dead-code",
            f"nothing is executed below the {_word(place)} above this annotation",
            "Move it above that line.",
        )
    target = None
    if pattern.target == "required":
        try:
            target = find_target(pattern, bound, place, uses_result)
        except TargetError as error:
            raise SiteError("ambiguous-target", error.message, error.fix) from error
        bound = replace(bound, target=target.source)
    return Check(opener, item, pattern, bound, place, placement, target, uses_result, olds)


def _word(place: Place) -> str:
    return type(place.above).__name__.lower() if place.above else "statement"


def _pattern(library: Library, item: Item) -> Pattern:
    try:
        pattern = library.get(item.id)
    except UnknownPattern as error:
        near = f"Did you mean {' or '.join(error.nearest)}?" if error.nearest else "See `codegen patterns list`."
        raise SiteError("unknown-pattern", f"unknown pattern {item.id}", near) from error
    if pattern.tag != item.tag:
        raise SiteError(
            "wrong-tag", f"{item.id} belongs to the tag {pattern.tag}, not {item.tag}", f"Write `# {pattern.tag}: …`."
        )
    return pattern


def _placement(pattern: Pattern, place: Place, uses_result: bool) -> Placement:
    """Where the check goes: the pattern says, but `result` needs the return, and a place outside a body has no here."""
    if pattern.placement == "wrap":
        return "wrap"
    if uses_result:
        return "on_return"
    if place.speaks_of:
        return "on_return" if pattern.placement == "on_return" or is_postcondition(pattern) else "on_entry"
    if pattern.placement == "on_return":
        return "on_return" if place.head else "here"
    return "on_entry" if pattern.placement == "on_entry" and place.function else "here"


def is_postcondition(pattern: Pattern) -> bool:
    """Whether the pattern speaks of what a function leaves behind; above a `def` it belongs to the returns."""
    return POSTCONDITION in (pattern.id, pattern.extends)


def _speaks_of_result(pattern: Pattern, bound: Bound, place: Place) -> bool:
    """Whether the item uses `result` as the value being returned, not as a variable of that name."""
    function = place.function
    if function is None or not any(RESULT in free_names(text) for text in _texts(bound)):
        return False
    if any(parameter.arg == RESULT for parameter in parameters_of(function)):
        return False
    local = RESULT in bound_in(function)
    return not local or bool(place.head or place.speaks_of)


def _texts(bound: Bound) -> list[str]:
    return [*([bound.target] if bound.target is not None else []), *bound.values.values()]


def free_names(text: str) -> frozenset[str]:
    """Names that an expression takes from around it; what its lambdas and comprehensions bind is not among them."""
    try:
        tree = ast.parse(text.strip() or "None", mode="eval")
    except (SyntaxError, ValueError):
        return frozenset()
    return frozenset(_free(tree.body, frozenset()))


def _free(node: ast.AST, bound: frozenset[str]) -> Iterable[str]:
    if isinstance(node, ast.Name):
        return [] if node.id in bound else [node.id]
    if isinstance(node, ast.Lambda):
        inner = bound | {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        return [*_free(node.args, bound), *_free(node.body, inner)]
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        inner = bound | captured_names(node)
        first = node.generators[0].iter
        rest = [name for child in ast.iter_child_nodes(node) for name in _free_except(child, first, inner)]
        return [*_free(first, bound), *rest]
    return [name for child in ast.iter_child_nodes(node) for name in _free(child, bound)]


def _free_except(node: ast.AST, skipped: ast.AST, bound: frozenset[str]) -> Iterable[str]:
    if node is skipped:
        return []
    if isinstance(node, ast.comprehension):
        return [name for child in ast.iter_child_nodes(node) for name in _free_except(child, skipped, bound)]
    return _free(node, bound)


def captured_names(node: ast.AST) -> frozenset[str]:
    """Names bound by comprehensions and lambdas anywhere inside."""
    found: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.comprehension):
            found.update(name.id for name in ast.walk(inner.target) if isinstance(name, ast.Name))
        elif isinstance(inner, ast.Lambda):
            found.update(argument.arg for argument in ast.walk(inner.args) if isinstance(argument, ast.arg))
    return frozenset(found)


class _Snapshots(ast.NodeTransformer):
    """Replaces each `old(expression)` by the name of its snapshot."""

    def __init__(self, snapshot: Callable[[str], str]) -> None:
        self.snapshot = snapshot
        self.found: dict[str, str] = {}

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not isinstance(node.func, ast.Name) or node.func.id != OLD:
            return self.generic_visit(node)
        if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
            raise SiteError("bad-argument", "old takes one expression", "Write old(expression).")
        source = ast.unparse(node.args[0])
        if any(isinstance(n, ast.Name) and n.id == OLD for n in ast.walk(node.args[0])):
            raise SiteError("bad-argument", f"old inside old({source})", "Use one old around the whole expression.")
        self.found[source] = self.snapshot(source)
        return ast.Name(self.found[source], ast.Load())


def _take_snapshots(
    pattern: Pattern, bound: Bound, place: Place, snapshot: Callable[[str], str]
) -> tuple[Bound, Mapping[str, str]]:
    function = place.function
    texts = _texts(bound)
    if not any(OLD in free_names(text) for text in texts):
        return bound, {}
    known = bound_in(function) if function else frozenset()
    if OLD in known:
        return bound, {}
    if function is None:
        raise SiteError(
            "bad-argument", f"{pattern.id}: old(…) outside a function", "Use it in a function's annotation."
        )
    transformer = _Snapshots(snapshot)

    def rewrite(text: str) -> str:
        if OLD not in free_names(text):
            return text
        tree = ast.parse(text.strip(), mode="eval")
        inner = captured_names(tree)
        before = dict(transformer.found)
        result = ast.unparse(transformer.visit(tree))
        for source in transformer.found.keys() - before.keys():
            _known_at_entry(source, function, inner)
        return result

    values = {name: rewrite(text) for name, text in bound.values.items()}
    target = rewrite(bound.target) if bound.target is not None else None
    return replace(bound, values=values, target=target), dict(transformer.found)


def _known_at_entry(source: str, function: ast.FunctionDef | ast.AsyncFunctionDef, inner: frozenset[str]) -> None:
    names = free_names(source)
    parameters = {parameter.arg for parameter in parameters_of(function)}
    unknown = sorted((names & bound_in(function)) - parameters | (names & inner))
    if unknown:
        raise SiteError(
            "bad-argument",
            f"old({source}) uses {', '.join(unknown)}, which has no value at the function's entry",
            "Use parameters and what they hold.",
        )
