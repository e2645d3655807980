"""What goes wrong in a simulated run, listed beforehand. The same faults at the same commands give the same
run."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Literal

from roll_ts.core.alphabet import Command

Deed = Literal["drop", "delay", "error", "kill", "wrong_digest", "bad_canary"]


@dataclass(frozen=True)
class Fault:
    """One misbehaviour, bound to the `nth` command (from 0) of type `to`, on `rank` if given.

    drop: the command is never carried out and never answered. delay: it is carried out `seconds` late. error:
    it is answered with an error (`CommandFailed`; a dispatch with `Failed`, an environment with
    `EnvironmentFailed`). kill: the process of the rank, or of the trainer, dies on receiving it. wrong_digest:
    `LoadWeights` reports another digest. bad_canary: `WakeKV` or `ResetCache` reports a large gap.
    """

    do: Deed
    to: str
    nth: int = 0
    rank: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Kill:
    """The process of `rank`, or of the trainer (None), dies at `at` seconds."""

    at: float
    rank: int | None


@dataclass(frozen=True)
class Faults:
    """All that goes wrong. Rates are probabilities per environment step: failing at once, or hanging for
    ever."""

    on_commands: tuple[Fault, ...] = ()
    kills: tuple[Kill, ...] = ()
    environment_failure_rate: float = 0.0
    environment_hang_rate: float = 0.0


@dataclass
class FaultBook:
    """Counts commands and says which fault meets the one at hand."""

    faults: Faults
    seed: int = 0
    _seen: dict[int, int] = field(default_factory=dict)

    def meet(self, command: Command) -> Fault | None:
        """The fault for this command, if any. To be asked once per command."""
        name, rank = type(command).__name__, getattr(command, "rank", None)
        met: Fault | None = None
        for index, fault in enumerate(self.faults.on_commands):
            if fault.to != name or fault.rank not in (None, rank):
                continue
            count = self._seen.get(index, 0)
            self._seen[index] = count + 1
            if count == fault.nth and met is None:
                met = fault
        return met

    def environment(self, trajectory: int, turn: int) -> Literal["fail", "hang"] | None:
        """Whether this environment step breaks, by the rates; depends on the trajectory and turn only."""
        if not (self.faults.environment_failure_rate or self.faults.environment_hang_rate):
            return None
        draw = random.Random(f"{self.seed}/environment/{trajectory}/{turn}").random()
        if draw < self.faults.environment_failure_rate:
            return "fail"
        if draw < self.faults.environment_failure_rate + self.faults.environment_hang_rate:
            return "hang"
        return None
