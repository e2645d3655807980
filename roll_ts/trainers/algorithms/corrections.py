"""Off-policy correction: how much a token that other weights sampled may count, and which tokens do not count at all.

The log-ratio of a token is log pi_old - log pi_b. It is not zero for two reasons that may want different treatment: the
token is stale (an older version sampled it), or the engine computes slightly other numbers than the trainer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

Source = Literal["all", "stale", "engine"]
WeightLevel = Literal["token", "sequence"]
RejectLevel = Literal["none", "token", "sequence", "geometric"]
# exp(20) is beyond any bound in use and far below the largest float32, so that a product of thousands of ratios neither
# overflows nor becomes a nan in a masked place.
_LARGEST_LOG = 20.0


@dataclass(frozen=True)
class Correction:
    """How a batch is corrected.

    source: whose log-ratios count; of the other tokens the ratio is 1. Truncated importance sampling: each token weighs
    min(ratio, upper) at the level of tokens or of the whole sequence (product of its ratios); `upper` None: no bound
    (Ionides 2008; V-trace, arXiv:1802.01561). Rejection: tokens (sequences: by the product, geometric: by the mean
    log-ratio, which does not depend on length) whose ratio lies outside of [reject_low, reject_high] count nothing; the
    divisor of the loss stays as it was.
    """

    source: Source = "all"
    level: WeightLevel = "token"
    upper: float | None = 2.0
    reject: RejectLevel = "none"
    reject_low: float = 0.0
    reject_high: float = float("inf")


@dataclass(frozen=True)
class Weights:
    """What each token counts, [batch, time], held constant; and where a bound changed that."""

    weight: torch.Tensor
    truncated: torch.Tensor
    rejected: torch.Tensor


def correct(
    correction: Correction, old: torch.Tensor, behaviour: torch.Tensor, stale: torch.Tensor, mask: torch.Tensor
) -> Weights:
    """The weights of a batch. `old` and `behaviour` are log-probs, `stale` is true where an older version sampled; all
    [batch, time]."""
    counts = {"all": mask, "stale": mask & stale, "engine": mask & ~stale}[correction.source]
    zero = torch.zeros((), dtype=old.dtype, device=old.device)
    log_ratio = torch.where(counts, old.detach() - behaviour, zero)
    raw = _ratio(log_ratio, counts, correction.level)
    weight = raw if correction.upper is None else raw.clamp(max=correction.upper)
    truncated = torch.zeros_like(mask) if correction.upper is None else mask & (raw > correction.upper)
    rejected = torch.zeros_like(mask)
    if correction.reject != "none":
        judged = _ratio(log_ratio, counts, correction.reject)
        rejected = mask & ((judged < correction.reject_low) | (judged > correction.reject_high))
        weight = torch.where(rejected, zero, weight)
    return Weights(torch.where(mask, weight, zero), truncated & ~rejected, rejected)


def _ratio(log_ratio: torch.Tensor, counts: torch.Tensor, level: WeightLevel | RejectLevel) -> torch.Tensor:
    """The ratio at a level, [batch, time]."""
    if level == "token":
        return log_ratio.clamp(-_LARGEST_LOG, _LARGEST_LOG).exp()
    total = log_ratio.sum(dim=1, keepdim=True)
    if level == "geometric":
        total = total / counts.sum(dim=1, keepdim=True).clamp(min=1)
    return total.clamp(-_LARGEST_LOG, _LARGEST_LOG).exp().expand_as(log_ratio)
