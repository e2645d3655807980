"""Small worlds played out: one lend and one join, with one fault, one stop or one other order at every point."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from roll_ts.core import alphabet as a
from tests.roll_ts.outside.campaign import campaign, play
from tests.roll_ts.outside.scenario import Scenario
from tests.roll_ts.outside.trouble import FAULTS
from tests.roll_ts.outside.world import World

GENEROUS = {"max_restarts_per_rank": 60, "max_trainer_restarts": 60}
SMALL = Scenario(
    ranks=2,
    lent=1,
    until=1,
    groups_per_batch=1,
    group_size=2,
    max_turns=2,
    checkpoint_every=1,
    changes=GENEROUS,
    faults={},
)
WORLDS = {
    "time_sharing": SMALL,
    "time_sharing, 3 ranks of 2 devices": SMALL.with_(ranks=3, tp=2),
    "colocated": SMALL.with_(policy="colocated", groups_per_batch=2),
    "disaggregated": SMALL.with_(policy="disaggregated"),
}


@pytest.fixture(scope="module", params=sorted(WORLDS))
def small(request: pytest.FixtureRequest) -> World:
    """A small history without trouble."""
    return play(WORLDS[request.param])


def places(world: World) -> Iterator[tuple[str, str]]:
    """Every command of a history that expects an answer, by its name, with every fault that it may meet."""
    count: dict[str, int] = {}
    for entry in world.journal:
        for command in entry.commands:
            kind = type(command).__name__
            if kind in FAULTS:
                number = count[kind] = count.get(kind, -1) + 1
                for fault in FAULTS[kind]:
                    yield f"{kind}#{number}", fault


def test_a_small_world_without_trouble_lends_joins_and_ends_well(small: World) -> None:
    said = [type(command).__name__ for entry in small.journal for command in entry.commands]
    assert small.finish is not None and small.finish.ok
    assert "Train" in said and "Sync" in said
    assert ("Release" in said) == (small.scenario.policy != "disaggregated")


@pytest.mark.slow
def test_no_rule_is_broken_by_one_fault_at_any_point(small: World) -> None:
    every = list(places(small))
    assert len(every) > 100
    result = campaign((small.scenario.with_(faults={place: fault}) for place, fault in every), 10**9, twin_every=5)
    assert result.failed is None, result.report()


@pytest.mark.slow
def test_no_rule_is_broken_by_a_user_who_stops_at_any_event(small: World) -> None:
    moments = range(len(small.journal))
    result = campaign((small.scenario.with_(stop_at=moment) for moment in moments), 10**9, twin_every=5)
    assert result.failed is None, result.report()


@pytest.mark.slow
def test_no_rule_is_broken_by_another_order_of_events_at_any_point(small: World) -> None:
    orders = itertools.product(range(len(small.journal)), ("1", "2", "3"))
    result = campaign((small.scenario.with_(faults={f"swap#{at}": by}) for at, by in orders), 10**9, twin_every=5)
    assert result.failed is None, result.report()


def test_a_run_that_is_saved_and_restored_at_every_event_goes_on_with_the_same_commands(small: World) -> None:
    again = play(small.scenario.with_(restore_every=1))
    assert again.journal == small.journal


@pytest.mark.parametrize(
    ("world", "faults"),
    [
        pytest.param("colocated", {"Sync#1": "fail", "LoadWeights#2": "fail"}, id="the sender gave up"),
        pytest.param("disaggregated", {"WakeKV#0": "unheard", "Checkpoint#0": "hang"}, id="the trainer is saving"),
    ],
)
def test_R32_a_rank_that_waits_for_a_trainer_in_trouble_is_not_charged(world: str, faults: dict[str, str]) -> None:
    scenario = WORLDS[world].with_(faults=faults, max_turns=1)
    journal = play(scenario).journal
    fenced = [c.rank for entry in journal for c in entry.commands if isinstance(c, a.Fence)]
    assert 1 not in fenced


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_no_rule_is_broken_by_one_fault_and_one_other_order_at_any_point(small: World) -> None:
    both = itertools.product(places(small), range(len(small.journal)), ("1", "2"))
    chosen = itertools.islice(both, 0, None, 7)
    scenarios = (small.scenario.with_(faults={place: fault, f"swap#{at}": by}) for (place, fault), at, by in chosen)
    result = campaign(scenarios, 4_000_000, twin_every=50)
    assert result.failed is None, result.report()


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_no_rule_is_broken_by_two_faults_at_any_two_points(small: World) -> None:
    pairs = itertools.combinations(places(small), 2)
    chosen = itertools.islice(pairs, 0, None, 11)
    result = campaign((small.scenario.with_(faults=dict(pair)) for pair in chosen), 4_000_000, twin_every=50)
    assert result.failed is None, result.report()
