"""Co-located: every rank rolls out, the last sample is awaited, then every rank is lent to training."""

from __future__ import annotations

from roll_ts.core.policies.base import Decision, View
from roll_ts.core.settings import Problem, Settings


class Colocated:
    """A phase without rollout: it lends all ranks, and only when nothing is in flight (R4)."""

    name = "colocated"
    sees = frozenset({"groups", "trajectories", "ranks"})

    def check(self, settings: Settings) -> list[Problem]:
        """All ranks must lie on training devices, and nothing may be asked to overlap."""
        found: list[Problem] = []
        layout = settings.layout
        rest = [rank for rank in range(len(layout.ranks)) if rank not in layout.shared_ranks]
        if rest:
            found.append(
                Problem(
                    "layout.train_devices",
                    str(layout.train_devices),
                    f"colocated trains on every device, but ranks {rest} keep theirs",
                    "add their devices to train_devices, or choose time_sharing",
                )
            )
        if settings.async_ratio != 0:
            found.append(
                Problem(
                    "async_ratio",
                    repr(settings.async_ratio),
                    "colocated is synchronous: rollout and training never overlap",
                    "set async_ratio to 0",
                )
            )
        return found

    def decide(self, view: View) -> Decision:
        """Train when the batch is complete and nothing is in flight."""
        figures = {"complete_groups": view.complete_groups, "unsettled": view.unsettled}
        if view.complete_groups < view.groups_needed:
            return Decision(reason="the batch is not complete", figures=figures)
        if view.unsettled:
            return Decision(reason="the last sample is awaited", figures=figures)
        return Decision(train=view.batch, lend=view.lendable, figures=figures)
