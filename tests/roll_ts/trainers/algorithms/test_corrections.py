"""What each token may count, against cases computed by hand."""

import math

import pytest
import torch

from roll_ts.trainers.algorithms.corrections import Correction, Weights, correct

LN2 = math.log(2)
INF = float("inf")


def weigh(ratios: list[float], stale: list[int] | None = None, mask: list[int] | None = None, **how: object) -> Weights:
    """One row of tokens with these ratios pi_old / pi_b."""
    behaviour = torch.full((1, len(ratios)), -5.0)
    old = behaviour + torch.tensor([ratios]).log()
    ones = [1] * len(ratios)
    flags = torch.tensor([stale or ones]).bool(), torch.tensor([mask or ones]).bool()
    return correct(Correction(**how), old, behaviour, *flags)  # type: ignore[arg-type]


def test_weights_are_truncated_from_above_only() -> None:
    found = weigh([0.5, 1, 8], upper=2.0)
    assert found.weight[0].tolist() == pytest.approx([0.5, 1, 2])
    assert found.truncated[0].tolist() == [False, False, True]


def test_without_a_bound_nothing_is_truncated() -> None:
    assert weigh([0.5, 8], upper=None).weight[0].tolist() == pytest.approx([0.5, 8])


def test_a_sequence_weighs_the_product_of_its_tokens_for_each_of_them() -> None:
    assert weigh([0.5, 4, 2], level="sequence", upper=None).weight[0].tolist() == pytest.approx([4, 4, 4])
    assert weigh([0.5, 4, 2], level="sequence", upper=3.0).weight[0].tolist() == pytest.approx([3, 3, 3])


@pytest.mark.parametrize(("source", "expected"), [("all", [0.5, 2, 4]), ("stale", [0.5, 1, 4]), ("engine", [1, 2, 1])])
def test_tokens_of_the_other_source_weigh_one(source: str, expected: list[float]) -> None:
    assert weigh([0.5, 2, 4], stale=[1, 0, 1], source=source, upper=None).weight[0].tolist() == pytest.approx(expected)


def test_a_token_outside_of_the_bounds_counts_nothing_and_the_others_count_on() -> None:
    found = weigh([0.25, 1, 8], upper=2.0, reject="token", reject_low=0.5, reject_high=4.0)
    assert found.weight[0].tolist() == pytest.approx([0, 1, 0])
    assert found.rejected[0].tolist() == [True, False, True]
    assert not found.truncated.any(), "what does not count was not truncated"


@pytest.mark.parametrize(
    ("level", "high", "rejected"),
    # the product is 16, the geometric mean 2
    [("sequence", 8.0, True), ("sequence", 32.0, False), ("geometric", 1.5, True), ("geometric", 2.5, False)],
)
def test_a_sequence_is_rejected_whole(level: str, high: float, rejected: bool) -> None:
    found = weigh([1, 2, 2, 4], upper=None, reject=level, reject_high=high)
    assert found.rejected[0].tolist() == [rejected] * 4
    assert bool((found.weight == 0).all()) is rejected


def test_the_mean_is_over_the_tokens_that_count_and_masked_ones_weigh_nothing() -> None:
    found = weigh([4, 1000, 4], mask=[1, 0, 1], upper=None, reject="geometric", reject_high=5.0)
    assert found.weight[0].tolist() == pytest.approx([4, 0, 4])


def test_rows_are_judged_apart() -> None:
    behaviour = torch.zeros(2, 2)
    old = torch.tensor([[LN2, LN2], [0.0, 0.0]])
    ones = torch.ones(2, 2).bool()
    found = correct(Correction(level="sequence", upper=None), old, behaviour, ones, ones)
    assert found.weight.tolist() == [pytest.approx([4, 4]), pytest.approx([1, 1])]


def test_a_very_long_unlikely_sequence_overflows_nothing() -> None:
    found = weigh([2.0] * 4000, level="sequence", upper=None)
    assert torch.isfinite(found.weight).all()


@pytest.mark.parametrize("junk", [INF, -INF, math.nan])
def test_what_lies_outside_of_the_mask_has_no_influence(junk: float) -> None:
    old, mask = torch.tensor([[-1.0, junk]]), torch.tensor([[True, False]])
    found = correct(Correction(level="sequence"), old, torch.tensor([[-1.0, 0.0]]), mask, mask)
    assert found.weight.tolist() == [[1.0, 0.0]]


def test_weights_carry_no_gradient() -> None:
    old = torch.tensor([[-1.0]], requires_grad=True)
    ones = torch.ones(1, 1).bool()
    assert not correct(Correction(), old, torch.zeros(1, 1), ones, ones).weight.requires_grad
