"""What a set of histories has met: each event in each rank state, each command with each kind of fault."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roll_ts.core import alphabet as a

if TYPE_CHECKING:
    from tests.roll_ts.outside.oracle import Oracle


@dataclass
class Coverage:
    """`met[event, state]`: the state of the event's own rank, or, if it has none, every state that some rank is in.
    `faults[command, fault]` counts what was injected; "" is a command without a fault."""

    met: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)
    events: int = 0

    def event(self, event: a.Event, oracle: Oracle) -> None:
        """Count one event before it is handled."""
        self.events += 1
        name = type(event).__name__
        rank = oracle.rank_of(event)
        if rank is not None:
            self.met[name, oracle.ranks.rows[rank].state] += 1
            return
        for state, count in oracle.ranks.population.items():
            if count:
                self.met[name, state] += 1

    def command(self, kind: str, fault: str | None) -> None:
        """Count one command that expects an answer."""
        self.faults[kind, fault or ""] += 1

    def add(self, other: Coverage) -> None:
        """Add what other histories have met."""
        self.met.update(other.met)
        self.faults.update(other.faults)
        self.events += other.events
