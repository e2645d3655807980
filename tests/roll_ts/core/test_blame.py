"""The search by halves in a world whose guilty are known: nobody else is charged, and it ends soon (R32)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roll_ts.core.blame import Search, Verdict, halves


def groups_tried(search: Search, works, limit: int = 1000) -> tuple[Verdict, int]:
    """Try the groups that the search asks for until it has a verdict."""
    for tries in range(1, limit):
        assert search.group, "an empty group cannot be tried"
        verdict = search.tried(works(search.group))
        if verdict is not None:
            return verdict, tries
    raise AssertionError("the search does not end")


@pytest.mark.parametrize("proven", [False, True])
@pytest.mark.parametrize("size", [2, 3, 5, 16, 31, 160, 1280])
def test_R32_one_bad_rank_is_found_in_the_logarithm_of_the_group(size, proven):
    for bad in {0, 1, size // 2, size - 1}:
        verdict, tries = groups_tried(Search(tuple(range(size)), proven), lambda group, bad=bad: bad not in group)
        assert verdict == Verdict((bad,))
        assert tries <= math.ceil(math.log2(size)) + 2


@given(
    size=st.integers(2, 60),
    bad=st.sets(st.integers(0, 59), min_size=1, max_size=4),
    proven=st.booleans(),
    data=st.data(),
)
def test_R32_only_a_rank_that_is_bad_is_charged_and_the_trainer_only_when_no_group_works(size, bad, proven, data):
    guilty = {rank % size for rank in bad}
    outcomes: list[bool] = []

    def works(group: tuple[int, ...]) -> bool:
        outcomes.append(not guilty & set(group))
        return outcomes[-1]

    patient = data.draw(st.booleans())
    verdict, _ = groups_tried(Search(tuple(range(size)), proven, patient), works)
    assert set(verdict.ranks) <= guilty
    assert not (verdict.trainer and verdict.ranks)
    if verdict.trainer:
        assert not any(outcomes) and not proven
    else:
        assert verdict.ranks


@pytest.mark.parametrize("size", [2, 16, 160])
def test_R32_a_trainer_with_which_no_group_works_is_charged_after_both_halves(size):
    assert groups_tried(Search(tuple(range(size))), lambda group: False) == (Verdict(trainer=True), 2)
    verdict, tries = groups_tried(Search(tuple(range(size)), patient=True), lambda group: False)
    assert verdict == Verdict(trainer=True) and tries <= 64


@pytest.mark.parametrize("bad", [(0, 159), (3, 80, 81, 150)])
def test_R32_a_patient_search_finds_ranks_that_are_bad_in_every_half(bad):
    search = Search(tuple(range(160)), patient=True)
    verdict, _ = groups_tried(search, lambda group: not set(bad) & set(group))
    assert verdict.ranks and set(verdict.ranks) <= set(bad)


@pytest.mark.parametrize("size", [2, 7, 64])
def test_R32_a_fault_that_has_gone_away_charges_nobody(size):
    assert not groups_tried(Search(tuple(range(size))), lambda group: True)[0]


@given(st.lists(st.integers(), min_size=1, unique=True))
def test_the_halves_of_a_group_are_the_group(ranks):
    parts = halves(tuple(ranks))
    assert [rank for part in parts for rank in part] == ranks
    assert all(parts) and len(parts) == min(2, len(ranks))
