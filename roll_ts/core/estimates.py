"""What is probable, learned from what was seen: lengths, by a histogram of logarithmic classes that forgets slowly.

Pure arithmetic on the events heard so far, so equal events give equal estimates (R29).
"""

from __future__ import annotations

import math

CLASSES_PER_DOUBLING = 4
FORGET_AFTER = 4096
"""Observations after which old ones count half."""


def size_class(size: float) -> int:
    """The logarithmic class of a size; sizes of one class differ by less than a fifth."""
    # VAL: VAL_POSITIVE(size)
    if not size > 0:
        raise ValueError(f"size_class: size must be positive, got {size!r}")
    # END VAL 638ce0
    return math.floor(math.log2(size) * CLASSES_PER_DOUBLING)


def class_end(index: int) -> float:
    """The lowest size above the class."""
    return float(2.0 ** ((index + 1) / CLASSES_PER_DOUBLING))


class Lengths:
    """The distribution of a length (tokens of a reply, turns of an episode): quantiles and means of what is left."""

    def __init__(self, needed: int = 16) -> None:
        self.needed = needed
        self.seen = 0
        self._weights: dict[int, float] = {}
        self._weight = 0.0
        self._answers: dict[tuple[int, float], float] = {}

    @property
    def known(self) -> bool:
        """Whether enough was seen to say anything."""
        return self.seen >= self.needed

    def see(self, length: float) -> None:
        """One more length, of at least 1."""
        # VAL: VAL_FLOAT_RANGE(length, min=1.0)
        if not length >= 1.0:
            raise ValueError(f"Lengths.see: length must lie in [1.0, inf), got {length!r}")
        # END VAL 48d76e
        self.seen += 1
        self._weight += 1.0
        index = size_class(length)
        self._weights[index] = self._weights.get(index, 0.0) + 1.0
        if self._weight >= FORGET_AFTER:
            self._weights = {key: weight / 2 for key, weight in self._weights.items() if weight > 0.01}
            self._weight = sum(self._weights.values())
        # an answer costs a pass over the classes, so what has been answered stays good for a while
        if self.seen <= self.needed or self.seen % 64 == 0:
            self._answers.clear()

    def quantile(self, share: float, beyond: float = 0.0) -> float:
        """The length that `share` of those longer than `beyond` do not exceed; `beyond` itself when none was."""
        # VAL: VAL_FLOAT_RANGE(share, min=0.0, max=1.0)
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"Lengths.quantile: share must lie in [0.0, 1.0], got {share!r}")
        # END VAL 3cd9b1
        first = size_class(beyond) if beyond >= 1 else -1
        key = (first, share)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self._quantile(share, first)
        return max(answer, beyond)

    def mean_left(self, beyond: float = 0.0) -> float:
        """How much longer one that is longer than `beyond` becomes, on average; 0 when none was."""
        first = size_class(beyond) if beyond >= 1 else -1
        key = (first, -1.0)
        answer = self._answers.get(key)
        if answer is None:
            longer = [(index, weight) for index, weight in self._weights.items() if index >= first]
            total = sum(weight for _, weight in longer)
            middle = sum(_middle(index) * weight for index, weight in longer)
            answer = self._answers[key] = middle / total if total else 0.0
        return max(answer - beyond, 0.0)

    def share_longer(self, than: float, beyond: float = 0.0) -> float:
        """The share of those longer than `beyond` that become longer than `than`."""
        first, last = size_class(max(beyond, 1.0)), size_class(max(than, 1.0))
        total = sum(weight for index, weight in self._weights.items() if index >= first)
        longer = sum(weight for index, weight in self._weights.items() if index > last)
        return longer / total if total else 0.0

    def _quantile(self, share: float, first: int) -> float:
        longer = sorted(index for index in self._weights if index >= first)
        left = share * sum(self._weights[index] for index in longer)
        for index in longer:
            left -= self._weights[index]
            if left <= 1e-9:
                return class_end(index)
        return 0.0


class Paces:
    """How fast turns go: seconds per token against the number of requests that run beside, by least squares that
    forgets, and seconds per turn, waits for environments included."""

    def __init__(self) -> None:
        self.turn_seconds: float | None = None
        self._sums = [0.0] * 5

    def see_reply(self, running: int, tokens: int, seconds: float) -> None:
        """A reply of `tokens` took `seconds` on a rank that ran `running` requests at its end."""
        if tokens < 8 or seconds <= 0:
            return  # so short a reply is mostly the prefill
        x, y = float(running), seconds / tokens
        self._sums = [0.98 * old + new for old, new in zip(self._sums, (1.0, x, y, x * x, x * y), strict=True)]

    def see_episode(self, turns: int, seconds: float) -> None:
        """An episode of `turns` turns took `seconds`, the time that it was kept out not counted."""
        # VAL: VAL_POSITIVE(turns)
        if not turns > 0:
            raise ValueError(f"Paces.see_episode: turns must be positive, got {turns!r}")
        # END VAL 69ed16
        took = seconds / turns
        self.turn_seconds = took if self.turn_seconds is None else self.turn_seconds + 0.05 * (took - self.turn_seconds)

    def seconds_per_token(self, running: float) -> float | None:
        """Seconds that one request needs for a token when its rank runs `running`; None while little is known."""
        count, x, y, xx, xy = self._sums
        if count < 8:
            return None
        spread = count * xx - x * x
        slope = max((count * xy - x * y) / spread, 0.0) if spread > 1e-9 * count * count else 0.0
        return max((y - slope * x) / count + slope * running, 0.1 * y / count)


def _middle(index: int) -> float:
    return float(2.0 ** ((index + 0.5) / CLASSES_PER_DOUBLING))
