"""How many episodes may be live: as many as keep their prefixes resident in the KV there is (D-22).

A session is let in with its turn and leaves with its outcome; while it is in, the KV of its context is booked, whether
it generates or waits for its environment. When the ranks that serve have too little KV for those that are in, the ones
of the groups furthest from completion are put aside at their next turn; groups nearest to completion are let in first.
Where engines say how much of a prefix they found cached, the share of KV that is booked follows what they find.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from roll_ts.core.ranks import Rank, RankState
from roll_ts.core.trajectories import Trajectory

SERVING = (RankState.ACTIVE, RankState.SYNCING)
SLACK = 1.1
"""How far growing contexts may exceed the budget before a session is put aside; keeps it from going in and out."""
AHEAD = 1.25
"""Sessions started, in budgets: some environments are reset before there is room for their first turn."""
LEAST_SHARE, MOST_SHARE = 0.25, 4.0
ROUND = 64
"""Turns between two changes of the share."""

Priority = tuple[int, int, int]


class Sessions:
    """Books KV for live episodes. `priority(trajectory)`: lower is let in earlier. `bounded`: false lets everybody in.

    `share`: part of the KV that may be booked, moved between `LEAST_SHARE` and `MOST_SHARE` by what the engines found
    cached of what should have been (`hits`).
    """

    def __init__(self, bounded: bool, priority: Callable[[Trajectory], Priority]) -> None:
        self.bounded = bounded
        self.priority = priority
        self.capacity = 0
        self.fleet = 0
        self.booked = 0
        self.share = 0.9
        self.hits = 1.0
        self._capacities: dict[int, int] = {}
        self._serving: set[int] = set()
        self._inside: dict[int, Trajectory] = {}
        self._worst: list[tuple[int, int, int, int]] = []
        self._leaving: dict[int, int] = {}
        self._leaving_tokens = 0
        self._parked: dict[int, tuple[Priority, Trajectory]] = {}
        self._next: list[tuple[Priority, int]] = []
        self._expected = self._found = self._turns = 0
        self._mean = 0.0
        self._seen = 0

    @property
    def budget(self) -> float:
        """KV tokens that may be booked now."""
        return self.share * self.capacity

    @property
    def parked(self) -> int:
        """Sessions that want to go on and are kept out."""
        return len(self._parked)

    @property
    def inside(self) -> int:
        """Sessions that are let in."""
        return len(self._inside)

    def rank_moved(self, row: Rank) -> None:
        """The KV that serves, and the KV of the whole fleet, follow the table of ranks."""
        before = self._capacities.get(row.id, 0)
        gone = row.state in (RankState.FAILED, RankState.FENCED)
        after = 0 if gone else row.kv_capacity
        self._capacities[row.id] = after
        self.fleet += after - before
        if row.id in self._serving:
            self.capacity -= before
            self._serving.discard(row.id)
        if row.state in SERVING:
            self.capacity += after
            self._serving.add(row.id)

    def may_start(self, live: int, more: int) -> bool:
        """Whether `more` episodes may be started beside `live` open ones; their environments take time to be ready."""
        if not self.bounded or self._seen < ROUND or not self.fleet:
            return True
        return (live + more) * self._mean <= AHEAD * self.share * self.fleet or live < more

    def let_in(self, trajectory: Trajectory, tokens: int, now: float) -> bool:
        """The session's turn wants `tokens` of KV. True: it may go on; otherwise it is parked until `admitted` gives
        it back."""
        self._seen += 1
        self._mean += (tokens - self._mean) / min(self._seen, 1024)
        told_to_leave = self._stays(trajectory)
        if told_to_leave and self.booked > self.budget:
            self._book(trajectory, 0)
        elif trajectory.session or self._has_room(tokens):
            if told_to_leave:
                self._rank_among_worst(trajectory)
            self._book(trajectory, max(tokens, 1))
            return True
        trajectory.parked = now
        self._park(trajectory)
        return False

    def resize(self, trajectory: Trajectory, tokens: int) -> None:
        """The context of a session grew; too many that grow put the worst ones aside."""
        if trajectory.session:
            self._book(trajectory, max(tokens, 1))

    def leave(self, trajectory: Trajectory) -> None:
        """The session is over."""
        if trajectory.session:
            self._book(trajectory, 0)
        self._parked.pop(trajectory.id, None)

    def reconsider(self, trajectory: Trajectory) -> None:
        """The session's priority changed."""
        if trajectory.id in self._parked:
            self._park(trajectory)

    def admitted(self, now: float, tokens: Callable[[Trajectory], int]) -> Iterator[Trajectory]:
        """Let in parked sessions, the best first, as far as their `tokens` fit."""
        while self._parked and self._next:
            priority, ident = self._next[0]
            found = self._parked.get(ident)
            if found is None or found[0] != priority:
                heapq.heappop(self._next)
                continue
            trajectory = found[1]
            need = tokens(trajectory)
            if not self._has_room(need):
                return
            heapq.heappop(self._next)
            del self._parked[ident]
            if trajectory.parked is not None:
                trajectory.waited += now - trajectory.parked
                trajectory.parked = None
            self._book(trajectory, max(need, 1))
            yield trajectory

    def heard(self, expected: int, cached: int) -> None:
        """An engine found `cached` of the `expected` tokens of a prefix that it should have kept."""
        # VAL: VAL_NON_NEGATIVE(cached)
        if not cached >= 0:
            raise ValueError(f"Sessions.heard: cached must not be negative, got {cached!r}")
        # END VAL 83fd11
        self._expected += expected
        self._found += min(expected, cached)
        self._turns += 1
        if self._turns < ROUND:
            return
        if self._expected:
            self.hits = self._found / self._expected
            if self.hits < 0.9:
                self.share = max(LEAST_SHARE, self.share * 0.9)
            elif self.hits > 0.97 and self._parked:
                self.share = min(MOST_SHARE, self.share * 1.05)
        self._expected = self._found = self._turns = 0

    def _has_room(self, tokens: int) -> bool:
        if not self.bounded:
            return True
        return self.capacity > 0 and (self.booked + tokens <= self.budget or not self._inside)

    def _park(self, trajectory: Trajectory) -> None:
        priority = self.priority(trajectory)
        self._parked[trajectory.id] = (priority, trajectory)
        heapq.heappush(self._next, (priority, trajectory.id))

    def _book(self, trajectory: Trajectory, tokens: int) -> None:
        self.booked += tokens - trajectory.session
        fresh = not trajectory.session
        trajectory.session = tokens
        if not tokens:
            del self._inside[trajectory.id]
            self._stays(trajectory)
            return
        if fresh:
            self._inside[trajectory.id] = trajectory
            if self.bounded:
                self._rank_among_worst(trajectory)
        if self.bounded and self.booked > SLACK * self.budget:
            self._choose_who_leaves()

    def _stays(self, trajectory: Trajectory) -> bool:
        """Whether the session was marked to leave; it is marked no more."""
        tokens = self._leaving.pop(trajectory.id, 0)
        self._leaving_tokens -= tokens
        return tokens > 0

    def _rank_among_worst(self, trajectory: Trajectory) -> None:
        first, second, third = self.priority(trajectory)
        heapq.heappush(self._worst, (-first, -second, -third, trajectory.id))

    def _choose_who_leaves(self) -> None:
        """Mark the worst sessions until the rest fits; each goes at its next turn, when it holds no request (R12)."""
        while self.booked - self._leaving_tokens > self.budget and len(self._inside) - len(self._leaving) > 1:
            if not self._worst:
                return
            first, second, third, ident = heapq.heappop(self._worst)
            trajectory = self._inside.get(ident)
            if trajectory is None or ident in self._leaving:
                continue
            if self.priority(trajectory) != (-first, -second, -third):
                self._rank_among_worst(trajectory)  # its group came nearer to completion since
                continue
            self._leaving[ident] = trajectory.session
            self._leaving_tokens += trajectory.session
