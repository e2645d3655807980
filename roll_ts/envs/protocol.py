"""What an environment is: text in, text out, in the manner of GEM (`reset` / `step`), and the registry of
those we ship.

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
    """A registered environment. `alphabet`: every character its observations are made of."""

    name: str
    factory: Callable[..., Environment]
    alphabet: str
    defaults: Mapping[str, Any] = field(default_factory=dict)


_REGISTRY: dict[str, EnvSpec] = {}


def register(spec: EnvSpec) -> None:
    """Make `spec` known to `make_env`. Raises ValueError if the name is taken."""
    # VAL: VAL_KEY_ABSENT(spec.name, mapping=_REGISTRY) - the name is taken
    if spec.name in _REGISTRY:
        raise ValueError(
            f"register: spec.name must not yet be a key of _REGISTRY, got {spec.name!r:.200} - the name is taken"
        )
    # END VAL 743e0d
    _REGISTRY[spec.name] = spec


def known_environments() -> list[str]:
    """The names of all registered environments, sorted."""
    _load_shipped()
    return sorted(_REGISTRY)


def env_spec(name: str) -> EnvSpec:
    """The registered spec. Raises KeyError naming the known environments."""
    known = known_environments()
    # VAL: VAL_ONE_OF(name, known, error=KeyError) - no environment has another name
    if name not in known:
        raise KeyError(
            f"env_spec: name must be one of {known!r:.200}, got {name!r:.200} - no environment has another name"
        )
    # END VAL 4b9627
    return _REGISTRY[name]


def make_env(name: str, **kwargs: Any) -> Environment:
    """Build the environment `name`; `kwargs` override its defaults. Raises KeyError for an unknown name,
    and what the environment's constructor raises (ValueError) for a bad argument."""
    spec = env_spec(name)
    return spec.factory(**{**spec.defaults, **kwargs})


def _load_shipped() -> None:
    # imported late because it brings gymnasium; it registers itself
    from roll_ts.envs import frozen_lake  # noqa: F401
