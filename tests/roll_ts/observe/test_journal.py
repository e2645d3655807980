"""Journals on disk: exact, whole, and honest about what is missing."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.core import alphabet as a
from roll_ts.core.settings import Deadlines
from roll_ts.observe.journal import (
    Entry,
    Header,
    Journal,
    JournalError,
    JournalWriter,
    decode_entry,
    decode_header,
    encode_entry,
    encode_header,
    read_journal,
    write_journal,
)
from tests.roll_ts.observe.handmade import SETTINGS, finished_run

times = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
numbers = st.floats(allow_nan=False)
ids = st.tuples(st.integers(0, 99), st.integers(1, 9), st.integers(1, 9)).map(lambda t: a.AttemptId(*t))
events = st.one_of(
    st.builds(a.Finished, attempt=ids, total=st.integers(0, 9999), reason=st.text()),
    st.builds(a.KVReady, rank=st.integers(0, 9), epoch=st.integers(0, 9), canary_gap=numbers, command=st.integers()),
    st.builds(
        a.TrainingFinished,
        epoch=st.integers(0, 9),
        version=st.integers(0, 9),
        digest=st.text(),
        seconds=times,
        figures=st.dictionaries(st.text(), numbers, max_size=3),
        command=st.none() | st.integers(),
    ),
)
commands = st.one_of(
    st.builds(a.FormGroup, id=st.integers(), epoch=st.integers(), version=st.integers(), members=st.just((0, 2))),
    st.builds(
        a.Train,
        id=st.integers(),
        due=st.none() | times,
        awaits=st.none() | st.text(),
        epoch=st.integers(),
        version=st.integers(),
        batch=st.lists(st.builds(a.Assignment, st.integers(), st.integers(), st.integers()), max_size=3).map(tuple),
    ),
    st.builds(a.GroupDropped, id=st.integers(), group=st.integers(), reason=st.text(), trajectories=st.just((1, 2))),
)


@given(times, events, st.lists(commands, max_size=4).map(tuple))
@settings(deadline=None, derandomize=True, max_examples=150)
def test_an_entry_comes_back_equal_to_the_last_bit_of_its_floats(
    t: float, event: a.Event, said: tuple[a.Command, ...]
) -> None:
    entry = Entry(t, event, said)
    assert decode_entry(json.loads(json.dumps(encode_entry(entry)))) == entry


def test_a_header_comes_back_equal() -> None:
    odd = dataclasses.replace(SETTINGS, async_ratio=0.1 + 0.2, deadlines=Deadlines(drain=1 / 3))
    header = Header(odd, "time_sharing", 3, "ray", {"ray": "2"}, {"device": "core"})
    assert decode_header(json.loads(json.dumps(encode_header(header)))) == header


def test_a_written_journal_is_read_back_equal(tmp_path: Path) -> None:
    journal = finished_run()
    write_journal(journal, tmp_path / "journal.jsonl")
    assert read_journal(tmp_path / "journal.jsonl") == journal
    assert [path.name for path in tmp_path.iterdir()] == ["journal.jsonl"]


def test_the_writer_and_the_whole_write_give_the_same_bytes(tmp_path: Path) -> None:
    journal = finished_run()
    write_journal(journal, tmp_path / "whole")
    with JournalWriter(tmp_path / "lines", journal.header) as writer:
        for entry in journal.entries:
            writer.write(entry.t, entry.event, entry.commands)
    assert (tmp_path / "lines").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_torn_last_line_is_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write_journal(finished_run(), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    read = read_journal(path)
    assert read.entries == finished_run().entries[:-1]
    assert read.torn and whole.decode().endswith(read.torn + whole[-30:].decode())


@given(st.integers(min_value=0, max_value=600))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_a_crash_after_any_byte_loses_at_most_the_line_it_hit(cut: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        write_journal(finished_run(), path)
        data = path.read_bytes()[: -cut or None]
        path.write_bytes(data)
        read = read_journal(path)
        assert read.entries == finished_run().entries[: data.count(b"\n") - 1]


def test_a_bad_line_in_the_middle_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write_journal(finished_run(), path)
    lines = path.read_text().splitlines(keepends=True)
    lines[4] = lines[4].replace('"Finished"', '"Fnished"')
    path.write_text("".join(lines))
    with pytest.raises(JournalError, match=r"journal\.jsonl:5: not a journal entry: KeyError\('Fnished'\)"):
        read_journal(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no complete header line"),
        ('{"t": 0}\n', r"lacks \['header'\] - line 1 of a journal is its header"),
        ('{"header": {"format": 99}}\n', r"must equal FORMAT \(2\), got 99 - this version reads no other"),
        ('{"header": {"format": 2, "settings": {}}}\n', "no header of format 2"),
        ('{"header": [1]}\n', "no header of format 2"),
        ("hello\n", "not JSON"),
        ("[" * 100_000 + "\n", "not JSON"),
        ("9" * 5_000 + "\n", "not JSON"),
    ],
)
def test_another_file_is_refused_with_the_reason(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(text)
    with pytest.raises(JournalError, match=said):
        read_journal(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"policy": 5}, "Header.policy must be str, got 5"),
        ({"notes": ["x"]}, "Header.notes must be dict"),
        ({"settings": {"group_size": -1}}, "group_size = -1 must be at least 2"),
        ({"settings": {"group_size": "2"}}, "Settings.group_size must be int, got '2'"),
        ({"settings": {"deadlines": {"drain": None}}}, "Deadlines.drain must be float, got None"),
        ({"settings": {"layout": {"ranks": [[0], [0]], "train_devices": [0]}}}, "device 0 is named twice"),
    ],
)
def test_a_header_that_no_run_can_have_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "journal.jsonl"
    record = encode_header(finished_run().header)
    settings = json.loads(json.dumps(record["header"]["settings"])) | change.get("settings", {})
    path.write_text(json.dumps({"header": record["header"] | change | {"settings": settings}}) + "\n")
    with pytest.raises(JournalError, match=re.escape(said)):
        read_journal(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"t": None}, "t must be (int, float)"),
        ({"t": float("nan")}, "time only goes on"),
        ({"t": -1.0}, "time only goes on"),
        ({"t": float("inf")}, "must be finite"),
        (
            {"event": {"type": "RankBooted", "rank": 9, "incarnation": 1, "kv_capacity": 1}},
            "rank must be a rank in [0, 2), got 9",
        ),
        (
            {"event": {"type": "RankBooted", "rank": "0", "incarnation": 1, "kv_capacity": 1}},
            "RankBooted.rank must be int, got '0'",
        ),
        ({"event": {"type": "GroupFormed", "epoch": 1, "command": []}}, "GroupFormed.command must be int | None"),
        (
            {"commands": [{"type": "Abort", "id": 1, "rank": 0, "attempt": [0, 1, "x"], "reason": ""}]},
            "Abort.attempt must be",
        ),
        (
            {"commands": [{"type": "Decided", "id": 1, "policy": "p", "decision": "d", "figures": {"a": "b"}}]},
            "figures",
        ),
    ],
)
def test_an_entry_that_no_run_can_have_is_refused_with_its_line(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    path = tmp_path / "journal.jsonl"
    write_journal(finished_run(), path)
    lines = path.read_text().splitlines()
    lines[4] = json.dumps(json.loads(lines[4]) | change)
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(JournalError, match=rf"journal\.jsonl:5: .*{re.escape(said)}"):
        read_journal(path)


def test_a_journal_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write_journal(finished_run(), path)
    with pytest.raises(FileExistsError):
        JournalWriter(path, finished_run().header)


def test_appending_cuts_the_torn_line_off_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = finished_run()
    write_journal(Journal(journal.header, journal.entries[:-1]), path)
    with open(path, "ab") as file:
        file.write('{"t": 11.5, "event": {"ty\u00e9'.encode()[:-1])
    last = journal.entries[-1]
    with JournalWriter(path, journal.header, append=True) as writer:
        writer.write(last.t, last.event, last.commands)
    assert read_journal(path) == journal


def test_appending_to_a_journal_of_other_settings_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write_journal(finished_run(), path)
    other = dataclasses.replace(finished_run().header, policy="colocated")
    with pytest.raises(JournalError, match="another header"):
        JournalWriter(path, other, append=True)


def test_lines_reach_the_file_within_the_flush_time(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    writer = JournalWriter(path, finished_run().header, flush_after=1.0)
    for t in (0.0, 0.5, 0.9):
        writer.write(t, a.TimerFired(), ())
    assert len(read_journal(path).entries) == 1
    writer.write(1.0, a.TimerFired(), ())
    assert len(read_journal(path).entries) == 4
    writer.write(1.1, a.TimerFired(), ())
    writer.close()
    writer.close()
    assert len(read_journal(path).entries) == 5
