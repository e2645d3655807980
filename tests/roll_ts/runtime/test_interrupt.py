"""Ctrl-C at the worst moment: a clean end, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.timeout(400)]

EXAMPLE = Path(__file__).parents[3] / "examples" / "two_devices_time_sharing.yaml"
MARK = "ROLL_TS_INTERRUPT_TEST"

# Sends itself the signal that Ctrl-C sends, `times` times, at the first command of the kind `at`.
PROGRAM = """
import os, signal, sys
from roll_ts.config_file import load_config
from roll_ts.runtime.launch import launch

path, out, at, times = sys.argv[1:]
sent = []

def interrupt(now, event, commands):
    if not sent and any(type(command).__name__ == at for command in commands):
        for _ in range(int(times)):
            os.kill(os.getpid(), signal.SIGINT)
            sent.append(now)

ended = launch(load_config(path, [f"out={out}", "steps=50"]), watchers=lambda run: [interrupt])
print(ended.finish and ended.finish.reason, [path.name for path in ended.checkpoints])
assert sent
"""


def processes_with(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def run_until_interrupted(tmp_path: Path, at: str, times: int) -> str:
    mark = uuid.uuid4().hex
    before = set(os.listdir("/dev/shm"))
    command = [sys.executable, "-c", PROGRAM, str(EXAMPLE), str(tmp_path / "run"), at, str(times)]
    done = subprocess.run(
        command, env=os.environ | {MARK: mark}, capture_output=True, text=True, timeout=300, start_new_session=True
    )
    assert done.returncode == 0, done.stderr
    until = time.monotonic() + 5
    while processes_with(mark) and time.monotonic() < until:
        time.sleep(0.1)
    assert processes_with(mark) == []
    left = {name for name in set(os.listdir("/dev/shm")) - before if not _mapped_by_someone(name)}
    assert left == set()
    return done.stdout


def _mapped_by_someone(name: str) -> bool:
    """Other programs may have made segments of their own meanwhile."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            if f"/dev/shm/{name}" in maps.read_text():
                return True
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return False


def test_one_interrupt_in_mid_shrink_saves_the_version_and_leaves_nothing(tmp_path: Path) -> None:
    said = run_until_interrupted(tmp_path, at="Drain", times=1)
    assert said.split()[:3] == ["stopped", "by", "the"]
    assert "version-" in said
    assert (tmp_path / "run" / "journal.jsonl").read_text().endswith("\n")


def test_a_second_interrupt_kills_and_leaves_nothing(tmp_path: Path) -> None:
    said = run_until_interrupted(tmp_path, at="Restart", times=2)
    assert said.split()[0] == "None"
