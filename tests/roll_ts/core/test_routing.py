"""Placement by live load, KV and prefix (R10)."""

from __future__ import annotations

from roll_ts.core.routing import RankLoad, choose_rank, fair_share


def test_R10_a_turn_goes_to_the_rank_with_the_least_live_load():
    loads = [RankLoad(0, 5, 100, 1000), RankLoad(1, 2, 900, 1000), RankLoad(2, 2, 100, 1000)]
    assert choose_rank(loads, 50, None, 0, 8, 512) == 2


def test_R10_a_move_must_pay_for_the_prefix_it_leaves():
    loads = [RankLoad(0, 2, 0, 10_000), RankLoad(1, 1, 0, 10_000)]
    assert choose_rank(loads, 600, 0, 600, 8, 512) == 0
    assert choose_rank(loads, 600, 0, 300, 8, 512) == 1


def test_R10_a_rank_without_a_slot_or_kv_takes_nothing_more():
    assert choose_rank([RankLoad(0, 8, 0, 1000)], 10, None, 0, 8, 512) is None
    assert choose_rank([RankLoad(0, 1, 995, 1000)], 10, None, 0, 8, 512) is None
    assert choose_rank([RankLoad(0, 0, 0, 5)], 10, None, 0, 8, 512) == 0


def test_R10_the_first_rank_to_open_is_not_flooded():
    assert fair_share(waiting=60, running=4, open_ranks=1, opening_ranks=3) == 16
