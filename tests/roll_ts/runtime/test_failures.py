"""Processes that die in the middle of a run on real engines: the run goes on, and nothing finished is lost."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from roll_ts.config import RunConfig
from roll_ts.config_file import load_config
from roll_ts.core import alphabet as a
from roll_ts.observe.journal import read_journal
from roll_ts.runtime.controller import Controller, Watcher
from roll_ts.runtime.launch import launch
from roll_ts.runtime.replay import replay

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(900)]

EXAMPLE = Path(__file__).parents[3] / "examples" / "two_devices_time_sharing.yaml"


def run_and_kill(folder: Path, pid_of: Callable[[Controller], int]) -> list[a.Command]:
    """A run in which the process is killed as soon as version 1 is trained; returns all commands."""
    config = load_config(EXAMPLE, [f"out={folder}", "steps=4"])
    assert isinstance(config, RunConfig)
    killed: list[int] = []

    def watchers(run: Controller) -> Sequence[Watcher]:
        def watch(now: float, event: a.Event, commands: Sequence[a.Command]) -> None:
            if isinstance(event, a.TrainingFinished) and not killed:
                killed.append(pid_of(run))
                os.kill(killed[0], signal.SIGKILL)

        return [watch]

    ended = launch(config, watchers)
    assert killed and ended.ok, ended.finish
    journal = read_journal(folder / "journal.jsonl")
    assert replay(journal) is None
    return [command for _, command in journal.commands()]


def one_outcome_each(commands: list[a.Command]) -> bool:
    started = {command.trajectory for command in commands if isinstance(command, a.StepEnvironment)}
    outcomes = Counter(command.trajectory for command in commands if isinstance(command, a.Settled))
    return started == set(outcomes) and set(outcomes.values()) == {1}


@pytest.mark.parametrize("rank", [0, 1], ids=["kept", "lent"])
def test_a_run_goes_on_without_an_engine_that_was_killed(cluster: None, tmp_path: Path, rank: int) -> None:
    def pid_of(run: Controller) -> int:
        pid = run.engines[rank].pid
        assert pid is not None
        return pid

    commands = run_and_kill(tmp_path / "run", pid_of)
    assert one_outcome_each(commands)
    assert [c.rank for c in commands if isinstance(c, a.RankMoved) and c.new == "FAILED"] == [rank]
    assert len([c for c in commands if isinstance(c, a.Restart) and c.rank == rank]) == 2


def test_R27_a_run_goes_on_with_a_trainer_that_was_killed(cluster: None, tmp_path: Path) -> None:
    commands = run_and_kill(tmp_path / "run", lambda run: run.trainer.pids[0])
    assert one_outcome_each(commands)
    assert [command.incarnation for command in commands if isinstance(command, a.StartTrainer)] == [1, 2]
    # Nothing was saved before it died, so it begins again; the last step is the one before the version asked for.
    assert [command.version for command in commands if isinstance(command, a.Train)][-4:] == [0, 1, 2, 3]
