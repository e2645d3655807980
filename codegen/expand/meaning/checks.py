"""From an annotation's items to checks: pattern, arguments, target, placement, and what `result` and `old` mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from codegen.expand.meaning.snapshots import RESULT, no_changed_parameter, take_snapshots, texts_of
from codegen.expand.meaning.targets import Target, TargetError, find_target
from codegen.expand.model import SiteError
from codegen.expand.reading.grammar import Item
from codegen.expand.reading.marks import Opener
from codegen.expand.reading.places import Place
from codegen.expand.reading.scopes import bound_in, free_names, parameters_of
from codegen.patterns import BadArgument, Bound, Library, Pattern, UnknownPattern, bind
from codegen.patterns.model import Placement
from codegen.patterns.source import BadSource

POSTCONDITION = "AST_POSTCONDITION"


@dataclass(frozen=True)
class Check:
    """One item, ready to be rendered at its sites.

    `olds` maps the source of each `old(…)` to its snapshot's name; `imports` are those of the pattern and of the
    snapshots.
    """

    opener: Opener
    item: Item
    pattern: Pattern
    bound: Bound
    place: Place
    placement: Placement
    target: Target | None
    uses_result: bool = False
    olds: Mapping[str, str] = field(default_factory=dict)
    imports: tuple[str, ...] = ()

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
    bound, taken = take_snapshots(pattern, bound, place, snapshot)
    # A claim about the entry's values is judged where the function is left, wherever it was written: judged where the
    # snapshot is taken it could never fail.
    placement = "on_return" if taken.olds else _placement(pattern, place, uses_result)
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
    if placement == "on_return" and place.function is not None:
        no_changed_parameter(pattern, bound, place.function)
    imports = tuple(dict.fromkeys((*pattern.imports, *taken.imports)))
    return Check(opener, item, pattern, bound, place, placement, target, uses_result, taken.olds, imports)


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
    # `result` has a value nowhere else, whatever the pattern is and wherever it was written.
    if uses_result:
        return "on_return"
    # Above a `def` nothing has run: what is claimed of values before is the entry's, of what is left behind the exits'.
    if place.speaks_of:
        return "on_return" if pattern.placement == "on_return" or is_postcondition(pattern) else "on_entry"
    # In mid-body a postcondition without `result` speaks of this moment; at the head it can only mean the end.
    if pattern.placement == "on_return":
        return "on_return" if place.head else "here"
    return "on_entry" if pattern.placement == "on_entry" and place.function else "here"


def is_postcondition(pattern: Pattern) -> bool:
    """Whether the pattern speaks of what a function leaves behind; above a `def` it belongs to the returns."""
    return POSTCONDITION in (pattern.id, pattern.extends)


def _speaks_of_result(pattern: Pattern, bound: Bound, place: Place) -> bool:
    """Whether the item uses `result` as the value being returned, not as a variable of that name."""
    function = place.function
    if function is None or not any(RESULT in free_names(text) for text in texts_of(bound)):
        return False
    if any(parameter.arg == RESULT for parameter in parameters_of(function)):
        return False
    # A function may have a variable called result. In its body the name is that variable; about the function as a
    # whole there is no variable to speak of yet.
    local = RESULT in bound_in(function)
    return not local or bool(place.head or place.speaks_of)
