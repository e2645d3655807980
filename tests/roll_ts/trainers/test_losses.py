"""Each formula against a case computed by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.trainers.losses import group_advantages, policy_loss, token_scale

LN2 = math.log(2)


def test_advantages_are_rewards_against_their_own_group() -> None:
    # group a: 1, 0, 0, 1: mean 1/2, deviation 1/2. group b: 3, 0, 0: mean 1, deviation sqrt(2)
    got = group_advantages([1, 3, 0, 0, 0, 0, 1], ["a", "b", "a", "b", "b", "a", "a"])
    r2 = math.sqrt(2)
    assert got.tolist() == pytest.approx([1, r2, -1, -1 / r2, -1 / r2, -1, 1], abs=1e-5)


def test_without_the_deviation_advantages_are_plain_differences() -> None:
    assert group_advantages([3, 0, 0], ["g"] * 3, normalise_std=False).tolist() == [2, -1, -1]


def test_equal_rewards_and_lonely_samples_have_no_advantage() -> None:
    assert group_advantages([0.3, 0.3, 7.0], ["a", "a", "b"]).tolist() == [0, 0, 0]


def test_a_reward_without_a_group_is_refused() -> None:
    with pytest.raises(ValueError, match="got 2 and 1 - one group name for each reward"):
        group_advantages([1, 2], ["a"])


def test_on_policy_the_gradient_is_the_advantage_times_the_score() -> None:
    logprobs = torch.tensor([[-1.0, -2.0, -3.0]], requires_grad=True)
    mask, advantage, scale = torch.tensor([[1, 1, 0]]), torch.tensor([2.0]), torch.tensor([0.5])
    now = logprobs.detach()
    loss = policy_loss(logprobs, now, now, advantage, mask, scale, truncate_weight=2.0)
    loss.total.backward()
    assert loss.total.item() == -2.0  # two tokens, each 0.5 * 1 * 2
    assert logprobs.grad is not None and logprobs.grad.tolist() == [[-1.0, -1.0, 0.0]]
    assert (loss.weight_sum.item(), int(loss.truncated), int(loss.clipped)) == (2.0, 0, 0)


def test_importance_weights_are_truncated_from_above_only() -> None:
    # pi_old / pi_b = 1/2, 1, 8; the bound is 2
    old = torch.tensor([[-LN2, 0.0, -LN2]])
    behaviour = torch.tensor([[0.0, 0.0, -4 * LN2]])
    logprobs = old.clone().requires_grad_()
    ones = torch.ones(1, 3)
    loss = policy_loss(logprobs, old, behaviour, torch.tensor([1.0]), ones, ones, truncate_weight=2.0)
    loss.total.backward()
    assert loss.total.item() == pytest.approx(-(0.5 + 1 + 2))
    assert logprobs.grad is not None and logprobs.grad[0].tolist() == pytest.approx([-0.5, -1, -2])
    assert loss.weight_sum.item() == pytest.approx(3.5)
    assert int(loss.truncated) == 1
    free = policy_loss(logprobs, old, behaviour, torch.tensor([1.0]), ones, ones, truncate_weight=None)
    assert free.total.item() == pytest.approx(-(0.5 + 1 + 8))
    assert int(free.truncated) == 0


def test_the_clip_stops_the_gradient_where_the_step_already_went_too_far() -> None:
    # r = 2, 2, 1/2, 1/2 with advantages +1, -1, +1, -1 and a clip of [0.8, 1.3]
    logprobs = torch.tensor([[LN2], [LN2], [-LN2], [-LN2]]) - 1
    logprobs.requires_grad_()
    old = torch.full((4, 1), -1.0)
    advantages, ones = torch.tensor([1.0, -1.0, 1.0, -1.0]), torch.ones(4, 1)
    loss = policy_loss(logprobs, old, old, advantages, ones, ones, clip=(0.2, 0.3))
    loss.total.backward()
    # min(2, 1.3) + min(-2, -1.3) + min(0.5, 0.8) + min(-0.5, -0.8)
    assert loss.total.item() == pytest.approx(-(1.3 - 2 + 0.5 - 0.8))
    assert logprobs.grad is not None and logprobs.grad[:, 0].tolist() == pytest.approx([0, 2, -0.5, 0])
    assert int(loss.clipped) == 2


def test_the_importance_weight_is_held_constant_and_multiplies_the_ratio() -> None:
    logprobs = torch.tensor([[-1.0 + LN2]], requires_grad=True)  # r = 2
    old, behaviour = torch.tensor([[-1.0]], requires_grad=True), torch.tensor([[-1.0 - math.log(1.5)]])
    ones = torch.ones(1, 1)
    loss = policy_loss(logprobs, old, behaviour, torch.tensor([1.0]), ones, ones)
    loss.total.backward()
    assert loss.total.item() == pytest.approx(-1.5 * 2)
    assert logprobs.grad is not None and logprobs.grad.item() == pytest.approx(-3)
    assert old.grad is None


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(st.booleans(), min_size=1, max_size=12), st.sampled_from([0.0, math.inf, math.nan, -50.0]))
def test_tokens_outside_the_mask_have_no_influence_whatever_they_hold(mask: list[bool], junk: float) -> None:
    keep = torch.tensor([mask])
    clean = torch.full((1, len(mask)), -1.0)
    dirty = torch.where(keep, clean, torch.tensor(junk))
    ones = torch.ones(1)
    results = []
    for behaviour in (clean, dirty):
        logprobs = clean.clone().requires_grad_()
        loss = policy_loss(logprobs, logprobs.detach(), behaviour, ones, keep, ones, 2.0, (0.2, 0.2))
        loss.total.backward()
        assert logprobs.grad is not None
        results.append((loss.total.item(), logprobs.grad.tolist()))
    assert results[0] == results[1]
    assert results[0][0] == -float(sum(mask))


def test_token_norm_weighs_tokens_alike_and_sample_norm_weighs_samples_alike() -> None:
    assert token_scale([1, 3, 0], "token").tolist() == pytest.approx([1 / 4] * 3)
    assert token_scale([1, 3, 0], "sample").tolist() == pytest.approx([1 / 3, 1 / 9, 1 / 3])
    with pytest.raises(ValueError, match="'token' or 'sample', got 'mean'"):
        token_scale([1], "mean")
