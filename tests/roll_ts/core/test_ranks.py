"""The rank table: one owner of rank state, and what it refuses (R1, R4, R5)."""

from __future__ import annotations

import pytest

from roll_ts.core.errors import IllegalTransition, UnknownId
from roll_ts.core.ranks import TRANSITIONS, RankState, RankTable
from roll_ts.core.settings import Layout
from tests.roll_ts.core.layouts import LAYOUTS
from tests.roll_ts.outside.rank_book import LEGAL


def test_R1_a_move_outside_the_table_changes_nothing():
    table = RankTable(LAYOUTS["time_sharing"], lambda row, old: None)
    with pytest.raises(IllegalTransition, match="FAILED"):
        table.move(0, RankState.ACTIVE)
    assert table.get(0).state is RankState.FAILED


def test_R1_the_table_has_the_steps_of_the_design_and_no_other():
    """Written down a second time, so that a step that slips in is seen before anybody takes it."""
    assert {str(old): {str(new) for new in after} for old, after in TRANSITIONS.items()} == {
        old: set(after.split()) for old, after in LEGAL.items()
    }


def ready_table(states: list[RankState]) -> RankTable:
    table = RankTable(LAYOUTS["time_sharing"], lambda row, old: None)
    for rank, state in enumerate(states):
        bring(table, rank, state)
    return table


def bring(table: RankTable, rank: int, state: RankState) -> None:
    """Move the rank to the state by the shortest legal way."""
    ways = [[table.get(rank).state]]
    while ways[0][-1] is not state:
        way = ways.pop(0)
        ways += [[*way, then] for then in sorted(TRANSITIONS[way[-1]]) if then not in way]
    for then in ways[0][1:]:
        table.move(rank, then)


S = RankState


ALL_ACTIVE = [S.ACTIVE] * 4


@pytest.mark.parametrize(
    ("states", "devices", "error", "names"),
    [
        (ALL_ACTIVE, (), ValueError, "devices"),
        (ALL_ACTIVE, (0, 0), ValueError, "0"),
        (ALL_ACTIVE, (0, 9), ValueError, "9"),
        ([S.ACTIVE, S.LENT, S.ACTIVE, S.ACTIVE], (0, 1), IllegalTransition, "LENT"),
        (ALL_ACTIVE, (0, 1, 2, 3), IllegalTransition, "active|stay|rank"),
    ],
)
def test_R4_an_illegal_shrink_is_refused_with_the_ids_and_changes_nothing(states, devices, error, names):
    table = ready_table(states)
    with pytest.raises(error, match=names):
        table.begin_shrink(devices, may_empty=False)
    assert [row.state for row in table.rows] == states


def test_R4_shrinking_to_zero_is_allowed_when_nothing_is_in_flight():
    assert ready_table(ALL_ACTIVE).begin_shrink((0, 1, 2, 3), may_empty=True) == (0, 1, 2, 3)


@pytest.mark.parametrize("state", [state for state in S if state not in (S.LENT, S.EMPTY)])
def test_R4_only_ranks_without_weights_can_be_expanded(state):
    table = ready_table([S.LENT, state, S.ACTIVE, S.ACTIVE])
    with pytest.raises(IllegalTransition, match=str(state)):
        table.begin_expand((0, 1))
    assert table.get(0).state is S.LENT


def test_R5_a_shrink_that_cuts_a_rank_is_refused():
    table = RankTable(Layout(ranks=((0, 1), (2, 3)), train_devices=(0, 1)), lambda row, old: None)
    for rank in range(2):
        bring(table, rank, S.ACTIVE)
    with pytest.raises(ValueError, match="1"):
        table.begin_shrink((0,), may_empty=False)


@pytest.mark.parametrize("rank", [-1, 4])
def test_an_unknown_rank_is_named(rank):
    with pytest.raises(UnknownId, match=str(rank)):
        ready_table(ALL_ACTIVE).get(rank)
