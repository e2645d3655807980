"""What is made of a finished run's folder, without an engine: its report files and its figures."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from roll_ts.config_file import load_config
from roll_ts.core import alphabet as a
from roll_ts.observe.journal import Entry, Header, Journal, JournalReader, JournalWriter
from roll_ts.runtime.replay import replay
from roll_ts.runtime.results import read_run, write_results
from roll_ts.runtime.verify import logprob_figures, replay_turns
from tests.roll_ts.outside.scenario import Scenario
from tests.roll_ts.outside.world import World

EXAMPLE = Path(__file__).parents[3] / "examples" / "frozen_lake.yaml"
FIGURES = {
    "logprob_n": 40.0,
    "logprob_share": 0.5,
    "logprob_max": 0.2,
    "logprob_p99": 0.1,
    "logprob_allowed_p99": 0.15,
    "logprob_allowed_largest": 0.3,
}


@pytest.fixture(scope="module")
def world() -> World:
    return World(Scenario(seed=5, until=2)).run()


@pytest.fixture
def folder(world: World, tmp_path: Path) -> Path:
    with JournalWriter(tmp_path / "journal.jsonl", Header(world.settings, "time_sharing")) as journal:
        for entry in world.journal:
            journal.write(entry.now, entry.event, entry.commands)
    return tmp_path


def test_a_run_is_read_from_its_folder_or_from_its_journal(folder: Path, world: World) -> None:
    journal = read_run(folder)
    assert [entry.event for entry in journal.entries] == [entry.event for entry in world.journal]
    assert read_run(folder / "journal.jsonl").entries == journal.entries


def test_results_are_three_files_and_the_report_that_was_returned(folder: Path) -> None:
    report = write_results(folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "journal.jsonl",
        "picture.html",
        "report.json",
        "timeline.json",
    ]
    assert json.loads((folder / "report.json").read_text()) == json.loads(json.dumps(report.to_json()))


def test_a_run_without_a_journal_leaves_no_results(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"journal\.jsonl"):
        write_results(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_replay_finds_nothing_in_what_was_recorded_and_the_first_command_that_was_changed(folder: Path) -> None:
    journal = JournalReader(folder / "journal.jsonl")
    entries = list(journal)
    assert replay(Journal(journal.header, tuple(entries))) is None
    at = next(n for n, entry in enumerate(entries) if entry.commands)
    entries[at] = Entry(entries[at].t, entries[at].event, entries[at].commands[1:])
    found = replay(Journal(journal.header, tuple(entries)))
    assert found is not None and found.entry == at


def training(version: int, figures: dict[str, float]) -> a.TrainingFinished:
    return a.TrainingFinished(epoch=version, version=version, digest="", seconds=1.0, figures=figures)


def test_log_prob_figures_are_of_training_steps_that_measured_them(folder: Path) -> None:
    header = read_run(folder).header
    steps = [training(1, FIGURES), training(2, {})]
    [found] = logprob_figures(Journal(header, tuple(Entry(1.0, step, ()) for step in steps)))
    assert (found.version, found.n, found.share, found.max, found.p99) == (1, 40, 0.5, 0.2, 0.1)
    assert (found.allowed.p99, found.allowed.largest) == (0.15, 0.3)
    assert found.ok


def test_no_engine_is_started_where_no_turn_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "samples.jsonl").touch()
    monkeypatch.setitem(sys.modules, "roll_ts.engines.vllm", None)
    config = load_config(EXAMPLE)
    assert replay_turns(tmp_path, config) == []
