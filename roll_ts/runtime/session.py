"""The Ray instance of a run: starts it, starts processes on it, and leaves nothing of it behind.

Invariant: after `ray_session` no process that Ray started for this driver is alive, and no shared-memory segment that
one of them had mapped is left in /dev/shm. A Ray that was there before is used and left alone.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from roll_ts.config import RayOptions

_SEGMENT = re.compile(r"(/dev/shm/\S+)")
_GRACE_S = 8.0


@dataclass
class Leftovers:
    """What had to be removed by force: processes (pid: name) and shared-memory segments."""

    processes: dict[int, str] = field(default_factory=dict)
    segments: list[str] = field(default_factory=list)


@contextmanager
def ray_session(options: RayOptions) -> Iterator[Leftovers]:
    """A Ray instance on this machine for as long as the block runs. The leftovers are filled in at its end."""
    import ray

    left = Leftovers()
    if ray.is_initialized():
        yield left
        return
    others = psutil.Process().children(recursive=True)
    # Engines and trainer are the work itself; Ray would have them give way to everything else (niceness 15).
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    try:
        ray.init(
            address="local",
            include_dashboard=False,
            num_cpus=1,
            object_store_memory=options.object_store_mib << 20,
            log_to_driver=options.log_to_driver,
            logging_level=logging.ERROR,
        )
        yield left
    finally:
        workers = _stop_workers(others)
        ours = _children(others)
        segments = _segments([*workers, *ours])
        ray.shutdown()
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                worker.kill()
        _remove(ours, segments, left)


def start_actor(kind: type, lanes: Mapping[str, int], environment: Mapping[str, str], *arguments: Any) -> Any:
    """Start a process with these variables that runs one `kind(*arguments)`; returns the handle of the actor.

    `lanes` are its concurrency groups with their threads (R25). It is not restarted by Ray: who dies is dead (D-7).
    """
    import ray

    start: Any = ray.remote
    options = {"num_cpus": 0, "max_restarts": 0, "concurrency_groups": dict(lanes)}
    return start(**options, runtime_env={"env_vars": dict(environment)})(kind).remote(*arguments)


def _children(others: Sequence[psutil.Process]) -> list[psutil.Process]:
    """This process's descendants but for `others`, which were there before the session, and theirs."""
    spared = set(others)
    for other in others:
        with suppress(psutil.NoSuchProcess):
            spared.update(other.children(recursive=True))
    return [process for process in psutil.Process().children(recursive=True) if process not in spared]


def _stop_workers(others: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Stop what Ray's own processes have started, so that none of it makes shared memory while the others end."""
    me = os.getpid()
    stopped: dict[int, psutil.Process] = {}
    while True:
        found = [p for p in _children(others) if p.pid not in stopped and _parent(p) != me]
        if not found:
            return list(stopped.values())
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.suspend()
            stopped[process.pid] = process


def _parent(process: psutil.Process) -> int:
    try:
        return process.ppid()
    except psutil.NoSuchProcess:
        return os.getpid()


def _segments(processes: Sequence[psutil.Process]) -> set[str]:
    """Shared-memory files that the processes have mapped."""
    found: set[str] = set()
    for process in processes:
        try:
            found.update(_SEGMENT.findall(Path(f"/proc/{process.pid}/maps").read_text()))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it has ended, and with it its mappings
    return found


def _remove(processes: list[psutil.Process], segments: set[str], left: Leftovers) -> None:
    """End what is still alive after a grace time, and unlink the segments that nobody else holds."""
    _, alive = psutil.wait_procs(processes, timeout=_GRACE_S)
    for process in alive:
        try:
            left.processes[process.pid] = process.name()
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(alive, timeout=_GRACE_S)
    for path in sorted(segments):
        if os.path.exists(path):
            os.unlink(path)
            left.segments.append(path)
