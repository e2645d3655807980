"""Turns that want a rank, oldest first, in classes of like size: one large turn does not hold up small ones (R11).

`_tickets` is the one truth about which turns wait; the heaps only order them, and may still hold entries of turns that
left by another way. Within a class nobody is overtaken.
"""

from __future__ import annotations

import heapq

from roll_ts.core.estimates import size_class

Entry = tuple[float, int, int]


class TurnQueue:
    """One queue. A turn's place is its key: the lower, the earlier. An entry is (key, trajectory, KV tokens needed)."""

    def __init__(self) -> None:
        self._tickets: dict[int, Entry] = {}
        self._classes: dict[int, list[Entry]] = {}

    def __len__(self) -> int:
        return len(self._tickets)

    def __contains__(self, trajectory: int) -> bool:
        return trajectory in self._tickets

    def push(self, trajectory: int, key: float, need_tokens: int) -> None:
        """The trajectory's turn waits; it needs about `need_tokens` of KV. A second push changes its place."""
        # VAL: VAL_POSITIVE(need_tokens)
        if not need_tokens > 0:
            raise ValueError(f"TurnQueue.push: need_tokens must be positive, got {need_tokens!r}")
        # END VAL 7c8675
        entry = (key, trajectory, need_tokens)
        self._tickets[trajectory] = entry
        index = size_class(need_tokens)
        heap = self._classes.get(index)
        if heap is None:
            self._classes[index] = [entry]
        else:
            heapq.heappush(heap, entry)

    def drop(self, trajectory: int) -> None:
        """The turn waits no more, if it did."""
        self._tickets.pop(trajectory, None)

    def oldest(self, below: int | None = None) -> tuple[int, int, int] | None:
        """(trajectory, KV tokens needed, class) of the first turn, of the classes under `below` if given."""
        best: Entry | None = None
        best_class = 0
        empty: list[int] = []
        for index, heap in self._classes.items():
            if below is not None and index >= below:
                continue
            while heap and self._tickets.get(heap[0][1]) is not heap[0]:
                heapq.heappop(heap)
            if not heap:
                empty.append(index)
            elif best is None or heap[0] < best:
                best, best_class = heap[0], index
        for index in empty:
            del self._classes[index]
        return None if best is None else (best[1], best[2], best_class)
