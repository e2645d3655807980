"""A run's configuration as a YAML file: read and checked whole before anything heavy is imported, or written.

`load_config` gives the configuration or every problem it has, each with key, value, what is wrong and how to fix it
(R31). A `per_policy` section may hold, under a policy's name, keys that only this policy needs to be different; it is
resolved on reading.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from roll_ts.config import RunConfig
from roll_ts.config_check import check_config
from roll_ts.core.policies import POLICIES
from roll_ts.core.settings import Problem
from roll_ts.typed_yaml import parse_yaml, read_checked


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> RunConfig | list[Problem]:
    """The run that the file describes, changed by `overrides` ("dotted.key=value"); or all its problems."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return [Problem("(file)", str(path), f"cannot be read: {error}", "name an existing YAML file in UTF-8")]
    data, problems = parse_yaml(text, str(path))
    if data is None and problems:
        return problems
    if isinstance(data, Mapping):
        data, more = _resolved(data, overrides)
        problems += more
    config, found = read_checked(RunConfig, data, check_config)
    return problems + found or config


def dump_config(config: RunConfig) -> str:
    """The configuration as YAML that `load_config` reads back to an equal one."""
    return yaml.safe_dump(_plain(config), sort_keys=False)


def _resolved(data: Mapping[str, Any], overrides: Sequence[str]) -> tuple[dict[str, Any], list[Problem]]:
    """A copy of `data` as one policy runs it: the file, then its `per_policy` section, then the overrides."""
    changes, problems = _parse_overrides(overrides)
    result = _merged(data, changes)
    per_policy = result.pop("per_policy", None) or {}
    if not isinstance(per_policy, dict):
        return result, [*problems, Problem("per_policy", repr(per_policy), "must map policies to keys", "indent them")]
    for name in per_policy:
        if name not in POLICIES and ":" not in str(name):
            problems.append(Problem("per_policy", str(name), "is no policy", f"use {', '.join(POLICIES)}"))
    policy = result.get("policy")
    own = per_policy.get(policy) if isinstance(policy, str) else None
    return (_merged(_merged(result, own), changes) if isinstance(own, dict) else result), problems


def _parse_overrides(overrides: Sequence[str]) -> tuple[dict[str, Any], list[Problem]]:
    """Nested data of "dotted.key=value" texts."""
    result: dict[str, Any] = {}
    problems: list[Problem] = []
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            problems.append(Problem("--set", text, "is not KEY=VALUE", "write --set trainer.learning_rate=0.001"))
            continue
        parsed, wrong = parse_yaml(value, f"--set {key}")
        problems += wrong
        *path, last = key.strip().split(".")
        change: Any = {last: parsed}
        for name in reversed(path):
            change = {name: change}
        result = _merged(result, change)
    return result, problems


def _merged(below: Any, above: Any) -> Any:
    """`below` with the keys of `above` on top; mappings merge, everything else is replaced.

    Under a key, an empty mapping clears what was there: there is no other way to say it.
    """
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return _copy(above)
    keys = [*below, *(key for key in above if key not in below)]
    return {
        key: _copy(below[key])
        if key not in above
        else (_merged(below.get(key), above[key]) if above[key] != {} else {})
        for key in keys
    }


def _copy(data: Any) -> Any:
    return {key: _copy(value) for key, value in data.items()} if isinstance(data, Mapping) else data


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
