"""From the queue to a rank and back: attempts (R6, R7, R8, R10).

Turns of trajectories that already have tokens come first, the oldest first: they are the tail. Invariant: only ACTIVE
ranks are sent anything, and KV is reserved for a whole turn before it is sent.
"""

from __future__ import annotations

import heapq

from roll_ts.core.alphabet import Abort, AttemptId, Dispatch
from roll_ts.core.errors import IllegalTransition
from roll_ts.core.outbox import Outbox
from roll_ts.core.ranks import RankState, RankTable
from roll_ts.core.routing import RankLoad, choose_rank, fair_share
from roll_ts.core.settings import Settings
from roll_ts.core.trajectories import Attempt, Phase, Trajectory, TrajectoryTable


class Dispatcher:
    """The queue of turns and the live load of the ranks.

    `_waiting` is the one truth about which turns want a rank; the heaps only order them, and may still hold entries of
    turns that left by another way.
    """

    def __init__(self, settings: Settings, ranks: RankTable, trajectories: TrajectoryTable, out: Outbox) -> None:
        self.settings = settings
        self.ranks = ranks
        self.trajectories = trajectories
        self.out = out
        self._waiting: set[int] = set()
        self._going_on: list[tuple[float, int]] = []
        self._fresh: list[tuple[float, int]] = []
        self._kv_reserved = [0] * len(settings.layout.ranks)

    @property
    def queued(self) -> int:
        """Turns that want a rank."""
        return len(self._waiting)

    def enqueue(self, trajectory: Trajectory) -> None:
        """The trajectory's turn wants a rank."""
        trajectory.phase = Phase.QUEUED
        self._waiting.add(trajectory.id)
        heapq.heappush(self._going_on if trajectory.tokens else self._fresh, (trajectory.started, trajectory.id))

    def dispatch(self, version: int) -> list[Trajectory]:
        """Send queued turns to ranks until nothing more fits; fresh trajectories only to ranks that hold the trainer's
        `version` (D-15). Returns the trajectories that have no token left to ask for: their turn or context is full."""
        # VAL: VAL_INT_RANGE(version, min=-1)
        if not version >= -1:
            raise ValueError(f"dispatch: version must be at least -1, got {version!r}")
        # END VAL a4d12c
        full: list[Trajectory] = []
        loads = {rank: self._load(rank) for rank in self.ranks.in_state(RankState.ACTIVE)}
        if not loads or not self._waiting:
            return full
        limit = self._limit(loads)
        if self._serve(self._going_on, loads, limit, full):
            current = {rank: load for rank, load in loads.items() if self.ranks.get(rank).version == version}
            self._serve(self._fresh, current, limit, full)
        return full

    def forget(self, trajectory: Trajectory) -> None:
        """The trajectory's turn wants no rank any more, if it did."""
        self._waiting.discard(trajectory.id)

    def close(self, attempt_id: AttemptId, tokens: int) -> Trajectory | None:
        """The attempt ended after `tokens` more tokens. Returns its trajectory, unless the attempt was closed before
        (then the tokens are dropped and counted, R3) or the trajectory is settled."""
        attempt = self.trajectories.add_tokens(attempt_id, tokens)
        if attempt is None:
            return None
        self.out.call_off(attempt.command)
        if attempt.abort is not None:
            self.out.call_off(attempt.abort)
        self._kv_reserved[attempt.rank] -= attempt.reserved
        return self.trajectories.close(attempt)

    def abort(self, attempt: Attempt, reason: str) -> None:
        """Ask the attempt's holder to stop it, once."""
        if attempt.abort is None:
            command = self.out.say(
                Abort,
                within=self.settings.deadlines.abort,
                awaits=f"rank {attempt.rank}",
                attempt=attempt.id,
                rank=attempt.rank,
                reason=reason,
            )
            attempt.abort = command.id

    def attempt_of(self, trajectory: Trajectory) -> Attempt | None:
        """The trajectory's open attempt."""
        return self.trajectories.attempts.get(AttemptId(trajectory.id, trajectory.turn, trajectory.tries))

    def _room(self, trajectory: Trajectory) -> int:
        """Tokens that this turn may still generate."""
        settings = self.settings
        turn = min(settings.max_reply_tokens, settings.max_context_tokens - trajectory.context_tokens)
        return turn - trajectory.carried

    def _resident_rank(self, trajectory: Trajectory) -> int | None:
        if trajectory.resident is None:
            return None
        rank, version, boots = trajectory.resident
        row = self.ranks.rows[rank]
        return rank if (row.version, row.boots) == (version, boots) else None

    def _load(self, rank: int) -> RankLoad:
        running = len(self.trajectories.by_rank[rank])
        return RankLoad(rank, running, self._kv_reserved[rank], self.ranks.rows[rank].kv_capacity)

    def _send(self, trajectory: Trajectory, rank: int, room: int) -> None:
        row = self.ranks.get(rank)
        # VAL: VAL_STATE_IN(row.state, (RankState.ACTIVE,), error=IllegalTransition)
        if row.state not in (RankState.ACTIVE,):
            raise IllegalTransition(
                f"Dispatcher._send: row.state must be in one of the states {((RankState.ACTIVE,))!r:.200}, "
                f"got {row.state!r:.200}"
            )
        # END VAL b59815
        attempt_id = self.trajectories.next_attempt(trajectory)
        command = self.out.say(
            Dispatch,
            within=self.settings.deadlines.generate,
            awaits=f"rank {rank}",
            lane="data",
            attempt=attempt_id,
            rank=rank,
            context_tokens=trajectory.context_tokens,
            carried=trajectory.carried,
            max_new_tokens=room,
            greedy=trajectory.kind == "eval",
            version=row.version,
        )
        reserved = trajectory.context_tokens + trajectory.carried + room
        self._kv_reserved[rank] += reserved
        trajectory.resident = (rank, row.version, row.boots)
        self.trajectories.begin(
            Attempt(attempt_id, rank, command.id, row.version, row.kv_version, trajectory.carried, reserved)
        )

    def _limit(self, loads: dict[int, RankLoad]) -> int:
        """Attempts that one rank may run now."""
        opening = len(self.ranks.in_state(RankState.LOADING, RankState.SYNCING))
        if not opening:
            return self.settings.max_running_per_rank
        running = sum(load.running for load in loads.values())
        return min(self.settings.max_running_per_rank, fair_share(self.queued, running, len(loads), opening))

    def _serve(
        self, queue: list[tuple[float, int]], loads: dict[int, RankLoad], limit: int, full: list[Trajectory]
    ) -> bool:
        """Send from one queue, and keep `loads` true. False when its head fits nowhere: nobody may overtake it."""
        while queue:
            trajectory = self.trajectories.open.get(queue[0][1])
            if trajectory is None or trajectory.phase is not Phase.QUEUED:
                heapq.heappop(queue)
                continue
            room = self._room(trajectory)
            rank = self._choose(trajectory, room, loads, limit) if room > 0 else None
            if room > 0 and rank is None:
                return False
            heapq.heappop(queue)
            self._waiting.discard(trajectory.id)
            if rank is None:
                full.append(trajectory)
            else:
                self._send(trajectory, rank, room)
                loads[rank] = self._load(rank)
        return True

    def _choose(self, trajectory: Trajectory, room: int, loads: dict[int, RankLoad], limit: int) -> int | None:
        prefix = trajectory.context_tokens + trajectory.carried
        resident = self._resident_rank(trajectory)
        return choose_rank(
            list(loads.values()),
            need_tokens=prefix + room,
            resident=resident,
            prefix_tokens=prefix if resident is not None else 0,
            max_running=limit,
            prefix_worth_tokens=self.settings.prefix_worth_tokens,
        )
