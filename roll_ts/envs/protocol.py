"""What an environment is: text in, text out, in the manner of GEM (`reset` / `step`).

An environment is a plain synchronous object owned by one worker. It is deterministic: the same seed and
the same actions give the same observations and rewards, so an episode can be rebuilt by replaying its
actions. `reward` may be shaped for training; `info["success"]` is the environment's pure verdict, present
in every `info` and never shaped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Environment(Protocol):
    """One episode at a time; `reset` starts the next."""

    def reset(self, seed: int) -> tuple[str, dict[str, Any]]:
        """Start an episode. Returns the first observation (the prompt) and `info` with key `success`."""
        ...

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take one turn. Returns (observation, reward of this turn, terminated, truncated, info).

        terminated: the task is over; truncated: the turn limit is reached. Raises RuntimeError when the
        episode is over or was never reset: a caller that steps a finished episode has lost count.
        """
        ...

    def close(self) -> None:
        """Release what the environment holds. Idempotent."""
        ...


@dataclass(frozen=True)
class EnvSpec:
    """How an environment is made. `alphabet`: every character its observations are made of."""

    name: str
    factory: Callable[..., Environment]
    alphabet: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
