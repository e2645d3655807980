"""Random numbers by name: what one thing draws does not depend on what others drew before it.

So a fault can be taken out of a history and everything that it does not touch goes on as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

T = TypeVar("T")
_MASK = (1 << 64) - 1


def _mix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
    return z ^ (z >> 31)


def _number(text: str) -> int:
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & _MASK
    return value


class Dice:
    """A stream of numbers that belongs to a seed and to a name made of words and integers."""

    __slots__ = ("_state",)

    _words: ClassVar[dict[str, int]] = {}

    def __init__(self, seed: int, *name: str | int) -> None:
        state = _mix(seed + 0x9E3779B97F4A7C15)
        for part in name:
            if isinstance(part, str):
                part = self._words.get(part) or self._words.setdefault(part, _number(part))
            state = _mix(state ^ (part + 0x9E3779B97F4A7C15) & _MASK)
        self._state = state

    def real(self) -> float:
        """From 0 (included) to 1 (excluded)."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        return (_mix(self._state) >> 11) / (1 << 53)

    def below(self, limit: int) -> int:
        """A whole number from 0 to `limit` − 1."""
        return int(self.real() * limit)

    def chance(self, share: float) -> bool:
        """True in `share` of all cases."""
        return self.real() < share

    def choose(self, options: Sequence[T]) -> T:
        """One of `options`."""
        return options[self.below(len(options))]
