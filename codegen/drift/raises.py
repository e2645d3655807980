"""Documented errors against the exceptions that the code can really raise.

An exception is documented when the entry's `errors:` names it or an ancestor of it, when the fence raises it, or when
an annotation brings it (raises inside managed blocks belong to their annotation). `ValueError from json.loads` says
that a called function raises it; then the call must be there.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator

from codegen.document.model import Entry
from codegen.drift.calls import CallGraph, Raise
from codegen.drift.code import Module, Place
from codegen.drift.promises import Annotated
from codegen.drift.section import Documented, DocumentedError, documented_errors, raised_in_fence

# Builtin exceptions that come from a `raise` as a rule; others (KeyError, OSError …) any expression may raise.
_RAISED_ON_PURPOSE = frozenset({"ValueError", "TypeError", "RuntimeError", "NotImplementedError", "AssertionError"})
_CONSTRUCTION = ("__init__", "__post_init__", "__new__")


def error_differences(
    entry: Entry,
    pairs: list[tuple[Documented, Place]],
    graph: CallGraph,
    annotated: Callable[[Module], Annotated],
) -> Iterator[tuple[str, str]]:
    """Message and fix for every exception that only the document or only the code knows."""
    if not pairs:
        return
    listed = documented_errors(entry)
    in_fences = {name for documented, _ in pairs for name in raised_in_fence(documented.definition)}
    known = {name.rpartition(".")[2] for name in [*in_fences, *(error.name for error in listed)]}
    functions = [place for _, pair in pairs for place in constructed(pair)]
    must: dict[str, Raise] = {}
    for place in functions:
        for each in sorted(graph.escapes(place, False), key=lambda found: found.line):
            if not annotated(each.module).is_managed(each.line):
                must.setdefault(each.name, each)
    for name, each in sorted(must.items()):
        if known.isdisjoint(graph.ancestry(each.module, name)):
            fix = f"Add `{name} when …` to the entry's `errors:`."
            yield f"{name} is raised ({each.module.shown}:{each.line}) and not documented", fix
    may: frozenset[Raise] = frozenset().union(*(graph.escapes(place, True) for place in functions))
    possible = {name for each in may for name in graph.ancestry(each.module, each.name)}
    for error in listed:
        reason = _unraised(error, possible, functions, graph)
        if reason:
            fix = f"Raise it, drop it, or name the call it comes from: `{error.name} from json.loads when …`."
            yield f"{error.name} is documented and {reason}", fix


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
