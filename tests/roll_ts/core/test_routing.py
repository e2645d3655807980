"""Placement by live load, KV and prefix (R10), without looking at every rank (R37)."""

from __future__ import annotations

import random

import pytest

from roll_ts.core.routing import Placement, fair_share


def placed(*loads: tuple[int, int, int], max_running: int = 8) -> Placement:
    """A placement of open ranks with (running, KV tokens held, KV capacity)."""
    index = Placement(len(loads), max_running)
    for rank, (running, tokens, capacity) in enumerate(loads):
        index.open(rank, 0, capacity)
        for attempt in range(running):
            index.add(rank, tokens if attempt == 0 else 0)
    return index


def test_R10_a_turn_goes_to_the_rank_with_the_least_live_load():
    index = placed((5, 100, 1000), (2, 900, 1000), (2, 100, 1000))
    assert index.choose(50, None, 0, 512) == 2


def test_R10_a_move_must_pay_for_the_prefix_it_leaves():
    index = placed((2, 0, 10_000), (1, 0, 10_000))
    assert index.choose(600, 0, 600, 512) == 0
    assert index.choose(600, 0, 300, 512) == 1


def test_R10_a_rank_without_a_slot_or_kv_takes_nothing_more():
    assert placed((8, 0, 1000)).choose(10, None, 0, 512) is None
    assert placed((1, 995, 1000)).choose(10, None, 0, 512) is None
    assert placed((0, 0, 5)).choose(10, None, 0, 512) == 0


def test_R10_the_first_rank_to_open_is_not_flooded():
    assert fair_share(waiting=60, running=4, open_ranks=1, opening_ranks=3) == 16


def test_R10_a_turn_goes_back_to_a_rank_that_failed_it_only_when_there_is_no_other():
    index = placed((0, 0, 1000), (3, 0, 1000))
    assert index.choose(10, None, 0, 512, avoid=0) == 1
    index.shut(1)
    assert index.choose(10, None, 0, 512, avoid=0) == 0


def test_R15_a_fresh_turn_is_placed_on_the_named_version_only():
    index = placed((0, 0, 1000), (3, 0, 1000))
    index.open(1, 7, 1000)
    assert index.choose(10, None, 0, 512, version=7) == 1
    assert index.choose(10, None, 0, 512, version=8) is None


class Simple:
    """The same by looking at every rank: the rule as it is written, nothing else."""

    def __init__(self, ranks: int, max_running: int) -> None:
        self.max_running = max_running
        self.attempts: list[list[int]] = [[] for _ in range(ranks)]
        self.open: dict[int, tuple[int, int]] = {}

    def choose(self, need, resident, prefix, worth, version, limit) -> set[int]:
        """All ranks of the least cost."""
        costs: dict[int, float] = {}
        for rank, (own, capacity) in self.open.items():
            running, held = len(self.attempts[rank]), sum(self.attempts[rank])
            if running >= min(limit, self.max_running) or version not in (None, own):
                continue
            if running and held + need > capacity:
                continue
            away = 0 if resident in (None, rank) else prefix / worth
            costs[rank] = running + held / capacity + away
        return {rank for rank, cost in costs.items() if cost <= min(costs.values()) + 1e-9}


@pytest.mark.parametrize("seed", range(20))
def test_R10_R37_the_index_chooses_as_looking_at_every_rank_would(seed):
    draw = random.Random(seed)
    ranks = draw.choice((1, 3, 12))
    index, simple = Placement(ranks, 4), Simple(ranks, 4)
    for _ in range(600):
        rank = draw.randrange(ranks)
        match draw.randrange(6):
            case 0:
                version, capacity = draw.randrange(2), draw.choice((500, 1000))
                index.open(rank, version, capacity)
                simple.open[rank] = (version, capacity)
            case 1 if draw.random() < 0.3:
                index.shut(rank)
                simple.open.pop(rank, None)
            case 2 if simple.attempts[rank]:
                index.remove(rank, simple.attempts[rank].pop())
            case 3 if simple.attempts[rank]:
                index.grow(rank, 7)
                simple.attempts[rank][0] += 7
            case _:
                need, worth = draw.randint(1, 600), draw.choice((50, 512))
                resident = draw.choice((None, rank))
                version, limit = draw.choice((None, 0, 1)), draw.randint(1, 5)
                best = simple.choose(need, resident, need // 2, worth, version, limit)
                chosen = index.choose(need, resident, need // 2, worth, version, limit)
                assert (chosen in best) if best else chosen is None
                if chosen is not None:
                    index.add(chosen, need)
                    simple.attempts[chosen].append(need)
        assert [load.running for load in index.loads] == [len(own) for own in simple.attempts]
        assert [load.kv_tokens for load in index.loads] == [sum(own) for own in simple.attempts]
        free = [
            float("inf") if not simple.attempts[rank] else capacity - sum(simple.attempts[rank])
            for rank, (_, capacity) in simple.open.items()
            if len(simple.attempts[rank]) < 4
        ]
        assert index.most_room() == max([0.0, *free])
