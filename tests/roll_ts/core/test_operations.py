"""What an event costs, counted in Python function calls instead of seconds: no scan may come back (R37)."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import pytest

from roll_ts.core import alphabet as a
from roll_ts.core.policies import make_policy
from roll_ts.core.scheduler import Scheduler
from roll_ts.core.settings import Layout, Settings

sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))
from _core_world import StandIn

SIZES = ((4, 96), (32, 384), (160, 1_536))
FREQUENT = (a.Progress, a.Finished, a.EnvironmentReplied, a.SubmitAcked)


def calls_per_message(ranks: int, trajectories: int, policy: str) -> dict[str, float]:
    """Calls for each event of a type and each command it leads to, in the middle of a busy run."""
    settings = Settings(
        layout=Layout(tuple((i,) for i in range(ranks)), tuple(range(ranks * 3 // 4))),
        groups_per_batch=trajectories // 16,
        group_size=8,
        async_ratio=1.0,
        max_turns=200,
        max_reply_tokens=4_000,
        max_context_tokens=64_000,
        max_running_per_rank=64,
    )
    scheduler = Scheduler(settings, make_policy(policy))
    world = StandIn(scheduler.handle, turns=12, seed=1)
    world.post(0.0, a.TrajectoriesWanted(until=100))
    world.run(trajectories * 6)
    calls: dict[str, int] = defaultdict(int)
    messages: dict[str, int] = defaultdict(int)
    count = 0

    def counted(frame, event, argument) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    def handle(event: a.Event, now: float) -> list[a.Command]:
        nonlocal count
        count = 0
        sys.setprofile(counted)
        commands = scheduler.handle(event, now)
        sys.setprofile(None)
        calls[type(event).__name__] += count
        messages[type(event).__name__] += 1 + len(commands)
        return commands

    world.handle = handle
    world.run(4_000)
    return {kind.__name__: calls[kind.__name__] / messages[kind.__name__] for kind in FREQUENT}


@pytest.mark.parametrize("policy", ["time_sharing", "adaptive"])
def test_R37_a_frequent_event_costs_as_many_calls_on_many_ranks_as_on_few(policy):
    small, *larger = (calls_per_message(ranks, trajectories, policy) for ranks, trajectories in SIZES)
    for size, costs in zip(SIZES[1:], larger, strict=True):
        for kind, cost in costs.items():
            assert cost <= 2 * small[kind], (policy, size, kind, cost, small[kind])
