"""Small statistics for reports: quantiles of lengths, and a bootstrap over groups."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """A distribution in six numbers; all 0 when there is nothing (`count` says so)."""

    count: int
    mean: float
    p10: float
    p50: float
    p90: float
    max: float


def spread(values: Sequence[float]) -> Spread:
    """The distribution of `values`; quantiles by linear interpolation."""
    if not values:
        return Spread(0, 0.0, 0.0, 0.0, 0.0, 0.0)
    ordered = sorted(values)
    p10, p50, p90 = (quantile(ordered, p) for p in (0.1, 0.5, 0.9))
    return Spread(len(ordered), sum(ordered) / len(ordered), p10, p50, p90, float(ordered[-1]))


def quantile(ordered: Sequence[float], p: float) -> float:
    """The `p`-quantile of an ordered, non-empty sequence, linear between its values."""
    at = p * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


@dataclass(frozen=True)
class Gain:
    """Mean of the last fifth minus mean of the first, with a 95 % interval. `steps`: training steps in each
    fifth."""

    first: float
    last: float
    gain: float
    low: float
    high: float
    steps: int


def gain_of(steps: Sequence[Sequence[Sequence[float]]], seed: int = 0, resamples: int = 2000) -> Gain | None:
    """How much a curve rose. `steps[i]` are the groups of training step i, each the values of its members.

    Percentile bootstrap that resamples whole groups within each fifth: the members of a group share a prompt,
    so they are not independent (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 8 and
    13). None with fewer than two steps.
    """
    if len(steps) < 2:
        return None
    fifth = max(1, round(len(steps) / 5))
    first = [group for step in steps[:fifth] for group in step]
    last = [group for step in steps[-fifth:] for group in step]
    draw = random.Random(seed)
    gains = sorted(
        _mean(draw.choices(last, k=len(last))) - _mean(draw.choices(first, k=len(first))) for _ in range(resamples)
    )
    low, high = quantile(gains, 0.025), quantile(gains, 0.975)
    return Gain(_mean(first), _mean(last), _mean(last) - _mean(first), low, high, fifth)


def _mean(groups: Sequence[Sequence[float]]) -> float:
    count = sum(len(group) for group in groups)
    return sum(sum(group) for group in groups) / count
