"""The process that plays episodes: `python -m roll_ts.envs.hosting.host FD PARENT`.

It speaks over one socket and nothing else, so an environment may print what it likes. Each step runs on a thread, or,
where `reset` and `step` are coroutines, on one event loop. It ends with its parent: when the socket closes, and by the
kernel's hand when the parent was killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import inspect
import os
import resource
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from roll_ts.envs.answers import Answer, BadAnswer, read_reset, read_step
from roll_ts.envs.hosting.wire import Broken, Close, Closed, Limits, Play, Ready, Said, Start
from roll_ts.envs.registry import env_spec, make_env

_PR_SET_PDEATHSIG = 1


@dataclass
class _Episode:
    """Its lock keeps the steps in the order they were sent."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    environment: Any = None
    closed: bool = False


class Host:
    """Plays the episodes of one `Start` until the channel ends."""

    def __init__(self, channel: Connection, start: Start) -> None:
        self._channel, self._start = channel, start
        self._pool = ThreadPoolExecutor(start.threads, thread_name_prefix="environment")
        self._episodes: dict[int, _Episode] = {}
        self._sending = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def serve(self) -> None:
        """Obey messages until the other side closes the channel."""
        while True:
            try:
                message = self._channel.recv()
            except EOFError:
                return
            if isinstance(message, Play):
                episode = self._episodes.setdefault(message.trajectory, _Episode())
                self._pool.submit(self._run, episode, message)
            elif isinstance(message, Close):
                episode = self._episodes.pop(message.trajectory, _Episode())
                episode.closed = True
                # A thread of its own: it waits for a step that is under way, and no other episode may wait with it.
                threading.Thread(target=self._close, args=(episode, message.trajectory), daemon=True).start()

    def say(self, message: Any) -> None:
        """Send a message. A channel that is gone means that the parent is: nobody is left to hear."""
        with self._sending, contextlib.suppress(BrokenPipeError):
            self._channel.send(message)

    def _run(self, episode: _Episode, play: Play) -> None:
        with episode.lock:
            if episode.closed:
                return
            answer, error = None, None
            try:
                answer = self._play(episode, play)
            except BadAnswer as bad:
                error = str(bad)
            except BaseException as broken:  # noqa: BLE001 - an environment may raise anything, SystemExit too
                error = f"{type(broken).__name__}: {broken}"[:2000]
            over = answer is None or answer.terminated or answer.truncated
            if over:
                self._episodes.pop(play.trajectory, None)
            self.say(Said(play.command, play.trajectory, play.turn, answer, error))
        if over:
            self._close(episode, None)

    def _play(self, episode: _Episode, play: Play) -> Answer:
        if play.turn == 0:
            episode.environment = make_env(self._start.name, **self._start.arguments)
            answer = read_reset(self._value(episode.environment.reset(play.seed)))
        else:
            answer = read_step(self._value(episode.environment.step(play.action)))
        return _shortened(answer, self._start.text_characters)

    def _close(self, episode: _Episode, trajectory: int | None) -> None:
        with episode.lock:
            environment, episode.environment = episode.environment, None
            if environment is not None:
                try:
                    self._value(environment.close())
                except Exception as broken:  # noqa: BLE001 - an environment may raise anything, also here
                    print(f"close of an environment raised {type(broken).__name__}: {broken}", file=sys.stderr)
        if trajectory is not None:
            self.say(Closed(trajectory))

    def _value(self, said: Any) -> Any:
        """What a call of the environment gave; a coroutine is run to its end on the loop of all async environments."""
        if not inspect.isawaitable(said):
            return said
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, daemon=True, name="async environments").start()
        return asyncio.run_coroutine_threadsafe(_awaited(said), self._loop).result()


async def _awaited(said: Any) -> Any:
    return await said


def _shortened(answer: Answer, characters: int) -> Answer:
    """The answer with the middle of an enormous text left out, so that 10 MB never travel; tokens are cut later."""
    text = answer.text
    if len(text) <= characters:
        return answer
    half = characters // 2
    note = f"text: {len(text)} characters cut to {characters}"
    cut = text[:half] + text[-half:]
    return Answer(cut, answer.reward, answer.terminated, answer.truncated, answer.success, (*answer.converted, note))


def _limit(limits: Limits) -> None:
    wanted = (
        (resource.RLIMIT_AS, limits.memory_mib << 20),
        (resource.RLIMIT_FSIZE, limits.file_mib << 20),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_CPU, limits.cpu_seconds),
    )
    for kind, amount in wanted:
        if amount:
            resource.setrlimit(kind, (amount, amount))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_with(parent: int) -> None:
    """Have the kernel end this process when the parent's thread that started it is gone (Linux)."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it went before the line above
        os._exit(1)


def main() -> None:
    """Play until the channel ends."""
    channel = Connection(int(sys.argv[1]))
    _end_with(int(sys.argv[2]))
    start: Start = channel.recv()
    host = Host(channel, start)
    _limit(start.limits)
    try:
        env_spec(start.name)
    except (ValueError, MemoryError) as error:
        host.say(Broken(str(error)))
        os._exit(1)
    host.say(Ready())
    host.serve()
    os._exit(0)  # threads of environments that hang must not keep the process


if __name__ == "__main__":
    main()
