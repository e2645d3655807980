"""Adaptive time-sharing: when, and how early ranks are lent follows from what was measured (R30).

While a batch is filling, and no further group may start before it is trained, ranks that have become idle are given up
early if the rest can carry what is live at nearly the same pace, and turns of episodes that will probably outlast the
batch go to ranks that stay. When the batch is complete, lending now is weighed against lending a little later: what
rollout loses while the devices are away against how long the trainer would wait.
"""

from __future__ import annotations

import math

from roll_ts.core.policies.base import Decision, View
from roll_ts.core.policies.time_sharing import TimeSharing
from roll_ts.core.settings import Problem, Settings

NEARLY = 1.05
"""How much slower the ranks that stay may become for idle ones to be given up early."""
MUST_GAIN = 0.1
"""Share of a whole switch that waiting must promise to save; what is less is noise."""
WAITS = (0.125, 0.25, 0.5, 1.0)
"""Waits that are weighed, in parts of the time that the devices will be away."""


class Adaptive:
    """Trigger and size of a shrink by predicted gain."""

    name = "adaptive"
    sees = frozenset({"groups", "trajectories", "ranks"})

    def check(self, settings: Settings) -> list[Problem]:
        """Layouts as for time-sharing."""
        return TimeSharing().check(settings)

    def decide(self, view: View) -> Decision:
        """Fill, give up what is idle, or train; call back what was given up when the ranks that stayed are lost."""
        if view.lent and not view.keepable and not view.lendable and view.unsettled:
            return Decision(recall=view.lent, reason="no rank serves what is in flight")
        if view.complete_groups < view.groups_needed:
            return self._fill(view)
        if not view.keepable and view.unsettled:
            return Decision(reason="no rank would be left for what is in flight")
        away = _away(view)
        wait, figures = _best_wait(view, away)
        if wait > 0 and view.now - view.ready_since < away:
            return Decision(reason="lending later pays", again_at=view.now + wait, hold=True, figures=figures)
        return Decision(train=view.batch, lend=view.lendable, shed=True, reason="lending pays", figures=figures)

    def _fill(self, view: View) -> Decision:
        missing = view.groups_needed - view.complete_groups
        figures = {"missing": float(missing), "unsettled": float(view.unsettled), "room": float(view.room)}
        if view.group_seconds is None or view.room > 0 or view.queued > view.running:
            return Decision(reason="the batch is not complete", figures=figures)
        eta = missing * view.group_seconds
        idle = self._idle(view)
        figures |= {"eta": eta, "idle": float(len(idle))}
        if idle:
            return Decision(lend=idle, outlast=eta, reason="idle until the batch is complete", figures=figures)
        return Decision(outlast=eta, reason="the batch is not complete", figures=figures)

    def _idle(self, view: View) -> tuple[int, ...]:
        """Ranks that run nothing and without which the rest is nearly as fast with everything that is live."""
        if not view.keepable or not view.lendable or view.queued:
            return ()
        idle = tuple(figure.rank for figure in view.rank_figures() if figure.shared and not figure.running)
        everyone = len(view.lendable) + len(view.keepable)
        rest = everyone - len(idle)
        slow, fast = view.seconds_per_token(view.unsettled / rest), view.seconds_per_token(view.unsettled / everyone)
        if slow is None or fast is None or slow > NEARLY * fast:
            return ()
        return idle


def _away(view: View) -> float:
    """Seconds that lent devices will be away from rollout; 0 while nothing was measured."""
    costs = view.costs
    return (costs.drain or 0.0) + (costs.train or 0.0) + (costs.sync or 0.0)


def _best_wait(view: View, away: float) -> tuple[float, dict[str, float]]:
    """Seconds to wait so that trainer and rollout together lose least; 0 when lending now is as good as any."""
    figures = {"away": away, "unsettled": float(view.unsettled), "running": float(view.running)}
    left = [sample.seconds_left for sample in view.sample_figures()]
    if not away or not left or not view.keepable:
        return 0.0, figures
    decay = max(sum(left) / len(left), 1e-3)
    everyone, kept = len(view.lendable) + len(view.keepable), len(view.keepable)

    def lost(wait: float) -> float:
        """Seconds of rollout lost by the shrink, if it begins after `wait`, and of the trainer's waiting."""
        live = view.running * math.exp(-wait / decay)
        fast, slow = view.seconds_per_token(live / everyone), view.seconds_per_token(live / kept)
        if fast is None or slow is None:
            return wait
        return wait + away * (1.0 - fast / slow)

    now = lost(0.0)
    best, wait = min((lost(part * away), part * away) for part in WAITS)
    figures |= {"lost_now": now, "lost_later": best, "wait": wait}
    return (wait if now - best > MUST_GAIN * away else 0.0), figures
