"""Runs many environments at once, each step on a thread of its own, in a process of its own.

Invariants: an episode's steps run in the order they were sent; whatever an environment raises becomes a reply that says
so, never a dead worker; a cancelled episode is closed and never replies again.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from roll_ts.envs.protocol import Environment
from roll_ts.envs.registry import make_env
from roll_ts.runtime.session import start_actor

LANES = {"data": 1, "poll": 1}
# Replies that come within this time (seconds) of the first travel together.
_GATHER_S = 0.003


@dataclass(frozen=True)
class Step:
    """One command to an environment: turn 0 resets with `seed`, later turns act."""

    command: int
    trajectory: int
    turn: int
    seed: int = 0
    action: str = ""


@dataclass(frozen=True)
class Reply:
    """What came of a step. `reward` is the episode's total so far; `error` is set when the environment broke."""

    command: int
    trajectory: int
    turn: int
    text: str = ""
    done: bool = False
    reward: float = 0.0
    success: bool = False
    error: str | None = None


@dataclass
class _Episode:
    lock: threading.Lock = field(default_factory=threading.Lock)
    environment: Environment | None = None
    reward: float = 0.0
    cancelled: bool = False


class EnvironmentWorker:
    """`threads` steps at a time of environment `name`, made with `arguments`."""

    def __init__(self, name: str, arguments: Mapping[str, Any], threads: int) -> None:
        # VAL: VAL_POSITIVE(threads)
        if not threads > 0:
            raise ValueError(f"EnvironmentWorker.__init__: threads must be positive, got {threads!r}")
        # END VAL 1bd90a
        self._name, self._arguments = name, dict(arguments)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="environment")
        self._episodes: dict[int, _Episode] = {}
        self._replies: queue.SimpleQueue[Reply] = queue.SimpleQueue()

    def submit(self, steps: Sequence[Step]) -> None:
        """Begin these steps; their replies come by `next_replies`."""
        for step in steps:
            if step.turn == 0:
                self._episodes[step.trajectory] = _Episode()
            episode = self._episodes.get(step.trajectory)
            if episode is None:
                lost = "the worker does not know this episode: it has ended, or died with an earlier worker"
                self._replies.put(Reply(step.command, step.trajectory, step.turn, error=lost))
            else:
                self._pool.submit(self._run, episode, step)

    def next_replies(self, wait_s: float) -> list[Reply]:
        """All replies since the last call; waits up to `wait_s` seconds for a first one."""
        try:
            replies = [self._replies.get(timeout=wait_s)]
        except queue.Empty:
            return []
        time.sleep(_GATHER_S)
        while not self._replies.empty():
            replies.append(self._replies.get())
        return replies

    def cancel(self, trajectories: Sequence[int]) -> None:
        """Close these episodes; one in the middle of a step is closed when the step returns."""
        for trajectory in trajectories:
            episode = self._episodes.pop(trajectory, None)
            if episode is not None:
                episode.cancelled = True
                self._pool.submit(self._close, episode)

    def _run(self, episode: _Episode, step: Step) -> None:
        with episode.lock:
            if episode.cancelled:
                return
            try:
                reply = self._play(episode, step)
            except Exception as error:  # noqa: BLE001 - an environment may raise anything; the reply says what
                reply = Reply(
                    step.command, step.trajectory, step.turn, error=f"{type(error).__name__}: {error}", done=True
                )
            if reply.done:
                self._episodes.pop(step.trajectory, None)
            if not episode.cancelled:
                self._replies.put(reply)
        if reply.done:
            self._close(episode)

    def _play(self, episode: _Episode, step: Step) -> Reply:
        if step.turn == 0:
            episode.environment = make_env(self._name, **self._arguments)
            text, info = episode.environment.reset(step.seed)
            return Reply(step.command, step.trajectory, 0, text, success=bool(info["success"]))
        # AST: AST_INVARIANT(episode.environment is not None) - an episode begins with its reset
        assert episode.environment is not None, (
            "Invariant: episode.environment is not None, got "
            f"episode.environment={episode.environment!r:.200} - an episode begins with its reset"
        )
        # END AST fcb03f
        text, reward, terminated, truncated, info = episode.environment.step(step.action)
        episode.reward += reward
        done = terminated or truncated
        return Reply(step.command, step.trajectory, step.turn, text, done, episode.reward, bool(info["success"]))

    def _close(self, episode: _Episode) -> None:
        with episode.lock:
            if episode.environment is not None:
                episode.environment.close()
                episode.environment = None


def start_workers(name: str, arguments: Mapping[str, Any], workers: int, threads: int) -> list[Any]:
    """Start the processes that run environments; returns their actors' handles."""
    # VAL: VAL_POSITIVE(workers)
    if not workers > 0:
        raise ValueError(f"start_workers: workers must be positive, got {workers!r}")
    # END VAL eff5c7
    variables = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    return [start_actor(EnvironmentWorker, LANES, variables, name, dict(arguments), threads) for _ in range(workers)]
