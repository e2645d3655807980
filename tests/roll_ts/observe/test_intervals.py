"""Intervals tile the run and end where the journal says."""

from __future__ import annotations

from itertools import pairwise

from roll_ts.core import alphabet as a
from roll_ts.observe.intervals import read_history
from tests.roll_ts.observe.handmade import Script, finished_run, moved_turn, tick


def test_rank_states_tile_the_run() -> None:
    history = read_history(finished_run())
    assert [(s.start, s.end, s.label) for s in history.states[0]] == [
        (0.0, 4.0, "ACTIVE"),
        (4.0, 4.5, "DRAINING"),
        (4.5, 5.0, "RELEASING"),
        (5.0, 9.0, "LENT"),
        (9.0, 10.0, "LOADING"),
        (10.0, 12.0, "ACTIVE"),
    ]
    for spans in history.states.values():
        assert spans[0].start == history.start and spans[-1].end == history.end
        assert all(before.end == after.start for before, after in pairwise(spans))


def test_a_rank_that_never_moved_has_failed_all_along() -> None:
    script = Script()
    script.at(0.0, tick())
    script.at(5.0, tick())
    assert [(s.start, s.end, s.label) for s in read_history(script.journal()).states[1]] == [(0.0, 5.0, "FAILED")]


def test_requests_in_flight_follow_dispatches_and_ends() -> None:
    history = read_history(finished_run())
    assert history.loads[0] == [(0.0, 0), (1.0, 1), (1.0, 2), (3.0, 1), (4.5, 0)]
    assert history.loads[1] == [(0.0, 0), (1.0, 1), (5.0, 2), (7.0, 1), (11.0, 0)]


def test_the_attempts_of_a_turn_come_in_order_with_their_tokens() -> None:
    first, second = read_history(finished_run()).turns()[(0, 1)]
    assert (first.rank, first.carried, first.tokens, first.ended, first.end) == (0, 0, 15, "aborted", 4.5)
    assert (second.rank, second.carried, second.tokens, second.ended, second.end) == (1, 15, 25, "finished", 7.0)


def test_a_dying_rank_ends_its_attempts_and_its_commands_and_later_tokens_are_late() -> None:
    script = Script()
    drain = script.say(a.Drain, rank=0, epoch=1, due=9.0, awaits="rank 0")
    script.at(0.0, tick(), script.dispatch(0, 1, rank=0), script.dispatch(1, 1, rank=1), drain)
    script.at(2.0, a.RankDied(rank=0, incarnation=1, reason="gone", lost_tokens=3))
    script.at(3.0, a.Aborted(attempt=a.AttemptId(0, 1, 1), total=4))
    history = read_history(script.journal())
    assert [(x.ended, x.end, x.tokens) for x in history.attempts] == [("died", 2.0, 0), ("open", 3.0, 0)]
    assert history.late_tokens == 4
    assert history.control[0].end == 2.0 and isinstance(history.control[0].answer, a.RankDied)


def test_an_unanswered_command_ends_at_its_deadline() -> None:
    script = Script()
    script.at(0.0, tick(), script.say(a.WakeKV, rank=0, epoch=1, version=0, due=2.0, awaits="rank 0"))
    script.at(5.0, tick())
    (span,) = read_history(script.journal()).control
    assert (span.end, span.answer) == (2.0, None)


def test_serving_begins_with_the_first_active_rank() -> None:
    script = Script()
    script.at(1.0, tick(), script.move(0, "FAILED", "BOOTING"))
    script.at(4.0, tick(), script.move(0, "BOOTING", "ACTIVE"))
    script.at(6.0, tick())
    assert read_history(script.journal()).serving_since == 4.0


def test_a_journal_that_ends_early_leaves_open_ends() -> None:
    journal = moved_turn().journal()
    early = type(journal)(journal.header, journal.entries[:6])
    history = read_history(early)
    assert [x.ended for x in history.attempts] == ["aborted", "finished", "open"]
    assert history.attempts[2].end == early.end
