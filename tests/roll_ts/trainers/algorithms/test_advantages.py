"""Each advantage against a case computed by hand."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.trainers.algorithms.advantages import ADVANTAGES, advantages

R2 = math.sqrt(2)


def test_grpo_divides_by_the_deviation_of_the_own_group() -> None:
    # group a: 1, 0, 0, 1: mean 1/2, deviation 1/2. group b: 3, 0, 0: mean 1, deviation sqrt(2)
    got = advantages("grpo", [1, 3, 0, 0, 0, 0, 1], ["a", "b", "a", "b", "b", "a", "a"])
    assert got.tolist() == pytest.approx([1, R2, -1, -1 / R2, -1 / R2, -1, 1], abs=1e-5)


def test_dr_grpo_is_the_plain_difference_to_the_mean() -> None:
    assert advantages("dr_grpo", [3, 0, 0], ["g"] * 3).tolist() == [2, -1, -1]


def test_rloo_compares_with_the_mean_of_the_others() -> None:
    # 3 - (0 + 1) / 2, 0 - (3 + 1) / 2, 1 - (3 + 0) / 2
    assert advantages("rloo", [3, 0, 1], ["g"] * 3).tolist() == pytest.approx([2.5, -2, -0.5])


def test_reinforce_pp_compares_over_the_whole_batch() -> None:
    # mean 1, deviation 1, whatever the groups are
    assert advantages("reinforce_pp", [2, 0, 2, 0], ["a", "a", "b", "c"]).tolist() == pytest.approx(
        [1, -1, 1, -1], abs=1e-5
    )


def test_reinforce_pp_baseline_centres_by_group_and_scales_by_batch() -> None:
    # a: +1, -1; b: +3, -3; deviation over the batch sqrt((1 + 1 + 9 + 9) / 4) = sqrt(5)
    got = advantages("reinforce_pp_baseline", [2, 0, 6, 0], ["a", "a", "b", "b"])
    assert got.tolist() == pytest.approx([1 / math.sqrt(5), -1 / math.sqrt(5), 3 / math.sqrt(5), -3 / math.sqrt(5)])


@pytest.mark.parametrize("kind", ADVANTAGES)
def test_equal_rewards_teach_nothing(kind: str) -> None:
    assert advantages(kind, [0.3] * 4, ["a", "a", "b", "b"]).tolist() == pytest.approx([0] * 4, abs=1e-6)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [kind for kind in ADVANTAGES if kind != "reinforce_pp"])
def test_a_lonely_sample_has_nothing_to_compare_with(kind: str) -> None:
    assert advantages(kind, [1.0, 0.0, 7.0], ["a", "a", "b"])[2] == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ADVANTAGES)
@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(st.tuples(st.integers(-9, 9), st.sampled_from("abc")), min_size=1, max_size=12), st.integers(-50, 50))
def test_a_constant_added_to_all_rewards_changes_nothing(kind: str, rows: list[tuple[int, str]], shift: int) -> None:
    rewards, groups = [float(r) for r, _ in rows], [g for _, g in rows]
    moved = [r + shift for r in rewards]
    assert advantages(kind, moved, groups).tolist() == pytest.approx(  # type: ignore[arg-type]
        advantages(kind, rewards, groups).tolist(),
        abs=1e-5,  # type: ignore[arg-type]
    )


def test_a_reward_without_a_group_is_refused() -> None:
    with pytest.raises(ValueError, match="got 2 and 1 - one group name for each reward"):
        advantages("grpo", [1, 2], ["a"])
