"""Processes that play episodes: what hangs or dies costs its own episode, and the set keeps its size."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from roll_ts.envs.hosting import hosts as hosts_module
from roll_ts.envs.hosting.hosts import Hosts
from roll_ts.envs.hosting.wire import Limits, Play, Said, Start

TROUBLED = "tests.roll_ts.envs.hosting.troubled:SPEC"
WITHIN_S = 30.0


class Table:
    """A set of hosts and what it said."""

    def __init__(self, size: int = 2, episodes: int = 0, threads: int = 4, **start: object) -> None:
        self.said: queue.SimpleQueue[Said] = queue.SimpleQueue()
        options = {"name": TROUBLED, "arguments": {}, "threads": threads, **start}
        self.hosts = Hosts(Start(**options), size, episodes, self.said.put)  # type: ignore[arg-type]
        self._commands = iter(range(10**6))

    def send(self, trajectory: int, turn: int, action: str = "", seed: int = 0) -> None:
        self.hosts.submit([Play(next(self._commands), trajectory, turn, seed, action)])

    def hear(self) -> Said:
        return self.said.get(timeout=WITHIN_S)

    def play(self, trajectory: int, turn: int, action: str = "", seed: int = 0) -> Said:
        self.send(trajectory, turn, action, seed)
        return self.hear()

    def pid_of(self, trajectory: int) -> int:
        text = self.play(trajectory, 0).answer.text  # type: ignore[union-attr]
        return int(text.split()[-1])


@pytest.fixture
def table() -> Iterator[Callable[..., Table]]:
    made: list[Table] = []

    def make(*args: object, **kwargs: object) -> Table:
        made.append(Table(*args, **kwargs))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for each in made:
        each.hosts.close()


def eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < until, "it did not come to hold in time"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_episode_is_played_in_one_process_from_reset_to_its_end(table):
    played = table()
    assert "seed 4" in played.play(1, 0, seed=4).answer.text
    assert played.play(1, 1, "go").answer.text == "step 1"
    last = played.play(1, 2, "end").answer
    assert (last.text, last.terminated, last.success) == ("step 2", True, True)
    assert "does not know this episode" in played.play(1, 3, "go").error


@pytest.mark.parametrize("trouble", ["hang", "spin"])
def test_a_cancelled_episode_that_hangs_loses_its_process_and_the_set_keeps_its_size(table, trouble, monkeypatch):
    monkeypatch.setattr(hosts_module, "STUCK_AFTER_S", 0.3)
    played = table(size=1)
    pid = played.pid_of(1)
    played.send(1, 1, trouble)
    time.sleep(0.2)
    played.hosts.cancel([1])
    eventually(lambda: not alive(pid))
    assert played.pid_of(2) != pid
    assert played.hosts.counts.hung == 1
    assert played.said.empty(), "a cancelled episode says nothing more"


def test_neighbours_of_a_hung_episode_play_on_in_their_process_to_their_end(table, monkeypatch):
    monkeypatch.setattr(hosts_module, "STUCK_AFTER_S", 0.2)
    played = table(size=1)
    pid = played.pid_of(1)
    assert played.pid_of(2) == pid
    played.send(1, 1, "hang")
    time.sleep(0.2)
    played.hosts.cancel([1])
    eventually(lambda: played.hosts.counts.hung == 1)
    assert played.pid_of(3) != pid, "a new episode goes elsewhere"
    assert played.play(2, 1, "go").answer.text == "step 1"
    assert alive(pid)
    assert played.play(2, 2, "end").answer.terminated
    eventually(lambda: not alive(pid))


def test_more_hung_episodes_than_threads_leave_the_capacity_as_it_was(table, monkeypatch):
    """Eight hung threads once were all there were: every later episode timed out."""
    monkeypatch.setattr(hosts_module, "STUCK_AFTER_S", 0.2)
    played = table(size=2, threads=2)
    for trajectory in range(8):
        played.play(trajectory, 0)
    for trajectory in range(8):
        played.send(trajectory, 1, "hang")
    time.sleep(0.2)
    played.hosts.cancel(range(8))
    for trajectory in range(100, 108):
        assert played.play(trajectory, 0).answer is not None


@pytest.mark.parametrize(
    ("trouble", "how"), [("die", "status 7: the last words"), ("kill", "signal SIGKILL")], ids=["exits", "killed"]
)
def test_a_process_that_ends_by_itself_answers_for_every_step_it_owes(table, trouble, how):
    played = table(size=1)
    played.play(1, 0)
    played.play(2, 0)
    played.send(2, 1, "hang")
    played.send(1, 1, trouble)
    errors = {said.trajectory: said.error for said in (played.hear(), played.hear())}
    assert set(errors) == {1, 2}
    assert all(how in error for error in errors.values())
    assert played.play(3, 0).answer is not None, "and it is replaced"
    assert "does not know" in played.play(1, 2, "go").error


@pytest.mark.parametrize(
    ("trouble", "error"),
    [("raise", "OSError: sandbox lost"), ("none", "text must be str, got None")],
)
def test_what_an_environment_raises_or_says_wrongly_ends_its_episode_with_a_sentence(table, trouble, error):
    played = table()
    played.play(1, 0)
    assert error in played.play(1, 1, trouble).error


def test_an_environment_that_exits_python_ends_its_own_episode_only(table):
    played = table(size=1)
    played.play(1, 0)
    played.play(2, 0)
    assert played.play(1, 1, "exit").error == "SystemExit: 3"
    assert played.play(2, 1, "go").answer.text == "step 1"


def test_what_an_environment_prints_never_reaches_the_channel(table):
    played = table()
    played.play(1, 0)
    assert played.play(1, 1, "print").answer.text == "step 1"


def test_an_enormous_text_is_cut_before_it_travels_and_noted(table):
    played = table(text_characters=1000)
    played.play(1, 0)
    answer = played.play(1, 1, "huge").answer
    assert len(answer.text) < 1100
    assert "10000000 characters cut" in answer.converted[0]


def test_coroutines_are_awaited(table):
    played = table(name="tests.roll_ts.envs.hosting.troubled:ASYNC")
    assert played.play(1, 0, seed=3).answer.text == "seed 3"
    assert played.play(1, 1, "end").answer.terminated


def test_memory_beyond_the_limit_voids_the_episode_and_no_other(table):
    played = table(size=1, limits=Limits(memory_mib=1024))
    played.play(1, 0)
    assert "MemoryError" in played.play(1, 1, "eat").error
    assert played.play(2, 0).answer is not None


def test_an_episode_waits_for_a_place_where_a_process_takes_one_at_a_time(table):
    played = table(size=1, episodes=1)
    played.play(1, 0)
    played.send(2, 0)
    with pytest.raises(queue.Empty):
        played.said.get(timeout=0.3)
    played.send(1, 1, "end")
    assert {played.hear().trajectory, played.hear().trajectory} == {1, 2}


def test_a_waiting_episode_that_is_cancelled_is_never_played(table):
    played = table(size=1, episodes=1)
    played.play(1, 0)
    played.send(2, 0)
    played.hosts.cancel([2])
    played.play(1, 1, "end")
    assert played.play(3, 0).trajectory == 3


def test_an_environment_that_cannot_be_imported_ends_its_processes_within_the_budget_of_starts(table):
    played = table(size=2, name="no.such.module:SPEC")
    eventually(lambda: played.hosts.counts.died >= hosts_module.STARTS_AT_ONCE)
    time.sleep(1.0)
    assert played.hosts.counts.started <= hosts_module.STARTS_AT_ONCE + 1


def test_what_an_episode_started_ends_with_its_process(table, tmp_path, monkeypatch):
    played = table(size=1)
    played.play(1, 0)
    played.play(1, 1, f"leave {tmp_path / 'pid'}")
    child = int((tmp_path / "pid").read_text())
    assert alive(child)
    played.hosts.close()
    eventually(lambda: not alive(child))


def test_the_processes_end_when_whoever_keeps_them_is_killed():
    program = """
from tests.roll_ts.envs.hosting.test_hosts import Table
table = Table(size=1)
print(table.pid_of(1), flush=True)
table.send(1, 1, "spin")
import time; time.sleep(3600)
"""
    keeper = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert keeper.stdout is not None
    pid = int(keeper.stdout.readline())
    assert alive(pid)
    os.kill(keeper.pid, signal.SIGKILL)
    keeper.wait()
    eventually(lambda: not alive(pid))
