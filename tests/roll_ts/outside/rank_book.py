"""The oracle's account of ranks: states, incarnations, devices, proofs of weights (R1, R2, R4, R7, R19, R20, R34)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from roll_ts.core import alphabet as a
from roll_ts.core.settings import Settings
from tests.roll_ts.outside.rollout_book import need

LEGAL: dict[str, str] = {
    "BOOTING": "EMPTY FENCED FAILED",
    "EMPTY": "LOADING FENCED FAILED",
    "LOADING": "ACTIVE FENCED FAILED",
    "ACTIVE": "DRAINING SYNCING FENCED FAILED",
    "DRAINING": "RELEASING ACTIVE FENCED FAILED",
    "RELEASING": "LENT FENCED FAILED",
    "LENT": "LOADING FENCED FAILED",
    "SYNCING": "ACTIVE FENCED FAILED",
    "FENCED": "QUARANTINED FAILED",
    "QUARANTINED": "FAILED",
    "FAILED": "BOOTING",
}
"""What R1 allows, written down a second time."""


@dataclass
class Row:
    """One rank. `loaded`: the version whose digest was equal, since it last lost its weights; `ready`: its canary was
    good since then; `quiet`: its own count after the drain was zero."""

    state: str = "FAILED"
    incarnation: int = 0
    booted: bool = False
    loaded: int = -1
    proven: int = -1
    ready: bool = False
    quiet: bool = False


class RankBook:
    """All ranks, and who computes on which device."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.rows = [Row() for _ in settings.layout.ranks]
        self.population: Counter[str] = Counter({"FAILED": len(self.rows)})
        self.holder: dict[int, str] = {}
        self.train_devices = settings.layout.train_devices
        self.shared = frozenset(settings.layout.shared_ranks)

    # events

    def booted(self, event: a.RankBooted) -> None:
        """The process is up."""
        self.rows[event.rank].booted = True

    def died(self, event: a.RankDied) -> None:
        """The process is certainly gone, and its devices are free."""
        row = self.rows[event.rank]
        row.booted = row.ready = row.quiet = False
        row.loaded = row.proven = -1
        self.give_back(f"rank {event.rank}")

    def is_old(self, rank: int, incarnation: int) -> bool:
        """Whether a message comes from a process that is not the present one, or from one that is known dead."""
        row = self.rows[rank]
        return incarnation != row.incarnation or row.state == "FAILED"

    # commands

    def moved(self, c: a.RankMoved) -> None:
        """One step in the table, and what must be known before it (R1, R19)."""
        row = self.rows[c.rank]
        need(row.state == c.old, "R1", f"rank {c.rank} moves from {c.old} and is {row.state}")
        need(c.new in LEGAL[c.old].split(), "R1", f"rank {c.rank} moves from {c.old} to {c.new}")
        if c.new == "EMPTY":
            need(row.booted, "R19", f"rank {c.rank} is EMPTY and has not booted")
        if c.new == "ACTIVE":
            need(row.loaded >= 0 and row.ready, "R19", f"rank {c.rank} becomes ACTIVE without proof: {row}")
            row.proven = row.loaded
        if c.new == "SYNCING":
            row.ready = row.quiet = False
            row.loaded = -1
        if c.new == "DRAINING":
            row.quiet = False
        if c.new in ("LENT", "BOOTING"):
            row.ready, row.loaded, row.proven = False, -1, -1
        if c.new == "LENT":
            held = [
                device for device in self.settings.layout.ranks[c.rank] if self.holder.get(device) == f"rank {c.rank}"
            ]
            need(not held, "R2", f"rank {c.rank} is LENT and has not given back {held}")
        self.population[c.old] -= 1
        self.population[c.new] += 1
        row.state = c.new

    def restart(self, c: a.Restart) -> None:
        """A new process, with the next number, on devices that nobody has (R2, R33, R34)."""
        row = self.rows[c.rank]
        need(row.state in ("FAILED", "BOOTING"), "R34", f"rank {c.rank} is started and is {row.state}")
        need(
            c.incarnation == row.incarnation + 1,
            "R33",
            f"rank {c.rank}: incarnation {c.incarnation} after {row.incarnation}",
        )
        row.incarnation, row.booted = c.incarnation, False
        self.grant(f"rank {c.rank}", self.settings.layout.ranks[c.rank])

    def grant(self, holder: str, devices: tuple[int, ...]) -> None:
        """Devices pass to a holder through nobody (R2)."""
        for device in devices:
            now = self.holder.setdefault(device, holder)
            need(now == holder, "R2", f"device {device} is given to {holder} and held by {now}")

    def give_back(self, holder: str) -> None:
        """The holder's devices are nobody's."""
        self.holder = {device: who for device, who in self.holder.items() if who != holder}

    def live(self, rank: int) -> bool:
        """Whether nothing says that the rank's process is gone or being killed."""
        return self.rows[rank].state not in ("FENCED", "QUARANTINED", "FAILED")
