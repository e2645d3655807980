"""Disaggregated: fixed rollout ranks, a trainer on devices of its own; nothing is ever lent."""

from __future__ import annotations

from roll_ts.core.policies.base import Decision, View
from roll_ts.core.settings import Problem, Settings


class Disaggregated:
    """Train as soon as a batch of complete groups exists; rollout goes on."""

    name = "disaggregated"
    sees = frozenset({"groups", "ranks"})

    def check(self, settings: Settings) -> list[Problem]:
        """Rollout and training must not share a device."""
        shared = settings.layout.shared_ranks
        if not shared:
            return []
        return [
            Problem(
                "layout.train_devices",
                str(settings.layout.train_devices),
                f"disaggregated needs devices of its own, but ranks {list(shared)} use them too",
                "remove those ranks from layout.ranks, or choose time_sharing",
            )
        ]

    def decide(self, view: View) -> Decision:
        """Train when the batch is complete."""
        figures = {"complete_groups": view.complete_groups, "running": view.running}
        if view.complete_groups < view.groups_needed:
            return Decision(reason="the batch is not complete", figures=figures)
        return Decision(train=view.batch, figures=figures)
