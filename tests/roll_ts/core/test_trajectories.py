"""Attempts end once, tokens are counted once, outcomes are given once (R6, R8, R13, R16)."""

from __future__ import annotations

import pytest

from roll_ts.core.errors import IllegalTransition, UnknownId
from roll_ts.core.trajectories import Attempt, Outcome, Phase, Trajectory, TrajectoryTable


def begun(carried: int = 0, version: int = 0) -> tuple[TrajectoryTable, Trajectory, Attempt]:
    table = TrajectoryTable(2)
    trajectory = table.start("train", 0, 0, seed=1, now=0.0)
    trajectory.phase = Phase.QUEUED
    attempt = Attempt(table.next_attempt(trajectory), 1, 5, version, version, carried, reserved=50)
    table.begin(attempt)
    return table, trajectory, attempt


def test_R8_a_closed_attempt_leaves_its_tokens_to_the_trajectory():
    table, trajectory, attempt = begun(carried=3)
    table.add_tokens(attempt.id, 4)
    assert table.close(attempt) is trajectory
    assert (trajectory.carried, trajectory.tokens) == (7, 4)


def test_R16_a_cut_splits_the_tokens_between_versions_without_losing_one():
    table, trajectory, attempt = begun(version=2)
    table.add_tokens(attempt.id, 4)
    table.cut_span(attempt, trajectory)
    attempt.version = 3
    table.add_tokens(attempt.id, 9)
    table.close(attempt)
    assert [(span.version, span.tokens) for span in trajectory.spans] == [(2, 4), (3, 5)]
    assert trajectory.oldest == 2


def test_R6_a_closed_attempt_cannot_be_closed_again():
    table, _, attempt = begun()
    table.close(attempt)
    with pytest.raises(IllegalTransition, match="attempt"):
        table.close(attempt)


def test_R3_tokens_of_a_closed_attempt_are_dropped_and_counted():
    table, trajectory, attempt = begun()
    table.close(attempt)
    assert table.add_tokens(attempt.id, 9) is None
    assert (trajectory.tokens, table.late_data) == (0, 1)


def test_R13_a_second_outcome_is_refused():
    table, trajectory, _ = begun()
    table.settle(trajectory, Outcome.SCORED)
    with pytest.raises(IllegalTransition):
        table.settle(trajectory, Outcome.CANCELLED)
    assert trajectory.outcome is Outcome.SCORED


def test_R6_an_attempt_needs_a_queued_trajectory():
    table, trajectory, _ = begun()
    with pytest.raises(IllegalTransition, match="generating"):
        table.next_attempt(trajectory)


def test_an_id_that_was_never_given_is_unknown():
    with pytest.raises(UnknownId, match="4"):
        TrajectoryTable(1).get(4)
