"""Quantiles and the bootstrap."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.observe.figures import gain_of, quantile, spread

values = st.lists(st.integers(-1000, 1000).map(float), min_size=2, max_size=50)


@given(values)
@settings(deadline=None, derandomize=True)
def test_quantiles_agree_with_the_standard_library(numbers: list[float]) -> None:
    expected = statistics.quantiles(numbers, n=10, method="inclusive")
    ordered = sorted(numbers)
    assert [quantile(ordered, k / 10) for k in range(1, 10)] == pytest.approx(expected)


def test_a_spread_of_nothing_says_so() -> None:
    assert spread([]).count == 0


def test_a_clear_rise_has_its_whole_interval_above_zero() -> None:
    low = [[[0.0, 0.0, 1.0, 0.0]] * 8] * 5
    high = [[[1.0, 1.0, 1.0, 0.0]] * 8] * 5
    gain = gain_of([*low, *[[[0.5] * 4] * 8] * 15, *high])
    assert gain is not None
    assert (gain.first, gain.last, gain.gain, gain.steps) == (0.25, 0.75, 0.5, 5)
    assert gain.low == gain.high == 0.5


def test_the_interval_covers_zero_when_nothing_rose_and_depends_on_the_seed_only() -> None:
    toss = random.Random(0).randrange
    steps = [[[float(toss(2)) for _ in range(4)] for _ in range(8)] for _ in range(20)]
    gain = gain_of(steps, seed=1)
    assert gain is not None and gain.low < 0 < gain.high
    assert gain == gain_of(steps, seed=1) != gain_of(steps, seed=2)


def test_groups_are_resampled_whole() -> None:
    # members of a group agree, so there are 4 independent values and not 400: the interval must stay wide
    steps = [[[0.0] * 100, [1.0] * 100, [0.0] * 100, [1.0] * 100]] * 2
    gain = gain_of(steps)
    assert gain is not None and gain.high - gain.low > 0.9


def test_one_step_has_no_gain() -> None:
    assert gain_of([[[1.0]]]) is None
