"""What a rollout engine promises, in plain data: requests in, events out, a few control calls.

Invariants every engine keeps:

- Exactly one terminal event (`Finished`, `Aborted`, `Failed`) per submitted id, and it is the last event of that id.
- The `tokens` of all events of one id, joined in order, are the whole generation, with one log-prob per token.
  A log-prob is the model's own log-softmax at the sampled token, before temperature and top-p.
- A request is accepted only in state SERVING. Weights that failed to load, discarded weights or a sleeping KV
  cache make the engine refuse work with the state named.
- Memory is released only when the engine itself counts no running and no waiting request.

Nothing here imports an engine, torch or Ray, so schedulers, fakes and tests can share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import torch

NamedTensors: TypeAlias = "Iterable[tuple[str, torch.Tensor]]"
"""Pairs of (Hugging Face parameter name, tensor), consumed once, in any order."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample one request. Temperature 0 is greedy; generation stops on `stop_token_ids` or `max_tokens` only.

    The stop token is part of the generation. A model's own end-of-sequence id has no effect unless listed.
    `seed` restarts with each request, so a resumed sampled request does not repeat the stream it left.
    """

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    stop_token_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raises ValueError for a setting out of its range."""
        # VAL: VAL_INT_RANGE(self.max_tokens, min=1)
        if not self.max_tokens >= 1:
            raise ValueError(f"Sampling.__post_init__: self.max_tokens must be at least 1, got {self.max_tokens!r}")
        # END VAL dcea3c
        # VAL: VAL_NON_NEGATIVE(self.temperature) - 0 is greedy
        if not self.temperature >= 0:
            raise ValueError(
                f"Sampling.__post_init__: self.temperature must not be negative, got {self.temperature!r} - 0 is greedy"
            )
        # END VAL 85212b
        # VAL: VAL_FLOAT_RANGE(self.top_p, min=0, max=1, exclude_min=True)
        if not 0 < self.top_p <= 1:
            raise ValueError(f"Sampling.__post_init__: self.top_p must lie in (0, 1], got {self.top_p!r}")
        # END VAL 22eb8a

    @classmethod
    def greedy(cls, max_tokens: int, stop_token_ids: Sequence[int] = ()) -> Sampling:
        """The deterministic setting: always the most likely token."""
        return cls(max_tokens=max_tokens, temperature=0.0, stop_token_ids=tuple(stop_token_ids))


@dataclass(frozen=True, slots=True)
class Request:
    """One attempt at one generation. `id` is never reused on an engine; `prompt` holds token ids (prompt + partial)."""

    id: str
    prompt: list[int]
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class Progress:
    """Tokens generated since the last event of this id."""

    id: str
    tokens: list[int]
    logprobs: list[float]


@dataclass(frozen=True, slots=True)
class Finished:
    """Terminal: the remaining tokens, and whether a stop token or the token limit ended the generation."""

    id: str
    tokens: list[int]
    logprobs: list[float]
    reason: Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Aborted:
    """Terminal: the remaining tokens up to the abort; the engine holds nothing of this id any more."""

    id: str
    tokens: list[int]
    logprobs: list[float]


@dataclass(frozen=True, slots=True)
class Failed:
    """Terminal: this request cannot be served (`error` says why); tokens reported earlier stay valid."""

    id: str
    error: str
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


Event: TypeAlias = Progress | Finished | Aborted | Failed
TERMINAL = (Finished, Aborted, Failed)


class EngineState(Enum):
    """What an engine can do now. Only SERVING takes requests."""

    SERVING = "serving"
    KV_ASLEEP = "weights loaded, KV cache asleep"
    RELEASED = "released"
    NO_WEIGHTS = "no valid weights"
    DEAD = "dead"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class EngineStats:
    """The engine's own count of its load. `kv_tokens` of `kv_capacity` token slots are held by requests in flight."""

    running: int
    waiting: int
    kv_tokens: int
    kv_capacity: int
    state: EngineState = EngineState.SERVING
    paused: bool = False

    @property
    def in_flight(self) -> int:
        """Requests the engine holds, running or waiting."""
        return self.running + self.waiting


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Device memory of the engine around a release or a wake: bytes before, bytes after, seconds it took.

    On CPU the bytes are the resident set of the engine's processes, on CUDA the used memory of its devices.
    """

    before_bytes: int
    after_bytes: int
    seconds: float

    @property
    def freed_bytes(self) -> int:
        """Bytes given back; negative after a wake."""
        return self.before_bytes - self.after_bytes


@dataclass(frozen=True, slots=True)
class Canary:
    """A fixed greedy continuation: equal weights give equal tokens and (within float noise) equal log-probs."""

    tokens: list[int]
    logprobs: list[float]


class EngineError(RuntimeError):
    """An engine refused a call or cannot go on."""


class NotServableError(EngineError):
    """The call needs another state; the message names the present one and the call that leads on."""


class BusyError(EngineError):
    """The call needs an engine without requests in flight; the message gives the counts."""


class EngineDeadError(EngineError):
    """The engine failed for good; the message carries the original traceback."""


class RolloutEngine(Protocol):
    """A generation engine on one rank. Every call is blocking and thread-safe; every call raises
    `EngineDeadError` once the engine has failed, and `NotServableError` after `close`."""

    def submit(self, requests: Sequence[Request]) -> None:
        """Accept all requests or none. An id seen before is a `ValueError`; a state other than SERVING a
        `NotServableError`. A request the engine cannot serve (say, a prompt over the context) ends in `Failed`."""
        ...

    def abort(self, ids: Sequence[str] | None = None) -> list[str]:
        """Abort these ids (None: all). Returns, once the engine holds none of them, the ids this call aborted;
        their partials arrive as `Aborted` events. Ids that are unknown or already ended are left alone."""
        ...

    def next_events(self, wait_s: float) -> list[Event]:
        """All events since the last call; waits up to `wait_s` seconds for a first one. For one consumer."""
        ...

    def stats(self) -> EngineStats:
        """The load at this moment."""
        ...

    def pause(self) -> None:
        """Stop generating between two steps and keep every request. Submitted requests queue up meanwhile."""
        ...

    def resume(self) -> None:
        """Go on where `pause` stopped."""
        ...

    def wait_drained(self, timeout_s: float) -> int:
        """Wait for running + waiting to reach 0; returns the count left when the time is up (0: drained)."""
        ...

    def release(self) -> MemoryReport:
        """Discard weights and KV cache and give the memory back. `BusyError` with requests in flight; on an engine
        that is released already nothing happens and the report shows nothing freed."""
        ...

    def load_weights(self, named: NamedTensors, keep_kv: bool = False) -> str:
        """Replace all weights and return the digest of the tensors received. `BusyError` with requests in flight,
        unless `keep_kv` (they then go on over KV of the old weights). Cached prefixes of other weights are never
        reused. A load that fails or is incomplete raises and leaves no servable weights behind."""
        ...

    def wake_kv(self) -> MemoryReport:
        """Allocate an empty KV cache; nothing happens when it is awake. `NotServableError` without weights."""
        ...

    def reset_cache(self) -> None:
        """Forget all cached prefixes. `BusyError` with requests in flight."""
        ...

    def digest(self) -> str:
        """Digest of the named tensors as received. `NotServableError` without weights."""
        ...

    def canary(self, prompt: Sequence[int], max_tokens: int = 8) -> Canary:
        """Greedy continuation of `prompt`, computed from an empty prefix cache."""
        ...

    def close(self) -> None:
        """Stop the engine and free what it holds; requests in flight end in `Aborted`. Calling again is harmless."""
        ...
