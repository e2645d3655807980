"""From the queue to a rank and back: attempts (R6, R7, R8, R10).

Turns of trajectories that already have tokens come first, the oldest first: they are the tail. KV is reserved for what
a turn will probably need (D-21); the engine's preemption covers the rest. A turn too large for every rank is overtaken
by smaller ones, `PATIENCE` times; then one rank is kept for it. Invariant: only ACTIVE ranks are sent anything.
"""

from __future__ import annotations

from collections.abc import Callable

from roll_ts.core.alphabet import Abort, AttemptId, Dispatch
from roll_ts.core.errors import IllegalTransition
from roll_ts.core.estimates import Lengths, Paces, size_class
from roll_ts.core.outbox import Outbox
from roll_ts.core.ranks import Rank, RankState, RankTable
from roll_ts.core.routing import Placement, fair_share
from roll_ts.core.settings import Settings
from roll_ts.core.trajectories import Attempt, Phase, Trajectory, TrajectoryTable
from roll_ts.core.turn_queue import TurnQueue

PATIENCE = 32
FAILURES_IN_A_ROW = 3
_LARGEST = 1 << 40


class Dispatcher:
    """The queues of turns and the live load of the ranks. `replies`: lengths of finished turns by trajectory kind."""

    def __init__(self, settings: Settings, ranks: RankTable, trajectories: TrajectoryTable, out: Outbox) -> None:
        self.settings = settings
        self.ranks = ranks
        self.trajectories = trajectories
        self.out = out
        layout = settings.layout
        self.loads = Placement(len(layout.ranks), settings.max_running_per_rank, layout.shared_ranks)
        self.paces = Paces()
        self.stays: Callable[[Trajectory], float] | None = None
        self.replies = {"train": Lengths(), "eval": Lengths()}
        self._going_on = TurnQueue()
        self._fresh = TurnQueue()
        self._evaluation = TurnQueue()
        self._failed_in_a_row: dict[int, list[int]] = {}
        self._overtaken: tuple[int, int] = (-1, 0)
        self._kept: tuple[int, int] | None = None

    @property
    def queued(self) -> int:
        """Turns that want a rank."""
        return len(self._going_on) + len(self._fresh) + len(self._evaluation)

    def rank_moved(self, row: Rank) -> None:
        """The rank changed state: it takes turns from now on, or no more (R1, R7)."""
        if row.state is RankState.ACTIVE:
            self.loads.open(row.id, row.version, row.kv_capacity)
        elif self.loads.loads[row.id].is_open:
            self.loads.shut(row.id)
            self._failed_in_a_row.pop(row.id, None)

    def enqueue(self, trajectory: Trajectory, need: int | None = None) -> None:
        """The trajectory's turn wants a rank and `need` tokens of KV there."""
        trajectory.phase = Phase.QUEUED
        self._queue_of(trajectory).push(
            trajectory.id, trajectory.started, self.need(trajectory) if need is None else need
        )

    def forget(self, trajectory: Trajectory) -> None:
        """The trajectory's turn wants no rank any more, if it did."""
        for queue in (self._going_on, self._fresh, self._evaluation):
            queue.drop(trajectory.id)

    def dispatch(self, version: int) -> list[Trajectory]:
        """Send queued turns to ranks until nothing more fits; fresh trajectories only to ranks that hold the trainer's
        `version` (D-15). Returns the trajectories that have no token left to ask for: their turn or context is full."""
        # VAL: VAL_INT_RANGE(version, min=-1)
        if not version >= -1:
            raise ValueError(f"Dispatcher.dispatch: version must be at least -1, got {version!r}")
        # END VAL b9bf4c
        full: list[Trajectory] = []
        if not self.loads.open_ranks or not (self._going_on or self._fresh or self._evaluation):
            return full
        if self._kept is not None:
            self._serve_kept()
        limit = self.settings.max_running_per_rank
        if self._evaluation and self.settings.evaluation_first:
            self._serve(self._evaluation, None, limit, full)
        if self._going_on:
            self._serve(self._going_on, None, limit, full)
        if self._fresh:
            self._serve(self._fresh, version, self._fresh_limit(), full)
        if self._evaluation:
            self._serve(self._evaluation, None, limit, full)
        return full

    def progress(self, attempt_id: AttemptId, total: int) -> None:
        """More tokens of an open attempt (R3, R8); when it outgrows what was booked for it, more is booked."""
        attempt = self.trajectories.add_tokens(attempt_id, total)
        if attempt is None:
            return
        trajectory = self.trajectories.open.get(attempt_id.trajectory)
        if trajectory is None:
            return
        made = attempt.carried + attempt.tokens
        if trajectory.context_tokens + made > attempt.reserved:
            room = self._room(trajectory) + trajectory.carried - made
            needed = trajectory.context_tokens + made + self._probable(trajectory.kind, made, max(room, 0))
            self.loads.grow(attempt.rank, needed - attempt.reserved)
            attempt.reserved = needed

    def close(self, attempt_id: AttemptId, total: int) -> Trajectory | None:
        """The attempt ended with `total` tokens, or with those it had reported if that is less. Returns its trajectory,
        unless the attempt was closed before (then the tokens are dropped and counted, R3) or the trajectory is
        settled."""
        attempt = self.trajectories.add_tokens(attempt_id, total)
        if attempt is None:
            return None
        self.out.call_off(attempt.command)
        if attempt.abort is not None:
            self.out.call_off(attempt.abort)
        self.loads.remove(attempt.rank, attempt.reserved)
        if not self.loads.loads[attempt.rank].running:
            self.out.stir()  # a drain may be over
        trajectory = self.trajectories.close(attempt)
        if trajectory is not None:
            trajectory.cached = self.prefix_of(trajectory)
        return trajectory

    def finished(self, trajectory: Trajectory, attempt: Attempt) -> None:
        """The trajectory's turn is complete: its length is one more of its kind, and its rank can do it."""
        running = self.loads.loads[attempt.rank].running + 1
        self.paces.see_reply(running, attempt.tokens, self.out.now - attempt.sent)
        self._failed_in_a_row.pop(attempt.rank, None)
        trajectory.avoid = None
        if trajectory.carried:
            self.replies[trajectory.kind].see(trajectory.carried)

    def failed(self, trajectory: Trajectory, rank: int) -> bool:
        """The rank failed the trajectory's turn, which goes elsewhere. True when the rank is to blame: several
        different trajectories failed there one after another, and most other ranks do well (R32, R35)."""
        trajectory.avoid, trajectory.resident = rank, None
        row = self._failed_in_a_row.setdefault(rank, [])
        if trajectory.id not in row:
            row.append(trajectory.id)
        alone = self.loads.open_ranks <= 1
        if len(row) < FAILURES_IN_A_ROW or not (alone or 2 * len(self._failed_in_a_row) <= self.loads.open_ranks):
            return False
        del self._failed_in_a_row[rank]
        return True

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

    def need(self, trajectory: Trajectory) -> int:
        """KV tokens that the trajectory's next request will probably need: its prefix and the reply."""
        room = max(self._room(trajectory), 0)
        return max(1, self.prefix_of(trajectory) + self._probable(trajectory.kind, trajectory.carried, room))

    def prefix_of(self, trajectory: Trajectory) -> int:
        """Tokens that the next request of the trajectory begins with."""
        return trajectory.context_tokens + trajectory.carried

    def resident_rank(self, trajectory: Trajectory) -> int | None:
        """The rank whose cache may still hold the trajectory's prefix."""
        if trajectory.resident is None:
            return None
        rank, version, incarnation = trajectory.resident
        row = self.ranks.rows[rank]
        return rank if (row.version, row.incarnation) == (version, incarnation) else None

    def _queue_of(self, trajectory: Trajectory) -> TurnQueue:
        if trajectory.kind == "eval":
            return self._evaluation
        return self._going_on if trajectory.tokens else self._fresh

    def _room(self, trajectory: Trajectory) -> int:
        """Tokens that this turn may still generate."""
        settings = self.settings
        turn = min(settings.max_reply_tokens, settings.max_context_tokens - trajectory.context_tokens)
        return turn - trajectory.carried

    def _probable(self, kind: str, made: int, room: int) -> int:
        """Tokens of `room` that a turn with `made` tokens will probably still use; all of them while nothing is
        known."""
        replies = self.replies[kind]
        if replies.seen < replies.needed:
            return room
        likely = replies.quantile(self.settings.reserve_quantile, made)
        # a turn longer than all that was seen gets a quarter more each time it outgrows its booking
        return min(room, max(int(likely) - made, 1 + made // 4))

    def _fresh_limit(self) -> int:
        """First turns that one rank may take while others open; survivors keep all their slots for the tail (R9)."""
        opening = self.ranks.count(RankState.LOADING, RankState.SYNCING)
        if not opening:
            return self.settings.max_running_per_rank
        return min(
            self.settings.max_running_per_rank,
            fair_share(self.queued, self.loads.running, self.loads.open_ranks, opening),
        )

    def _serve(self, queue: TurnQueue, version: int | None, limit: int, full: list[Trajectory]) -> None:
        """Send from one queue, the oldest first. A turn that fits nowhere lets smaller ones pass."""
        below: int | None = None
        passed, blocked = 0, -1
        while queue and self.loads.has_slot(version, limit):
            head = queue.oldest(below)
            if head is None:
                break
            trajectory = self.trajectories.open[head[0]]
            room = self._room(trajectory)
            if room <= 0:
                queue.drop(trajectory.id)
                full.append(trajectory)
            elif self._try(queue, trajectory, head[1], room, version, limit):
                passed += blocked >= 0
            else:
                if blocked < 0:
                    blocked = trajectory.id
                # what is larger than the room that is left need not be tried one by one
                below = min(head[2], size_class(max(1, min(self.loads.most_room(version), _LARGEST))) + 1)
        if blocked >= 0 and self._kept is None:
            self._lose_patience(blocked, passed, version)

    def _try(
        self, queue: TurnQueue, trajectory: Trajectory, need: int, room: int, version: int | None, limit: int
    ) -> bool:
        prefix = self.prefix_of(trajectory)
        resident = self.resident_rank(trajectory)
        worth = self.settings.prefix_worth_tokens
        stay = 0.0 if self.stays is None else self.stays(trajectory)
        rank = self.loads.choose(need, resident, prefix, worth, version, limit, trajectory.avoid, stay)
        if rank is None:
            return False
        queue.drop(trajectory.id)
        self._send(trajectory, rank, room, need, resident)
        return True

    def _lose_patience(self, trajectory: int, passed: int, version: int | None) -> None:
        """Smaller turns passed the oldest one `passed` times more; from some number on a rank is kept for it (R11)."""
        count = passed + (self._overtaken[1] if self._overtaken[0] == trajectory else 0)
        self._overtaken = (trajectory, count)
        rank = self.loads.roomiest(version) if count >= PATIENCE else None
        if rank is not None:
            self.loads.keep(rank, trajectory)
            self._kept = (rank, trajectory)
            self._overtaken = (-1, 0)

    def _serve_kept(self) -> None:
        """Send the turn that a rank is kept for, once it fits; keep it no longer when either is gone."""
        if self._kept is None:
            return
        rank, trajectory_id = self._kept
        load, trajectory = self.loads.loads[rank], self.trajectories.open.get(trajectory_id)
        waits = trajectory is not None and trajectory.phase is Phase.QUEUED
        if trajectory is None or not waits or load.kept_for != trajectory_id:
            self._stop_keeping(rank)
            return
        room = self._room(trajectory)
        need = self.need(trajectory)
        if room > 0 and load.running < self.settings.max_running_per_rank and load.fits(need):
            self._stop_keeping(rank)
            self.forget(trajectory)
            self._send(trajectory, rank, room, need, self.resident_rank(trajectory))

    def _stop_keeping(self, rank: int) -> None:
        self._kept = None
        self.loads.let_go(rank)

    def _send(self, trajectory: Trajectory, rank: int, room: int, need: int, resident: int | None) -> None:
        row = self.ranks.rows[rank]
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
        self.loads.add(rank, need)
        expected = trajectory.cached if resident == rank else 0
        trajectory.resident = (rank, row.version, row.incarnation)
        self.trajectories.begin(
            Attempt(
                attempt_id,
                rank,
                command.id,
                row.version,
                row.kv_version,
                trajectory.carried,
                need,
                expected,
                self.out.now,
            )
        )
