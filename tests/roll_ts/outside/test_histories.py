"""Random histories with every kind of trouble: no rule that can be seen from outside is broken in any of them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from roll_ts.core import alphabet as a
from tests.roll_ts.outside.campaign import Result, campaign
from tests.roll_ts.outside.coverage import Coverage
from tests.roll_ts.outside.rank_book import LEGAL
from tests.roll_ts.outside.scenario import Scenario, draw
from tests.roll_ts.outside.trouble import FAULTS

POLICIES = ("time_sharing", "colocated", "disaggregated")
PIECES = 6
EVENTS = 280_000
NIGHTLY_EVENTS = 10_000_000
NIGHTLY_SEEDS = 2000
NEVER_TWICE = {"TrajectoriesWanted", "EvaluationWanted"}
"""A person's orders: the driver gives each once, at the start."""


def worlds(first: int, step: int = 1, sizes: tuple[int, ...] = (2, 3, 4, 6)) -> Iterator[Scenario]:
    """Random worlds without end."""
    return (draw(seed, POLICIES, sizes) for seed in itertools.count(first, step))


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(PIECES))
def test_no_rule_is_broken_in_random_histories_with_faults(piece: int) -> None:
    result = campaign(worlds(piece * 100_000), EVENTS // PIECES)
    assert result.failed is None, result.report()
    assert result.coverage.events >= EVENTS // PIECES


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_no_rule_is_broken_with_160_ranks_of_several_devices(policy: str) -> None:
    scenarios = (
        draw(seed, (policy,), (160,)).with_(tp=2 + 2 * (seed % 2), rate=0.01, stop_at=-1) for seed in itertools.count(7)
    )
    result = campaign(scenarios, 7_000, twin_every=1000)
    assert result.failed is None, result.report()


def night(piece: int) -> Result:
    """One part of the nightly campaign: its share of seeds, and on until its share of events."""
    sizes = (2, 3, 4, 6) if piece % 4 else (8, 16, 40, 160)
    result = Result()
    for seed in itertools.count(piece, PIECES * 4):
        number = seed // (PIECES * 4)
        if number * PIECES * 4 >= NIGHTLY_SEEDS and result.coverage.events >= NIGHTLY_EVENTS // (PIECES * 4):
            break
        part = campaign([draw(1_000_000 + seed, POLICIES, sizes)], 1, twin_every=8 if seed % 8 else 1)
        result.coverage.add(part.coverage)
        if part.failed is not None:
            result.failed = part.failed
            break
    return result


def table(counts: Counter[tuple[str, str]], columns: list[str]) -> str:
    """Counts as a table, one event or command a line."""
    rows = sorted({name for name, _ in counts})
    lines = [" " * 19 + "".join(f"{column[:11]:>12}" for column in columns)]
    lines += [f"{row:<19}" + "".join(f"{counts[row, column]:>12}" for column in columns) for row in rows]
    return "\n".join(lines)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_ten_million_events_meet_every_event_in_every_state_and_every_command_with_every_fault(
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = Coverage()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for result in pool.map(night, range(PIECES * 4)):
            assert result.failed is None, result.report()
            whole.add(result.coverage)
    faults = ["", "fail", "late", "twice", "lost", "unheard", "die", "hang", "lie", "named"]
    with capsys.disabled():
        print(f"\n{whole.events} events\n{table(whole.met, list(LEGAL))}\n{table(whole.faults, faults)}")
    assert whole.events >= NIGHTLY_EVENTS
    rare = {
        (event, state): whole.met[event, state]
        for event, state in itertools.product(a.EVENTS, LEGAL)
        if whole.met[event, state] < 100 and event not in NEVER_TWICE
    }
    assert not rare, "events too rarely met in a state"
    thin = {
        (command, fault): whole.faults[command, fault]
        for command, fault in itertools.product(FAULTS, ("fail", "late", "twice", "lost"))
        if whole.faults[command, fault] < 1000
    }
    assert not thin, "commands too rarely failed, delayed, duplicated or lost"
