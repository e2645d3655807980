"""Documented errors against the exceptions that the code can really raise.

An exception is documented when the entry's `errors:` names it or an ancestor of it, when the fence raises it, or when
an annotation brings it (raises inside managed blocks belong to their annotation). `ValueError from json.loads` says
that a called function raises it; then the call must be there.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator

from codegen.document.model import Entry
from codegen.drift.calls import CallGraph, Raise
from codegen.drift.code import Place
from codegen.drift.section import Documented, DocumentedError, documented_errors, raised_in_fence

# Builtin exceptions that come from a `raise` as a rule; others (KeyError, OSError …) any expression may raise.
_RAISED_ON_PURPOSE = frozenset({"ValueError", "TypeError", "RuntimeError", "NotImplementedError", "AssertionError"})
_CONSTRUCTION = ("__init__", "__post_init__", "__new__")


def error_differences(
    entry: Entry, pairs: list[tuple[Documented, Place]], graph: CallGraph, apart: frozenset[str] = frozenset()
) -> Iterator[tuple[str, str]]:
    """Message and fix for every exception that only the document or only the code knows; `apart` as in
    `undocumented_raises`."""
    if not pairs:
        return
    for name, each in undocumented_raises(entry, pairs, graph, apart).items():
        fix = f"Add `{name} when …` to the entry's `errors:`."
        yield f"{name} is raised ({each.module.shown}:{each.line}) and not documented", fix
    listed = documented_errors(entry)
    if not listed:
        return
    functions = [place for _, pair in pairs for place in constructed(pair)]
    may: frozenset[Raise] = frozenset().union(*(graph.escapes(place, True) for place in functions))
    possible = {name for each in may for name in graph.ancestry(each.module, each.name)}
    for error in listed:
        reason = _unraised(error, possible, functions, graph)
        if reason:
            fix = f"Raise it, drop it, or name the call it comes from: `{error.name} from json.loads when …`."
            yield f"{error.name} is documented and {reason}", fix


def undocumented_raises(
    entry: Entry,
    pairs: Iterable[tuple[Documented, Place]],
    graph: CallGraph,
    apart: frozenset[str] = frozenset(),
) -> dict[str, Raise]:
    """The exceptions that leave an entry's code and that the entry does not name, by name. The constructor of a class
    that is an entry of its own (`apart`, by full names) does not speak for the class."""
    pairs = list(pairs)
    in_fences = {name for documented, _ in pairs for name in raised_in_fence(documented.definition)}
    listed = {error.name for error in documented_errors(entry)}
    known = {name.rpartition(".")[2] for name in in_fences | listed}
    found: dict[str, Raise] = {}
    places = [(place, pair) for _, pair in pairs for place in constructed(pair)]
    for place in (place for place, pair in places if place == pair or place.full_name not in apart):
        for each in sorted(graph.escapes(place, False), key=lambda raised: raised.line):
            managed = each.module.annotated.is_managed(each.line)
            if not managed and known.isdisjoint(graph.ancestry(each.module, each.name)):
                found.setdefault(each.name, each)
    return dict(sorted(found.items()))


def constructed(place: Place) -> Iterator[Place]:
    """What runs under a documented definition: the function itself; for a class, its construction."""
    if place.definition.kind == "function":
        yield place
        return
    for name in _CONSTRUCTION:
        method = place.module.definitions.get(f"{place.definition.name}.{name}")
        if method:
            yield Place(place.module, method)


def _unraised(error: DocumentedError, possible: set[str], functions: list[Place], graph: CallGraph) -> str | None:
    if error.source:
        calls = {name for place in functions for name in _calls_below(place, graph)}
        called = error.source in calls or error.source.rpartition(".")[2] in calls
        return None if called else f"said to come from `{error.source}`, which is not called"
    last = error.name.rpartition(".")[2]
    if hasattr(builtins, last):
        checkable = last in _RAISED_ON_PURPOSE
    else:
        checkable = any(last in module.definitions for module in graph.modules)
    return "never raised" if checkable and last not in possible else None


def _calls_below(place: Place, graph: CallGraph) -> set[str]:
    """Names of all calls a function makes, straight or through functions of the project."""
    names: set[str] = set()
    seen: set[str] = set()
    todo = [place]
    while todo:
        each = todo.pop()
        if each.full_name in seen:
            continue
        seen.add(each.full_name)
        names |= graph.call_names(each)
        todo += [target for target, _ in graph.called(each) if target.definition.kind == "function"]
    return names
