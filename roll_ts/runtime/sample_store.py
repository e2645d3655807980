"""Tokens, log-probs and weight versions of every trajectory, under the ids that the scheduler chose.

The scheduler sees counts only; the store holds what they count. Written before the event reaches the scheduler, so a
token that the scheduler counts is on file. Invariants: a trajectory is one append-only stream; the tokens of an
attempt follow the context and the partial it was dispatched with; tokens of an attempt that has ended are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from roll_ts.core.alphabet import Assignment, AttemptId, Dispatch, Settled
from roll_ts.core.trajectories import Outcome
from roll_ts.observe.journal import JournalError
from roll_ts.trainers.sample import Sample, SampleBuilder


@dataclass
class _Stream:
    """One trajectory: its tokens so far, where the present turn's reply begins, and its outcome once settled."""

    builder: SampleBuilder = field(default_factory=SampleBuilder)
    reply_from: int = 0
    settled: Settled | None = None


class SampleStore:
    """All open trajectories in memory, everything ever received in the file at `path` (None: no file). `eos_id` is the
    token that ends a reply."""

    def __init__(self, eos_id: int, path: Path | None) -> None:
        self.eos_id = eos_id
        self._streams: dict[int, _Stream] = {}
        self._open: dict[str, int] = {}
        self._file: IO[str] | None = None if path is None else path.open("x", encoding="utf-8")

    def observe(self, trajectory: int, turn: int, tokens: Sequence[int]) -> int:
        """Append an observation; returns the length of the next turn's context in tokens."""
        stream = self._streams.setdefault(trajectory, _Stream())
        stream.builder.give(tokens)
        stream.reply_from = len(stream.builder)
        self._write({"trajectory": trajectory, "turn": turn, "given": list(tokens)})
        return len(stream.builder)

    def begin(self, command: Dispatch) -> list[int]:
        """Open the attempt; returns its prompt: the context plus what earlier attempts of this turn generated."""
        stream = self._streams[command.attempt.trajectory]
        attempt = str(command.attempt)
        # VAL: VAL_KEY_ABSENT(attempt, mapping=self._open)
        if attempt in self._open:
            raise ValueError(f"SampleStore.begin: attempt must not yet be a key of self._open, got {attempt!r:.200}")
        # END VAL 2e247a
        held = (stream.reply_from, len(stream.builder) - stream.reply_from)
        asked = (command.context_tokens, command.carried)
        # AST: AST_PRECONDITION(held == asked) - the scheduler counts what the store holds
        assert held == asked, (
            f"Pre-condition: held == asked, got held={held!r:.200}, asked={asked!r:.200} - the scheduler "
            "counts what the store holds"
        )
        # END AST 89f68a
        self._open[attempt] = command.version
        fields = {"rank": command.rank, "version": command.version, "greedy": command.greedy, "carried": asked[1]}
        self._write({"begin": attempt} | fields)
        return list(stream.builder.tokens)

    def extend(self, attempt: AttemptId, tokens: Sequence[int], logprobs: Sequence[float], last: bool) -> None:
        """Append what an open attempt generated; `last` closes it. Raises KeyError for an attempt that is not open."""
        # VAL: VAL_EQUAL_LENGTH(tokens, logprobs)
        if len(tokens) != len(logprobs):
            raise ValueError(
                f"SampleStore.extend: tokens must have as many elements as logprobs, got {len(tokens)!r} "
                f"and {len(logprobs)!r}"
            )
        # END VAL 29c01d
        key = str(attempt)
        # VAL: VAL_KEY_IN(key, mapping=self._open, error=KeyError)
        if key not in self._open:
            raise KeyError(f"SampleStore.extend: key must be a key of self._open, got {key!r:.200}")
        # END VAL 33ff81
        version = self._open.pop(key) if last else self._open[key]
        stream = self._streams.get(attempt.trajectory)
        if stream is not None:
            stream.builder.generate(tokens, logprobs, version)
        self._write({"attempt": key, "tokens": list(tokens), "logprobs": list(logprobs), "last": last})

    def lose(self, attempts: Sequence[AttemptId]) -> None:
        """The rank of these attempts is gone: nothing more will come of them."""
        for attempt in attempts:
            if self._open.pop(str(attempt), None) is not None:
                self._write({"attempt": str(attempt), "tokens": [], "logprobs": [], "last": True, "lost": True})

    def reply(self, trajectory: int) -> list[int]:
        """The tokens of the present turn's reply."""
        stream = self._streams[trajectory]
        return stream.builder.tokens[stream.reply_from :]

    def settle(self, notice: Settled) -> None:
        """Note the outcome; the stream of a trajectory that will not be trained on is dropped from memory."""
        trained = notice.kind == "train" and notice.outcome in (Outcome.SCORED, Outcome.POLICY_FAILED)
        stream = self._streams.get(notice.trajectory)
        if stream is not None and trained:
            stream.settled = notice
        else:
            self.drop((notice.trajectory,))
        self._write({"settled": notice.trajectory, "outcome": notice.outcome, "reward": notice.reward})

    def samples(self, batch: Sequence[Assignment]) -> list[Sample]:
        """The settled trajectories of a batch, in its order."""
        # VAL: VAL_NON_EMPTY(batch)
        if len(batch) == 0:
            raise ValueError(f"SampleStore.samples: batch must not be empty, got {batch!r:.200}")
        # END VAL fb97dd
        samples = []
        for group, member, trajectory in batch:
            stream = self._streams[trajectory]
            notice = stream.settled
            # VAL: VAL_NOT_NONE(notice) - only a trajectory with an outcome is trained on
            if notice is None:
                raise ValueError(
                    f"SampleStore.samples: notice must not be None, got {notice} - only a trajectory with an "
                    "outcome is trained on"
                )
            # END VAL 189b01
            sample = stream.builder.finish(
                group=str(group),
                trajectory=str(trajectory),
                reward=notice.reward,
                success=notice.success,
                truncated=notice.outcome == Outcome.POLICY_FAILED,
                turns=notice.turns,
                extra={"member": member},
            )
            samples.append(sample)
        # AST: AST_POSTCONDITION(len(samples) > 0)
        assert len(samples) > 0, f"Post-condition: samples not empty, got {samples}"
        # END AST 617169
        return samples

    def drop(self, trajectories: Sequence[int]) -> None:
        """Forget streams: trained, cancelled or void."""
        for trajectory in trajectories:
            self._streams.pop(trajectory, None)

    def close(self) -> None:
        """Close the file. Calling again is harmless."""
        if self._file is not None:
            self._file.close()

    def _write(self, record: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(record, separators=(",", ":")) + "\n")
            self._file.flush()


@dataclass
class Piece:
    """What one attempt generated of a turn, and where. `carried` tokens of the turn came before it."""

    rank: int
    version: int
    carried: int
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


@dataclass
class TurnRecord:
    """One turn on file: its context and the pieces of its reply, in order."""

    trajectory: int
    turn: int
    greedy: bool
    context: list[int]
    pieces: list[Piece] = field(default_factory=list)

    @property
    def reply(self) -> list[int]:
        """All tokens of the reply."""
        return [token for piece in self.pieces for token in piece.tokens]

    @property
    def moved(self) -> bool:
        """Whether tokens were generated on two ranks or more."""
        return len({piece.rank for piece in self.pieces if piece.tokens}) > 1


def read_turns(path: Path) -> Iterator[TurnRecord]:
    """The turns on file that generated anything, each as soon as its trajectory goes on or the file ends.

    A cut-off last line (a crash) ends the reading. Raises JournalError for a bad line elsewhere.
    """
    streams: dict[int, list[int]] = {}
    turns: dict[int, TurnRecord] = {}
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith("\n"):
                break
            try:
                done = _take(json.loads(line), streams, turns)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise JournalError(f"{path}:{number}: not a line of samples: {error!r}") from error
            if done is not None:
                yield done
    yield from turns.values()


def _take(record: dict[str, Any], streams: dict[int, list[int]], turns: dict[int, TurnRecord]) -> TurnRecord | None:
    """Add what a line says to the streams and their open turns; the turn that it ends, if any."""
    if "given" in record:
        trajectory = record["trajectory"]
        done = turns.pop(trajectory, None)
        streams.setdefault(trajectory, []).extend((done.reply if done else []) + record["given"])
        return done
    if "begin" in record:
        trajectory, turn, _ = map(int, record["begin"].split("."))
        context = list(streams[trajectory])
        open_turn = turns.setdefault(trajectory, TurnRecord(trajectory, turn, record["greedy"], context))
        open_turn.pieces.append(Piece(record["rank"], record["version"], record["carried"]))
    elif "attempt" in record:
        piece = turns[int(record["attempt"].split(".")[0])].pieces[-1]
        piece.tokens += record["tokens"]
        piece.logprobs += record["logprobs"]
    return None
