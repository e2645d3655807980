"""A set of processes that play episodes, kept at its size: what hangs is replaced, what dies is replaced.

Invariants: every `Play` gets one `Said`, unless its episode is cancelled first; an episode stays in one process;
a process in which a cancelled episode does not return takes no new one, and ends when its other episodes have, or after
`RETIRE_WITHIN_S`, whichever comes first. So a hung environment costs its own episode and, at worst, late neighbours,
but never capacity.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from roll_ts.envs.hosting.wire import Broken, Close, Closed, Play, Ready, Said, Start

STUCK_AFTER_S = 2.0
RETIRE_WITHIN_S = 60.0
# Starts of processes: so many at once, then one each so many seconds. An environment that kills its process at once
# would otherwise keep a core busy with starting Python.
STARTS_AT_ONCE = 8
START_EACH_S = 5.0
_TAIL_BYTES = 2000
_TICK_S = 0.5


@dataclass
class _Process:
    """One process. `plays`: commands without an answer; `closing`: cancelled episodes, and when they were cancelled."""

    popen: subprocess.Popen[bytes]
    channel: Connection
    ready: bool = False
    episodes: set[int] = field(default_factory=set)
    plays: dict[int, Play] = field(default_factory=dict)
    closing: dict[int, float] = field(default_factory=dict)
    retire_by: float | None = None
    tail: bytes = b""


@dataclass
class Counts:
    """What happened to the processes of a set."""

    started: int = 0
    died: int = 0
    hung: int = 0


class Hosts:
    """`size` processes for the episodes of `start`. `heard` is called with every `Said`, on the set's own thread.

    `episodes` bounds the episodes in one process at a time (0: no bound); episodes beyond wait for a place.
    """

    def __init__(self, start: Start, size: int, episodes: int, heard: Callable[[Said], None]) -> None:
        # VAL: VAL_POSITIVE(size)
        if not size > 0:
            raise ValueError(f"Hosts.__init__: size must be positive, got {size!r}")
        # END VAL dd2a9c
        # VAL: VAL_NON_NEGATIVE(episodes)
        if not episodes >= 0:
            raise ValueError(f"Hosts.__init__: episodes must not be negative, got {episodes!r}")
        # END VAL 34c4a7
        self._start, self._size, self._bound, self._heard = start, size, episodes, heard
        self.counts = Counts()
        self._processes: list[_Process] = []
        self._place: dict[int, _Process] = {}
        self._queue: deque[Play] = deque()
        self._budget, self._refilled = float(STARTS_AT_ONCE), time.monotonic()
        self._inbox: deque[Play | int] = deque()
        self._wake, self._woken = socket.socketpair()
        self._closing = False
        # One thread starts the processes and lives as long as they may: the kernel ends them when it is gone.
        self._thread = threading.Thread(target=self._run, name="environment processes", daemon=True)
        self._thread.start()

    def submit(self, plays: Sequence[Play]) -> None:
        """Begin these steps. A later turn of an episode that is not here is answered with an error."""
        self._inbox.extend(plays)
        self._wake.send(b"x")

    def cancel(self, trajectories: Sequence[int]) -> None:
        """End these episodes; they say nothing more."""
        self._inbox.extend(trajectories)
        self._wake.send(b"x")

    def close(self) -> None:
        """End all processes. Calling again is harmless."""
        if not self._closing:
            self._closing = True
            self._wake.send(b"x")
            self._thread.join()

    def _run(self) -> None:
        while not self._closing:
            self._fill()
            self._listen()
            while self._inbox:
                item = self._inbox.popleft()
                if isinstance(item, Play):
                    self._take(item)
                else:
                    self._cancel(item)
            self._retire_hung()
            self._seat()
        for process in list(self._processes):
            self._end(process)

    def _listen(self) -> None:
        """Wait for news of a process, a call, or the next look at the clock."""
        sources: dict[Any, _Process | None] = {self._woken: None}
        for process in self._processes:
            sources[process.channel] = sources[process.popen.stderr] = process
        for source in wait(list(sources), timeout=_TICK_S):
            owner = sources[source]
            if owner is None:
                self._woken.recv(4096)
            elif source is owner.channel:
                self._read(owner)
            elif owner in self._processes:
                owner.tail = (owner.tail + os.read(source.fileno(), 4096))[-_TAIL_BYTES:]  # type: ignore[union-attr]

    def _read(self, process: _Process) -> None:
        try:
            message = process.channel.recv()
        except (EOFError, ConnectionResetError):
            self._lost(process)
            return
        if isinstance(message, Ready):
            process.ready = True
        elif isinstance(message, Broken):
            process.tail = message.error.encode()
        elif isinstance(message, Closed):
            process.closing.pop(message.trajectory, None)
            process.episodes.discard(message.trajectory)
        elif isinstance(message, Said):
            self._said(process, message)

    def _said(self, process: _Process, said: Said) -> None:
        if process.plays.pop(said.command, None) is None:  # the episode was cancelled meanwhile
            return
        answer = said.answer
        if answer is None or answer.terminated or answer.truncated:
            process.episodes.discard(said.trajectory)
            self._place.pop(said.trajectory, None)
        self._heard(said)

    def _take(self, play: Play) -> None:
        process = self._place.get(play.trajectory)
        if play.turn == 0:
            self._queue.append(play)
        elif process is None:
            lost = "the worker does not know this episode: it has ended, or died with an earlier process"
            self._heard(Said(play.command, play.trajectory, play.turn, error=lost))
        else:
            self._send(process, play)

    def _cancel(self, trajectory: int) -> None:
        self._queue = deque(play for play in self._queue if play.trajectory != trajectory)
        process = self._place.pop(trajectory, None)
        if process is not None:
            process.closing[trajectory] = time.monotonic()
            process.plays = {c: play for c, play in process.plays.items() if play.trajectory != trajectory}
            self._tell(process, Close(trajectory))

    def _seat(self) -> None:
        """Give waiting episodes their process: the ready one with the fewest.

        None goes where a cancelled episode has not returned yet: should that one hang, it may hold all threads.
        """
        while self._queue:
            usable = [p for p in self._processes if p.ready and p.retire_by is None and not p.closing]
            free = [p for p in usable if self._has_room(p)]
            if not free:
                return
            play = self._queue.popleft()
            process = min(free, key=lambda p: len(p.episodes))
            process.episodes.add(play.trajectory)
            self._place[play.trajectory] = process
            self._send(process, play)

    def _has_room(self, process: _Process) -> bool:
        return not self._bound or len(process.episodes) < self._bound

    def _send(self, process: _Process, play: Play) -> None:
        process.plays[play.command] = play
        self._tell(process, play)

    def _tell(self, process: _Process, message: Play | Close) -> None:
        try:
            process.channel.send(message)
        except (BrokenPipeError, ConnectionResetError):
            return  # its end is read from the same channel, and answers for all that it owes

    def _retire_hung(self) -> None:
        """Retire processes whose episode does not end, and end those that are due."""
        now = time.monotonic()
        for process in list(self._processes):
            hung = any(now - asked > STUCK_AFTER_S for asked in process.closing.values())
            if hung and process.retire_by is None:
                process.retire_by = now + RETIRE_WITHIN_S
                self.counts.hung += 1
            if process.retire_by is None:
                continue
            alone = not process.episodes - set(process.closing)
            if alone or now >= process.retire_by:
                self._end(process)
                self._answer_for(process, "its process was ended, because another episode in it hung")

    def _fill(self) -> None:
        """Start processes until the set has its size, as the budget allows."""
        now = time.monotonic()
        self._budget = min(STARTS_AT_ONCE, self._budget + (now - self._refilled) / START_EACH_S)
        self._refilled = now
        while sum(p.retire_by is None for p in self._processes) < self._size and self._budget >= 1:
            self._budget -= 1
            self._processes.append(self._new())
            self.counts.started += 1

    def _new(self) -> _Process:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", "roll_ts.envs.hosting.host", str(theirs.fileno()), str(os.getpid())]
            popen = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
                # An environment is found by the same paths as here, also by those added after this process began.
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        channel = Connection(ours.detach())
        channel.send(self._start)
        return _Process(popen, channel)

    def _lost(self, process: _Process) -> None:
        """The process has ended by itself."""
        self.counts.died += 1
        self._end(process)
        code = process.popen.returncode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"
        said = process.tail.decode(errors="replace").strip().splitlines()
        self._answer_for(process, f"its process ended with {how}" + (f": {said[-1]}" if said else ""))

    def _end(self, process: _Process) -> None:
        """Kill the process and all that it started in its session."""
        self._processes.remove(process)
        with contextlib.suppress(ProcessLookupError):  # it has ended, and so has all that it started
            os.killpg(process.popen.pid, signal.SIGKILL)
        process.popen.wait()
        if process.popen.stderr is not None:
            process.tail = (process.tail + _rest(process.popen.stderr.fileno()))[-_TAIL_BYTES:]
            process.popen.stderr.close()
        process.channel.close()

    def _answer_for(self, process: _Process, error: str) -> None:
        for trajectory in process.episodes - set(process.closing):
            self._place.pop(trajectory, None)
        for play in process.plays.values():
            self._heard(Said(play.command, play.trajectory, play.turn, error=error))


def _rest(source: int) -> bytes:
    """What a process that has ended still left in its pipe; whoever else holds the other end is not waited for."""
    os.set_blocking(source, False)
    try:
        return os.read(source, _TAIL_BYTES)
    except BlockingIOError:
        return b""
