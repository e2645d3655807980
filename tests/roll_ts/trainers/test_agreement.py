import numpy as np
import pytest

from roll_ts.trainers.agreement import check_logprobs, compare_logprobs
from roll_ts.trainers.protocol import LogprobMismatch
from roll_ts.trainers.sample import Sample
from roll_ts.trainers.tolerance import Tolerance, tolerance

TOLERANCE = Tolerance(p99=1e-4, largest=1e-4)


def sample(logprobs: list[float], versions: list[int], name: str = "t") -> Sample:
    made = np.array(versions) >= 0
    return Sample(np.zeros(len(made)), made, logprobs, versions, group="g", trajectory=name, reward=0.0)


def test_only_tokens_of_the_present_version_are_compared() -> None:
    s = sample([0, -1, -2, -3, 0], [-1, 4, 5, 5, -1])
    check = compare_logprobs([s], [np.array([0, -9, -2, -3.00005, -9], np.float32)], 5, TOLERANCE)
    assert (check.n, check.ok) == (2, True)
    assert check.share == pytest.approx(2 / 3)
    assert check.max == pytest.approx(5e-5, rel=0.01)


def test_a_difference_above_the_tolerance_is_raised_with_its_place() -> None:
    good, bad = sample([0, -1], [-1, 0], "a"), sample([0, -1, -2], [-1, 0, 0], "b")
    found = [np.array([0, -1], np.float32), np.array([0, -1, -2.001], np.float32)]
    with pytest.raises(LogprobMismatch, match=r"lie in .*0\.0001\], got 0\.00\d+ \(check.worst='b token 2', check.n=3"):
        check_logprobs([good, bad], found, 0, TOLERANCE)


def test_a_nan_is_the_largest_difference() -> None:
    check = compare_logprobs([sample([0, -1], [-1, 0])], [np.array([0, np.nan], np.float32)], 0, TOLERANCE)
    assert check.max == np.inf and not check.ok


def test_p99_is_the_99th_of_a_hundred_differences() -> None:
    n = 100
    s = sample([0.0] + [-1.0] * n, [-1] + [0] * n)
    ours = np.array([0] + [-1 - i / 2**20 for i in range(1, n + 1)], np.float32)
    check = compare_logprobs([s], [ours], 0, TOLERANCE)
    assert check.max == pytest.approx(100 / 2**20)
    assert check.p99 in (pytest.approx(99 / 2**20), pytest.approx(100 / 2**20))


def test_nothing_to_compare_is_reported_as_nothing() -> None:
    check = compare_logprobs([sample([0, -1], [-1, 0])], [np.array([0, -1], np.float32)], 1, TOLERANCE)
    assert (check.n, check.share, check.max, check.ok) == (0, 0.0, 0.0, True)


def test_misaligned_arrays_are_refused() -> None:
    with pytest.raises(ValueError, match=r"got \(3,\) and \(2,\) \(sample.trajectory='t'\)"):
        compare_logprobs([sample([0, -1], [-1, 0])], [np.zeros(3, np.float32)], 0, TOLERANCE)


def test_the_coarsest_format_and_the_depth_decide_what_is_allowed() -> None:
    assert tolerance(("float32", "float32"), 64) == Tolerance(1e-4, 1e-4)
    shallow, deep = tolerance(("float32", "bfloat16"), 3), tolerance(("bfloat16", "float16"), 63)
    assert shallow.p99 == pytest.approx(8 / 256 * 2)
    assert deep.p99 == pytest.approx(8 / 256 * 8)
    assert deep.largest == 4 * deep.p99
    assert tolerance(("float16",), 3).p99 == pytest.approx(8 / 2048 * 2)
    assert tolerance(("bfloat16",), 3, given=0.01) == Tolerance(0.01, 0.04)


def test_a_quantile_beyond_its_bound_fails_although_the_largest_is_within() -> None:
    s = sample([0, -1, -2], [-1, 0, 0])
    ours = [np.array([0, -1.05, -2], np.float32)]
    assert compare_logprobs([s], ours, 0, Tolerance(0.06, 0.2)).ok
    with pytest.raises(LogprobMismatch, match="p99"):
        check_logprobs([s], ours, 0, Tolerance(0.04, 0.2))
