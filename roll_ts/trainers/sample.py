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
import math  # VAL import
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
        # VAL: VAL_SHAPE(self.tokens, (None,), about=self.trajectory) - one number for each token
        if len(self.tokens.shape) != 1:
            raise ValueError(
                f"Sample._check: self.tokens must have shape (*), got {tuple(self.tokens.shape)!r:.200} "
                f"(self.trajectory={self.trajectory!r:.200}) - one number for each token"
            )
        # END VAL 8ae3dc
        for name in ("loss_mask", "logprobs", "versions"):
            array = getattr(self, name)
            # VAL: VAL_SAME_SHAPE(array, self.tokens, about=(self.trajectory, name)) - one number for each token
            if array.shape != self.tokens.shape:
                raise ValueError(
                    f"Sample._check: array must have the shape of self.tokens, got {tuple(array.shape)!r:.200} "
                    f"and {tuple(self.tokens.shape)!r:.200} (self.trajectory={self.trajectory!r:.200}, "
                    f"name={name!r:.200}) - one number for each token"
                )
            # END VAL 367595
        # VAL: VAL_FINITE(self.reward, about=self.trajectory)
        if not -math.inf < self.reward < math.inf:
            raise ValueError(
                f"Sample._check: self.reward must be finite, got {self.reward!r} "
                f"(self.trajectory={self.trajectory!r:.200})"
            )
        # END VAL b0ff32
        made, given = self.loss_mask, ~self.loss_mask
        unprompted = _found(made[:1], self.tokens)
        # VAL: VAL_EMPTY(unprompted, about=self.trajectory) - token 0 is given: nothing precedes it to be sampled from
        if len(unprompted) != 0:
            raise ValueError(
                f"Sample._check: unprompted must be empty, got {unprompted!r:.200} "
                f"(self.trajectory={self.trajectory!r:.200}) - token 0 is given: nothing precedes it to be "
                "sampled from"
            )
        # END VAL 6d9a2c
        marked = given & ((self.logprobs != 0) | (self.versions != GIVEN_VERSION))
        marks, versions = _found(marked, self.logprobs), _found(marked, self.versions)
        # VAL: VAL_EMPTY(marks, about=(versions, self.trajectory)) - a given token has log-prob 0 and version -1
        if len(marks) != 0:
            raise ValueError(
                f"Sample._check: marks must be empty, got {marks!r:.200} (versions={versions!r:.200}, "
                f"self.trajectory={self.trajectory!r:.200}) - a given token has log-prob 0 and version -1"
            )
        # END VAL e8f71f
        improper_logprobs = _found(made & ~(np.isfinite(self.logprobs) & (self.logprobs <= 0)), self.logprobs)
        # VAL: VAL_EMPTY(improper_logprobs, about=self.trajectory) - a generated token has a finite log-prob <= 0
        if len(improper_logprobs) != 0:
            raise ValueError(
                f"Sample._check: improper_logprobs must be empty, got {improper_logprobs!r:.200} "
                f"(self.trajectory={self.trajectory!r:.200}) - a generated token has a finite log-prob <= 0"
            )
        # END VAL bad736
        missing_versions = _found(made & (self.versions < 0), self.versions)
        # VAL: VAL_EMPTY(missing_versions, about=self.trajectory) - a generated token has a weight version >= 0
        if len(missing_versions) != 0:
            raise ValueError(
                f"Sample._check: missing_versions must be empty, got {missing_versions!r:.200} "
                f"(self.trajectory={self.trajectory!r:.200}) - a generated token has a weight version >= 0"
            )
        # END VAL 879fc9

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


def _found(mask: NDArray[np.bool_], values: NDArray[Any]) -> dict[int, Any]:
    """Where the mask holds, and the value there."""
    return {int(at): values[at].item() for at in np.flatnonzero(mask)}


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
        # VAL: VAL_EQUAL_LENGTH(tokens, logprobs) - one log-prob for each token of the segment
        if len(tokens) != len(logprobs):
            raise ValueError(
                "SampleBuilder.generate: tokens must have as many elements as logprobs, got "
                f"{len(tokens)!r} and {len(logprobs)!r} - one log-prob for each token of the segment"
            )
        # END VAL 5978fe
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
        """The finished sample; raises ValueError if an invariant of `Sample` does not hold.

        What was given after the last generated token is left out: nothing is trained on it or depends on it, and an
        observation that overflowed the context would make the sample longer than the model may see.
        """
        end = len(self.tokens)
        while end > 1 and not self.loss_mask[end - 1]:
            end -= 1
        return Sample(
            np.array(self.tokens[:end], np.int32),
            np.array(self.loss_mask[:end], np.bool_),
            np.array(self.logprobs[:end], np.float32),
            np.array(self.versions[:end], np.int32),
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
_FIELDS = (*_ARRAYS, *_SCALARS)


def to_json(sample: Sample) -> str:
    """One JSON line. Lossless: a float32 printed through float64 reads back to the same bits."""
    record: dict[str, Any] = {name: getattr(sample, name) for name in _SCALARS}
    record |= {name: getattr(sample, name).tolist() for name in _ARRAYS}
    record["loss_mask"] = sample.loss_mask.astype(int).tolist()
    return json.dumps(record, separators=(",", ":"), allow_nan=False)


def from_json(line: str) -> Sample:
    """Inverse of `to_json`. Raises ValueError naming what is missing or malformed."""
    record = json.loads(line)
    # VAL: VAL_REQUIRED_KEYS(record, _FIELDS) - the line is no whole sample
    _missing = [_key for _key in _FIELDS if _key not in record]
    if _missing:
        raise ValueError(
            f"from_json: record must have the keys {_FIELDS!r:.200}, but lacks {_missing!r:.200} - the "
            "line is no whole sample"
        )
    # END VAL fabf24
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
    promised, tokens = int(lengths.sum()), len(packed["tokens"])
    # VAL: VAL_EQUAL_LENGTH(meta, lengths) - the packed batch is inconsistent: one length for each record
    if len(meta) != len(lengths):
        raise ValueError(
            f"unpack: meta must have as many elements as lengths, got {len(meta)!r} and "
            f"{len(lengths)!r} - the packed batch is inconsistent: one length for each record"
        )
    # END VAL d0fe2a
    # VAL: VAL_EQUAL(promised, tokens) - the packed batch is inconsistent: its lengths add up to its tokens
    if promised != tokens:
        raise ValueError(
            f"unpack: promised must equal tokens ({tokens!r:.200}), got {promised!r:.200} - the packed "
            "batch is inconsistent: its lengths add up to its tokens"
        )
    # END VAL 81e74a
    ends = np.cumsum(lengths)
    batch = []
    for record, end, n in zip(meta, ends.tolist(), lengths.tolist(), strict=True):
        fields: dict[str, Any] = {name: packed[name][end - n : end] for name in _ARRAYS}
        batch.append(Sample(**fields, **record))
    return batch
