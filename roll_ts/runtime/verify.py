"""Checks of a finished run that need an engine or its samples: turns that moved, and log-probs of engine and trainer.

A greedy turn that was stopped on one rank and went on at another is generated again, whole, on an engine that nothing
interrupts, with the same weights: the tokens must be the same (R8).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from roll_ts.config import RunConfig
from roll_ts.core.alphabet import TrainingFinished
from roll_ts.engines.protocol import Failed, Finished, Request, RolloutEngine, Sampling
from roll_ts.observe.journal import Journal
from roll_ts.runtime.sample_store import TurnRecord, read_turns
from roll_ts.trainers.tolerance import Tolerance

LOGPROB_SHARE = 0.3
_REPLAY_S = 120.0


@dataclass(frozen=True)
class Replayed:
    """A moved turn and what came of generating it without the move."""

    turn: TurnRecord
    tokens: list[int]

    @property
    def same(self) -> bool:
        """Whether the move changed no token."""
        return self.tokens == self.turn.reply

    def __str__(self) -> str:
        parts = ", then ".join(
            f"{len(piece.tokens)} on rank {piece.rank}" for piece in self.turn.pieces if piece.tokens
        )
        verdict = f"same {len(self.tokens)} tokens" if self.same else f"DIFFERENT: {self.turn.reply} but {self.tokens}"
        name = f"trajectory {self.turn.trajectory} turn {self.turn.turn}, version {_version(self.turn)}"
        return f"{name}: {parts}: {verdict}"


@dataclass(frozen=True)
class LogprobFigures:
    """One training step's |rollout log-prob − trainer log-prob|: `n` tokens, their `share` of the trained ones."""

    version: int
    n: int
    share: float
    max: float
    p99: float
    allowed: Tolerance

    @property
    def ok(self) -> bool:
        """Within the bounds, over enough tokens."""
        near = self.max <= self.allowed.largest and self.p99 <= self.allowed.p99
        return near and self.share >= LOGPROB_SHARE


def moved_turns(folder: Path) -> dict[int, list[TurnRecord]]:
    """Greedy turns of a run that moved between ranks under one version whose weights were kept, by version."""
    found: dict[int, list[TurnRecord]] = {}
    for turn in read_turns(folder / "samples.jsonl"):
        one_version = len({piece.version for piece in turn.pieces if piece.tokens}) == 1
        if turn.greedy and turn.moved and one_version and _weights(folder, _version(turn)).is_dir():
            found.setdefault(_version(turn), []).append(turn)
    return found


def replay_turns(folder: Path, config: RunConfig) -> list[Replayed]:
    """Generate every moved turn again without the move. Starts one engine in this process, before which nothing may
    have imported torch; returns an empty list, and starts nothing, when no turn moved."""
    turns = moved_turns(folder)
    if not turns:
        return []
    from roll_ts.engines.checkpoint import checkpoint_tensors
    from roll_ts.engines.config import prepare_process
    from roll_ts.engines.vllm import VLLMEngine
    from roll_ts.runtime._devices import engine_config
    from roll_ts.runtime._text import load_tokenizer

    warnings.filterwarnings("ignore", category=FutureWarning, module="vllm")
    first = _weights(folder, min(turns))
    settings = engine_config(config, 0, str(first))
    prepare_process(settings)
    eos_id = load_tokenizer(first).eos_id
    engine = VLLMEngine(settings)
    try:
        results = []
        for version, records in sorted(turns.items()):
            engine.load_weights(checkpoint_tensors(str(_weights(folder, version))))
            engine.wake_kv()
            results += [Replayed(turn, tokens) for turn, tokens in _generate(engine, records, eos_id)]
        return results
    finally:
        engine.close()


def logprob_figures(journal: Journal) -> list[LogprobFigures]:
    """The figures of every training step in a live run's journal."""
    return [
        LogprobFigures(
            entry.event.version,
            int(entry.event.figures["logprob_n"]),
            entry.event.figures["logprob_share"],
            entry.event.figures["logprob_max"],
            entry.event.figures["logprob_p99"],
            Tolerance(entry.event.figures["logprob_allowed_p99"], entry.event.figures["logprob_allowed_largest"]),
        )
        for entry in journal.entries
        if isinstance(entry.event, TrainingFinished) and "logprob_n" in entry.event.figures
    ]


def _generate(
    engine: RolloutEngine, turns: Sequence[TurnRecord], eos_id: int
) -> Iterator[tuple[TurnRecord, list[int]]]:
    """Each turn's context continued greedily, one at a time, to the length of its reply."""
    for turn in turns:
        name = f"replay-{turn.trajectory}-{turn.turn}"
        engine.submit([Request(name, turn.context, Sampling.greedy(len(turn.reply), [eos_id]))])
        left = engine.wait_drained(_REPLAY_S)
        # VAL: VAL_INT_RANGE(left, min=0, max=0, error=TimeoutError)
        if not 0 <= left <= 0:
            raise TimeoutError(f"_generate: left must lie in [0, 0], got {left!r}")
        # END VAL 97d9e6
        tokens: list[int] = []
        while True:
            events = engine.next_events(_REPLAY_S)
            refusals = [event.error for event in events if isinstance(event, Failed)]
            # VAL: VAL_LENGTH(refusals, max=0, error=RuntimeError) - the engine takes every turn
            if len(refusals) != 0:
                raise RuntimeError(
                    f"_generate: refusals must have no elements, got {len(refusals)!r}: {refusals!r:.200} - "
                    "the engine takes every turn"
                )
            # END VAL 980785
            tokens += [token for event in events for token in event.tokens]
            if any(isinstance(event, Finished) for event in events):
                break
        yield turn, tokens


def _version(turn: TurnRecord) -> int:
    return next(piece.version for piece in turn.pieces if piece.tokens)


def _weights(folder: Path, version: int) -> Path:
    return folder / "replay" / f"version-{version:06d}"
