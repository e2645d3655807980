"""Run the agent's program: its input, a deadline, a cap on its output, and nothing of it left running.

The program leads a process group of its own, which is ended as a whole; a mark in the environment finds what left the
group (on Linux). All it says goes to a file as it comes.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from codegen.diagnostics import UsageError
from codegen.prompts.agents import AGENTS

PLACEHOLDER = "{prompt}"
MARK = "CODEGEN_STEP_RUN"
_GRACE = 2.0
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Limits:
    """For one round: seconds, and bytes that the agent may print."""

    seconds: float = 1800.0
    output: int = 10_000_000


@dataclass(frozen=True)
class Ended:
    """How a program ended. `status` is negative for a signal; `stopped` says which limit ended it, "" for none."""

    status: int
    seconds: float
    output_bytes: int
    stopped: Literal["", "time", "output"] = ""


def command_of(text: str) -> tuple[str, ...]:
    """The words of an agent's command: one that is known by its name (`claude`), or a command line as in a shell.

    A word `{prompt}` means the prompt; without one the prompt goes to standard input.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--agent {text!r}: {error}") from error
    if not words:
        raise UsageError(f"--agent is empty; give a command, or one of {', '.join(AGENTS)}")
    if len(words) == 1 and words[0] in AGENTS:
        return AGENTS[words[0]].headless
    return words


def run_agent(
    command: Sequence[str],
    prompt: str,
    folder: Path,
    transcript: Path,
    limits: Limits,
    environment: Mapping[str, str],
    mark: str,
) -> Ended:
    """Run the program in `folder` until it ends or a limit ends it; nothing with this mark is left running then.

    UsageError: it cannot be started.
    """
    as_word = any(PLACEHOLDER in word for word in command)
    text = b"" if as_word else prompt.encode("utf-8", "backslashreplace")
    words = [word.replace(PLACEHOLDER, prompt) for word in command]
    begun = time.monotonic()
    try:
        process = subprocess.Popen(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL if as_word else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**environment, MARK: mark},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        hint = "; a command that reads standard input takes longer prompts" if as_word else ""
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"the agent cannot be started: {command[0]}: {why}{hint}") from error
    try:
        with transcript.open("wb") as out:
            size, stopped = _exchange(process, text, out, begun, limits)
    finally:
        status = _end(process)
        end_marked(mark)
    return Ended(status, time.monotonic() - begun, size, stopped)


def _exchange(
    process: subprocess.Popen[bytes], text: bytes, out: BinaryIO, begun: float, limits: Limits
) -> tuple[int, Literal["", "time", "output"]]:
    """Feed and read until the program ends, or closes its output and then ends; the bytes it printed."""
    size, rest = 0, memoryview(text)
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        os.set_blocking(process.stdout.fileno(), False)
        selector.register(process.stdout, selectors.EVENT_READ)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)
        while True:
            left = begun + limits.seconds - time.monotonic()
            if left <= 0:
                return size, "time"
            ended = process.poll() is not None
            ready = selector.select(0 if ended else min(left, 0.1)) if selector.get_map() else []
            read_something = False
            for key, events in ready:
                if events & selectors.EVENT_WRITE and process.stdin is not None:
                    rest = _feed(process.stdin, rest)
                    if not rest:
                        selector.unregister(process.stdin)
                        _close(process.stdin)
                elif key.fileobj is process.stdout:
                    data = os.read(process.stdout.fileno(), _CHUNK)
                    if not data:
                        selector.unregister(process.stdout)
                        continue
                    read_something = True
                    out.write(data[: max(0, limits.output - size)])
                    size += len(data)
                    if size > limits.output:
                        return size, "output"
            # A child of the agent may hold the pipe open: once the agent has ended, what is there is all.
            if ended and not read_something:
                return size, ""
            if not ready and not ended:
                time.sleep(min(left, 0.02))


def _feed(stream: object, rest: memoryview) -> memoryview:
    """Write what fits. A program that does not read its input is no error."""
    try:
        return rest[os.write(stream.fileno(), rest[:_CHUNK]) :]  # type: ignore[attr-defined]
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        return memoryview(b"")


def _close(stream: object) -> None:
    with contextlib.suppress(BrokenPipeError):
        stream.close()  # type: ignore[attr-defined]


def _end(process: subprocess.Popen[bytes]) -> int:
    """End the whole group, first kindly when the program still runs; its exit status."""
    if process.poll() is None:
        _signal(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
    _signal(process.pid, signal.SIGKILL)
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"the agent, process {process.pid}, was killed and does not end") from error
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            _close(stream)
    return process.returncode


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def end_marked(mark: str) -> None:
    """Kill what a program with this mark started in sessions of their own. UsageError: some do not end."""
    deadline = time.monotonic() + _GRACE
    while strays := _marked(f"{MARK}={mark}".encode()):
        if time.monotonic() > deadline:
            raise UsageError(f"the agent left processes that were killed and do not end: {strays}")
        for number in strays:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.01)


def _marked(entry: bytes) -> list[int]:
    """Processes, zombies apart, with this entry in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        # another person's, or gone meanwhile
        with contextlib.suppress(PermissionError, FileNotFoundError, ProcessLookupError):
            if entry in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found
