"""Terms beside the objective: the distance to the reference policy."""

from __future__ import annotations

from typing import Literal

import torch

Estimator = Literal["k1", "k2", "k3"]


def kl_to_reference(estimator: Estimator, logprobs: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Estimate of KL(pi || pi_ref) from each sampled token, nats, [batch, time]; differentiable in `logprobs`.

    With d = log pi - log pi_ref: k1 = d, k2 = d^2 / 2, k3 = exp(-d) - 1 + d (Schulman 2020, "Approximating KL
    divergence"; GRPO's term is k3). As a loss, k2 has the gradient of the KL on on-policy tokens; k3's agrees with it
    near pi_ref; the gradient of k1 is zero in expectation, so k1 is useful for reporting only.
    """
    d = logprobs - reference.detach()
    if estimator == "k1":
        return d
    if estimator == "k2":
        return d.pow(2) / 2
    # exp(-d) of a token that pi_ref finds far likelier would drown the batch in one gradient.
    return (-d).clamp(max=20.0).exp() - 1 + d
