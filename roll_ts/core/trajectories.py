"""Trajectories, their attempts and what each generated (R6, R8, R13, R16).

Invariants: an attempt id is used once and ends once; a trajectory has at most one open attempt and exactly one outcome;
the tokens of its spans are the tokens of its closed attempts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from roll_ts.core.alphabet import AttemptId
from roll_ts.core.errors import IllegalTransition, UnknownId


class Phase(StrEnum):
    """What a trajectory waits for."""

    ENVIRONMENT = "environment"
    QUEUED = "queued"
    GENERATING = "generating"
    SETTLED = "settled"


class Outcome(StrEnum):
    """The one end of a trajectory (R13)."""

    SCORED = "scored"
    POLICY_FAILED = "policy-failed"
    INFRA_VOID = "infra-void"
    CANCELLED = "cancelled"


class Span(NamedTuple):
    """Tokens generated one after another under one weight and KV version, over any number of turns (R16)."""

    version: int
    kv_version: int
    tokens: int


@dataclass(slots=True)
class Attempt:
    """An open request on a rank. `tokens`: generated and reported so far, beyond `carried`; `reserved`: KV tokens
    booked for it on its rank; `expected` the tokens of its prefix that should be cached there."""

    id: AttemptId
    rank: int
    command: int
    version: int
    kv_version: int
    carried: int
    reserved: int
    expected: int = 0
    sent: float = 0.0
    tokens: int = 0
    span_start: int = 0
    abort: int | None = None


@dataclass(slots=True)
class Trajectory:
    """One episode. `turn` is the turn being generated (0: not reset yet); `carried` the tokens of it so far;
    `resident` = (rank, weight version, incarnation) of the prefix cache that holds its context; `oldest` the lowest
    version of its reported tokens (−1: none yet); `avoid` the rank that failed its turn last; `cached` the tokens of
    its prefix that its resident rank should have. `session`: what session admission booked for it in KV tokens, 0
    while it is not let in; `waited` the seconds it was kept out, `parked` since when it is (None: it is not)."""

    id: int
    kind: str
    group: int
    member: int
    seed: int
    started: float
    phase: Phase = Phase.ENVIRONMENT
    turn: int = 0
    context_tokens: int = 0
    carried: int = 0
    tries: int = 0
    failures: int = 0
    tokens: int = 0
    oldest: int = -1
    reward: float = 0.0
    success: bool = False
    resident: tuple[int, int, int] | None = None
    environment_command: int | None = None
    avoid: int | None = None
    alarm: int | None = None
    cached: int = 0
    session: int = 0
    parked: float | None = None
    waited: float = 0.0
    spans: list[Span] = field(default_factory=list)
    outcome: Outcome | None = None


class TrajectoryTable:
    """All open trajectories, and the open attempts by id and by rank. `on_older(trajectory)` is called when its oldest
    token became older than before."""

    def __init__(self, ranks: int, on_older: Callable[[Trajectory], None] | None = None) -> None:
        self.open: dict[int, Trajectory] = {}
        self.attempts: dict[AttemptId, Attempt] = {}
        self.by_rank: list[dict[AttemptId, Attempt]] = [{} for _ in range(ranks)]
        self.late_data = 0
        self.settled = dict.fromkeys(Outcome, 0)
        self.open_of = {"train": 0, "eval": 0}
        self.on_older = on_older
        self._next_id = 0

    @property
    def started(self) -> int:
        """How many trajectories were ever started."""
        return self._next_id

    @property
    def settled_ever(self) -> int:
        """How many trajectories have their outcome."""
        return self._next_id - len(self.open)

    def start(self, kind: str, group: int, member: int, seed: int, now: float) -> Trajectory:
        """A new trajectory with an id that was never used."""
        # VAL: VAL_ONE_OF(kind, choices=("train", "eval"))
        if kind not in ("train", "eval"):
            raise ValueError(f'TrajectoryTable.start: kind must be one of ("train", "eval"), got {kind!r:.200}')
        # END VAL 2b1984
        trajectory = Trajectory(self._next_id, kind, group, member, seed, now)
        self._next_id += 1
        self.open[trajectory.id] = trajectory
        self.open_of[kind] += 1
        return trajectory

    def get(self, trajectory: int) -> Trajectory | None:
        """The open trajectory, or None when it is settled. Raises UnknownId for an id never given."""
        # VAL: VAL_INT_RANGE(trajectory, min=0, max=self._next_id - 1, error=UnknownId)
        if not 0 <= trajectory <= self._next_id - 1:
            raise UnknownId(
                f"TrajectoryTable.get: trajectory must lie in [0, {self._next_id - 1!r:.200}], got {trajectory!r}"
            )
        # END VAL c1b155
        return self.open.get(trajectory)

    def attempt_of(self, trajectory: Trajectory) -> Attempt | None:
        """The trajectory's open attempt."""
        return self.attempts.get(AttemptId(trajectory.id, trajectory.turn, trajectory.tries))

    def next_attempt(self, trajectory: Trajectory) -> AttemptId:
        """A fresh id for another try at the trajectory's turn (R6)."""
        # VAL: VAL_STATE_IN(trajectory.phase, (Phase.QUEUED,), error=IllegalTransition)
        if trajectory.phase not in (Phase.QUEUED,):
            raise IllegalTransition(
                "TrajectoryTable.next_attempt: trajectory.phase must be in one of the states "
                f"{((Phase.QUEUED,))!r:.200}, got {trajectory.phase!r:.200}"
            )
        # END VAL b0b82a
        trajectory.tries += 1
        return AttemptId(trajectory.id, trajectory.turn, trajectory.tries)

    def begin(self, attempt: Attempt) -> None:
        """The attempt is on its way to its rank."""
        # VAL: VAL_KEY_ABSENT(attempt.id, mapping=self.attempts, error=IllegalTransition)
        if attempt.id in self.attempts:
            raise IllegalTransition(
                f"TrajectoryTable.begin: attempt.id must not yet be a key of self.attempts, got {attempt.id!r:.200}"
            )
        # END VAL 82e064
        self.attempts[attempt.id] = attempt
        self.by_rank[attempt.rank][attempt.id] = attempt
        self.open[attempt.id.trajectory].phase = Phase.GENERATING

    def add_tokens(self, attempt_id: AttemptId, total: int) -> Attempt | None:
        """The open attempt has `total` tokens by now. A sum, so that a doubled, a lost or a late report is harmless.
        None, counted as late, when the attempt is closed (R3)."""
        # VAL: VAL_NON_NEGATIVE(total)
        if not total >= 0:
            raise ValueError(f"TrajectoryTable.add_tokens: total must not be negative, got {total!r}")
        # END VAL aac147
        attempt = self.attempts.get(attempt_id)
        if attempt is None:
            self.late_data += 1
            return None
        if total > attempt.tokens:
            first = attempt.tokens == attempt.span_start
            attempt.tokens = total
            if first:
                self._note_version(attempt)
        return attempt

    def close(self, attempt: Attempt) -> Trajectory | None:
        """End the attempt; its tokens become a span of its trajectory, which is returned unless settled (R8)."""
        # VAL: VAL_KEY_IN(attempt.id, mapping=self.attempts, error=IllegalTransition)
        if attempt.id not in self.attempts:
            raise IllegalTransition(
                f"TrajectoryTable.close: attempt.id must be a key of self.attempts, got {attempt.id!r:.200}"
            )
        # END VAL b5380a
        del self.attempts[attempt.id]
        del self.by_rank[attempt.rank][attempt.id]
        trajectory = self.open.get(attempt.id.trajectory)
        if trajectory is not None:
            self.cut_span(attempt, trajectory)
            trajectory.carried = attempt.carried + attempt.tokens
        return trajectory

    def cut_span(self, attempt: Attempt, trajectory: Trajectory) -> None:
        """Book the tokens since the last cut; the next ones may belong to other versions (R16)."""
        tokens = attempt.tokens - attempt.span_start
        # AST: AST_INVARIANT(tokens >= 0)
        assert tokens >= 0, f"Invariant: tokens >= 0, got tokens={tokens!r:.200}"
        # END AST bc64f9
        if not tokens:
            return
        last = trajectory.spans[-1] if trajectory.spans else None
        if last is not None and (last.version, last.kv_version) == (attempt.version, attempt.kv_version):
            trajectory.spans[-1] = Span(last.version, last.kv_version, last.tokens + tokens)
        else:
            trajectory.spans.append(Span(attempt.version, attempt.kv_version, tokens))
        trajectory.tokens += tokens
        attempt.span_start = attempt.tokens

    def newest_of(self, trajectory: Trajectory) -> int:
        """Version of the newest token the trajectory has, an open attempt's reported tokens included; −1 for none."""
        attempt = self.attempt_of(trajectory)
        if attempt is not None and attempt.tokens > attempt.span_start:
            return attempt.version
        return trajectory.spans[-1].version if trajectory.spans else -1

    def settle(self, trajectory: Trajectory, outcome: Outcome) -> None:
        """Give the trajectory its one outcome (R13). Raises IllegalTransition when it has one."""
        # VAL: VAL_KEY_IN(trajectory.id, mapping=self.open, error=IllegalTransition)
        if trajectory.id not in self.open:
            raise IllegalTransition(
                f"TrajectoryTable.settle: trajectory.id must be a key of self.open, got {trajectory.id!r:.200}"
            )
        # END VAL 343ebd
        trajectory.outcome, trajectory.phase = outcome, Phase.SETTLED
        del self.open[trajectory.id]
        self.open_of[trajectory.kind] -= 1
        self.settled[outcome] += 1

    def _note_version(self, attempt: Attempt) -> None:
        """The first token of a span was reported: the trajectory may be older than it was."""
        trajectory = self.open.get(attempt.id.trajectory)
        if trajectory is not None and not 0 <= trajectory.oldest <= attempt.version:
            trajectory.oldest = attempt.version
            if self.on_older is not None:
                self.on_older(trajectory)
