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
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, get_origin, get_type_hints

from roll_ts.trainers.sample import Sample
from roll_ts.trainers.tolerance import Tolerance

if TYPE_CHECKING:
    import torch

Part = Literal["optimizer", "gradients", "activations", "parameters"]
# R22: what can go before the new weights are handed over, and what only after.
EARLY_PARTS: tuple[Part, ...] = ("optimizer", "gradients", "activations")
ALL_PARTS: tuple[Part, ...] = (*EARLY_PARTS, "parameters")


@dataclass(frozen=True)
class TrainerConfig:
    """How to train. Sizes in tokens, learning rate in Adam units, timeouts in seconds. `docs/algorithms.md` says which
    choices make which published algorithm.

    model: folder in Hugging Face format (config.json, model.safetensors). tensor_parallel must divide
    world_size; the rest is data parallel. micro_batch_tokens bounds padded tokens per forward pass.

    Schedule: learning_rate is reached after warmup_steps and kept, or falls by `decay` to min_learning_rate at
    decay_steps. weight_decay spares biases and norms.

    Algorithm: advantage, see `algorithms.advantages`. loss_norm: "token" divides by the trained tokens of the batch,
    "sample" averages per-sample means. mask_truncated: samples that ended by a limit are compared with but not trained
    on. ratio, clip_low/clip_high (bounds of pi_new / pi_old at 1 - clip_low and 1 + clip_high; None: no clip) and
    dual_clip, see `algorithms.objective`. truncate_weight: upper bound of pi_old / pi_behaviour (None: no bound), at
    weight_level, over the tokens of weight_source; reject_level with reject_low and reject_high: what counts nothing,
    see `algorithms.corrections`. kl_weight, kl_estimator: distance to the first weights; entropy_weight: bonus.

    logprob_tolerance: bound of the |rollout - trainer| log-prob difference on tokens sampled with the current version
    (None: derived from dtype and rollout_dtype, see `tolerance`); beyond it `train` raises, or only reports when
    strict_logprobs is false. spill_folder: where `release` puts host memory.
    """

    model: str
    learning_rate: float = 1e-3
    min_learning_rate: float = 0.0
    decay: Literal["constant", "linear", "cosine"] = "constant"
    decay_steps: int = 0
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
    advantage: Literal["grpo", "dr_grpo", "rloo", "reinforce_pp", "reinforce_pp_baseline"] = "grpo"
    loss_norm: Literal["token", "sample"] = "token"
    mask_truncated: bool = False
    ratio: Literal["token", "sequence"] = "token"
    clip_low: float | None = None
    clip_high: float | None = None
    dual_clip: float | None = None
    truncate_weight: float | None = 2.0
    weight_level: Literal["token", "sequence"] = "token"
    weight_source: Literal["all", "stale", "engine"] = "all"
    reject_level: Literal["none", "token", "sequence", "geometric"] = "none"
    reject_low: float = 0.0
    reject_high: float | None = None
    kl_weight: float = 0.0
    kl_estimator: Literal["k1", "k2", "k3"] = "k3"
    entropy_weight: float = 0.0
    tensor_parallel: int = 1
    distributed_optimizer: bool = False
    dtype: Literal["float32", "bfloat16"] = "float32"
    rollout_dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    logprob_tolerance: float | None = None
    strict_logprobs: bool = True
    spill_folder: str | None = None
    seed: int = 0
    timeout_s: float = 120.0

    def problems(self) -> list[tuple[str, object, str]]:
        """Every bad value as (key, value, what it must be); empty when the configuration is sound."""
        single = self.epochs * self.minibatches == 1
        clips = self.clip_low is not None or self.clip_high is not None or self.dual_clip is not None
        decays = self.decay != "constant"
        high = self.reject_high
        checks: list[tuple[str, bool, str]] = [
            ("learning_rate", self.learning_rate > 0, "a positive number"),
            ("min_learning_rate", 0 <= self.min_learning_rate <= self.learning_rate, "in [0, learning_rate]"),
            (
                "decay_steps",
                self.decay_steps > self.warmup_steps or not decays,
                "above warmup_steps, where decay is set",
            ),
            ("decay_steps", self.decay_steps == 0 or decays, "left out where decay is constant: it has no effect"),
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
            (
                "clip_high",
                (self.clip_low is None) == (self.clip_high is None),
                "set together with clip_low, or not at all",
            ),
            ("dual_clip", self.dual_clip is None or self.dual_clip > 1, "null or above 1"),
            (
                "clip_low",
                not (clips and single),
                "left out with one epoch and one minibatch: pi is pi_old, so no clip acts",
            ),
            ("reject_low", 0 <= self.reject_low < 1, "in [0, 1)"),
            ("reject_high", high is None or high > 1, "null or above 1"),
            (
                "reject_level",
                (self.reject_level != "none") == (high is not None or self.reject_low > 0),
                "set together with reject_low or reject_high, or not at all",
            ),
            ("kl_weight", self.kl_weight >= 0, "zero or positive"),
            (
                "kl_estimator",
                not (self.kl_weight and self.kl_estimator == "k1"),
                "k2 or k3: as a loss, k1 has no gradient in expectation",
            ),
            ("entropy_weight", self.entropy_weight >= 0, "zero or positive"),
            *(
                (name, getattr(self, name) in allowed, " or ".join(map(repr, allowed)))
                for name, allowed in _CHOICES.items()
            ),
            ("tensor_parallel", self.tensor_parallel >= 1, "at least 1"),
            ("logprob_tolerance", self.logprob_tolerance is None or self.logprob_tolerance > 0, "null or positive"),
            ("timeout_s", self.timeout_s > 0, "positive"),
        ]
        return [(key, getattr(self, key), must) for key, ok, must in checks if not ok]

    def require_sound(self) -> None:
        """Raises ValueError naming the bad values at once, and what each must be; `problems` spells them out."""
        problems = self.problems()
        bad = {key: value for key, value, _ in problems}
        must_be = {key: must for key, _, must in problems}
        # VAL: VAL_EMPTY(bad, about=must_be) - correct these values of the trainer configuration
        if len(bad) != 0:
            raise ValueError(
                f"TrainerConfig.require_sound: bad must be empty, got {bad!r:.200} "
                f"(must_be={must_be!r:.200}) - correct these values of the trainer configuration"
            )
        # END VAL 8c04bc


_CHOICES: dict[str, tuple[str, ...]] = {
    name: get_args(kind) for name, kind in get_type_hints(TrainerConfig).items() if get_origin(kind) is Literal
}


@dataclass(frozen=True)
class LogprobCheck:
    """|rollout log-prob - trainer log-prob| over the trained tokens sampled with the trainer's own version.

    n: compared tokens; share: n / trained tokens of the batch; max and p99 in nats (0 when n is 0), and what bounds
    them; worst names the trajectory and position of max.
    """

    n: int
    share: float
    max: float
    p99: float
    tolerance: Tolerance
    worst: str = ""

    @property
    def ok(self) -> bool:
        return self.max <= self.tolerance.largest and self.p99 <= self.tolerance.p99

    def __str__(self) -> str:
        return (
            f"log-prob check: n={self.n} ({self.share:.0%} of trained tokens) max={self.max:.2e} p99={self.p99:.2e} "
            f"allowed={self.tolerance.largest:.1e}, p99 {self.tolerance.p99:.1e}"
            f"{'' if self.ok else f' VIOLATED at {self.worst}'}"
        )


class LogprobMismatch(RuntimeError):
    """Rollout and trainer disagree about the probability of tokens they should both have made with the
    same weights."""


@dataclass(frozen=True)
class TrainReport:
    """What one `train` call did. Token counts are of the whole batch, all ranks; seconds are this rank's.

    version: after the step. stepped: whether weights changed; where all advantages of the batch are zero and no other
    term is weighed there is nothing to learn, and Adam's momentum alone moves no weight. truncated_share,
    rejected_share and clipped_share: share of trained tokens whose importance weight was truncated, that did not count,
    whose gradient the clip removed. mean_nll: mean -log pi of the trained tokens, nats (an entropy estimate).
    reference_kl and entropy: means over the trained tokens, nats; 0 where they have no weight. staleness: {version
    distance: trained tokens}.
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
    rejected_share: float
    clipped_share: float
    mean_nll: float
    reference_kl: float
    entropy: float
    stepped: bool
    learning_rate: float
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
