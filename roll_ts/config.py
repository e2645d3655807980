"""What a run is told: one YAML file, read into frozen dataclasses and checked whole before anything heavy is imported.

`load_config` gives the configuration or every problem it has, each with key, value, what is wrong and how to mend it
(R31). Nothing here imports torch, Ray or vLLM. A `per_policy` section may hold, under a policy's name, keys that only
this policy needs to be different; it is resolved on reading.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from roll_ts.core.policies import POLICIES
from roll_ts.core.settings import Deadlines, Layout, Problem, Settings
from roll_ts.trainers.protocol import TrainerConfig
from roll_ts.typed_yaml import parse_yaml, read_checked

Policy = Literal["colocated", "disaggregated", "time_sharing"]


@dataclass(frozen=True)
class LayoutOptions:
    """Who may use which device. On `cpu` a device is one pinned core, on `cuda` one GPU.

    `ranks[i]` are the devices of rollout rank i.
    """

    ranks: tuple[tuple[int, ...], ...]
    train_devices: tuple[int, ...]
    device: Literal["cpu", "cuda"] = "cpu"


@dataclass(frozen=True)
class RolloutOptions:
    """Sizes in groups, trajectories and tokens. A batch is `groups_per_batch` groups of `group_size` trajectories;
    `async_ratio` bounds how far rollout may run ahead of training, in batches."""

    groups_per_batch: int
    group_size: int
    max_turns: int
    max_reply_tokens: int
    max_context_tokens: int
    async_ratio: float = 1.0
    max_running_per_rank: int = 64
    prefix_worth_tokens: int = 512


@dataclass(frozen=True)
class EnvironmentOptions:
    """The environment and how many run at once: `workers` processes of `threads` episodes each."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    workers: int = 1
    threads: int = 64


@dataclass(frozen=True)
class ScratchOptions:
    """A tiny Qwen3-architecture policy made on the spot, with a character tokenizer."""

    hidden: int = 128
    layers: int = 4
    ffn: int = 384
    heads: int = 4
    kv_heads: int = 2
    positions: int = 1024
    init_std: float = 0.02


@dataclass(frozen=True)
class ModelOptions:
    """Where the first weights come from: a folder in Hugging Face format, or `scratch`. Exactly one of them."""

    path: str | None = None
    scratch: ScratchOptions | None = None


@dataclass(frozen=True)
class EngineOptions:
    """Rollout engines. `kv_mib`: KV cache per device; `tick_s`: how often an engine reports progress."""

    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    kv_mib: int = 64
    block_size: int = 32
    tick_s: float = 0.03


@dataclass(frozen=True)
class TrainerOptions(TrainerConfig):
    """`TrainerConfig`, its model left to `model`; `resume` is a checkpoint folder to go on from (R28)."""

    model: str = field(default="", init=False)
    resume: str | None = None


@dataclass(frozen=True)
class WeightOptions:
    """How weights go from trainer to engines, and the canary that proves them: `canary_tokens` greedy tokens whose
    log-probs may differ by at most `canary_tolerance` nats (R19)."""

    transport: Literal["broadcast", "object_store"] = "broadcast"
    canary_tokens: int = 8
    canary_tolerance: float = 1e-3


@dataclass(frozen=True)
class EvaluationOptions:
    """Greedy episodes before the first and after the last step."""

    episodes: int = 0
    first_seed: int = 1_000_000


@dataclass(frozen=True)
class ReplayCheckOptions:
    """Greedy episodes that are played while training goes on, at these versions; the weights of the versions are kept,
    so that `roll-ts verify` can replay a turn that moved between ranks."""

    versions: tuple[int, ...] = ()
    episodes: int = 8
    first_seed: int = 2_000_000


@dataclass(frozen=True)
class RecoveryOptions:
    """How often to try again before giving up, and how often to save (`checkpoint_every` steps; 0: only at the end)."""

    max_restarts_per_rank: int = 2
    max_replacements_per_member: int = 3
    sync_retries: int = 2
    checkpoint_every: int = 0


@dataclass(frozen=True)
class RayOptions:
    """The Ray instance that the run starts. `object_store_mib`: shared memory for objects."""

    object_store_mib: int = 256
    log_to_driver: bool = False


@dataclass(frozen=True)
class RunConfig:
    """One run. `steps` optimizer steps; `out` is the run folder (null: runs/<name>-<policy>-<seed>)."""

    name: str
    policy: Policy
    steps: int
    layout: LayoutOptions
    rollout: RolloutOptions
    environment: EnvironmentOptions
    model: ModelOptions
    seed: int = 0
    out: str | None = None
    engine: EngineOptions = field(default_factory=EngineOptions)
    trainer: TrainerOptions = field(default_factory=TrainerOptions)
    weights: WeightOptions = field(default_factory=WeightOptions)
    evaluation: EvaluationOptions = field(default_factory=EvaluationOptions)
    replay_check: ReplayCheckOptions = field(default_factory=ReplayCheckOptions)
    recovery: RecoveryOptions = field(default_factory=RecoveryOptions)
    deadlines: Deadlines = field(default_factory=Deadlines)
    ray: RayOptions = field(default_factory=RayOptions)

    @property
    def folder(self) -> Path:
        """The run folder."""
        return Path(self.out or f"runs/{self.name}-{self.policy}-{self.seed}")

    def settings(self) -> Settings:
        """What the scheduler core is told."""
        roll, back = self.rollout, self.recovery
        return Settings(
            layout=Layout(self.layout.ranks, self.layout.train_devices),
            groups_per_batch=roll.groups_per_batch,
            group_size=roll.group_size,
            async_ratio=roll.async_ratio,
            max_turns=roll.max_turns,
            max_reply_tokens=roll.max_reply_tokens,
            max_context_tokens=roll.max_context_tokens,
            max_running_per_rank=roll.max_running_per_rank,
            prefix_worth_tokens=roll.prefix_worth_tokens,
            seed=self.seed,
            evaluation_episodes=self.evaluation.episodes,
            evaluation_seed=self.evaluation.first_seed,
            checkpoint_every=back.checkpoint_every,
            canary_tolerance=self.weights.canary_tolerance,
            max_restarts_per_rank=back.max_restarts_per_rank,
            max_replacements_per_member=back.max_replacements_per_member,
            sync_retries=back.sync_retries,
            deadlines=self.deadlines,
        )


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
    from roll_ts.config_check import check_config

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
        if name not in POLICIES:
            problems.append(Problem("per_policy", str(name), "is no policy", f"use {', '.join(POLICIES)}"))
    own = per_policy.get(result.get("policy"))
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
    """`below` with the keys of `above` on top; mappings merge, everything else is replaced."""
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return _copy(above)
    keys = [*below, *(key for key in above if key not in below)]
    return {key: _merged(below.get(key), above[key]) if key in above else _copy(below[key]) for key in keys}


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
