"""Cut the dependency graph into steps of a few related methods, bottom-up.

Infrastructure comes first, complex validations (Full Specifications) before ordinary methods, integration last. A step
starts with the first entry that can be built and takes in related ones (same class, same module, then neighbours in
the package) whose needs are met. Existing steps take part as they are: one counts as built once all it needs is.
The result depends on the document alone.
"""

from __future__ import annotations

import heapq
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from codegen.document.model import Entry
from codegen.document.references import owner_of
from codegen.plan.graph import Dependencies

SMALL = 3
SHARED = 2
REACH = 20
INFRASTRUCTURE = re.compile(
    r"(config|configuration|settings|constants?|errors?|exceptions?|types|models?|base|protocols?|enums?|alphabet)$"
)
INTEGRATION = re.compile(r"(integration|end_to_end|e2e|cli|__main__|app|demo)$")
RANKS = {"infrastructure": 0, "validation": 1, "normal": 2, "integration": 3}


def ranks(graph: Dependencies) -> dict[str, int]:
    """Entry number → 0 infrastructure, 1 complex validation, 2 ordinary, 3 integration.

    A `phase:` field of the entry decides. Otherwise infrastructure is what stands in a module of that name (settings,
    errors, types, …), and a class that needs nothing and that several other modules need.
    """
    users = graph.dependents()
    found: dict[str, int] = {}
    for ident, entry in graph.entries.items():
        modules = {graph.entries[user].module for user in users[ident]} - {entry.module}
        shared = len(modules) >= SHARED and not graph.edges[ident]
        found[ident] = RANKS[_phase(entry, shared)]
    return found


def _phase(entry: Entry, shared: bool) -> str:
    written = entry.fields["phase"].value if "phase" in entry.fields else ""
    if written in RANKS:
        return written
    parts = entry.module.split(".")
    if any(INTEGRATION.match(part) for part in (*parts[1:], entry.name.lower())):
        return "integration"
    if entry.full_specification:
        return "validation"
    is_class = entry.name.rpartition(".")[2][:1].isupper()
    return "infrastructure" if INFRASTRUCTURE.match(parts[-1]) or (is_class and shared) else "normal"


@dataclass
class _Board:
    """Entries that may be built now, in heaps by class, module and package; an entry leaves all when it is taken."""

    keys: dict[str, tuple[int, int]]
    groups: dict[str, tuple[str, str, str]]
    heaps: dict[str, list[tuple[int, int, str]]] = field(default_factory=lambda: defaultdict(list))
    open: set[str] = field(default_factory=set)

    def add_all(self, idents: Iterable[str]) -> None:
        for ident in idents:
            self.open.add(ident)
            for group in ("", *filter(None, self.groups[ident])):
                heapq.heappush(self.heaps[group], (*self.keys[ident], ident))

    def take(self, group: str, allowed: range) -> str | None:
        """The first open entry of a group whose rank is allowed; it is no longer open."""
        heap = self.heaps.get(group, [])
        while heap and heap[0][2] not in self.open:
            heapq.heappop(heap)
        if not heap or heap[0][0] not in allowed:
            return None
        ident = heapq.heappop(heap)[2]
        self.open.discard(ident)
        return ident


def cut(
    todo: Iterable[str],
    graph: Dependencies,
    size: int,
    existing: Mapping[int, Sequence[str]],
    built: set[int],
) -> list[list[str]]:
    """Steps for the entries in `todo`, each a list of entry numbers, in an order in which they can be built.

    `existing` are the steps there are (number → entries), of which those in `built` need nothing any more.
    """
    wanted = list(todo)
    order = {ident: at for at, ident in enumerate(graph.entries)}
    rank = ranks(graph)
    keys = {ident: (rank[ident], order[ident]) for ident in wanted}
    board = _Board(keys, {ident: _groups(graph.entries[ident]) for ident in wanted})
    waiting = _Waiting(wanted, graph, existing, built)
    board.add_all(waiting.start())
    left = Counter(graph.entries[ident].module for ident in wanted)
    steps: list[list[str]] = []
    placed = 0
    while placed < len(wanted):
        seed = board.take("", range(4))
        if seed is None:
            board.add_all(waiting.force(len(steps)))
            continue
        step = [seed]
        board.add_all(waiting.joined(seed))
        last = keys[seed][0] == RANKS["integration"]
        allowed = range(3, 4) if last else range(3)
        room = _share(left[graph.entries[seed].module], size)
        while len(step) < room and (found := _related(board, step, allowed)):
            step.append(found)
            board.add_all(waiting.joined(found))
        steps.append(step)
        left.subtract(graph.entries[ident].module for ident in step)
        board.add_all(waiting.finish(len(steps)))
        placed += len(step)
    return _merged(steps, graph, keys, size, waiting.placed_at)


def _share(left: int, size: int) -> int:
    """Cut what is left of a module into equal parts: 12 methods make 4 + 4 + 4 and not 5 + 5 + 2."""
    parts = -(-left // size)
    return max(SMALL, -(-left // parts)) if size >= SMALL else size


def _groups(entry: Entry) -> tuple[str, str, str]:
    owner = owner_of(entry)
    package = entry.module.rpartition(".")[0]
    return (f"class {owner}" if owner else "", f"module {entry.module}", f"package {package}")


def _related(board: _Board, step: list[str], allowed: range) -> str | None:
    for tier in range(3):
        if tier == 2 and len(step) >= SMALL:
            break
        for ident in step:
            group = board.groups[ident][tier]
            if group and (found := board.take(group, allowed)):
                return found
    return None


class _Waiting:
    """What each entry still waits for. An existing step that is not built waits as a whole.

    `placed_at` says, for the entries of such steps, before which new step they count as built.
    """

    def __init__(
        self, wanted: list[str], graph: Dependencies, existing: Mapping[int, Sequence[str]], built: set[int]
    ) -> None:
        unit_of = {ident: f"step {number}" for number, members in existing.items() for ident in members}
        self.steps = {f"step {number}": members for number, members in existing.items() if number not in built}
        self.wanted = set(wanted)
        self.needs: dict[str, set[str]] = {}
        self.users: dict[str, list[str]] = defaultdict(list)
        self.placed_at: dict[str, int] = {}
        self._free_steps: list[str] = []
        for unit, members in [*self.steps.items(), *((ident, (ident,)) for ident in wanted)]:
            needs = {unit_of.get(need, need) for ident in members for need in graph.edges.get(ident, ())}
            needs = {need for need in needs if need != unit and (need in self.steps or need in self.wanted)}
            self.needs[unit] = needs
            for need in sorted(needs):
                self.users[need].append(unit)

    def start(self) -> list[str]:
        """The entries that may be built at once."""
        return self._settle([unit for unit, needs in self.needs.items() if not needs], 0)

    def joined(self, ident: str) -> list[str]:
        """The entries that may be built in the step that `ident` has just joined."""
        freed = self._release(ident)
        self._free_steps += [unit for unit in freed if unit in self.steps]
        return [unit for unit in freed if unit in self.wanted]

    def finish(self, done: int) -> list[str]:
        """The entries behind existing steps that may be built now that `done` new steps are complete."""
        free, self._free_steps = self._free_steps, []
        return self._settle(free, done)

    def force(self, done: int) -> list[str]:
        """Count the first waiting existing step as built: it and the new entries need each other."""
        return self._settle([next(iter(self.steps))], done)

    def _settle(self, units: list[str], done: int) -> list[str]:
        entries: list[str] = []
        queue = list(units)
        for unit in queue:
            if unit in self.wanted:
                entries.append(unit)
            elif unit in self.steps:
                self.placed_at |= dict.fromkeys(self.steps.pop(unit), done)
                queue += self._release(unit)
        return entries

    def _release(self, unit: str) -> list[str]:
        freed: list[str] = []
        for user in self.users[unit]:
            if unit in self.needs[user]:
                self.needs[user].discard(unit)
                if not self.needs[user]:
                    freed.append(user)
        return freed


def _merged(
    steps: list[list[str]],
    graph: Dependencies,
    keys: dict[str, tuple[int, int]],
    size: int,
    placed_at: dict[str, int],
) -> list[list[str]]:
    """Steps of one or two methods join another of their package that has room: an earlier one above all they need, or
    a later one that comes before all that need them."""
    at = placed_at | {ident: number for number, step in enumerate(steps) for ident in step}
    users = graph.dependents()
    by_package: dict[str, list[int]] = defaultdict(list)
    for number, step in enumerate(steps):
        for package in dict.fromkeys(_groups(graph.entries[ident])[2] for ident in step):
            by_package[package].append(number)
    for number, step in enumerate(steps):
        packages = {_groups(graph.entries[ident])[2] for ident in step}
        if len(step) >= SMALL or len(packages) != 1:
            continue
        inside = set(step)
        first = max((at[n] for i in step for n in graph.edges[i] if n in at and n not in inside), default=0)
        # What stands in an existing step needs it before the new step that this one was placed at.
        later = [at[u] - (u in placed_at) for i in step for u in users[i] if u in at and u not in inside]
        last = min(later, default=len(steps))
        row = by_package[packages.pop()]
        here = bisect_left(row, number)
        near = [*reversed(row[max(0, here - REACH) : here]), *row[here + 1 : here + 1 + REACH]]
        final = keys[step[0]][0] == RANKS["integration"]
        for other in near:
            fits = first <= other <= last and 0 < len(steps[other]) <= size - len(step)
            if fits and final == (keys[steps[other][0]][0] == RANKS["integration"]):
                steps[other] = [*steps[other], *step]
                at |= dict.fromkeys(step, other)
                steps[number] = []
                break
    return [step for step in steps if step]
