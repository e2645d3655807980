"""Group-relative policy optimisation (GRPO) on behaviour samples: advantages, importance weights, loss.
Pure torch.

Symbols: pi_b sampled the token (its log-prob came with the sample), pi_old are the trainer's weights at
the start of the update, pi the weights being optimised. Per-token tensors are [batch, time]; `mask` is 1
on generated tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

EPSILON = 1e-6


def group_advantages(rewards: Sequence[float], groups: Sequence[str], normalise_std: bool = True) -> torch.Tensor:
    """Advantage of each trajectory against its own group, float32 [batch].

    A_i = (r_i - mean_g) / (std_g + eps), std with divisor n (GRPO: Shao et al. 2024, arXiv:2402.03300, section 4.1.2);
    without the division when `normalise_std` is false (Dr. GRPO: Liu et al. 2025, arXiv:2503.20783). A
    group of one, or of equal rewards, has advantage 0. Raises ValueError if the lengths differ.
    """
    # VAL: VAL_EQUAL_LENGTH(rewards, groups) - one group name for each reward
    if len(rewards) != len(groups):
        raise ValueError(
            f"group_advantages: rewards must have as many elements as groups, got {len(rewards)!r} and "
            f"{len(groups)!r} - one group name for each reward"
        )
    # END VAL b4a2a2
    r = torch.tensor(rewards, dtype=torch.float64)
    advantages = torch.zeros_like(r)
    for name in dict.fromkeys(groups):
        rows = torch.tensor([i for i, g in enumerate(groups) if g == name])
        centred = r[rows] - r[rows].mean()
        if normalise_std:
            centred = centred / (centred.pow(2).mean().sqrt() + EPSILON)
        advantages[rows] = centred
    return advantages.float()


@dataclass(frozen=True)
class TokenLoss:
    """Summed loss of a batch (not yet divided) and what happened on the way; all but `total` are detached
    scalars."""

    total: torch.Tensor
    weight_sum: torch.Tensor
    truncated: torch.Tensor
    clipped: torch.Tensor


def policy_loss(
    logprobs: torch.Tensor,
    old_logprobs: torch.Tensor,
    behaviour_logprobs: torch.Tensor,
    advantages: torch.Tensor,
    mask: torch.Tensor,
    scale: torch.Tensor,
    truncate_weight: float | None = None,
    clip: tuple[float, float] | None = None,
) -> TokenLoss:
    """Sum over generated tokens of -scale * w * min(r A, clip(r, 1 - lo, 1 + hi) A).

    w = min(pi_old / pi_b, C), held constant: truncated importance sampling (Ionides 2008; between engines and for
    stale samples as in IMPALA, arXiv:1802.01561). r = pi / pi_old with the clip of PPO (Schulman et al. 2017,
    arXiv:1707.06347); no clip when `clip` is None. When pi is pi_old this is A w grad log pi. `advantages` is [batch]
    or [batch, time]; so is `scale`: what each token counts for (1 / tokens of the batch, or 1 / (samples * length)).
    Tokens outside `mask` have no influence, whatever they hold.
    """
    keep = mask.bool()
    zero = torch.zeros((), dtype=logprobs.dtype, device=logprobs.device)
    if advantages.dim() == 1:
        advantages = advantages[:, None]
    if scale.dim() == 1:
        scale = scale[:, None]
    raw = torch.where(keep, old_logprobs - behaviour_logprobs, zero).exp().detach()
    weight = raw if truncate_weight is None else raw.clamp(max=truncate_weight)
    ratio = torch.where(keep, logprobs - old_logprobs.detach(), zero).exp()
    gain = ratio * advantages
    clipped = torch.zeros_like(keep)
    if clip is not None:
        bounded = ratio.clamp(1 - clip[0], 1 + clip[1]) * advantages
        clipped = keep & (bounded < gain)
        gain = torch.minimum(gain, bounded)
    total = -(torch.where(keep, scale * weight * gain, zero)).sum()
    return TokenLoss(
        total=total,
        weight_sum=torch.where(keep, weight, zero).sum(),
        truncated=zero.detach() if truncate_weight is None else (keep & (raw > truncate_weight)).sum(),
        clipped=clipped.sum(),
    )


def token_scale(lengths: Sequence[int], norm: str) -> torch.Tensor:
    """What one generated token of each sample counts for, float32 [batch]; `lengths` are generated tokens
    per sample.

    "token": 1 / sum(lengths) (DAPO: Yu et al. 2025, arXiv:2503.14476). "sample": 1 / (samples * length),
    the mean of per-sample means (GRPO). A sample without generated tokens counts for nothing.
    """
    n = torch.tensor(lengths, dtype=torch.float64)
    if norm == "token":
        return torch.full_like(n, 1.0 / max(float(n.sum()), 1.0)).float()
    if norm == "sample":
        return (1.0 / (len(lengths) * n.clamp(min=1))).float()
    raise ValueError(f"norm must be 'token' or 'sample', got {norm!r}")
