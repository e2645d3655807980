"""The invariants of the scheduler, watched in every simulation without making it slow.

A check reads the whole state, so it is made once in as many events as the state has parts: what it costs is then in
proportion to the events, whatever the size. A small world is checked after nearly every event.
"""

from __future__ import annotations

from roll_ts.core.invariants import check_invariants
from roll_ts.core.scheduler import Scheduler

PARTS_PER_EVENT = 8
"""Ranks and open trajectories of the state for each event between two checks."""


class Watch:
    """Looks at a scheduler after every handled event; `checks` counts how often it has checked everything."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.checks = 0
        self._due = 0

    def look(self) -> None:
        """One event was handled. Raises InvariantBroken."""
        self._due -= 1
        if self._due <= 0:
            self.check()
            parts = len(self.scheduler.ranks.rows) + len(self.scheduler.rollouts.trajectories.open)
            self._due = parts // PARTS_PER_EVENT

    def check(self) -> None:
        """Check everything now. Raises InvariantBroken."""
        self.checks += 1
        check_invariants(self.scheduler)
