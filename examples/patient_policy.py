"""A policy of one's own: time-sharing that trains only when most of what is in flight fits on the ranks that stay.

Put this folder on PYTHONPATH and name the class wherever a policy is named:

    PYTHONPATH=examples roll-ts simulate examples/patient.yaml
    PYTHONPATH=examples roll-ts train examples/frozen_lake.yaml --policy patient_policy:Patient
"""

from __future__ import annotations

from roll_ts.core.policies import Decision, TimeSharing, View
from roll_ts.core.settings import Problem, Settings

PER_RANK = 4
PATIENCE_SECONDS = 30.0


class Patient:
    """Lend once no more than four requests would run on each rank that stays, or after half a minute."""

    name = "patient"
    sees = frozenset({"groups", "trajectories", "ranks"})

    def check(self, settings: Settings) -> list[Problem]:
        """It wants the same layouts as time-sharing."""
        return TimeSharing().check(settings)

    def decide(self, view: View) -> Decision:
        """Every answer says why, and what it looked at."""
        figures = {"complete_groups": view.complete_groups, "running": view.running}
        if view.complete_groups < view.groups_needed:
            return Decision(reason="the batch is not complete", figures=figures)
        if not view.keepable and view.unsettled:
            return Decision(reason="no rank would be left for what is in flight", figures=figures)
        waited = view.now - view.ready_since
        if view.running > PER_RANK * len(view.keepable) and waited < PATIENCE_SECONDS:
            again = view.ready_since + PATIENCE_SECONDS
            return Decision(reason="too much is in flight", again_at=again, figures=figures)
        return Decision(train=view.batch, lend=view.lendable, figures=figures)
