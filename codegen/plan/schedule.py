"""What a plan adds to a document: new steps, rows for steps not begun, dependencies, stale marks.

Existing steps keep their numbers, texts, statuses and commits; entries already in a step stay there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from codegen.document.lint.steps import ancestors
from codegen.document.model import Document, Entry, Step, StepMethod
from codegen.document.references import References
from codegen.document.staleness import stale_methods, unplanned
from codegen.plan.compose import method_row, new_step
from codegen.plan.cut import cut
from codegen.plan.graph import Dependencies, dependencies

SETTLED = ("DONE", "STALE", "IN_PROGRESS", "FAILED")


@dataclass(frozen=True)
class Schedule:
    """`hosted` names join steps that are not started; `depends` are the new lists of steps that lacked some; `reopened`
    are finished steps of which a name is stale, with those names."""

    graph: Dependencies
    new: tuple[Step, ...]
    hosted: tuple[tuple[int, StepMethod], ...]
    depends: Mapping[int, tuple[int, ...]]
    stale: tuple[tuple[Step, StepMethod], ...]
    waves: tuple[tuple[int, ...], ...]
    overlaps: tuple[tuple[str, tuple[int, ...]], ...]
    circles: tuple[tuple[int, int], ...]
    reopened: tuple[Step, ...] = ()

    @property
    def scheduled(self) -> tuple[str, ...]:
        """The entries that are new in the plan, by identity."""
        rows = [method for _, method in self.hosted] + [method for step in self.new for method in step.methods]
        return tuple(method.name for method in rows)


def schedule(
    document: Document, size: int, module_path: Callable[[str], str], references: References | None = None
) -> Schedule:
    """Plan what is not planned yet. `size` is the number of methods a step aims at; at most ten.

    Raises CircularDependencies.
    """
    graph = dependencies(document, references)
    members = {step.number: _members(document, step) for step in document.steps}
    step_of = {ident: number for number, idents in reversed(members.items()) for ident in idents}
    todo = [entry.id for entry in unplanned(document) if entry.id in graph.entries]
    hosted = _host(document, graph, step_of, todo, size)
    for number, method in hosted:
        step_of[method.name] = number
        members[number] = [*members[number], method.name]
    todo = [ident for ident in todo if ident not in step_of]
    built = {step.number for step in document.steps if step.status in SETTLED}
    first = max(members, default=0) + 1
    parts = list(enumerate(cut(todo, graph, size, members, built), first))
    step_of |= {ident: number for number, idents in parts for ident in idents}
    listed = {step.number: step.depends for step in document.steps}
    needs = {number: _needed(idents, graph, step_of) - {number} for number, idents in (members | dict(parts)).items()}
    depends = _depends(listed, {number for number, _ in parts}, needs, built)
    new = tuple(
        new_step(number, [graph.entries[ident] for ident in idents], depends[number], module_path)
        for number, idents in parts
    )
    everything = [*document.steps, *new]
    waves = _waves({step.number: depends[step.number] for step in everything})
    stale = tuple(stale_methods(document))
    return Schedule(
        graph=graph,
        new=new,
        hosted=tuple(hosted),
        depends={number: needs for number, needs in depends.items() if number in listed and needs != listed[number]},
        stale=stale,
        waves=waves,
        overlaps=tuple(_overlaps(everything, waves)),
        circles=tuple(_circles(needs, depends)),
        reopened=tuple(_reopened(document, stale, module_path)),
    )


def _reopened(
    document: Document, stale: Sequence[tuple[Step, StepMethod]], module_path: Callable[[str], str]
) -> Iterable[Step]:
    """Finished steps as open ones again, with the names that are stale; the others stay done."""
    for step in document.steps:
        names = [method for each, method in stale if each is step]
        if step.folded and names:
            entries = [entry for method in names if (entry := document.entry_of(method))]
            again = new_step(step.number, entries, step.depends, module_path)
            yield replace(again, title=step.title, methods=tuple(names))


def _members(document: Document, step: Step) -> list[str]:
    found = (document.entry_of(method) for method in step.methods)
    return list(dict.fromkeys(entry.id for entry in found if entry is not None))


def _host(
    document: Document, graph: Dependencies, step_of: Mapping[str, int], todo: Sequence[str], size: int
) -> list[tuple[int, StepMethod]]:
    """New entries that fit into a step not started: same module, room left, and its needs come before."""
    above = ancestors({step.number: step.depends for step in document.steps})
    hosts: dict[str, list[int]] = defaultdict(list)
    room: dict[int, int] = {}
    for step in document.steps:
        modules = {entry.module for m in step.methods if (entry := document.entry_of(m)) is not None}
        if step.status == "NOT_STARTED" and "names" in step.fields and len(modules) == 1 and len(step.methods) < size:
            hosts[next(iter(modules))].append(step.number)
            room[step.number] = size - len(step.methods)
    users = graph.dependents()
    found: list[tuple[int, StepMethod]] = []
    placed = dict(step_of)
    for ident in todo:
        for number in hosts.get(graph.entries[ident].module, []):
            before = above[number] | {number}
            met = all(placed.get(need) in before for need in graph.edges[ident])
            needed_above = any(placed.get(user) in above[number] for user in users[ident])
            if room[number] and met and not needed_above:
                room[number] -= 1
                placed[ident] = number
                found.append((number, method_row(graph.entries[ident])))
                break
    return found


def _needed(idents: Iterable[str], graph: Dependencies, step_of: Mapping[str, int]) -> set[int]:
    return {step_of[need] for ident in idents for need in graph.edges[ident] if need in step_of}


def _depends(
    listed: Mapping[int, tuple[int, ...]], fresh: set[int], needs: Mapping[int, set[int]], built: set[int]
) -> dict[int, tuple[int, ...]]:
    """The steps each step depends on: what it lists, and for those not begun what it lacks, less what is implied."""
    depends = dict(listed) | dict.fromkeys(sorted(fresh), ())
    above: dict[int, int] = {}
    for number in _bottom_up({n: (*listed.get(n, ()), *sorted(needs.get(n, ()))) for n in depends}):
        if number not in built:
            known = _union(depends[number], above)
            # In a circle of steps one is not placed yet: it is left out here and reported as a circle.
            wanted = [n for n in sorted(needs.get(number, ())) if n in above and not known >> n & 1]
            lacking = [n for n in wanted if not any(above[other] >> n & 1 for other in wanted)]
            if lacking:
                depends[number] = tuple(sorted({*depends[number], *lacking}))
        above[number] = _union(depends[number], above)
    return depends


def _union(numbers: Iterable[int], above: Mapping[int, int]) -> int:
    """The steps in `numbers` and all above them, as a set of bits."""
    bits = 0
    for number in numbers:
        bits |= 1 << number | above.get(number, 0)
    return bits


def _bottom_up(needs: Mapping[int, Iterable[int]]) -> list[int]:
    """The steps in an order in which each comes after what it needs; a circle is entered at its lowest number."""
    found: dict[int, None] = {}
    for root in sorted(needs):
        stack: list[tuple[int, list[int]]] = [(root, list(needs[root]))]
        on_way = {root}
        while stack:
            number, open_needs = stack[-1]
            while open_needs:
                need = open_needs.pop(0)
                if need in needs and need not in found and need not in on_way:
                    on_way.add(need)
                    stack.append((need, list(needs[need])))
                    break
            else:
                stack.pop()
                found[number] = None
    return list(found)


def _circles(needs: Mapping[int, set[int]], depends: Mapping[int, tuple[int, ...]]) -> list[tuple[int, int]]:
    """Pairs of steps that need each other, so that neither can come first."""
    above: dict[int, int] = {}
    for number in _bottom_up(depends):
        above[number] = _union(depends[number], above)
    return [(n, need) for n, wanted in needs.items() for need in sorted(wanted) if above[need] >> n & 1]


def _waves(depends: Mapping[int, tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """The steps by the length of the longest way to them: those of one wave may be built at the same time."""
    level: dict[int, int] = {}
    for number in _bottom_up(depends):
        level[number] = max((level.get(need, -1) for need in depends[number]), default=-1) + 1
    waves: list[list[int]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for number in depends:
        waves[level[number]].append(number)
    return tuple(map(tuple, waves))


def _overlaps(steps: Sequence[Step], waves: Sequence[tuple[int, ...]]) -> list[tuple[str, tuple[int, ...]]]:
    """Files that two or more open steps of one wave both touch."""
    by_number = {step.number: step for step in steps if step.status != "DONE"}
    found: list[tuple[str, tuple[int, ...]]] = []
    for wave in waves:
        users: dict[str, list[int]] = defaultdict(list)
        for number in wave:
            for file in by_number[number].files if number in by_number else ():
                users[file].append(number)
        found += [(file, tuple(numbers)) for file, numbers in users.items() if len(numbers) > 1]
    return found


def differences(graph: Dependencies) -> list[tuple[Entry, tuple[Entry, ...]]]:
    """Open entries whose code uses others that `deps:` does not name; what a folded one needs is read from its code."""
    return [
        (graph.entries[ident], tuple(graph.entries[other] for other in others))
        for ident, others in graph.inferred.items()
        if others and not graph.entries[ident].folded
    ]
