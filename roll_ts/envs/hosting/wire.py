"""What a worker and the processes that play its episodes say to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from roll_ts.envs.answers import Answer


@dataclass(frozen=True)
class Limits:
    """Bounds of one process that plays episodes; 0 is no bound. `memory_mib` of address space, `file_mib` a file,
    `processes` of the user it runs as, `cpu_seconds` over its whole life."""

    memory_mib: int = 0
    file_mib: int = 0
    processes: int = 0
    cpu_seconds: int = 0


@dataclass(frozen=True)
class Start:
    """The first message to a process: the environment it plays and how many steps at a time."""

    name: str
    arguments: Mapping[str, Any]
    threads: int
    limits: Limits = field(default_factory=Limits)
    text_characters: int = 1_000_000


@dataclass(frozen=True)
class Ready:
    """The process can play: its environment is imported."""


@dataclass(frozen=True)
class Broken:
    """The process cannot play any episode, and ends."""

    error: str


@dataclass(frozen=True)
class Play:
    """One step: turn 0 resets with `seed`, later turns act."""

    command: int
    trajectory: int
    turn: int
    seed: int = 0
    action: str = ""


@dataclass(frozen=True)
class Close:
    """The episode is not wanted any more."""

    trajectory: int


@dataclass(frozen=True)
class Said:
    """The answer to a `Play`: an `Answer`, or the error that voids the episode."""

    command: int
    trajectory: int
    turn: int
    answer: Answer | None = None
    error: str | None = None


@dataclass(frozen=True)
class Closed:
    """The episode has released what it held, after `Close`."""

    trajectory: int
