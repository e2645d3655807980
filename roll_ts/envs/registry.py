"""Environments by name: ours by a plain one, anybody's by the import path of its spec, `package.module:SPEC`.

Nothing is registered: a worker in another process finds an environment by the same text as the configuration.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import Any

from roll_ts.envs.protocol import Environment, EnvSpec

SHIPPED = {"frozen_lake": "roll_ts.envs.frozen_lake:SPEC"}


def env_spec(name: str) -> EnvSpec:
    """The spec that `name` means. Raises ValueError that says what is wrong with the name and what would do."""
    module, colon, attribute = SHIPPED.get(name, name).partition(":")
    if not colon:  # unmanaged: says which name is near
        near = difflib.get_close_matches(name, SHIPPED, n=1)
        meant = f"did you mean {near[0]!r}?" if near else f"shipped: {', '.join(SHIPPED)}, yours: package.module:SPEC"
        raise ValueError(f"is no environment, {meant}")
    try:
        spec = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"{name} cannot be imported: {error}, install its package or put its folder on PYTHONPATH"
        ) from error
    # VAL: VAL_TYPE_CHECK(spec, EnvSpec, error=ValueError) - an environment's path names its EnvSpec
    if not isinstance(spec, EnvSpec):
        raise ValueError(
            f"env_spec: spec must be EnvSpec, got {type(spec).__name__} {spec!r:.200} - an "
            "environment's path names its EnvSpec"
        )
    # END VAL 9721cb
    return spec


def make_env(name: str, **arguments: Any) -> Environment:
    """Build the environment `name`; `arguments` override the spec's defaults. Raises ValueError for an unknown name,
    and what the environment's constructor raises (ValueError) for a bad argument."""
    spec = env_spec(name)
    return spec.factory(**{**spec.defaults, **arguments})
