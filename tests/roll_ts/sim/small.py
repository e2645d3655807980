"""A run that takes a tenth of a second: four ranks, short episodes, quick switches."""

from __future__ import annotations

from typing import Any

from roll_ts.core.policies import make_policy
from roll_ts.core.settings import Deadlines, Layout, Settings
from roll_ts.observe.journal import Journal
from roll_ts.sim.cost import CostModel
from roll_ts.sim.driver import simulate
from roll_ts.sim.workload import LONG_TAIL

POLICIES = ("colocated", "disaggregated", "time_sharing")
COST = CostModel(
    step_seconds=0.013, sequence_seconds=1e-3, progress_seconds=2.0, boot_seconds=3.0, trainer_boot_seconds=2.0,
    checkpoint_seconds=1.0,
)  # fmt: skip
WORK = LONG_TAIL.scaled(turns=0.4, tokens=0.7)
_LAYOUTS = {
    "colocated": Layout(((0,), (1,), (2,), (3,)), (0, 1, 2, 3)),
    "disaggregated": Layout(((2,), (3,)), (0, 1)),
    "time_sharing": Layout(((0,), (1,), (2,), (3,)), (0, 1)),
}


def settings_for(policy: str, **changes: Any) -> Settings:
    """Settings that fit the policy."""
    fields: dict[str, Any] = {
        "layout": _LAYOUTS[policy],
        "groups_per_batch": 3,
        "group_size": 3,
        "async_ratio": 0.0 if policy == "colocated" else 1.0,
        "max_turns": 12,
        "max_reply_tokens": 2048,
        "max_context_tokens": 32_768,
        "max_running_per_rank": 16,
        "deadlines": Deadlines(),
    }
    return Settings(**(fields | changes))


def run(policy: str = "time_sharing", until: int = 3, **more: Any) -> Journal:
    """Simulate; keyword arguments that `simulate` knows go there, the rest into the settings."""
    own = ("faults", "script", "start_version", "max_seconds", "max_events", "after", "seed")
    given = {name: more.pop(name) for name in own if name in more}
    cost, work = more.pop("cost", COST), more.pop("work", WORK)
    return simulate(settings_for(policy, **more), make_policy(policy), cost, work, until, **given)
