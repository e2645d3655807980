"""A failing history made small: first without most faults, then a smaller world, as long as the same rule breaks."""

from __future__ import annotations

from collections.abc import Iterator

from tests.roll_ts.outside.scenario import Scenario
from tests.roll_ts.outside.violation import Violation
from tests.roll_ts.outside.world import World

MOST_TRIES = 400


def broken(scenario: Scenario) -> tuple[Violation | None, World]:
    """The violation that a scenario ends with, if any, and its world."""
    world = World(scenario)
    try:
        world.run()
        world.replayed()
    except Violation as violation:
        return violation, world
    return None, world


def shrink(scenario: Scenario, violation: Violation) -> tuple[Scenario, Violation]:
    """The smallest scenario found that breaks the same rule, and how it does."""
    seen, world = broken(scenario)
    if seen is None or seen.rule != violation.rule:
        return scenario, violation
    best, best_seen, events = scenario, seen, len(world.journal)
    fixed = scenario.with_(faults=dict(world.injected), rate=0.0, noise=0.0, jumps=0.0)
    tries = 0
    waiting = iter([fixed])
    while tries < MOST_TRIES:
        candidate = next(waiting, None)
        if candidate is None:
            break
        tries += 1
        seen, world = broken(candidate)
        if seen is None or seen.rule != violation.rule:
            continue
        fewer = len(candidate.faults or ()) < len(best.faults or ()) or candidate is fixed
        if len(world.journal) > events and not fewer:
            continue
        reached = {name: what for name, what in (candidate.faults or {}).items() if name in world.injected}
        best, best_seen, events = candidate.with_(faults=reached), seen, len(world.journal)
        waiting = _smaller(best)
    return best, best_seen


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios one step smaller: fewer faults, by halves and then one by one, then less of everything else."""
    faults = list((scenario.faults or {}).items())
    size = len(faults) // 2
    while size >= 1:
        for start in range(0, len(faults), size):
            yield scenario.with_(faults=dict(faults[:start] + faults[start + size :]))
        size //= 2
    for rank in scenario.sick:
        yield scenario.with_(sick={other: what for other, what in scenario.sick.items() if other != rank})
    for name, least in (
        ("until", 1), ("evaluation_episodes", 0), ("checkpoint_every", 0), ("groups_per_batch", 1), ("group_size", 2),
        ("tp", 1), ("lent", 1), ("ranks", 2), ("max_turns", 1), ("restore_every", 0),
    ):  # fmt: skip
        value = getattr(scenario, name)
        if value > least and not (name == "ranks" and value - 1 <= max(scenario.lent, *scenario.sick, 0)):
            yield scenario.with_(**{name: least if value - least > 3 else value - 1})
    if scenario.stop_at >= 0:
        yield scenario.with_(stop_at=-1)
