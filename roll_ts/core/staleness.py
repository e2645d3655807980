"""How many groups may be started, and which samples are too old to train (R17).

started − trained ≤ (1 + r) · batch, counted in groups; a sample's staleness is the trainer's version minus the version
of its oldest segment and may not exceed ⌈r⌉. r is the async ratio, a real number; 0 means synchronous.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# Products such as 1.1 * 10 must not lose a group to rounding.
_ROUNDING = 1e-9


@dataclass
class StalenessLedger:
    """Counts in groups. `dropped`: voided or cancelled before training."""

    async_ratio: float
    batch: int
    started: int = 0
    trained: int = 0
    dropped: int = 0

    @property
    def capacity(self) -> int:
        """Groups that may be started and not yet trained."""
        return math.floor((1 + self.async_ratio) * self.batch + _ROUNDING)

    @property
    def allowed(self) -> int:
        """The greatest staleness that may be trained."""
        return math.ceil(self.async_ratio - _ROUNDING)

    def room(self) -> int:
        """How many more groups may start now."""
        open_groups = self.started - self.trained - self.dropped
        room = self.capacity - open_groups
        # AST: AST_POSTCONDITION(room >= 0)
        assert room >= 0, f"Post-condition: room >= 0, got room={room!r:.200}"
        # END AST 856d86
        return room

    def start(self) -> None:
        """Count one started group."""
        free = self.room()
        # VAL: VAL_POSITIVE(free)
        if not free > 0:
            raise ValueError(f"StalenessLedger.start: free must be positive, got {free!r}")
        # END VAL dadc94
        self.started += 1

    def too_old(self, oldest: int, version: int) -> bool:
        """Whether a sample whose oldest segment has version `oldest` (−1: no token yet) is untrainable at `version`."""
        # VAL: VAL_INT_RANGE(version, min=0)
        if not version >= 0:
            raise ValueError(f"StalenessLedger.too_old: version must be at least 0, got {version!r}")
        # END VAL 9c9e30
        return 0 <= oldest < version - self.allowed
