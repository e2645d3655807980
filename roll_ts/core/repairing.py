"""The operation that keeps ranks' processes alive: start, fence, quarantine, restart, probation (R24, R33-R35).

Who does not answer, or answers wrongly, is killed, so that nothing of it can be heard again (D-7). A process whose end
nobody confirms keeps its devices, and its rank is out until somebody does. Others are started again as far as their
budget and their devices allow, whatever the trainer is doing.
"""

from __future__ import annotations

from roll_ts.core.alphabet import Fence, Restart
from roll_ts.core.budget import Budget
from roll_ts.core.leases import Leases, rollout
from roll_ts.core.outbox import Outbox
from roll_ts.core.ranks import RankState, RankTable
from roll_ts.core.rollouts import Rollouts
from roll_ts.core.settings import Settings

S = RankState
RESTART = "restart"
QUARANTINE = "quarantine"


class Repairing:
    """`_ready` are the dead ranks that may be started as soon as their devices are free; the others wait for an alarm:
    for the end of their probation, or for their budget to refill. `_sick`: how often in a row a rank was taken out, and
    when last."""

    def __init__(self, settings: Settings, ranks: RankTable, leases: Leases, rollouts: Rollouts, out: Outbox) -> None:
        self.settings = settings
        self.ranks = ranks
        self.leases = leases
        self.rollouts = rollouts
        self.out = out
        self.shared = frozenset(settings.layout.shared_ranks)
        self._budgets = [Budget(settings.max_restarts_per_rank, settings.restart_refill_seconds) for _ in ranks.rows]
        self._ready: set[int] = {row.id for row in ranks.rows}
        self._on_probation: set[int] = set()
        self._sick: dict[int, tuple[int, float]] = {}

    @property
    def hopeless(self) -> bool:
        """Whether no rank is there and none can be started without waiting for its budget to refill."""
        gone = self.ranks.count(S.FAILED, S.QUARANTINED) == len(self.ranks.rows)
        return gone and not self._ready and not self._on_probation

    def advance(self, devices_wanted: bool) -> bool:
        """Start the processes that are not there, while nobody else uses their devices, or, with `devices_wanted`, is
        about to. True when one was started."""
        todo = [
            rank
            for rank in sorted(self._ready)
            if self.leases.free(self.ranks.get(rank).devices) and not (devices_wanted and rank in self.shared)
        ]
        for rank in todo:
            self._start(rank)
        return bool(todo)

    def fence(self, rank: int, reason: str) -> None:
        """Kill the rank's process; the run goes on without it. Nothing for a rank that has none."""
        # VAL: VAL_NON_EMPTY(reason)
        if len(reason) == 0:
            raise ValueError(f"Repairing.fence: reason must not be empty, got {reason!r:.200}")
        # END VAL 15c71d
        row = self.ranks.get(rank)
        if row.state in (S.FENCED, S.QUARANTINED, S.FAILED):
            return
        self.out.call_off_all(f"rank {rank}")
        self.ranks.move(rank, S.FENCED)
        self.out.say(
            Fence,
            within=self.settings.deadlines.fence,
            awaits=f"process of rank {rank}",
            rank=rank,
            incarnation=row.incarnation,
            reason=reason,
        )

    def sick(self, rank: int, reason: str) -> None:
        """The rank fails what it is given, fast: out with it, for a while that doubles each time in a row (R35). It is
        in a row when the last time is no longer ago than a restart takes to come back."""
        if self.ranks.get(rank).state in (S.FENCED, S.QUARANTINED, S.FAILED):
            return
        times, last = self._sick.get(rank, (0, self.out.now))
        again = times + 1 if self.out.now - last <= self.settings.restart_refill_seconds else 1
        self._sick[rank] = (again, self.out.now)
        self._on_probation.add(rank)
        self.fence(rank, reason)

    def quarantine(self, rank: int) -> None:
        """Nobody can confirm that the process is gone: it keeps its devices (R34). What it still says is of closed
        attempts, so they may go on elsewhere."""
        self.ranks.move(rank, S.QUARANTINED)
        self.rollouts.rank_lost(rank)
        if rank in self.shared:
            self.out.set_alarm(self.out.now + self.settings.deadlines.quarantine, QUARANTINE, rank)

    def died(self, rank: int) -> None:
        """The process is gone: its devices are free, its attempts end, whatever it owed is called off (R23, R24)."""
        self.out.call_off_all(f"rank {rank}")
        self.out.call_off_all(f"process of rank {rank}")
        self.rollouts.rank_lost(rank)
        self.leases.give_back(rollout(rank))
        self.ranks.move(rank, S.FAILED)
        if rank in self._on_probation:
            wait = self.settings.probation_seconds * 2 ** (self._sick[rank][0] - 1)
            self.out.set_alarm(self.out.now + wait, RESTART, rank)
        else:
            self._plan(rank)

    def alarm(self, rank: int) -> None:
        """The time that the rank waited for has come."""
        self._on_probation.discard(rank)
        if self.ranks.get(rank).state is S.FAILED:
            self._plan(rank)

    def _plan(self, rank: int) -> None:
        budget, now = self._budgets[rank], self.out.now
        if budget.left(now):
            self._ready.add(rank)
        elif budget.size:
            self.out.set_alarm(budget.next_at(now), RESTART, rank)

    def _start(self, rank: int) -> None:
        row = self.ranks.get(rank)
        self._ready.discard(rank)
        if row.incarnation:
            self._budgets[rank].spend(self.out.now)
        row.incarnation += 1
        self.leases.grant(rollout(rank), row.devices)
        self.ranks.move(rank, S.BOOTING)
        self.out.say(
            Restart,
            within=self.settings.deadlines.boot,
            awaits=f"rank {rank}",
            rank=rank,
            incarnation=row.incarnation,
        )
