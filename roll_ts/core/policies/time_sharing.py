"""Time-sharing: all ranks roll out; when a batch is complete the ranks on training devices are lent, the rest go on."""

from __future__ import annotations

from roll_ts.core.policies.base import Decision, View
from roll_ts.core.settings import Problem, Settings


class TimeSharing:
    """Fixed trigger (the batch is complete) and fixed size (every rank on a training device)."""

    name = "time_sharing"
    sees = frozenset({"groups", "trajectories", "ranks"})

    def check(self, settings: Settings) -> list[Problem]:
        """Some rank must be lent and some rank must stay (R4)."""
        layout = settings.layout
        found: list[Problem] = []
        if not layout.shared_ranks:
            found.append(
                Problem(
                    "layout.train_devices",
                    str(layout.train_devices),
                    "no rank uses a training device, so there is nothing to share",
                    "let some ranks use the training devices, or choose disaggregated",
                )
            )
        if len(layout.shared_ranks) == len(layout.ranks):
            found.append(
                Problem(
                    "layout.train_devices",
                    str(layout.train_devices),
                    "every rank would be lent and nothing would roll out while training",
                    "keep at least one rank off the training devices, or choose colocated",
                )
            )
        return found

    def decide(self, view: View) -> Decision:
        """Train when the batch is complete; with no rank left to keep, only when nothing is in flight (R4)."""
        figures = {"complete_groups": view.complete_groups, "running": view.running, "queued": view.queued}
        if view.complete_groups < view.groups_needed:
            return Decision(reason="the batch is not complete", figures=figures)
        if not view.keepable and view.unsettled:
            return Decision(reason="no rank would be left for what is in flight", figures=figures)
        return Decision(train=view.batch, lend=view.lendable, figures=figures)
