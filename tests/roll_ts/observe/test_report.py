"""The end report: by hand where it can be, and an error where a run broke a rule."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from roll_ts.core import alphabet as a
from roll_ts.observe.journal import Journal
from roll_ts.observe.report import make_report
from roll_ts.observe.table import SHARES_FORMULA, comparison_text, report_text
from roll_ts.observe.tokens import AccountError
from tests.roll_ts.observe.handmade import Script, finished_run, moved_turn, tick


def test_the_figures_of_the_hand_made_run() -> None:
    report = make_report(finished_run())
    assert (report.finished, report.ok, report.reason) == (True, True, "reached version 1")
    assert (report.serving_since, report.end) == (0.0, 12.0)
    assert report.tokens_per_second == pytest.approx(140 / 12)
    assert report.trained_tokens_per_second == pytest.approx(80 / 12)
    assert report.samples_per_second == pytest.approx(2 / 12)
    assert report.outcomes == {"scored": 5} and report.started == 5 and report.open == 0
    assert report.staleness == {0: 2}
    assert report.in_flight == pytest.approx({0: (2 * 2 + 1.5) / 12, 1: (4 + 2 * 2 + 4) / 12})
    assert report.cycles == 1
    (step,) = report.steps
    assert (step.version, step.at, step.samples, step.tokens) == (0, 6.0, 2, 80)
    assert (step.reward, step.success) == (0.5, 0.5)
    assert report.reward_gain is None


def test_phases_sum_to_the_length_of_the_run() -> None:
    report = make_report(finished_run())
    assert sum(report.phases.values()) == pytest.approx(12.0)
    assert report.phases["train"] == 3.0 and report.phases["shrink"] == 1.0


def test_the_report_is_plain_json() -> None:
    record = make_report(finished_run()).to_json()
    assert json.loads(json.dumps(record))["tokens"]["regenerated"] == 0


def test_two_outcomes_of_a_trajectory_are_an_error() -> None:
    script = moved_turn()
    script.at(13.0, tick(), script.settle(2, 1, 0, tokens=60, outcome="cancelled"))
    said = r"got 2 \(.*outcome='scored', item\.outcome='cancelled', t=13\.0\) - a trajectory has one outcome"
    with pytest.raises(AccountError, match=said):
        make_report(script.journal())


def test_a_finished_run_that_left_a_trajectory_open_is_an_error() -> None:
    script = moved_turn()
    script.at(13.0, tick(), script.start(5, 2, 0), script.say(a.Finish, ok=True, reason="done"))
    with pytest.raises(AccountError, match=r"without_outcome must be empty, got \[5\]"):
        make_report(script.journal())


def test_an_unfinished_run_counts_what_is_open() -> None:
    script = moved_turn()
    script.at(13.0, tick(), script.start(5, 2, 0))
    report = make_report(script.journal(torn='{"t": 1'))
    assert (report.finished, report.ok, report.open, report.torn) == (False, False, 1, True)
    assert "torn" in report_text(report) and "unfinished" in report_text(report)


def test_an_outcome_without_a_start_is_an_error() -> None:
    script = Script()
    script.at(0.0, tick(), script.settle(8, 0, 0, tokens=1))
    with pytest.raises(AccountError, match="what has an outcome was started"):
        make_report(script.journal())


def test_dropped_groups_count_as_cancelled_lengths_not_as_trained() -> None:
    script = moved_turn()
    drop = script.say(a.GroupDropped, group=0, reason="stale", trajectories=(0, 1))
    script.at(12.0, tick(), drop)
    report = make_report(script.journal())
    assert report.groups_dropped == {"stale": 1}
    assert report.lengths["cancelled"].count == 2 and report.lengths["cancelled"].mean == 40.0
    assert report.lengths["trained"].count == 2 and report.lengths["trained"].max == 50.0
    assert report.lengths["started"].count == 5


def test_evaluations_are_reported_by_round_and_never_as_training() -> None:
    script = moved_turn()
    started = [script.start(t, group, t - 10, kind="eval") for t, group in ((10, 0), (11, 0), (12, 1), (13, 1))]
    ends = [
        script.settle(10, 0, 0, tokens=5, reward=0.0, kind="eval", oldest=0),
        script.settle(11, 0, 1, tokens=5, reward=1.0, kind="eval", oldest=0),
        script.settle(12, 1, 0, tokens=5, reward=1.0, kind="eval", oldest=3),
        script.settle(13, 1, 1, tokens=5, reward=0.0, kind="eval", oldest=3, outcome="infra-void"),
    ]
    script.at(12.0, tick(), *started, *ends)
    report = make_report(script.journal())
    assert [(e.version, e.episodes, e.success) for e in report.evaluations] == [(0, 2, 0.5), (3, 1, 1.0)]
    assert report.lengths["started"].count == 5


def test_staleness_is_the_trainers_version_less_the_oldest_segments() -> None:
    script = Script()
    script.at(
        0.0, tick(), script.move(0, "LOADING", "ACTIVE"), *[script.start(t, 0, t) for t in (0, 1)],
        script.settle(0, 0, 0, tokens=5, oldest=3), script.settle(1, 0, 1, tokens=5, oldest=4),
    )  # fmt: skip
    train = script.say(a.Train, epoch=1, version=4, batch=(a.Assignment(0, 0, 0), a.Assignment(0, 1, 1)), due=99.0)
    script.at(1.0, tick(), train)
    script.at(2.0, a.TrainingFinished(command=train.id, epoch=1, version=5, digest="d", seconds=1.0))
    assert make_report(script.journal()).staleness == {0: 1, 1: 1}


def test_the_table_shows_every_share_beside_its_formula() -> None:
    text = report_text(make_report(finished_run()))
    assert SHARES_FORMULA in text
    rows = [line.split() for line in text.splitlines() if line.startswith((" 0 ", " 1 ")) and "→" not in line]
    assert rows == [
        ["0", "25.0%", "25.0%", "25.0%", "25.0%", "1.000"],
        ["1", "83.3%", "0.0%", "0.0%", "16.7%", "1.000"],
    ]
    figures = {" ".join(line.split()[:-1]): line.split()[-1] for line in text.splitlines() if line.strip()}
    assert figures["migrated turns"] == "1" and figures["re-prefilled tokens"] == "35"
    assert max(map(len, text.splitlines())) <= 118


def test_runs_stand_side_by_side_in_the_same_rows() -> None:
    reports = [make_report(finished_run())]
    reports.append(replace(reports[0], policy="other"))
    text = comparison_text(reports)
    (row,) = [line.split() for line in text.splitlines() if line.strip().startswith("migrated turns  ")]
    assert row == ["migrated", "turns", "1", "1"]


def test_an_empty_journal_has_a_report_too() -> None:
    report = make_report(Journal(finished_run().header, ()))
    assert report.tokens.generated == 0 and report_text(report)
