"""How often a party may be started again: a small stock that refills with time (R35).

A crash a day is no reason to give a rank up in a run of weeks; three crashes in a minute are.
"""

from __future__ import annotations

from dataclasses import dataclass

# An alarm set for the time at which one is back must find it there.
_ROUNDING = 1e-9


@dataclass
class Budget:
    """At most `size` restarts at once; one comes back every `refill` seconds. `stock` is what was there, fractions
    included, at `counted_at` seconds."""

    size: int
    refill: float
    stock: float = -1.0
    counted_at: float = 0.0

    def __post_init__(self) -> None:
        self.stock = float(self.size)

    def left(self, now: float) -> bool:
        """Whether one may be spent at `now`."""
        self._count(now)
        return self.stock >= 1.0 - _ROUNDING

    def spend(self, now: float) -> None:
        """Use one. Raises ValueError when none is left."""
        self._count(now)
        # VAL: VAL_FLOAT_RANGE(self.stock, min=1.0 - _ROUNDING)
        if not self.stock >= 1.0 - _ROUNDING:
            raise ValueError(
                f"Budget.spend: self.stock must lie in [{1.0 - _ROUNDING!r:.200}, inf), got {self.stock!r}"
            )
        # END VAL 075b0f
        self.stock = max(0.0, self.stock - 1.0)

    def next_at(self, now: float) -> float:
        """When one will be there again, seconds; `inf` when there never is one."""
        self._count(now)
        if self.size < 1:
            return float("inf")
        return now + max(0.0, 1.0 - self.stock) * self.refill

    def _count(self, now: float) -> None:
        self.stock = min(float(self.size), self.stock + (now - self.counted_at) / self.refill)
        self.counted_at = now
