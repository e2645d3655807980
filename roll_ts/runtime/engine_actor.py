"""One rollout engine in a process of its own: the far side of a rank.

Three lanes, so that control never queues behind data (R25): `data` takes requests and aborts in the order they were
sent, `poll` waits for news, `control` answers everything else. Nothing heavy is imported before `boot`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from roll_ts.engines.config import EngineConfig, prepare_process
from roll_ts.engines.protocol import Canary, EngineStats, Event, Request, RolloutEngine
from roll_ts.runtime._devices import pin_process
from roll_ts.runtime._transfer import Receiver, Route, join_transfer
from roll_ts.runtime.session import start_actor

LANES = {"data": 1, "poll": 1, "control": 4}


@dataclass(frozen=True)
class Booted:
    """An engine that is up and holds no proven weights. `kv_capacity` in tokens."""

    pid: int
    kv_capacity: int


@dataclass(frozen=True)
class Loaded:
    """What an engine received: the digest of the tensors, and the seconds it took."""

    digest: str
    seconds: float


class EngineActor:
    """The methods that the controller calls, each on the lane that it names."""

    def __init__(self, config: EngineConfig, lend: bool) -> None:
        """`lend`: the rank's devices are shared with the trainer, so it boots without keeping memory on them."""
        pin_process(config.cores)
        prepare_process(config)
        self._config, self._lend = config, lend
        self._engine: RolloutEngine
        self._receiver: Receiver
        self._admission = threading.Lock()
        self._closed_before = -1

    def boot(self) -> Booted:
        """Start the engine."""
        from roll_ts.engines.vllm import VLLMEngine

        self._engine = VLLMEngine(self._config)
        capacity = self._engine.stats().kv_capacity
        if self._lend:
            self._engine.release()
        return Booted(os.getpid(), capacity)

    def submit(self, requests: Sequence[tuple[int, Request]]) -> list[str]:
        """Take requests, each with the id of the command that sent it. Returns the ids that are not taken, because
        they were sent before a drain that has overtaken them."""
        with self._admission:
            late = [request.id for order, request in requests if order < self._closed_before]
            timely = [request for order, request in requests if order >= self._closed_before]
            if timely:
                self._engine.submit(timely)
            return late

    def abort(self, request_id: str) -> None:
        """Stop one request; its terminal event comes by `next_events`."""
        self._engine.abort([request_id])

    def next_events(self, wait_s: float) -> list[Event]:
        """All news since the last call; waits up to `wait_s` seconds for a first one."""
        return self._engine.next_events(wait_s)

    def drain(self, order: int, timeout_s: float) -> EngineStats:
        """Stop all requests sent before command `order`, those still on their way included; returns the engine's own
        counts once it is empty, or after `timeout_s` seconds."""
        with self._admission:
            self._closed_before = order
            self._engine.abort(None)
        self._engine.wait_drained(timeout_s)
        return self._engine.stats()

    def release(self) -> int:
        """Discard weights and KV; returns the bytes that went back, as measured."""
        return self._engine.release().freed_bytes

    def join(self, route: Route, name: str) -> None:
        """Become reachable for a weight transfer, as `name`. Raises SyncError when the others do not come."""
        self._receiver = join_transfer(route, name)

    def load(self) -> Loaded:
        """Receive the weights of the transfer joined last, whole, and only then load them."""
        began = time.monotonic()
        try:
            named = self._receiver.receive()
        finally:
            self._receiver.close()
        digest = self._engine.load_weights(named.items())
        return Loaded(digest, time.monotonic() - began)

    def wake(self, prompt: Sequence[int], tokens: int) -> Canary:
        """Allocate the KV cache, then run the canary."""
        self._engine.wake_kv()
        return self._engine.canary(prompt, tokens)

    def reset_cache(self, prompt: Sequence[int], tokens: int) -> Canary:
        """Forget cached prefixes, then run the canary."""
        self._engine.reset_cache()
        return self._engine.canary(prompt, tokens)

    def close(self) -> None:
        """Stop the engine."""
        if hasattr(self, "_engine"):
            self._engine.close()


def start_engine(config: EngineConfig, lend: bool, environment: dict[str, str]) -> Any:
    """Start an engine's process; returns the handle of its actor, whose `boot` is to be called first."""
    return start_actor(EngineActor, LANES, environment, config, lend)
