"""What an engine core offers the thread that owns it: a generation engine without threads, queues or events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

from roll_ts.engines.protocol import EngineState, EngineStats, MemoryReport, NamedTensors, Request


class Delta(NamedTuple):
    """What one step added to one request; `reason` and `error` say how it ended, if it did."""

    id: str
    tokens: Sequence[int]
    logprobs: Sequence[float]
    reason: Literal["stop", "length"] | None = None
    error: str | None = None


class Core(Protocol):
    """A generation engine for one thread. `state` is one of SERVING, KV_ASLEEP, RELEASED, NO_WEIGHTS."""

    @property
    def state(self) -> EngineState: ...

    def stats(self) -> EngineStats:
        """Load of the core, internal requests included; `paused` is not its concern."""
        ...

    def add(self, request: Request, fresh: bool = False) -> None:
        """Take a request (`fresh`: no cached prefix). `ValueError` if it can never be served."""
        ...

    def abort(self, ids: Sequence[str]) -> None: ...

    def step(self) -> Iterable[Delta]: ...

    def release(self) -> MemoryReport: ...

    def load(self, named: NamedTensors) -> str: ...

    def wake_kv(self) -> MemoryReport: ...

    def reset_cache(self) -> None: ...

    def digest(self) -> str: ...

    def close(self) -> None: ...
