"""The command line: what it prints where, and its exit statuses."""

from __future__ import annotations

import dataclasses
import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from roll_ts.cli import main
from roll_ts.config import RunConfig
from roll_ts.config_file import load_config
from roll_ts.core import alphabet as a
from roll_ts.core.policies import make_policy
from roll_ts.core.scheduler import Scheduler
from roll_ts.observe.journal import Header, JournalWriter

EXAMPLE = Path(__file__).parents[2] / "examples" / "two_devices_time_sharing.yaml"


@pytest.fixture
def stopped_run(tmp_path: Path) -> Path:
    """A run that was stopped before its trainer was ready: the shortest journal there is."""
    config = load_config(EXAMPLE)
    assert isinstance(config, RunConfig)
    scheduler = Scheduler(config.settings(), make_policy(config.policy))
    with JournalWriter(tmp_path / "journal.jsonl", Header(config.settings(), config.policy)) as journal:
        for t, event in ((0.0, a.TrajectoriesWanted(until=3)), (1.0, a.UserStop())):
            journal.write(t, event, scheduler.handle(event, t))
    return tmp_path


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "roll_ts", *argv], capture_output=True, text=True, timeout=60)


def seconds_of_children() -> float:
    """CPU seconds of finished child processes: unlike the clock, no other program can lengthen them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_configuration_errors_are_told_together_with_exit_2_in_under_2_seconds() -> None:
    began = seconds_of_children()
    done = run(
        "train", str(EXAMPLE), "--set", "trainer.learning_rat=1", "--set", "rollout.group_size=one", "--steps", "0"
    )
    assert seconds_of_children() - began < 2.0
    assert done.returncode == 2 and done.stdout == ""
    assert "3 problems" in done.stderr and "Traceback" not in done.stderr
    for key, mend in (
        ("trainer.learning_rat", "learning_rate"),
        ("rollout.group_size", "write it like 8"),
        ("steps", "1"),
    ):
        [line] = [line for line in done.stderr.splitlines() if line.strip().startswith(f"{key} ")]
        assert mend in line


def test_help_and_checking_import_nothing_heavy() -> None:
    code = (
        "import sys; from roll_ts.cli import main; assert main(['train', sys.argv[1], '--check']) == 0; "
        "sys.exit(str(heavy) if (heavy := {'torch', 'ray', 'vllm', 'transformers'} & set(sys.modules)) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(EXAMPLE)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert run("--help").returncode == 0


def test_no_command_is_wrong_usage() -> None:
    assert run().returncode == 2


def test_a_folder_that_is_no_run_is_refused_with_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("report", "replay", "verify", "view"):
        assert main([command, str(tmp_path)]) == 2
        said = capsys.readouterr()
        assert str(tmp_path) in said.err and said.out == ""


def test_a_journal_that_contradicts_itself_is_a_finding(stopped_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settled = {
        "type": "Settled",
        "id": 9,
        "trajectory": 5,
        "kind": "train",
        "group": 0,
        "member": 0,
        "outcome": "scored",
    }
    settled |= {"reason": "", "reward": 0.0, "success": False, "turns": 1, "tokens": 1, "oldest_version": 0}
    entry = {"t": 2.0, "event": {"type": "TimerFired"}, "commands": [settled | {"staleness": 0}]}
    with (stopped_run / "journal.jsonl").open("a") as journal:
        journal.write(json.dumps(entry) + "\n")
    for command in ("report", "view"):
        assert main([command, str(stopped_run)]) == 1
        said = capsys.readouterr()
        assert "contradicts itself" in said.err and "trajectory" in said.err and said.out == ""


def test_replay_names_the_line_that_no_scheduler_takes(stopped_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = stopped_run / "journal.jsonl"
    text = path.read_text()
    for old, new, said in (
        ('"until":3', '"until":-3', "line 2: the scheduler refuses"),
        ('"policy":"time_sharing"', '"policy":"fair"', "line 1: no scheduler has this header"),
    ):
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))
        assert main(["replay", str(stopped_run)]) == 1
        assert said in capsys.readouterr().err


def test_view_of_a_journal_file_writes_beside_it(stopped_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(stopped_run / "journal.jsonl")]) == 0
    assert capsys.readouterr().out.strip() == str(stopped_run / "picture.html")


def test_samples_that_cannot_be_read_are_refused_with_their_line(
    stopped_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (stopped_run / "config.yaml").write_text(EXAMPLE.read_text())
    assert main(["verify", str(stopped_run)]) == 2
    assert "samples.jsonl" in capsys.readouterr().err
    for line in ("no JSON", "5", '{"begin": "1.2"}', '{"attempt": "7.1.1", "tokens": [1], "logprobs": [0]}'):
        (stopped_run / "samples.jsonl").write_text(line + "\n")
        assert main(["verify", str(stopped_run)]) == 2
        assert "samples.jsonl:1: not a line of samples" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["simulate", str(EXAMPLE.parent / "four_gpus.yaml"), "--out", str(tmp_path / "file" / "run")]) == 2
    assert "--out" in capsys.readouterr().err
    done = run("train", str(EXAMPLE), "--out", str(tmp_path / "file" / "run"))
    assert done.returncode == 2 and "cannot be made" in done.stderr


def test_a_reader_that_has_seen_enough_gets_no_trace(stopped_run: Path) -> None:
    command = [sys.executable, "-m", "roll_ts", "report", str(stopped_run)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()
        assert process.wait(timeout=60) == 141


def test_replay_says_that_all_commands_are_equal(stopped_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(stopped_run)]) == 0
    assert "2 events give the same" in capsys.readouterr().out


def test_replay_shows_the_first_difference_with_exit_1(stopped_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = stopped_run / "journal.jsonl"
    header, first, *rest = path.read_text().splitlines()
    record = json.loads(first)
    restarts = [command for command in record["commands"] if command["type"] == "Restart"]
    restarts[1]["rank"] = 0
    path.write_text("\n".join([header, json.dumps(record), *rest]) + "\n")
    assert main(["replay", str(stopped_run)]) == 1
    said = capsys.readouterr().out
    assert "entry 0" in said and "rank=0" in said.split("journal:")[1] and "rank=1" in said.split("replay:")[1]


def test_report_and_view_read_the_journal_alone(stopped_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(stopped_run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reason"].startswith("stopped by the user")
    assert main(["view", str(stopped_run)]) == 0
    assert (stopped_run / "picture.html").read_text().lstrip().lower().startswith("<!doctype html>")


def test_a_run_folder_that_exists_is_refused_before_anything_starts(tmp_path: Path) -> None:
    done = run("train", str(EXAMPLE), "--out", str(tmp_path))
    assert done.returncode == 2 and "exists" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_configuration_that_is_written_names_every_field() -> None:
    config = load_config(EXAMPLE)
    assert isinstance(config, RunConfig)
    from roll_ts.config_file import dump_config

    text = dump_config(config)
    assert all(f"{field.name}:" in text for field in dataclasses.fields(config))


def test_simulate_prints_the_comparison_and_writes_picture_and_timelines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", str(EXAMPLE.parent / "four_gpus.yaml"), "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "training steps" in said.out and "simulating" in said.err
    page = (tmp_path / "picture.html").read_text()
    assert "<svg" in page or "createElementNS" in page
    assert not re.search(r"(src|href)\s*=\s*.?https?:", page)
    assert len(list(tmp_path.glob("*.timeline.json"))) == 3


def test_a_simulation_that_cannot_be_read_is_refused_with_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("nonsense: 1\n")
    assert main(["simulate", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "nonsense" in capsys.readouterr().err and not (tmp_path / "out").exists()
