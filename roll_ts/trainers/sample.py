"""One finished trajectory as the trainer sees it, and its two lossless encodings.

A trajectory is one append-only token stream: prompt, reply, observation, reply, ... A token is either
*generated* (by the policy: it is trained on, and carries the behaviour log-probability and the weight
version it was sampled with) or *given* (prompt, observation: never trained on). A reply that moved between
engines simply has several versions in it.

Invariants: the four per-token arrays have one length; given tokens have log-prob 0 and version -1;
generated tokens have a finite log-prob <= 0 and a version >= 0; the first token is given (nothing precedes it to be
sampled from).
Needs numpy only, so that environment workers and the sample store can use it without torch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

GIVEN_VERSION = -1


@dataclass
class Sample:
    """One trajectory.

    tokens: int32 [n], the whole stream.
    loss_mask: bool [n], True on generated tokens.
    logprobs: float32 [n], natural log of the behaviour policy's probability of tokens[i] given tokens[:i];
    0 if given. versions: int32 [n], weight version that sampled tokens[i]; -1 if given.
    group: the prompt group whose rewards are normalised together. trajectory: unique within a run. reward:
    training reward (may be shaped). success: the environment's pure verdict. truncated: ended by a limit,
    not by the environment.
    """

    tokens: NDArray[np.int32]
    loss_mask: NDArray[np.bool_]
    logprobs: NDArray[np.float32]
    versions: NDArray[np.int32]
    group: str
    trajectory: str
    reward: float
    success: bool = False
    truncated: bool = False
    turns: int = 0
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tokens = np.asarray(self.tokens, dtype=np.int32)
        self.loss_mask = np.asarray(self.loss_mask, dtype=np.bool_)
        self.logprobs = np.asarray(self.logprobs, dtype=np.float32)
        self.versions = np.asarray(self.versions, dtype=np.int32)
        self._check()

    def _check(self) -> None:
        who = f"sample {self.trajectory!r}"
        lengths = {n: getattr(self, n).shape for n in ("tokens", "loss_mask", "logprobs", "versions")}
        if len(set(lengths.values())) != 1 or self.tokens.ndim != 1:
            raise ValueError(f"{who}: per-token arrays must be one-dimensional and equally long, got {lengths}")
        if not np.isfinite(self.reward):
            raise ValueError(f"{who}: reward must be finite, got {self.reward!r}")
        made, given = self.loss_mask, ~self.loss_mask
        if len(made) and made[0]:
            raise ValueError(f"{who}: token 0 cannot be generated, there is nothing before it to condition on")
        if np.any(self.logprobs[given] != 0) or np.any(self.versions[given] != GIVEN_VERSION):
            raise ValueError(f"{who}: given tokens must have log-prob 0 and version {GIVEN_VERSION}")
        bad = made & ~(np.isfinite(self.logprobs) & (self.logprobs <= 0))
        if np.any(bad):
            at = int(np.flatnonzero(bad)[0])
            raise ValueError(f"{who}: generated token {at} needs a finite log-prob <= 0, got {self.logprobs[at]!r}")
        if np.any(self.versions[made] < 0):
            at = int(np.flatnonzero(made & (self.versions < 0))[0])
            raise ValueError(f"{who}: generated token {at} has no weight version (got {self.versions[at]})")

    def __len__(self) -> int:
        return int(self.tokens.shape[0])

    @property
    def generated(self) -> int:
        """Number of generated (trainable) tokens."""
        return int(self.loss_mask.sum())

    @property
    def oldest_version(self) -> int:
        """Version of the oldest generated segment; -1 if nothing was generated."""
        made = self.versions[self.loss_mask]
        return int(made.min()) if made.size else GIVEN_VERSION


@dataclass
class SampleBuilder:
    """Grows one token stream, segment by segment, and closes it into a `Sample`."""

    tokens: list[int] = field(default_factory=list)
    loss_mask: list[bool] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)

    def give(self, tokens: Sequence[int]) -> None:
        """Append prompt or observation tokens."""
        n = len(tokens)
        self.tokens += [int(t) for t in tokens]
        self.loss_mask += [False] * n
        self.logprobs += [0.0] * n
        self.versions += [GIVEN_VERSION] * n

    def generate(self, tokens: Sequence[int], logprobs: Sequence[float], version: int) -> None:
        """Append one generated segment, all of it sampled with weights `version`."""
        if len(tokens) != len(logprobs):
            raise ValueError(f"segment has {len(tokens)} tokens but {len(logprobs)} log-probs")
        n = len(tokens)
        self.tokens += [int(t) for t in tokens]
        self.loss_mask += [True] * n
        # log_softmax may round a certain token to a hair above 0; anything more is a fault that `Sample`
        # reports
        self.logprobs += [0.0 if 0 < p < 1e-6 else float(p) for p in logprobs]
        self.versions += [version] * n

    def __len__(self) -> int:
        return len(self.tokens)

    def finish(
        self,
        *,
        group: str,
        trajectory: str,
        reward: float,
        success: bool = False,
        truncated: bool = False,
        turns: int = 0,
        extra: Mapping[str, Any] | None = None,
    ) -> Sample:
        """The finished sample; raises ValueError if an invariant of `Sample` does not hold."""
        return Sample(
            np.array(self.tokens, np.int32),
            np.array(self.loss_mask, np.bool_),
            np.array(self.logprobs, np.float32),
            np.array(self.versions, np.int32),
            group=group,
            trajectory=trajectory,
            reward=reward,
            success=success,
            truncated=truncated,
            turns=turns,
            extra=dict(extra or {}),
        )


_SCALARS = ("group", "trajectory", "reward", "success", "truncated", "turns", "extra")
_ARRAYS = {"tokens": np.int32, "loss_mask": np.bool_, "logprobs": np.float32, "versions": np.int32}


def to_json(sample: Sample) -> str:
    """One JSON line. Lossless: a float32 printed through float64 reads back to the same bits."""
    record: dict[str, Any] = {name: getattr(sample, name) for name in _SCALARS}
    record |= {name: getattr(sample, name).tolist() for name in _ARRAYS}
    record["loss_mask"] = sample.loss_mask.astype(int).tolist()
    return json.dumps(record, separators=(",", ":"), allow_nan=False)


def from_json(line: str) -> Sample:
    """Inverse of `to_json`. Raises ValueError naming what is missing or malformed."""
    record = json.loads(line)
    missing = [n for n in (*_ARRAYS, *_SCALARS) if n not in record]
    if missing:
        raise ValueError(f"sample record lacks {', '.join(missing)}")
    fields: dict[str, Any] = {name: np.array(record[name], dtype) for name, dtype in _ARRAYS.items()}
    return Sample(**fields, **{name: record[name] for name in _SCALARS})


def pack(samples: Iterable[Sample]) -> dict[str, NDArray[Any]]:
    """Flat arrays for a batch (zero-copy through shared memory): per-token arrays concatenated, `lengths`
    int64 [batch], and `meta`, the scalars as UTF-8 JSON bytes (uint8)."""
    batch = list(samples)
    packed: dict[str, NDArray[Any]] = {
        name: np.concatenate([getattr(s, name) for s in batch]) if batch else np.zeros(0, dtype)
        for name, dtype in _ARRAYS.items()
    }
    packed["lengths"] = np.array([len(s) for s in batch], np.int64)
    meta = json.dumps([{name: getattr(s, name) for name in _SCALARS} for s in batch], allow_nan=False)
    packed["meta"] = np.frombuffer(meta.encode(), np.uint8)
    return packed


def unpack(packed: Mapping[str, NDArray[Any]]) -> list[Sample]:
    """Inverse of `pack`. Raises ValueError if the lengths do not add up."""
    lengths = packed["lengths"]
    meta = json.loads(packed["meta"].tobytes().decode())
    if len(meta) != len(lengths) or int(lengths.sum()) != len(packed["tokens"]):
        raise ValueError(
            f"packed batch is inconsistent: {len(meta)} records, {len(lengths)} lengths summing to "
            f"{int(lengths.sum())}, {len(packed['tokens'])} tokens"
        )
    ends = np.cumsum(lengths)
    batch = []
    for record, end, n in zip(meta, ends.tolist(), lengths.tolist(), strict=True):
        fields: dict[str, Any] = {name: packed[name][end - n : end] for name in _ARRAYS}
        batch.append(Sample(**fields, **record))
    return batch
