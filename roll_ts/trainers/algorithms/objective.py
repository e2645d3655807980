"""The loss of a batch: a clipped surrogate of the corrected advantages, and the penalties beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from roll_ts.trainers.algorithms.corrections import Correction, correct
from roll_ts.trainers.algorithms.penalties import Estimator, kl_to_reference

Norm = Literal["token", "sample"]


@dataclass(frozen=True)
class Objective:
    """What is optimised.

    ratio: pi / pi_old of each token (PPO, Schulman et al. 2017, arXiv:1707.06347), or the geometric mean over the
    sequence for all of its tokens (GSPO, Zheng et al. 2025, arXiv:2507.18071). clip: (low, high), bounds of the ratio
    at 1 - low and 1 + high; DAPO's are unequal (Yu et al. 2025, arXiv:2503.14476). dual_clip: with a negative advantage
    a token loses at most this many times it (Ye et al. 2020, arXiv:1912.09729). kl: weight of the distance to the
    reference. entropy: weight of the policy's entropy, as a bonus.
    """

    ratio: Literal["token", "sequence"] = "token"
    clip: tuple[float, float] | None = None
    dual_clip: float | None = None
    correction: Correction = field(default_factory=Correction)
    kl: float = 0.0
    estimator: Estimator = "k3"
    entropy: float = 0.0


@dataclass(frozen=True)
class Batch:
    """What is known of the tokens of a batch, each [batch, time]: log-probs under pi_old, pi_b and pi_ref (None: no KL
    term), and whether an older version sampled it."""

    old: torch.Tensor
    behaviour: torch.Tensor
    stale: torch.Tensor
    mask: torch.Tensor
    reference: torch.Tensor | None = None


@dataclass(frozen=True)
class Loss:
    """Sums over a batch, not yet divided. `total` is what is minimised; the others are detached: weights, and counts of
    tokens whose weight was truncated, that were rejected, whose gradient the clip removed; KL and entropy in nats."""

    total: torch.Tensor
    weights: torch.Tensor
    truncated: torch.Tensor
    rejected: torch.Tensor
    clipped: torch.Tensor
    kl: torch.Tensor
    entropy: torch.Tensor


def policy_loss(
    objective: Objective,
    logprobs: torch.Tensor,
    batch: Batch,
    advantages: torch.Tensor,
    scale: torch.Tensor,
    entropy: torch.Tensor | None = None,
) -> Loss:
    """Sum over generated tokens of scale * (-w * surrogate + kl * KL - entropy * H).

    surrogate = min(r A, clip(r) A), and not below dual_clip * A where A < 0; w is the correction, held constant.
    `advantages` and `scale` are [batch]; scale is what each token counts for (`token_scale`). `logprobs` under pi and
    `entropy` (of pi at each position, None where it has no weight) are differentiable. When pi is pi_old and nothing is
    clipped, the gradient is A w grad log pi.
    """
    mask, zero = batch.mask.bool(), torch.zeros((), dtype=logprobs.dtype, device=logprobs.device)
    a, share = advantages[:, None], scale[:, None]
    found = correct(objective.correction, batch.old, batch.behaviour, batch.stale, mask)
    gain, clipped = _surrogate(objective, torch.where(mask, logprobs - batch.old.detach(), zero), a, mask)
    total = -torch.where(mask, share * found.weight * gain, zero).sum()
    kl = h = zero
    if batch.reference is not None:
        # Masked before, not after: a masked nan would still reach the gradient through the estimator.
        reference = torch.where(mask, batch.reference, logprobs.detach())
        each = torch.where(mask, kl_to_reference(objective.estimator, logprobs, reference), zero)
        total, kl = total + objective.kl * (share * each).sum(), each.detach().sum()
    if entropy is not None:
        each = torch.where(mask, entropy, zero)
        total, h = total - objective.entropy * (share * each).sum(), each.detach().sum()
    removed = (clipped & (found.weight > 0)).sum()
    return Loss(total, found.weight.sum(), found.truncated.sum(), found.rejected.sum(), removed, kl, h)


def _surrogate(
    objective: Objective, log_ratio: torch.Tensor, advantages: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """What each token gains, and where its gradient is removed."""
    if objective.ratio == "sequence":
        mean = log_ratio.sum(dim=1, keepdim=True) / mask.sum(dim=1, keepdim=True).clamp(min=1)
        log_ratio = mean.expand_as(log_ratio)
    ratio = log_ratio.exp()
    gain = ratio * advantages
    clipped = torch.zeros_like(mask)
    if objective.clip is not None:
        low, high = objective.clip
        bounded = ratio.clamp(1 - low, 1 + high) * advantages
        clipped = mask & (bounded < gain)
        gain = torch.minimum(gain, bounded)
    if objective.dual_clip is not None:
        floor = (objective.dual_clip * advantages).expand_as(gain)
        floored = (advantages < 0) & (gain < floor)
        clipped |= mask & floored
        gain = torch.where(floored, floor, gain)
    return gain, clipped


def token_scale(lengths: Sequence[int], norm: Norm) -> torch.Tensor:
    """What one generated token of each sample counts for, float32 [batch]; `lengths` are generated tokens
    per sample, 0 for one that is left out.

    "token": 1 / sum(lengths) (DAPO: Yu et al. 2025, arXiv:2503.14476). "sample": 1 / (samples * length),
    the mean of per-sample means (GRPO). A sample without generated tokens counts for nothing, and is no sample.
    """
    n = torch.tensor(lengths, dtype=torch.float64)
    if norm == "token":
        return torch.full_like(n, 1.0 / max(float(n.sum()), 1.0)).float()
    return (1.0 / (max(1, int((n > 0).sum())) * n.clamp(min=1))).float()
