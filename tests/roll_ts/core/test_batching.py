"""Groups are whole, members unique, batches the oldest complete groups (R14, R15)."""

from __future__ import annotations

import pytest

from roll_ts.core.batching import GroupTable
from roll_ts.core.errors import IllegalTransition, UnknownId


def table_with(*groups: int) -> GroupTable:
    table = GroupTable(2)
    for group in groups:
        table.start(group, seed=group, players=[10 * group, 10 * group + 1])
    return table


def test_R14_the_groups_that_complete_first_are_taken_first():
    table = table_with(0, 1, 2)
    for group in (2, 0):
        assert not table.finish_member(group, 0, oldest=0)
        assert table.finish_member(group, 1, oldest=0)
    assert [(item.group, item.trajectory) for item in table.take([2, 0])] == [(2, 20), (2, 21), (0, 0), (0, 1)]


def test_R15_a_member_counts_once():
    table = table_with(0)
    table.finish_member(0, 0, oldest=0)
    with pytest.raises(IllegalTransition, match="0"):
        table.finish_member(0, 0, oldest=0)


def test_R15_a_group_needs_all_its_members_and_each_once():
    with pytest.raises(ValueError, match="duplicates"):
        GroupTable(2).start(0, 0, [4, 4])
    with pytest.raises(ValueError, match="players"):
        GroupTable(2).start(0, 0, [4, 5, 6])


def test_R13_a_replaced_member_is_played_by_the_new_trajectory():
    table = table_with(0)
    table.replace(0, 1, trajectory=99)
    table.finish_member(0, 0, oldest=0)
    table.finish_member(0, 1, oldest=0)
    assert [item.trajectory for item in table.take([0])] == [0, 99]


def test_the_oldest_token_of_a_group_is_the_oldest_of_its_members():
    table = table_with(0)
    table.finish_member(0, 0, oldest=3)
    table.finish_member(0, 1, oldest=1)
    assert table.complete[0].oldest == 1


def test_more_groups_than_are_complete_cannot_be_taken():
    with pytest.raises(ValueError, match="groups must be a subset"):
        table_with(0).take([0])


def test_a_dropped_group_is_gone_whole():
    table = table_with(0)
    table.finish_member(0, 0, oldest=0)
    assert table.drop(0).players == [0, 1]
    with pytest.raises(UnknownId):
        table.drop(0)
