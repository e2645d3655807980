"""A core whose generation is a known function of the prompt, for tests of what drives it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roll_ts.engines.core import Delta
from roll_ts.engines.protocol import EngineState, EngineStats, MemoryReport, NamedTensors, Request


def continuation(prompt: Sequence[int], count: int) -> list[int]:
    """The `count` tokens that follow: resuming from prompt + partial gives the rest."""
    total, length, tokens = sum(prompt), len(prompt), []
    for position in range(length, length + count):
        tokens.append((total * 31 + position) % 997)
        total += tokens[-1]
    return tokens


def logprob(token: int) -> float:
    return -float(token)


class FakeCore:
    """One token per request and step. Weights are a single number; a prompt token below 0 is refused."""

    def __init__(self, break_at_step: int | None = None) -> None:
        self._break_at_step = break_at_step
        self._requests: dict[str, tuple[list[int], list[int]]] = {}
        self._steps = 0
        self._weights: str | None = "initial"
        self._kv = True
        self._resident = True
        self.closed = False

    @property
    def state(self) -> EngineState:
        if self._weights is not None:
            return EngineState.SERVING if self._kv else EngineState.KV_ASLEEP
        return EngineState.NO_WEIGHTS if self._resident else EngineState.RELEASED

    def stats(self) -> EngineStats:
        return EngineStats(len(self._requests), 0, 10 * len(self._requests), 1000, self.state)

    def add(self, request: Request, fresh: bool = False) -> None:
        if min(request.prompt) < 0:
            raise ValueError(f"request {request.id!r} has a negative token")
        left = continuation(request.prompt, request.sampling.max_tokens)
        self._requests[request.id] = (list(request.prompt), left)

    def abort(self, ids: Sequence[str]) -> None:
        for request_id in ids:
            del self._requests[request_id]

    def step(self) -> Iterator[Delta]:
        self._steps += 1
        if self._steps == self._break_at_step:
            raise RuntimeError("the device fell off the bus")
        for request_id, (_, left) in list(self._requests.items()):
            token = left.pop(0)
            if not left:
                del self._requests[request_id]
            yield Delta(request_id, [token], [logprob(token)], None if left else "length")

    def release(self) -> MemoryReport:
        before = 100 if self._resident else 0
        self._weights, self._kv, self._resident = None, False, False
        return MemoryReport(before, 0, 0.0)

    def load(self, named: NamedTensors) -> str:
        self._weights, self._resident = None, True
        self._weights = ",".join(name for name, _ in named)
        return self._weights

    def wake_kv(self) -> MemoryReport:
        before = 50 if self._kv else 0
        self._kv = True
        return MemoryReport(before, 50, 0.0)

    def reset_cache(self) -> None:
        pass

    def digest(self) -> str:
        assert self._weights is not None
        return self._weights

    def close(self) -> None:
        self.closed = True
