"""The desk where the policy is asked: only after a change that it sees, and every new answer is put on record (R29).

Invariant: between two changes that the policy sees, and before the time it named, it is not asked (R37).
"""

from __future__ import annotations

from collections.abc import Sequence

from roll_ts.core.alphabet import Decided
from roll_ts.core.outbox import Outbox
from roll_ts.core.policies.base import Costs, Decision, Policy, RankFigures, SampleFigures, View
from roll_ts.core.ranks import RankState, RankTable
from roll_ts.core.rollouts import Rollouts
from roll_ts.core.settings import Settings

S = RankState
GIVEN_UP = (S.DRAINING, S.RELEASING, S.LENT)
NEWEST_COUNTS = 0.3
"""Weight of the newest measurement of a cost."""


class Desk:
    """Shows the policy the state and keeps its last answer."""

    def __init__(self, settings: Settings, policy: Policy, ranks: RankTable, rollouts: Rollouts, out: Outbox) -> None:
        self.settings = settings
        self.policy = policy
        self.ranks = ranks
        self.rollouts = rollouts
        self.out = out
        self._shared = frozenset(settings.layout.shared_ranks)
        self._costs: dict[str, float] = {}
        self._began: dict[str, float] = {}
        self._seen: tuple[int, ...] | None = None
        self._again: int | None = None
        self._due = True
        self._said: tuple[object, ...] | None = None
        self._since = 0.0
        self._ready_since = 0.0
        self._hold: tuple[float, int] | None = None
        self._split: tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]] = (-1, (), (), ())

    def began(self, what: str) -> None:
        """A "drain", "train" or "sync" begins now."""
        self._began[what] = self.out.now

    def ended(self, what: str) -> None:
        """It is over: how long it took is one more measurement."""
        began = self._began.pop(what, None)
        if began is None:
            return
        took = self.out.now - began
        before = self._costs.get(what, took)
        self._costs[what] = before + NEWEST_COUNTS * (took - before)

    def called(self) -> None:
        """The time has come at which the policy wants to be asked again."""
        self._again = None
        self._due = True

    def ask(self, version: int, trainer_free: bool) -> Decision | None:
        """The policy's answer, or None when nothing that it sees has changed since the last one."""
        if self._hold is not None and self.out.now < self._hold[0] and self.ranks.moves == self._hold[1]:
            return None
        seen = self._changes(version, trainer_free)
        if seen == self._seen and not self._due:
            return None
        self._seen, self._due = seen, False
        decision = self.policy.decide(self.view(version, trainer_free))
        self._record(decision)
        self._hold = None
        if decision.hold and decision.again_at is not None:
            self._hold = (decision.again_at, self.ranks.moves)
        if decision.shed:
            self.rollouts.shed(version + 1, spare=decision.train)
        self.rollouts.follow(decision)
        if self._again is not None:
            self.out.drop_alarm(self._again)
            self._again = None
        if decision.again_at is not None:
            self._again = self.out.set_alarm(max(decision.again_at, self.out.now), "policy", 0)
        return decision

    def forget(self) -> None:
        """Ask again at the next chance: what was decided has been carried out."""
        self._due = True

    def view(self, version: int, trainer_free: bool) -> View:
        """What the policy is shown."""
        lendable, keepable, lent = self._ranks()
        if len(self.rollouts.groups.complete) < self.settings.groups_per_batch:
            self._ready_since = self.out.now
        rollouts = self.rollouts
        return View(
            now=self.out.now,
            version=version,
            complete=tuple(rollouts.groups.complete),
            groups_needed=self.settings.groups_per_batch,
            unsettled=rollouts.unsettled,
            running=len(rollouts.trajectories.attempts),
            queued=rollouts.queued,
            lendable=lendable,
            keepable=keepable,
            lent=lent,
            parked=rollouts.sessions.parked,
            room=rollouts.ledger.room() if rollouts.admitting else 0,
            trainer_free=trainer_free,
            asked_since=self._since,
            ready_since=self._ready_since,
            group_seconds=rollouts.group_seconds,
            costs=Costs(self._costs.get("drain"), self._costs.get("train"), self._costs.get("sync")),
            rank_figures=self._rank_figures,
            sample_figures=self._sample_figures,
            seconds_per_token=rollouts.paces.seconds_per_token,
        )

    def _changes(self, version: int, trainer_free: bool) -> tuple[int, ...]:
        """A number for each kind of change that the policy sees; equal numbers mean that there was none."""
        rollouts, sees = self.rollouts, self.policy.sees
        return (
            version,
            trainer_free,
            rollouts.groups.changes if "groups" in sees else 0,
            rollouts.trajectories.settled_ever if "trajectories" in sees else 0,
            rollouts.turns_ended if "turns" in sees else 0,
            self.ranks.moves if "ranks" in sees else 0,
        )

    def _ranks(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """ACTIVE ranks that can be lent, the other ACTIVE ones, and those given up; looked up once per change."""
        if self._split[0] != self.ranks.moves:
            active = self.ranks.in_state(S.ACTIVE)
            self._split = (
                self.ranks.moves,
                tuple(rank for rank in active if rank in self._shared),
                tuple(rank for rank in active if rank not in self._shared),
                self.ranks.in_state(*GIVEN_UP),
            )
        return self._split[1:]

    def _rank_figures(self) -> Sequence[RankFigures]:
        loads = self.rollouts.turns.loads.loads
        return [
            RankFigures(rank, rank in self._shared, loads[rank].running, loads[rank].kv_tokens, loads[rank].kv_capacity)
            for rank in self.ranks.in_state(S.ACTIVE)
        ]

    def _sample_figures(self) -> Sequence[SampleFigures]:
        rollouts = self.rollouts
        return [
            SampleFigures(
                trajectory.id,
                trajectory.group,
                str(trajectory.phase),
                trajectory.turn,
                trajectory.tokens,
                rollouts.groups.missing(trajectory.group),
                rollouts.lengths.mean_left(trajectory.turn),
                rollouts.seconds_left(trajectory),
            )
            for trajectory in rollouts.trajectories.open.values()
            if trajectory.kind == "train"
        ]

    def _record(self, decision: Decision) -> None:
        """Put the answer into the journal, a "no" too, but only when it is another than the last one."""
        said = (decision.train, decision.lend, decision.recall, decision.live, decision.reason)
        if said == self._said:
            return
        self._said, self._since = said, self.out.now
        words = [word for word in ("train", "lend", "recall") if getattr(decision, word)]
        figures = dict(decision.figures)
        figures |= {"lend": float(len(decision.lend))} if decision.lend else {}
        figures |= {"recall": float(len(decision.recall))} if decision.recall else {}
        what = "+".join(words) or f"wait: {decision.reason}"
        self.out.say(Decided, policy=self.policy.name, decision=what, figures=figures)
