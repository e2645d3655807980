"""Shares and phases are partitions of time; their values by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roll_ts.core import alphabet as a
from roll_ts.core.settings import Layout
from roll_ts.observe.activity import device_activity, device_shares, devices, phases
from roll_ts.observe.intervals import read_history
from tests.roll_ts.observe.handmade import SETTINGS, Script, finished_run, tick


def test_a_lent_device_is_busy_switching_training_switching_idle() -> None:
    spans = device_activity(read_history(finished_run()), 0)
    assert [(s.start, s.end, s.label) for s in spans] == [
        (0.0, 1.0, "idle"),
        (1.0, 4.0, "busy"),
        (4.0, 6.0, "switching"),
        (6.0, 9.0, "training"),
        (9.0, 10.0, "switching"),
        (10.0, 12.0, "idle"),
    ]


def test_shares_of_a_device_sum_to_one() -> None:
    history = read_history(finished_run())
    shares = device_shares(history, 0)
    assert shares == pytest.approx({"busy": 3 / 12, "training": 3 / 12, "switching": 3 / 12, "idle": 3 / 12})
    assert device_shares(history, 1) == pytest.approx({"busy": 10 / 12, "training": 0, "switching": 0, "idle": 2 / 12})


def test_a_device_of_the_trainer_alone_is_idle_unless_it_is_asked_something() -> None:
    script = Script(replace(SETTINGS, layout=Layout(((1,),), (0,))), "disaggregated")
    train = script.say(a.Train, epoch=1, version=0, batch=(), due=600.0, awaits="trainer")
    sync = script.say(a.Sync, epoch=2, version=1, members=(0,), due=60.0, awaits="trainer")
    script.at(0.0, tick(), script.move(0, "LOADING", "ACTIVE"))
    script.at(1.0, a.TrainerReady(incarnation=1, version=0, digest="d"))
    script.at(2.0, tick(), train)
    script.at(5.0, a.TrainingFinished(command=train.id, epoch=1, version=1, digest="e", seconds=3.0), sync)
    script.at(6.0, a.WeightsSent(command=sync.id, epoch=2, version=1))
    script.at(10.0, tick())
    history = read_history(script.journal())
    assert devices(history) == [0, 1]
    spans = device_activity(history, 0)
    assert [(s.start, s.end, s.label) for s in spans] == [
        (0.0, 1.0, "switching"),
        (1.0, 2.0, "idle"),
        (2.0, 5.0, "training"),
        (5.0, 6.0, "switching"),
        (6.0, 10.0, "idle"),
    ]


def test_phases_tile_the_run_and_the_cycle_goes_before_rollout() -> None:
    spans = phases(read_history(finished_run()))
    assert [(s.start, s.end, s.label) for s in spans] == [
        (0.0, 1.0, "idle"),
        (1.0, 4.0, "rollout"),
        (4.0, 5.0, "shrink"),
        (5.0, 6.0, "rollout"),
        (6.0, 9.0, "train"),
        (9.0, 9.5, "form"),
        (9.5, 10.0, "wake"),
        (10.0, 11.0, "rollout"),
        (11.0, 12.0, "idle"),
    ]


def test_a_drain_of_a_sync_is_quiescing_not_shrinking() -> None:
    script = Script()
    form = script.say(a.FormGroup, epoch=2, version=1, members=(1,), due=60.0, awaits="all")
    drain = script.say(a.Drain, rank=1, epoch=2, due=30.0, awaits="rank 1")
    script.at(0.0, tick(), form)
    script.at(1.0, a.GroupFormed(command=form.id, epoch=2), drain)
    script.at(3.0, a.RankStats(command=drain.id, rank=1, incarnation=1, running=0, waiting=0, kv_tokens=0))
    spans = phases(read_history(script.journal()))
    assert [(s.label, s.seconds) for s in spans] == [("form", 1.0), ("quiesce", 2.0)]
