"""A rollout engine made of one single-threaded core and the one thread that owns it.

The owner thread is the only one that touches the core: between two steps it runs the calls that other threads have
put into its mailbox. So an abort, a weight load or a release always meets the core at rest, and a caller that gets
its answer knows it holds for the core itself. `next_events`, `stats` and `wait_drained` never wait for a step.

Invariants: a call that timed out before it began never runs later; when a step fails, every open id ends in
`Failed` with the traceback, and so does every later call.
"""

from __future__ import annotations

import atexit
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TypeVar

from roll_ts.engines.core import Core, Delta
from roll_ts.engines.mailbox import Mailbox
from roll_ts.engines.outbox import Outbox
from roll_ts.engines.protocol import (
    BusyError,
    Canary,
    EngineDeadError,
    EngineError,
    EngineState,
    EngineStats,
    Event,
    MemoryReport,
    NamedTensors,
    NotServableError,
    Request,
    Sampling,
)

T = TypeVar("T")

_WAY_ON = {
    EngineState.KV_ASLEEP: "call wake_kv first",
    EngineState.RELEASED: "call load_weights, then wake_kv",
    EngineState.NO_WEIGHTS: "call load_weights with a complete set of weights, then wake_kv",
    EngineState.CLOSED: "start a new engine",
}


@dataclass(slots=True)
class _OpenCanary:
    answer: Future[Canary]
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


class SteppedEngine:
    """`RolloutEngine` over a core. `make_core` runs on the owner thread, within `call_timeout_s` seconds."""

    def __init__(self, make_core: Callable[[], Core], tick_s: float, call_timeout_s: float, name: str) -> None:
        self._name = name
        self._call_timeout_s = call_timeout_s
        self._mailbox = Mailbox(name, call_timeout_s)
        self._outbox = Outbox(tick_s)
        self._drained = threading.Event()
        self._drained.set()
        self._canaries: dict[str, _OpenCanary] = {}
        self._canaries_made = 0
        self._paused = False
        self._closing = False
        self._stats = EngineStats(0, 0, 0, 0, EngineState.NO_WEIGHTS)
        self.core: Core
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(make_core, started), daemon=True, name=name)
        self._thread.start()
        self._mailbox.wait(started, "start")
        # A daemon thread inside a step when the interpreter goes would take the process down with an abort.
        atexit.register(self.close)

    # What any thread may call

    def submit(self, requests: Sequence[Request]) -> None:
        """See `RolloutEngine.submit`."""
        self._ask("submit", lambda: self._submit(list(requests)))

    def abort(self, ids: Sequence[str] | None = None) -> list[str]:
        """See `RolloutEngine.abort`."""
        return self._ask("abort", lambda: self._abort(ids))

    def next_events(self, wait_s: float) -> list[Event]:
        """See `RolloutEngine.next_events`."""
        events = self._outbox.take(wait_s)
        if not events:
            self._mailbox.check_open()
        return events

    def stats(self) -> EngineStats:
        """See `RolloutEngine.stats`."""
        self._mailbox.check_open()
        return replace(self._stats, paused=self._paused)

    def pause(self) -> None:
        """See `RolloutEngine.pause`."""
        self._ask("pause", lambda: self._set_paused(True))

    def resume(self) -> None:
        """See `RolloutEngine.resume`."""
        self._ask("resume", lambda: self._set_paused(False))

    def wait_drained(self, timeout_s: float) -> int:
        """See `RolloutEngine.wait_drained`."""
        self._drained.wait(timeout_s)
        self._mailbox.check_open()
        return self._stats.in_flight

    def release(self) -> MemoryReport:
        """See `RolloutEngine.release`."""
        return self._ask("release", self._release)

    def load_weights(self, named: NamedTensors, keep_kv: bool = False) -> str:
        """See `RolloutEngine.load_weights`."""
        return self._ask("load_weights", lambda: self._load(named, keep_kv))

    def wake_kv(self) -> MemoryReport:
        """See `RolloutEngine.wake_kv`."""
        return self._ask("wake_kv", self._wake_kv)

    def reset_cache(self) -> None:
        """See `RolloutEngine.reset_cache`."""
        self._ask("reset_cache", self._reset_cache)

    def digest(self) -> str:
        """See `RolloutEngine.digest`."""
        return self._ask("digest", self._digest)

    def canary(self, prompt: Sequence[int], max_tokens: int = 8) -> Canary:
        """See `RolloutEngine.canary`."""
        answer = self._ask("canary", lambda: self._start_canary(list(prompt), max_tokens))
        return self._mailbox.wait(answer, "canary")

    def close(self) -> None:
        """See `RolloutEngine.close`."""
        if not self._mailbox.closed:
            self._ask("close", self._begin_close)
        self._thread.join(self._call_timeout_s)
        # AST: AST_POSTCONDITION(
        #     not self._thread.is_alive(), error=TimeoutError, about=self._call_timeout_s
        # ) - the engine stops within so many seconds after close
        if self._thread.is_alive():
            raise TimeoutError(
                f"Post-condition: not self._thread.is_alive(), got self._thread={self._thread!r:.200} "
                f"(self._call_timeout_s={self._call_timeout_s!r:.200}) - the engine stops within so many "
                "seconds after close"
            )
        # END AST 5e281e
        atexit.unregister(self.close)

    def _ask(self, name: str, work: Callable[[], T]) -> T:
        def run() -> T:
            try:
                return work()
            finally:
                self._publish()

        return self._mailbox.ask(name, run)

    # The owner thread

    def _run(self, make_core: Callable[[], Core], started: Future[None]) -> None:
        try:
            self.core = make_core()
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for the start
            self._end(EngineDeadError(f"{self._name} never started: {error}"))
            started.set_exception(error)
            return
        self._publish()
        started.set_result(None)
        try:
            self._serve()
        except BaseException:  # noqa: BLE001 - kept, and raised by every later call
            failure = f"{self._name} has failed:\n{traceback.format_exc()}"
            self._outbox.fail(self._outbox.open_ids(), failure)
            self._end(EngineDeadError(failure))
        else:
            self._end(NotServableError(f"{self._name} is closed: {_WAY_ON[EngineState.CLOSED]}"))
        self.core.close()

    def _serve(self) -> None:
        while not self._closing:
            if not self._can_step():
                self._outbox.flush()
                self._mailbox.doing = "waiting for calls"
                self._mailbox.answer_one()
            while self._mailbox and not self._closing:
                self._mailbox.answer_one()
            if self._can_step() and not self._closing:
                self._mailbox.doing = "step"
                for delta in self.core.step():
                    self._take(delta)
                self._outbox.tick()
                self._publish()

    def _can_step(self) -> bool:
        if self._paused:
            return bool(self._canaries) and not len(self._outbox)
        return bool(self._canaries) or len(self._outbox) > 0

    def _end(self, error: EngineError) -> None:
        self._mailbox.close(error)
        for canary in self._canaries.values():
            canary.answer.set_exception(error)
        self._outbox.end()
        self._drained.set()

    def _publish(self) -> None:
        self._stats = self.core.stats()
        if self._stats.in_flight:
            self._drained.clear()
        else:
            self._drained.set()

    def _take(self, delta: Delta) -> None:
        canary = self._canaries.get(delta.id)
        if canary is not None:
            canary.tokens += delta.tokens
            canary.logprobs += delta.logprobs
            if delta.reason or delta.error:
                del self._canaries[delta.id]
                if delta.error:
                    canary.answer.set_exception(NotServableError(f"{self._name}: canary failed: {delta.error}"))
                else:
                    canary.answer.set_result(Canary(canary.tokens, canary.logprobs))
            return
        self._outbox.add(delta.id, delta.tokens, delta.logprobs)
        if delta.error:
            self._outbox.fail([delta.id], delta.error)
        elif delta.reason:
            self._outbox.finish(delta.id, delta.reason)

    # What the owner thread does for a caller

    def _submit(self, requests: list[Request]) -> None:
        self._check_servable()
        self._outbox.check_new([request.id for request in requests])
        added: list[str] = []
        refused: dict[str, str] = {}
        try:
            for request in requests:
                try:
                    self.core.add(request)
                    added.append(request.id)
                except ValueError as error:
                    refused[request.id] = str(error)
        except BaseException:
            self.core.abort(added)
            raise
        for request in requests:
            self._outbox.begin(request.id)
        for request_id, why in refused.items():
            self._outbox.fail([request_id], why)

    def _abort(self, ids: Sequence[str] | None) -> list[str]:
        wanted = self._outbox.open_ids() if ids is None else [i for i in dict.fromkeys(ids) if i in self._outbox]
        self.core.abort(wanted)
        self._outbox.abort(wanted)
        return wanted

    def _set_paused(self, paused: bool) -> None:
        self._paused = paused

    def _release(self) -> MemoryReport:
        self._check_idle("release memory", "drain or abort them first")
        return self.core.release()

    def _load(self, named: NamedTensors, keep_kv: bool) -> str:
        if not keep_kv:
            self._check_idle("load weights", "drain or abort them first, or pass keep_kv=True")
        try:
            return self.core.load(named)
        finally:
            if self.core.state is EngineState.NO_WEIGHTS:
                self._abort(None)

    def _wake_kv(self) -> MemoryReport:
        if self.core.state in (EngineState.RELEASED, EngineState.NO_WEIGHTS):
            self._refuse("wake the KV cache")
        return self.core.wake_kv()

    def _reset_cache(self) -> None:
        self._check_idle("reset the prefix cache", "drain or abort them first")
        self.core.reset_cache()

    def _digest(self) -> str:
        if self.core.state in (EngineState.RELEASED, EngineState.NO_WEIGHTS):
            self._refuse("give a digest")
        return self.core.digest()

    def _start_canary(self, prompt: list[int], max_tokens: int) -> Future[Canary]:
        self._check_servable()
        held = self._outbox.open_ids() if self._paused else []
        # VAL: VAL_EMPTY(held, error=BusyError, about=self._name) - a paused engine is resumed before a canary
        if len(held) != 0:
            raise BusyError(
                f"SteppedEngine._start_canary: held must be empty, got {held!r:.200} "
                f"(self._name={self._name!r:.200}) - a paused engine is resumed before a canary"
            )
        # END VAL 6751a1
        self._canaries_made += 1
        request = Request(f"canary-{self._canaries_made}", prompt, Sampling.greedy(max_tokens))
        self._outbox.reserve(request.id)
        self.core.add(request, fresh=True)
        answer: Future[Canary] = Future()
        answer.set_running_or_notify_cancel()
        self._canaries[request.id] = _OpenCanary(answer)
        return answer

    def _begin_close(self) -> None:
        self._abort(None)
        self.core.abort(list(self._canaries))
        self._closing = True

    def _check_servable(self) -> None:
        if self.core.state is not EngineState.SERVING:
            self._refuse("take requests")

    def _refuse(self, what: str) -> None:
        state = self.core.state
        raise NotServableError(f"{self._name} cannot {what} in state {state.value!r}: {_WAY_ON[state]}")

    def _check_idle(self, what: str, way_on: str) -> None:
        now = self.core.stats()
        # AST: AST_PRECONDITION(
        #     now.running + now.waiting == 0, error=BusyError, about=(self._name, what, way_on)
        # ) - open requests are in the way
        if now.running + now.waiting != 0:
            raise BusyError(
                f"Pre-condition: now.running + now.waiting == 0, got now.running={now.running!r:.200}, "
                f"now.waiting={now.waiting!r:.200} (self._name={self._name!r:.200}, what={what!r:.200}, "
                f"way_on={way_on!r:.200}) - open requests are in the way"
            )
        # END AST ab1340
