"""How much better than expected each trajectory was: one number a trajectory, from the rewards of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import torch

Advantage = Literal["grpo", "dr_grpo", "rloo", "reinforce_pp", "reinforce_pp_baseline"]
EPSILON = 1e-6


def advantages(kind: Advantage, rewards: Sequence[float], groups: Sequence[str]) -> torch.Tensor:
    """Advantage of each trajectory, float32 [batch]; `groups` names the prompt group of each.

    grpo: (r - mean_g) / (std_g + eps), std with divisor n (Shao et al. 2024, arXiv:2402.03300, section 4.1.2).
    dr_grpo: r - mean_g (Liu et al. 2025, arXiv:2503.20783). rloo: r - mean of the others of the group (Ahmadian et al.
    2024, arXiv:2402.14740), that is n / (n - 1) times dr_grpo. reinforce_pp: (r - mean) / (std + eps) over the batch
    (Hu et al. 2025, arXiv:2501.03262); reinforce_pp_baseline: r - mean_g, then divided by its own std over the batch.
    A group of one has nothing to compare with and gets 0, but in reinforce_pp, which ignores groups. Raises ValueError
    if the lengths differ.
    """
    # VAL: VAL_EQUAL_LENGTH(rewards, groups) - one group name for each reward
    if len(rewards) != len(groups):
        raise ValueError(
            f"advantages: rewards must have as many elements as groups, got {len(rewards)!r} and "
            f"{len(groups)!r} - one group name for each reward"
        )
    # END VAL 6e3f16
    r = torch.tensor(rewards, dtype=torch.float64)
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(groups):
        rows.setdefault(name, []).append(row)
    return _KINDS[kind](r, [torch.tensor(members) for members in rows.values()]).float()


_Rows = list[torch.Tensor]


def _grpo(r: torch.Tensor, groups: _Rows) -> torch.Tensor:
    centred = _dr_grpo(r, groups)
    for rows in groups:
        centred[rows] = centred[rows] / (_deviation(centred[rows]) + EPSILON)
    return centred


def _dr_grpo(r: torch.Tensor, groups: _Rows) -> torch.Tensor:
    found = torch.zeros_like(r)
    for rows in groups:
        found[rows] = r[rows] - r[rows].mean()
    return found


def _rloo(r: torch.Tensor, groups: _Rows) -> torch.Tensor:
    found = _dr_grpo(r, groups)
    for rows in groups:
        found[rows] *= len(rows) / max(1, len(rows) - 1)
    return found


def _reinforce_pp(r: torch.Tensor, groups: _Rows) -> torch.Tensor:
    centred = r - r.mean()
    return centred / (_deviation(centred) + EPSILON)


def _reinforce_pp_baseline(r: torch.Tensor, groups: _Rows) -> torch.Tensor:
    centred = _dr_grpo(r, groups)
    return centred / (_deviation(centred) + EPSILON)


def _deviation(centred: torch.Tensor) -> torch.Tensor:
    return centred.pow(2).mean().sqrt()


_KINDS: dict[Advantage, Callable[[torch.Tensor, _Rows], torch.Tensor]] = {
    "grpo": _grpo,
    "dr_grpo": _dr_grpo,
    "rloo": _rloo,
    "reinforce_pp": _reinforce_pp,
    "reinforce_pp_baseline": _reinforce_pp_baseline,
}
ADVANTAGES = get_args(Advantage)
