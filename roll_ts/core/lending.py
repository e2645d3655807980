"""The operation by which a rank gives its devices back: drain, release, lent; and how it is called back.

Each rank goes its own way, early or late, some or all; the trainer starts when its devices are free, and nothing but
the leases ties the two together. A rank that is called back while it drains serves again as soon as it is empty; one
that has released joins the next transfer.
"""

from __future__ import annotations

from roll_ts.core.alphabet import Drain, RankStats, Release
from roll_ts.core.errors import IllegalTransition
from roll_ts.core.leases import Leases, rollout
from roll_ts.core.outbox import Outbox
from roll_ts.core.ranks import Rank, RankState, RankTable
from roll_ts.core.rollouts import Rollouts
from roll_ts.core.settings import Settings

S = RankState


class Lending:
    """`held` are the ranks that are lent or on the way, until the trainer needs them no more or they are called back;
    `_empty` those whose engine has reported zero and some of whose attempts have not ended yet."""

    def __init__(self, settings: Settings, ranks: RankTable, leases: Leases, rollouts: Rollouts, out: Outbox) -> None:
        self.settings = settings
        self.ranks = ranks
        self.leases = leases
        self.rollouts = rollouts
        self.out = out
        self.held: set[int] = set()
        self._recalled: set[int] = set()
        self._empty: set[int] = set()

    def lend(self, ranks: tuple[int, ...], may_empty: bool) -> None:
        """Close admission on `ranks` and drain them (R7). Raises IllegalTransition, and changes nothing, when one is
        not ACTIVE, or when none would stay active and `may_empty` is false (R4)."""
        devices = tuple(device for rank in ranks for device in self.ranks.get(rank).devices)
        self.ranks.begin_shrink(devices, may_empty)
        for rank in ranks:
            self.held.add(rank)
            self.out.say(
                Drain,
                within=self.settings.deadlines.drain,
                awaits=f"rank {rank}",
                rank=rank,
                epoch=self.ranks.epoch,
            )

    def recall(self, ranks: tuple[int, ...]) -> None:
        """Have `ranks` serve again. Raises IllegalTransition, and changes nothing, when one is not lent or on the
        way."""
        unknown = sorted(set(ranks) - self.held)
        # VAL: VAL_EMPTY(unknown, error=IllegalTransition) - only ranks that are lent, or drain for it, are called back
        if len(unknown) != 0:
            raise IllegalTransition(
                f"Lending.recall: unknown must be empty, got {unknown!r:.200} - only ranks that are lent, "
                "or drain for it, are called back"
            )
        # END VAL b87a36
        for rank in ranks:
            self.held.discard(rank)
            if self.ranks.get(rank).state is S.DRAINING:
                self._recalled.add(rank)

    def let_go(self) -> None:
        """The trainer needs the devices no more: who is lent may join."""
        self.held.clear()

    def drained(self, event: RankStats) -> str:
        """The engine's own count. Returns why it is not believed: a drain that left requests behind (R7)."""
        if event.running + event.waiting > 0:
            return f"drained but still running {event.running}, waiting {event.waiting}"
        self._empty.add(event.rank)
        return ""

    def released(self, rank: int) -> None:
        """The rank's memory has gone back, and so do its leases (R2)."""
        self.leases.give_back(rollout(rank))
        self.ranks.move(rank, S.LENT)

    def moved(self, row: Rank) -> None:
        """A rank has changed its state; who is gone is lent no more."""
        if row.state in (S.FENCED, S.FAILED):
            self.held.discard(row.id)
            self._recalled.discard(row.id)
            self._empty.discard(row.id)

    def advance(self, trainer_version: int) -> bool:
        """Release who is empty, or let it serve again. True when something changed."""
        by_rank = self.rollouts.trajectories.by_rank
        ready = [rank for rank in sorted(self._empty) if not by_rank[rank]]
        for rank in ready:
            self._empty.discard(rank)
            if rank in self._recalled:
                self._recalled.discard(rank)
                self.ranks.move(rank, S.ACTIVE)
                continue
            self.ranks.move(rank, S.RELEASING)
            self.out.say(
                Release,
                within=self.settings.deadlines.release,
                awaits=f"rank {rank}",
                rank=rank,
                epoch=self.ranks.epoch,
                recover_from=f"trainer's published version {trainer_version}",
            )
        return bool(ready)
