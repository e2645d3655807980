"""Replay: equal commands, the first difference under another policy, and a journal that is read as a stream."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from roll_ts.cli import main
from roll_ts.core import alphabet as a
from roll_ts.core.policies import Decision, TimeSharing, View, make_policy
from roll_ts.observe.journal import Entry, Header, JournalReader, JournalWriter
from roll_ts.runtime.replay import replay_entries
from tests.roll_ts.outside.scenario import Scenario
from tests.roll_ts.outside.world import World


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run under time_sharing, synchronous, so that its layout fits no other policy but itself."""
    world = World(Scenario(seed=3, until=3, async_ratio=1.0)).run()
    folder = tmp_path_factory.mktemp("run")
    with JournalWriter(folder / "journal.jsonl", Header(world.settings, "time_sharing")) as journal:
        for entry in world.journal:
            journal.write(entry.now, entry.event, entry.commands)
    return folder


def reader(run: Path) -> JournalReader:
    return JournalReader(run / "journal.jsonl")


def test_the_same_policy_gives_every_command_again(run: Path) -> None:
    journal = reader(run)
    done = replay_entries(journal.header, journal)
    lines = (run / "journal.jsonl").read_text().splitlines()[1:]
    assert done.difference is None
    assert (done.entries, done.commands) == (len(lines), sum(len(json.loads(line)["commands"]) for line in lines))


def test_a_stream_is_read_no_further_than_to_the_time_asked_for(run: Path) -> None:
    journal = reader(run)
    taken: list[float] = []

    def watched() -> Iterator[Entry]:
        for entry in journal:
            taken.append(entry.t)
            yield entry

    done = replay_entries(journal.header, watched(), until=2.0)
    assert done.entries == sum(t <= 2.0 for t in taken) == len(taken) - 1


def test_one_command_that_differs_is_found_at_its_place(run: Path) -> None:
    journal = reader(run)
    entries = list(journal)
    at = next(n for n, entry in enumerate(entries) if any(isinstance(c, a.Dispatch) for c in entry.commands))
    spot = next(n for n, c in enumerate(entries[at].commands) if isinstance(c, a.Dispatch))
    words = list(entries[at].commands)
    words[spot] = dataclasses.replace(words[spot], rank=3 - words[spot].rank)
    entries[at] = dataclasses.replace(entries[at], commands=tuple(words))
    difference = replay_entries(journal.header, entries).difference
    assert difference is not None and (difference.entry, difference.position) == (at, spot)


class Patient(TimeSharing):
    """Time-sharing that trains on nothing before a time."""

    name = "patient"

    def decide(self, view: View) -> Decision:
        return super().decide(view) if view.now > 4.0 else Decision()


def test_another_policy_is_followed_to_the_first_thing_that_it_does_otherwise(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "roll_ts.runtime.replay.make_policy", lambda name: Patient() if name == "patient" else make_policy(name)
    )
    journal = reader(run)
    drained = next(entry for entry in journal if any(isinstance(c, a.Drain) for c in entry.commands))
    assert main(["replay", str(run), "--policy", "patient"]) == 1
    said = capsys.readouterr().out
    assert f"(t={drained.t:.3f})" in said and "under patient; then it does something else" in said
    assert "last decision of time_sharing: " in said and "complete_groups" in said
    done = replay_entries(journal.header, journal, "patient")
    assert done.difference is not None and done.entries == list(journal).index(drained)


def test_a_policy_that_does_not_fit_the_settings_is_refused_with_what_does_not_fit(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(run), "--policy", "disaggregated"]) == 2
    said = capsys.readouterr()
    assert "--policy disaggregated" in said.err and "layout.train_devices" in said.err and said.out == ""
    assert main(["replay", str(run), "--policy", "fair"]) == 2
    assert "fair" in capsys.readouterr().err


def test_the_state_at_a_time_is_told(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(run), "--until", "2"]) == 0
    said = capsys.readouterr().out
    assert "at 2 s: " in said and "version 0" in said and "2 ACTIVE" in said


@pytest.mark.parametrize("kind", ["trajectory", "rank", "decision"])
def test_a_story_is_told_as_text_and_as_json(run: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(run), "--explain", kind, "0"]) == 0
    text = capsys.readouterr().out.splitlines()
    assert main(["replay", str(run), "--explain", kind, "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["story"] == text and len(text) > 2


@pytest.mark.parametrize(("what", "said"), [(("group", "1"), "choose one of"), (("rank", "-1"), "whole number")])
def test_a_story_of_nothing_is_a_wrong_usage(
    run: Path, what: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["replay", str(run), "--explain", *what])
    assert said in capsys.readouterr().err
