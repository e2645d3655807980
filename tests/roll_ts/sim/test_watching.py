"""Invariants are on in every simulation."""

from __future__ import annotations

import pytest

from roll_ts.core.errors import InvariantBroken
from roll_ts.core.policies import make_policy
from roll_ts.core.scheduler import Scheduler
from roll_ts.observe.journal import Entry
from roll_ts.sim.driver import simulate
from roll_ts.sim.watching import PARTS_PER_EVENT, Watch
from tests.roll_ts.sim.small import COST, WORK, settings_for


def spoil(scheduler: Scheduler, entry: Entry) -> None:
    """From the tenth second on the scheduler has forgotten what one trajectory has generated."""
    if entry.t > 10.0:
        for trajectory in scheduler.rollouts.trajectories.open.values():
            if trajectory.tokens:
                trajectory.tokens = -1


def test_a_state_that_contradicts_a_rule_ends_the_simulation_unless_it_is_switched_off() -> None:
    settings = settings_for("time_sharing")
    with pytest.raises(InvariantBroken, match="R8"):
        simulate(settings, make_policy("time_sharing"), COST, WORK, 2, after=spoil)
    simulate(settings, make_policy("time_sharing"), COST, WORK, 2, after=spoil, invariants=False)


def test_checks_come_as_often_as_the_size_of_the_state_allows() -> None:
    scheduler = Scheduler(settings_for("time_sharing"), make_policy("time_sharing"))
    watch = Watch(scheduler)
    for _ in range(100):
        watch.look()
    assert len(scheduler.ranks.rows) < PARTS_PER_EVENT and watch.checks == 100
    scheduler.ranks.rows *= 40
    many = Watch(scheduler)
    many.check = lambda: None  # type: ignore[method-assign]
    many.look()
    assert many._due == len(scheduler.ranks.rows) // PARTS_PER_EVENT
