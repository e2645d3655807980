"""The environment worker, in this process: order, errors, cancellation."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from roll_ts.envs.protocol import EnvSpec
from roll_ts.runtime.environment_worker import EnvironmentWorker, Reply, Step


class Scripted:
    """Counts its steps; the action says what it does: "wait" blocks until released, "break" raises, "end" ends."""

    gate = threading.Event()
    closed = 0

    def reset(self, seed: int) -> tuple[str, dict[str, Any]]:
        self.steps = 0
        return f"seed {seed}", {"success": False}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if action == "wait":
            assert Scripted.gate.wait(10)
        if action == "break":
            raise OSError("sandbox lost")
        return f"step {self.steps}", 0.5, action == "end", False, {"success": action == "end"}

    def close(self) -> None:
        Scripted.closed += 1


SPEC = EnvSpec("scripted", Scripted, "")


@pytest.fixture
def worker() -> Iterator[EnvironmentWorker]:
    Scripted.gate.clear()
    Scripted.closed = 0
    yield EnvironmentWorker(f"{__name__}:SPEC", {}, 4)
    Scripted.gate.set()


def take(worker: EnvironmentWorker, count: int) -> list[Reply]:
    replies: list[Reply] = []
    until = time.monotonic() + 10
    while len(replies) < count and time.monotonic() < until:
        replies += worker.next_replies(0.1)
    assert len(replies) == count
    return replies


def play(worker: EnvironmentWorker, *steps: Step) -> list[Reply]:
    worker.submit(steps)
    return take(worker, len(steps))


def test_an_episode_accumulates_its_reward_and_ends_once(worker: EnvironmentWorker) -> None:
    [first] = play(worker, Step(1, 9, 0, seed=4))
    assert (first.text, first.done, first.reward) == ("seed 4", False, 0.0)
    [second] = play(worker, Step(2, 9, 1, action="go"))
    [third] = play(worker, Step(3, 9, 2, action="end"))
    assert (second.reward, third.reward, third.done, third.success) == (0.5, 1.0, True, True)
    assert Scripted.closed == 1


def test_a_slow_environment_holds_up_no_other(worker: EnvironmentWorker) -> None:
    play(worker, Step(1, 1, 0), Step(2, 2, 0))
    worker.submit([Step(3, 1, 1, action="wait")])
    [quick] = play(worker, Step(4, 2, 1, action="go"))
    assert quick.trajectory == 2
    Scripted.gate.set()
    assert take(worker, 1)[0].trajectory == 1


def test_whatever_an_environment_raises_is_a_reply_that_says_so(worker: EnvironmentWorker) -> None:
    play(worker, Step(1, 1, 0))
    [broken] = play(worker, Step(2, 1, 1, action="break"))
    assert broken.error == "OSError: sandbox lost" and broken.command == 2
    assert Scripted.closed == 1


def test_a_cancelled_episode_never_replies_again_and_is_closed(worker: EnvironmentWorker) -> None:
    play(worker, Step(1, 1, 0))
    worker.submit([Step(2, 1, 1, action="wait")])
    worker.cancel([1])
    Scripted.gate.set()
    assert worker.next_replies(0.2) == []
    until = time.monotonic() + 5
    while Scripted.closed < 1 and time.monotonic() < until:
        time.sleep(0.01)
    assert Scripted.closed == 1


def test_a_step_of_an_episode_that_is_not_here_is_an_error_reply(worker: EnvironmentWorker) -> None:
    [reply] = play(worker, Step(1, 5, 3, action="go"))
    assert reply.error is not None and "does not know" in reply.error


def test_a_worker_without_threads_is_refused() -> None:
    with pytest.raises(ValueError, match="threads"):
        EnvironmentWorker("scripted", {}, 0)
