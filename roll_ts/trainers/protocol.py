"""What a trainer is, how it is configured and what it reports. Free of torch, so that a configuration can
be checked and a report read without importing an engine.

A trainer is one process of a group of `world_size`; every rank is called with the same samples in the same
order and takes its own part. Methods are collective: call them on all ranks. Weight versions count
optimizer steps: the initial weights are version 0, and `train` on version v leaves version v + 1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from roll_ts.trainers.sample import Sample

if TYPE_CHECKING:
    import torch

Part = Literal["optimizer", "gradients", "activations", "parameters"]
# R22: what can go before the new weights are handed over, and what only after.
EARLY_PARTS: tuple[Part, ...] = ("optimizer", "gradients", "activations")
ALL_PARTS: tuple[Part, ...] = (*EARLY_PARTS, "parameters")


@dataclass(frozen=True)
class TrainerConfig:
    """How to train. Sizes in tokens, learning rate in Adam units, timeouts in seconds.

    model: folder in Hugging Face format (config.json, model.safetensors). tensor_parallel must divide
    world_size; the rest is data parallel. micro_batch_tokens bounds padded tokens per forward pass.
    truncate_weight: upper bound of the importance weight pi_new / pi_behaviour (None: no bound).
    clip_low/clip_high: PPO-style clip of pi_new / pi_old at 1 - clip_low and 1 + clip_high (None: no
    clip). normalise_std: divide group advantages by the group's deviation. loss_norm: "token" divides by
    the trained tokens of the batch, "sample" averages per-sample means. logprob_tolerance: largest
    |rollout - trainer| log-prob difference on tokens sampled with the current version; beyond it `train`
    raises, or only reports when strict_logprobs is false. spill_folder: where `release` puts host memory.
    """

    model: str
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    adam_beta1: float = 0.9
    adam_beta2: float = 0.95
    adam_eps: float = 1e-8
    warmup_steps: int = 0
    grad_clip: float = 1.0
    epochs: int = 1
    minibatches: int = 1
    micro_batch_tokens: int = 8192
    length_bucket: int = 32
    truncate_weight: float | None = 2.0
    clip_low: float | None = None
    clip_high: float | None = None
    normalise_std: bool = True
    loss_norm: Literal["token", "sample"] = "token"
    tensor_parallel: int = 1
    distributed_optimizer: bool = False
    dtype: Literal["float32", "bfloat16"] = "float32"
    logprob_tolerance: float = 1e-4
    strict_logprobs: bool = True
    spill_folder: str | None = None
    seed: int = 0
    timeout_s: float = 120.0

    def problems(self) -> list[tuple[str, object, str]]:
        """Every bad value as (key, value, what it must be); empty when the configuration is sound."""
        checks: list[tuple[str, bool, str]] = [
            ("learning_rate", self.learning_rate > 0, "a positive number"),
            ("weight_decay", self.weight_decay >= 0, "zero or positive"),
            ("adam_beta1", 0 <= self.adam_beta1 < 1, "in [0, 1)"),
            ("adam_beta2", 0 <= self.adam_beta2 < 1, "in [0, 1)"),
            ("adam_eps", self.adam_eps > 0, "positive"),
            ("warmup_steps", self.warmup_steps >= 0, "zero or positive"),
            ("grad_clip", self.grad_clip > 0, "positive"),
            ("epochs", self.epochs >= 1, "at least 1"),
            ("minibatches", self.minibatches >= 1, "at least 1"),
            ("micro_batch_tokens", self.micro_batch_tokens >= 1, "at least 1"),
            ("length_bucket", self.length_bucket >= 1, "at least 1"),
            ("truncate_weight", self.truncate_weight is None or self.truncate_weight >= 1, "null or >= 1"),
            ("clip_low", self.clip_low is None or 0 < self.clip_low < 1, "null or in (0, 1)"),
            ("clip_high", self.clip_high is None or self.clip_high > 0, "null or positive"),
            ("loss_norm", self.loss_norm in ("token", "sample"), "'token' or 'sample'"),
            ("tensor_parallel", self.tensor_parallel >= 1, "at least 1"),
            ("dtype", self.dtype in ("float32", "bfloat16"), "'float32' or 'bfloat16'"),
            ("logprob_tolerance", self.logprob_tolerance > 0, "positive"),
            ("timeout_s", self.timeout_s > 0, "positive"),
        ]
        if (self.clip_low is None) != (self.clip_high is None):
            checks.append(("clip_high", False, "set together with clip_low, or not at all"))
        return [(key, getattr(self, key), must) for key, ok, must in checks if not ok]

    def require_sound(self) -> None:
        """Raises ValueError naming the bad values at once, and what each must be; `problems` spells them out."""
        problems = self.problems()
        bad = {key: value for key, value, _ in problems}
        must_be = {key: must for key, _, must in problems}
        # VAL: VAL_EMPTY(bad, about=must_be) - correct these values of the trainer configuration
        if len(bad) != 0:
            raise ValueError(
                f"require_sound: bad must be empty, got {bad!r:.200} (must_be={must_be!r:.200}) - correct "
                "these values of the trainer configuration"
            )
        # END VAL 24c610


@dataclass(frozen=True)
class LogprobCheck:
    """|rollout log-prob - trainer log-prob| over the trained tokens sampled with the trainer's own version.

    n: compared tokens; share: n / trained tokens of the batch; max and p99 in nats (0 when n is 0); worst
    names the trajectory and position of max.
    """

    n: int
    share: float
    max: float
    p99: float
    tolerance: float
    worst: str = ""

    @property
    def ok(self) -> bool:
        return self.max <= self.tolerance

    def __str__(self) -> str:
        return (
            f"log-prob check: n={self.n} ({self.share:.0%} of trained tokens) max={self.max:.2e} p99={self.p99:.2e} "
            f"tolerance={self.tolerance:.0e}{'' if self.ok else f' VIOLATED at {self.worst}'}"
        )


class LogprobMismatch(RuntimeError):
    """Rollout and trainer disagree about the probability of tokens they should both have made with the
    same weights."""


@dataclass(frozen=True)
class TrainReport:
    """What one `train` call did. Token counts are of the whole batch, all ranks; seconds are this rank's.

    version: after the step. truncated_share / clipped_share: share of trained tokens whose importance
    weight was truncated / whose gradient the clip removed. mean_nll: mean -log pi of the trained tokens,
    nats (an entropy estimate). staleness: {version distance: trained tokens}.
    """

    version: int
    samples: int
    tokens: int
    trained_tokens: int
    loss: float
    grad_norm: float
    mean_reward: float
    success_rate: float
    mean_weight: float
    truncated_share: float
    clipped_share: float
    mean_nll: float
    staleness: dict[int, int]
    logprob_check: LogprobCheck
    seconds: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a journal; `logprob_check` becomes a nested dict."""
        return asdict(self)


class Trainer(Protocol):
    """The methods a trainer actor exposes. All are collective over the ranks of the group."""

    @property
    def version(self) -> int: ...

    def train(self, samples: Sequence[Sample]) -> TrainReport:
        """One policy update on whole groups; version + 1. Raises RuntimeError while released,
        LogprobMismatch when the check fails (before any weight is changed)."""
        ...

    def logprobs(self, samples: Sequence[Sample]) -> list[Any]:
        """Per sample a float32 numpy array [n]: log-prob of tokens[i] given tokens[:i] under the current
        weights (index 0 is 0)."""
        ...

    def greedy(self, prompt: Sequence[int], count: int) -> tuple[list[int], list[float]]:
        """The most likely `count` tokens after `prompt` under the current weights, and the log-prob of each."""
        ...

    def export(self) -> dict[str, torch.Tensor]:
        """Current weights by Hugging Face name, on the CPU. The full dictionary on rank 0, empty
        elsewhere."""
        ...

    def release(self, parts: Collection[Part] = EARLY_PARTS) -> int:
        """Give memory back (R22 order: early parts, then parameters). Returns bytes released by this call
        on this rank."""
        ...

    def restore(self) -> int:
        """Take back everything released, bit for bit. Returns bytes taken back."""
        ...

    def save(self, folder: str | Path) -> None:
        """Checkpoint: weights in Hugging Face format, optimizer state and version. Atomic: the folder
        appears whole."""
        ...

    def load(self, folder: str | Path) -> None:
        """Resume from `save`: weights, optimizer state and version."""
        ...

    def close(self) -> None:
        """Leave the process group. Idempotent."""
        ...
