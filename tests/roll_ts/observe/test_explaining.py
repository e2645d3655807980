"""Stories of a journal: each line says when, what, and why where the journal knows it."""

from __future__ import annotations

import re

import pytest

from roll_ts.core import alphabet as a
from roll_ts.observe.explaining import explain
from roll_ts.observe.journal import Entry, Header
from tests.roll_ts.outside.scenario import Scenario
from tests.roll_ts.outside.world import World


@pytest.fixture(scope="module")
def run() -> tuple[Header, list[Entry]]:
    """A run in which a rank with requests is lent, and one dies."""
    world = World(Scenario(seed=11, until=4, max_running_per_rank=2, faults={"Dispatch#25": "die"})).run()
    header = Header(world.settings, "time_sharing")
    return header, [Entry(entry.now, entry.event, entry.commands) for entry in world.journal]


def story(run: tuple[Header, list[Entry]], kind: str, number: int) -> list[str]:
    return list(explain(run[0], run[1], kind, number))


def commands(run: tuple[Header, list[Entry]], kind: type[a.Command]) -> list[tuple[float, a.Command]]:
    return [(entry.t, c) for entry in run[1] for c in entry.commands if isinstance(c, kind)]


def test_a_trajectory_s_story_has_every_turn_it_was_sent_and_its_end(run: tuple[Header, list[Entry]]) -> None:
    for number in range(12):
        lines = story(run, "trajectory", number)
        sent = [(t, c) for t, c in commands(run, a.Dispatch) if c.attempt.trajectory == number]
        assert [f"{t:.3f}  turn {c.attempt.turn} goes to rank {c.rank}" for t, c in sent] == [
            re.match(r"[\d.]+  turn \d+ goes to rank \d+", line).group() for line in lines if " goes to rank " in line
        ]
        assert "starts as member" in lines[0]
        assert sum("  ends: " in line for line in lines) == 1


def test_a_turn_that_moved_says_why_and_that_its_tokens_are_kept(run: tuple[Header, list[Entry]]) -> None:
    moved = {c.attempt.trajectory for _, c in commands(run, a.Dispatch) if c.attempt.attempt > 1}
    assert moved
    for number in moved:
        lines = story(run, "trajectory", number)
        assert any("drains since" in line or " died: " in line for line in lines), lines
        assert any("are kept" in line for line in lines)


def test_a_turn_that_waited_says_for_what(run: tuple[Header, list[Entry]]) -> None:
    waits = [line for number in range(16) for line in story(run, "trajectory", number) if " in the queue: " in line]
    assert any("every serving rank has its 2 requests" in line for line in waits)
    assert all(re.search(r"after \d+\.\d+ s in the queue: \S", line) for line in waits)


def test_a_rank_s_story_is_its_moves_in_order_with_the_reason_of_each_death(run: tuple[Header, list[Entry]]) -> None:
    dead = next(entry.event.rank for entry in run[1] if isinstance(entry.event, a.RankDied))
    for rank in range(4):
        lines = story(run, "rank", rank)
        moves = [(t, c) for t, c in commands(run, a.RankMoved) if c.rank == rank]
        assert [line.split(" after ")[0].split(": ")[0].split(", ")[0] for line in lines[:-1]] == [
            f"{t:.3f}  {c.old} → {c.new}" for t, c in moves
        ]
        assert lines[-1].startswith("at the end of the journal it is ")
    assert any("→ FAILED" in line and "died: killed" in line for line in story(run, "rank", dead))


def test_a_lent_rank_names_the_decision_that_lent_it(run: tuple[Header, list[Entry]]) -> None:
    lines = [line for line in story(run, "rank", 0) if "ACTIVE → DRAINING" in line]
    lent = [
        any(isinstance(c, a.Decided) for c in entry.commands)
        for entry in run[1]
        if any(isinstance(c, a.RankMoved) and (c.rank, c.new) == (0, "DRAINING") for c in entry.commands)
    ]
    assert any(lent)
    assert ["time_sharing decides to" in line and "complete_groups" in line for line in lines] == lent


def test_a_decision_s_story_has_its_figures_and_what_followed(run: tuple[Header, list[Entry]]) -> None:
    decisions = commands(run, a.Decided)
    first = next(n for n, (_, c) in enumerate(decisions) if c.decision.startswith("train"))
    t, decided = decisions[first]
    lines = story(run, "decision", first)
    assert lines[0].startswith(f"{t:.3f}  time_sharing decides: {decided.decision}")
    for name, value in decided.figures.items():
        assert f"         {name} = {value:g}" in lines
    assert any("training starts from version 0" in line and "after the decision" in line for line in lines)


@pytest.mark.parametrize(
    ("kind", "said"), [("trajectory", "no trajectory 9999"), ("rank", "no rank 9999"), ("decision", "no decision 9999")]
)
def test_what_is_not_there_is_said(run: tuple[Header, list[Entry]], kind: str, said: str) -> None:
    assert len(story(run, kind, 9999)) == 1 and said in story(run, kind, 9999)[0]


def test_another_kind_is_refused(run: tuple[Header, list[Entry]]) -> None:
    with pytest.raises(ValueError, match="kind"):
        story(run, "group", 1)
