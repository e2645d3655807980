"""Turns the deltas of single steps into events, batched by time.

Owned by one thread, except `take`, which any thread may call. Invariants: an id is open from `begin` until its one
terminal event; deltas of one id leave in order; the terminal event carries whatever was not yet reported.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from roll_ts.engines.protocol import Aborted, Event, Failed, Finished, Progress


@dataclass(slots=True)
class _Delta:
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


class Outbox:
    """Collects deltas per open id and hands out events; `tick_s` is the time between two batches of progress."""

    def __init__(self, tick_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._tick_s = tick_s
        self._clock = clock
        self._last_flush = clock()
        self._open: dict[str, _Delta] = {}
        self._seen: set[str] = set()
        self._ready: list[Event] = []
        self._changed = threading.Condition()
        self._ended = False

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._open

    def open_ids(self) -> list[str]:
        """Ids without a terminal event, oldest first."""
        return list(self._open)

    def check_new(self, ids: Sequence[str]) -> None:
        """`ValueError` if an id repeats or was ever begun or reserved."""
        repeated = sorted(i for i, times in Counter(ids).items() if times > 1 or i in self._seen)
        # VAL: VAL_EMPTY(repeated) - request ids are never reused
        if len(repeated) != 0:
            raise ValueError(
                f"Outbox.check_new: repeated must be empty, got {repeated!r:.200} - request ids are never reused"
            )
        # END VAL 526cda

    def reserve(self, request_id: str) -> None:
        """Take an id out of circulation: it has no events, and no request may bear it."""
        self.check_new([request_id])
        self._seen.add(request_id)

    def begin(self, request_id: str) -> None:
        """Open an id."""
        self._seen.add(request_id)
        self._open[request_id] = _Delta()

    def add(self, request_id: str, tokens: Sequence[int], logprobs: Sequence[float]) -> None:
        """Append what one step generated."""
        delta = self._open[request_id]
        delta.tokens += tokens
        delta.logprobs += logprobs

    def finish(self, request_id: str, reason: Literal["stop", "length"]) -> None:
        """Close an id as generated to its end."""
        delta = self._open.pop(request_id)
        self._put([Finished(request_id, delta.tokens, delta.logprobs, reason)])

    def abort(self, ids: Sequence[str]) -> None:
        """Close ids with what they have."""
        gone = [(i, self._open.pop(i)) for i in ids]
        self._put([Aborted(i, delta.tokens, delta.logprobs) for i, delta in gone])

    def fail(self, ids: Sequence[str], error: str) -> None:
        """Close ids as failed; what they had generated goes along."""
        gone = [(i, self._open.pop(i)) for i in ids]
        self._put([Failed(i, error, delta.tokens, delta.logprobs) for i, delta in gone])

    def tick(self) -> None:
        """Report progress if the last report is `tick_s` old."""
        if self._clock() - self._last_flush >= self._tick_s:
            self.flush()

    def flush(self) -> None:
        """Report all progress now."""
        self._last_flush = self._clock()
        events: list[Event] = []
        for request_id, delta in self._open.items():
            if delta.tokens:
                events.append(Progress(request_id, delta.tokens, delta.logprobs))
                self._open[request_id] = _Delta()
        if events:
            self._put(events)

    def end(self) -> None:
        """Nothing will follow: waiters return at once from now on."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def take(self, wait_s: float) -> list[Event]:
        """All events ready; waits up to `wait_s` seconds for a first one."""
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._ended, timeout=max(0.0, wait_s))
            events, self._ready = self._ready, []
            return events

    def _put(self, events: list[Event]) -> None:
        if not events:
            return
        with self._changed:
            self._ready += events
            self._changed.notify_all()
