"""Which folder a run may use: a new one, or what a start that failed left behind; never one with a person's work."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from roll_ts.config import RunConfig
from roll_ts.config_file import load_config
from roll_ts.runtime.launch import RunFolderExists, _make_folder

EXAMPLE = Path(__file__).parents[3] / "examples" / "two_devices_time_sharing.yaml"


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    config = load_config(EXAMPLE)
    assert isinstance(config, RunConfig)
    return dataclasses.replace(config, out=str(tmp_path / "run"))


def test_a_folder_that_a_failed_start_left_is_used_again(config: RunConfig) -> None:
    folder = _make_folder(config)
    (folder / "model").mkdir()
    (folder / "journal.jsonl").write_text('{"settings": {}}\n{"event": "TrajectoriesWanted"}\n')
    (folder / "samples.jsonl").write_text("")
    assert _make_folder(config) == folder
    assert sorted(path.name for path in folder.iterdir()) == ["checkpoint", "config.yaml"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("journal.jsonl", '{"event": "TrainerReady"}\n'),
        ("samples.jsonl", "{}\n"),
        ("checkpoint/version-000001/config.json", "{}"),
        ("notes.txt", "mine"),
    ],
)
def test_a_folder_with_anything_of_worth_is_refused(config: RunConfig, name: str, text: str) -> None:
    folder = _make_folder(config)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    with pytest.raises(RunFolderExists, match="choose another folder"):
        _make_folder(config)
    assert (folder / name).read_text() == text


def test_a_folder_that_no_run_made_is_refused(config: RunConfig) -> None:
    config.folder.mkdir(parents=True)
    with pytest.raises(RunFolderExists):
        _make_folder(config)
