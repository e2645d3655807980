"""Virtual time: a heap of future happenings. Equal times are served in the order they were asked for, so a run
with the same inputs is the same to the last event."""

from __future__ import annotations

import heapq
from collections.abc import Callable

Happening = Callable[[], None]


class Clock:
    """`now` is in seconds and moves forward only, from one happening to the next."""

    def __init__(self) -> None:
        self.now = 0.0
        self._next_ticket = 0
        self._heap: list[tuple[float, int]] = []
        self._open: dict[int, Happening] = {}

    def at(self, time: float, happening: Happening) -> int:
        """Call `happening` at `time` (at the earliest now). Returns a ticket for `cancel`."""
        ticket = self._next_ticket
        self._next_ticket += 1
        heapq.heappush(self._heap, (max(time, self.now), ticket))
        self._open[ticket] = happening
        return ticket

    def after(self, seconds: float, happening: Happening) -> int:
        """Call `happening` in `seconds`. Raises ValueError for a negative delay."""
        # VAL: VAL_NON_NEGATIVE(seconds) - nothing can happen in the past
        if not seconds >= 0:
            raise ValueError(
                f"Clock.after: seconds must not be negative, got {seconds!r} - nothing can happen in the past"
            )
        # END VAL 378a00
        return self.at(self.now + seconds, happening)

    def cancel(self, ticket: int) -> None:
        """Forget a happening; nothing happens when it is over already."""
        self._open.pop(ticket, None)

    def next_time(self) -> float | None:
        """Time of the next happening, or None when there is none."""
        while self._heap and self._heap[0][1] not in self._open:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def step(self) -> bool:
        """Move to the next happening and let it happen. False when there is none."""
        time = self.next_time()
        if time is None:
            return False
        _, ticket = heapq.heappop(self._heap)
        self.now = time
        self._open.pop(ticket)()
        return True
