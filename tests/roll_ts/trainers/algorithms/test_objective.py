"""Each formula against a case computed by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.trainers.algorithms.corrections import Correction
from roll_ts.trainers.algorithms.objective import Batch, Loss, Objective, policy_loss, token_scale

LN2 = math.log(2)


def loss_of(
    logprobs: torch.Tensor,
    old: torch.Tensor,
    behaviour: torch.Tensor,
    advantages: torch.Tensor,
    mask: torch.Tensor,
    scale: torch.Tensor | None = None,
    upper: float | None = 2.0,
    reference: torch.Tensor | None = None,
    entropy: torch.Tensor | None = None,
    **objective: object,
) -> Loss:
    stale = torch.zeros_like(mask).bool()
    batch = Batch(old, behaviour, stale, mask.bool(), reference)
    scale = torch.ones(len(advantages)) if scale is None else scale
    chosen = Objective(correction=Correction(upper=upper), **objective)  # type: ignore[arg-type]
    return policy_loss(chosen, logprobs, batch, advantages, scale, entropy)


def gradient(tensor: torch.Tensor) -> list[list[float]]:
    assert tensor.grad is not None
    return tensor.grad.tolist()


def test_on_policy_the_gradient_is_the_advantage_times_the_score() -> None:
    logprobs = torch.tensor([[-1.0, -2.0, -3.0]], requires_grad=True)
    now = logprobs.detach()
    loss = loss_of(logprobs, now, now, torch.tensor([2.0]), torch.tensor([[1, 1, 0]]), torch.tensor([0.5]))
    loss.total.backward()
    assert loss.total.item() == -2.0  # two tokens, each 0.5 * 1 * 2
    assert gradient(logprobs) == [[-1.0, -1.0, 0.0]]
    assert (loss.weights.item(), int(loss.truncated), int(loss.clipped)) == (2.0, 0, 0)


def test_the_importance_weight_is_held_constant_and_multiplies_the_ratio() -> None:
    logprobs = torch.tensor([[-1.0 + LN2]], requires_grad=True)  # r = 2
    old, behaviour = torch.tensor([[-1.0]], requires_grad=True), torch.tensor([[-1.0 - math.log(1.5)]])
    ones = torch.ones(1, 1)
    loss = loss_of(logprobs, old, behaviour, torch.tensor([1.0]), ones)
    loss.total.backward()
    assert loss.total.item() == pytest.approx(-1.5 * 2)
    assert gradient(logprobs)[0] == pytest.approx([-3])
    assert old.grad is None


def test_the_clip_stops_the_gradient_where_the_step_already_went_too_far() -> None:
    # r = 2, 2, 1/2, 1/2 with advantages +1, -1, +1, -1 and a clip of [0.8, 1.3]
    logprobs = torch.tensor([[LN2], [LN2], [-LN2], [-LN2]]) - 1
    logprobs.requires_grad_()
    old = torch.full((4, 1), -1.0)
    advantages, ones = torch.tensor([1.0, -1.0, 1.0, -1.0]), torch.ones(4, 1)
    loss = loss_of(logprobs, old, old, advantages, ones, clip=(0.2, 0.3))
    loss.total.backward()
    # min(2, 1.3) + min(-2, -1.3) + min(0.5, 0.8) + min(-0.5, -0.8)
    assert loss.total.item() == pytest.approx(-(1.3 - 2 + 0.5 - 0.8))
    assert [row[0] for row in gradient(logprobs)] == pytest.approx([0, 2, -0.5, 0])
    assert int(loss.clipped) == 2


def test_the_dual_clip_bounds_what_a_bad_token_may_lose_and_leaves_good_ones_alone() -> None:
    # r = 8, 2, 8 with advantages -1, -1, +1: 8 * -1 is bounded at 3 * -1
    logprobs = torch.tensor([[3 * LN2], [LN2], [3 * LN2]]) - 1
    logprobs.requires_grad_()
    old, ones = torch.full((3, 1), -1.0), torch.ones(3, 1)
    loss = loss_of(logprobs, old, old, torch.tensor([-1.0, -1.0, 1.0]), ones, dual_clip=3.0)
    loss.total.backward()
    assert loss.total.item() == pytest.approx(3 + 2 - 8)
    assert [row[0] for row in gradient(logprobs)] == pytest.approx([0, 2, -8])
    assert int(loss.clipped) == 1


def test_the_sequence_ratio_is_the_geometric_mean_for_every_token_of_the_sequence() -> None:
    # ratios 4 and 1: the geometric mean is 2, and each token's share of its gradient is 2 / 2
    logprobs = torch.tensor([[2 * LN2 - 1, -1.0, 9.0]], requires_grad=True)
    old, mask = torch.full((1, 3), -1.0), torch.tensor([[1, 1, 0]])
    loss = loss_of(logprobs, old, old, torch.tensor([1.0]), mask, torch.tensor([0.5]), ratio="sequence")
    loss.total.backward()
    assert loss.total.item() == pytest.approx(-2.0)  # 2 tokens * 0.5 * 2
    assert gradient(logprobs)[0] == pytest.approx([-1, -1, 0])


def test_a_sequence_is_clipped_whole() -> None:
    logprobs = torch.tensor([[2 * LN2 - 1, -1.0]], requires_grad=True)
    old = torch.full((1, 2), -1.0)
    loss = loss_of(logprobs, old, old, torch.tensor([1.0]), torch.ones(1, 2), ratio="sequence", clip=(0.1, 0.5))
    loss.total.backward()
    assert loss.total.item() == pytest.approx(-3.0)  # 1.5 for each of two tokens
    assert gradient(logprobs)[0] == [0, 0]
    assert int(loss.clipped) == 2


@pytest.mark.parametrize(
    ("estimator", "value", "slope"),
    # d = log pi - log pi_ref = ln 2: d; d^2 / 2; exp(-d) - 1 + d, with slopes 1; d; 1 - exp(-d)
    [("k1", LN2, 1.0), ("k2", LN2**2 / 2, LN2), ("k3", 0.5 - 1 + LN2, 0.5)],
)
def test_the_distance_to_the_reference_is_weighed_and_reported(estimator: str, value: float, slope: float) -> None:
    logprobs = torch.tensor([[-1.0, -1.0]], requires_grad=True)
    now, mask = logprobs.detach(), torch.tensor([[1, 0]])
    reference = torch.tensor([[-1.0 - LN2, math.nan]])
    loss = loss_of(
        logprobs, now, now, torch.zeros(1), mask, torch.tensor([0.5]), kl=0.1, estimator=estimator, reference=reference
    )
    loss.total.backward()
    assert loss.total.item() == pytest.approx(0.5 * 0.1 * value)
    assert loss.kl.item() == pytest.approx(value)
    assert gradient(logprobs)[0] == pytest.approx([0.5 * 0.1 * slope, 0])


def test_entropy_is_a_bonus() -> None:
    logprobs, entropy = torch.tensor([[-1.0, -1.0]]), torch.tensor([[2.0, 5.0]], requires_grad=True)
    loss = loss_of(
        logprobs, logprobs, logprobs, torch.zeros(1), torch.tensor([[1, 0]]), torch.tensor([0.5]),
        entropy=entropy,
    )  # fmt: skip
    assert loss.total.item() == 0, "without a weight it is only reported"
    assert loss.entropy.item() == 2.0
    batch = Batch(logprobs, logprobs, torch.zeros(1, 2).bool(), torch.tensor([[True, False]]))
    weighed = policy_loss(Objective(entropy=0.1), logprobs, batch, torch.zeros(1), torch.tensor([0.5]), entropy)
    weighed.total.backward()
    assert weighed.total.item() == pytest.approx(-0.5 * 0.1 * 2)
    assert gradient(entropy)[0] == pytest.approx([-0.05, 0])


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(st.booleans(), min_size=1, max_size=12), st.sampled_from([0.0, math.inf, math.nan, -50.0]))
def test_tokens_outside_the_mask_have_no_influence_whatever_they_hold(mask: list[bool], junk: float) -> None:
    keep = torch.tensor([mask])
    clean = torch.full((1, len(mask)), -1.0)
    dirty = torch.where(keep, clean, torch.tensor(junk))
    results = []
    for other in (clean, dirty):
        logprobs = clean.clone().requires_grad_()
        now = logprobs.detach()
        loss = loss_of(
            logprobs, now, other, torch.ones(1), keep, clip=(0.2, 0.2), ratio="sequence", kl=1.0, reference=other
        )
        loss.total.backward()
        results.append((loss.total.item(), gradient(logprobs)))
    assert results[0] == results[1]
    assert results[0][0] == -float(sum(mask))


def test_token_norm_weighs_tokens_alike_and_sample_norm_weighs_samples_alike() -> None:
    assert token_scale([1, 3, 0], "token").tolist() == pytest.approx([1 / 4] * 3)
    assert token_scale([1, 3, 0], "sample")[:2].tolist() == pytest.approx([1 / 2, 1 / 6])
