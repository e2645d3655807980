"""The configuration of a run, as frozen dataclasses: field names are the keys of the file. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from roll_ts.core.settings import Deadlines, Layout, Settings
from roll_ts.envs.hosting.wire import Limits
from roll_ts.trainers.protocol import TrainerConfig


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
    `async_ratio` bounds how far rollout may run ahead of training, in batches.

    KV is reserved for the `reserve_quantile` of reply lengths. `session_admission` keeps as many episodes live as have
    KV for their prefixes. `redundant_members` more than are needed start in each group; the last ones are cancelled.
    `filter_equal_rewards` drops groups that teach nothing, at most `max_filtered_batches` batches of them; greedy
    evaluation episodes go before training turns with `evaluation_first`, after them without."""

    groups_per_batch: int
    group_size: int
    max_turns: int
    max_reply_tokens: int
    max_context_tokens: int
    async_ratio: float = 1.0
    max_running_per_rank: int = 64
    prefix_worth_tokens: int = 512
    reserve_quantile: float = 0.9
    session_admission: bool = False
    evaluation_first: bool = False
    redundant_members: int = 0
    filter_equal_rewards: bool = False
    max_filtered_batches: int = 10


@dataclass(frozen=True)
class EnvironmentOptions:
    """The environment and where its episodes are played: each of `workers` keeps `processes`, which play at most
    `episodes_per_process` episodes (0: no bound) with `threads` steps at a time. A process whose episode hangs is
    replaced, and one with a single episode takes no other along.

    An observation of more than `observation_tokens` (null: rollout.max_context_tokens) keeps its head, its tail or half
    of both, or ends the episode as truncated. `limits` bound one process.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    workers: int = 1
    processes: int = 2
    episodes_per_process: int = 0
    threads: int = 64
    observation_tokens: int | None = None
    long_observation: Literal["head", "tail", "both", "end_episode"] = "both"
    limits: Limits = field(default_factory=Limits)


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
    """`TrainerConfig`, its model left to `model` and the engines' format to `engine.dtype`; `resume` is a checkpoint
    folder to go on from (R28)."""

    model: str = field(default="", init=False)
    rollout_dtype: Literal["float32", "bfloat16", "float16"] = field(default="float32", init=False)
    resume: str | None = None


@dataclass(frozen=True)
class WeightOptions:
    """How weights go from trainer to engines, and the canary that proves them: `canary_tokens` greedy tokens whose
    log-probs may differ by at most `canary_tolerance` nats (R19; null: by the coarser number format of engine and
    trainer, 0.001 in float32, 0.02 in float16, 0.15 in bfloat16; see `roll_ts.trainers.tolerance`)."""

    transport: Literal["broadcast", "object_store"] = "broadcast"
    canary_tokens: int = 8
    canary_tolerance: float | None = None


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
    """How often to try again before giving up, and how often to save (`checkpoint_every` steps; 0: only at the end).

    One restart of a party comes back every `restart_refill_seconds`; a sick rank waits `probation_seconds` before it is
    started again, twice as long each time in a row.
    The run ends when more than `max_void_share` of the latest episodes broke for infrastructure.
    """

    max_restarts_per_rank: int = 2
    max_trainer_restarts: int = 2
    restart_refill_seconds: float = 1800.0
    probation_seconds: float = 30.0
    max_replacements_per_member: int = 3
    max_void_share: float = 0.5
    checkpoint_every: int = 0


@dataclass(frozen=True)
class RayOptions:
    """The Ray instance that the run starts. `object_store_mib`: shared memory for objects."""

    object_store_mib: int = 256
    log_to_driver: bool = False


# The digest proves which weights a rank received; the canary proves that it computes with them. So it may be as coarse
# as the 99th percentile of a model of some twenty layers, and a larger model may ask for more.
_CANARY = {"float32": 1e-3, "float16": 0.02, "bfloat16": 0.15}


@dataclass(frozen=True)
class RunConfig:
    """One run. `steps` optimizer steps; `out` is the run folder (null: runs/<name>-<policy>-<seed>)."""

    name: str
    policy: str
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

    @property
    def canary_tolerance(self) -> float:
        """Allowed canary gap, nats."""
        said = self.weights.canary_tolerance
        return max(_CANARY[self.engine.dtype], _CANARY[self.trainer.dtype]) if said is None else said

    def settings(self) -> Settings:
        """The settings of the scheduler core."""
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
            reserve_quantile=roll.reserve_quantile,
            session_admission=roll.session_admission,
            evaluation_first=roll.evaluation_first,
            redundant_members=roll.redundant_members,
            filter_equal_rewards=roll.filter_equal_rewards,
            max_filtered_batches=roll.max_filtered_batches,
            max_void_share=back.max_void_share,
            seed=self.seed,
            evaluation_episodes=self.evaluation.episodes,
            evaluation_seed=self.evaluation.first_seed,
            checkpoint_every=back.checkpoint_every,
            canary_tolerance=self.canary_tolerance,
            max_restarts_per_rank=back.max_restarts_per_rank,
            max_replacements_per_member=back.max_replacements_per_member,
            max_trainer_restarts=back.max_trainer_restarts,
            restart_refill_seconds=back.restart_refill_seconds,
            probation_seconds=back.probation_seconds,
            deadlines=self.deadlines,
        )
