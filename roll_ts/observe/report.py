"""The end report of a run, computed from its journal: where the time went, what was generated, what was learnt.

Invariant: a finished run gives every started trajectory exactly one outcome; anything else is an error, not a
figure.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from roll_ts.core import alphabet as a
from roll_ts.observe.activity import PHASES, device_shares, devices, phases
from roll_ts.observe.figures import Gain, Spread, gain_of, spread
from roll_ts.observe.intervals import History, read_history
from roll_ts.observe.journal import Journal
from roll_ts.observe.tokens import AccountError, TokenAccount, token_account


@dataclass(frozen=True)
class Step:
    """One training step, from `version` to `version` + 1. Means over its samples; `seconds` from its start to
    its end."""

    version: int
    at: float
    seconds: float
    samples: int
    tokens: int
    reward: float
    success: float


@dataclass(frozen=True)
class Evaluation:
    """One round of greedy episodes under weights `version`."""

    round: int
    version: int
    episodes: int
    success: float
    reward: float


@dataclass(frozen=True)
class Report:
    """All figures of one run. Times in seconds; rates per second since `serving_since`; `devices` maps a device
    to its shares by activity; `staleness` maps versions to trained samples; `lengths` are tokens generated per
    trajectory."""

    policy: str
    driver: str
    finished: bool
    ok: bool
    reason: str
    start: float
    serving_since: float
    end: float
    phases: dict[str, float]
    devices: dict[int, dict[str, float]]
    in_flight: dict[int, float]
    steps: list[Step]
    step_seconds: float
    tokens_per_second: float
    trained_tokens_per_second: float
    samples_per_second: float
    tokens: TokenAccount
    cycles: int
    started: int
    outcomes: dict[str, int]
    open: int
    groups_dropped: dict[str, int]
    staleness: dict[int, int]
    lengths: dict[str, Spread]
    turns: Spread
    reward_gain: Gain | None
    success_gain: Gain | None
    evaluations: list[Evaluation]
    late_tokens: int
    rank_deaths: int
    torn: bool

    def to_json(self) -> dict[str, Any]:
        """JSON-ready figures under the names of the fields."""
        return dataclasses.asdict(self)


def make_report(journal: Journal, seed: int = 0) -> Report:
    """The report of a journal. `seed` is that of the bootstrap.

    Raises AccountError when a trajectory has two outcomes, has none though the run has finished, or has an
    outcome though it was never started, and when the token account is inconsistent.
    """
    return report_of(read_history(journal), bool(journal.torn), seed)


def report_of(history: History, torn: bool = False, seed: int = 0) -> Report:
    """As `make_report`, from intervals that are there already."""
    settled = _outcomes(history)
    batches = _batches(history, settled)
    tokens = token_account(history)
    seconds = max(history.end - history.serving_since, 1e-9)
    trained = [sample for batch in batches for sample in batch.samples]
    waves = [span.start for span in history.controls(a.Train)]
    return Report(
        policy=history.header.policy,
        driver=history.header.driver,
        finished=history.finish is not None,
        ok=history.finish is not None and history.finish.ok,
        reason=history.finish.reason if history.finish is not None else "the journal ends before the run does",
        start=history.start,
        serving_since=history.serving_since,
        end=history.end,
        phases=_phase_seconds(history),
        devices={device: device_shares(history, device) for device in devices(history)},
        in_flight={rank: _mean_load(history, rank) for rank in history.loads},
        steps=[_step(batch) for batch in batches],
        step_seconds=(waves[-1] - waves[0]) / (len(waves) - 1) if len(waves) > 1 else 0.0,
        tokens_per_second=tokens.generated / seconds,
        trained_tokens_per_second=sum(sample.tokens for sample in trained) / seconds,
        samples_per_second=len(trained) / seconds,
        tokens=tokens,
        cycles=_cycles(history),
        started=len(history.members),
        outcomes=dict(sorted(Counter(item.outcome for item in settled.values()).items())),
        open=len(history.members) - len(settled),
        groups_dropped=dict(sorted(Counter(drop.reason for _, drop in history.drops).items())),
        staleness=_staleness(batches),
        lengths=_lengths(history, settled, {sample.trajectory for sample in trained}),
        turns=spread([item.turns for item in settled.values() if item.kind == "train"]),
        reward_gain=gain_of([_by_group(batch, "reward") for batch in batches], seed),
        success_gain=gain_of([_by_group(batch, "success") for batch in batches], seed),
        evaluations=_evaluations(history),
        late_tokens=history.late_tokens,
        rank_deaths=len(history.deaths),
        torn=torn,
    )


@dataclass(frozen=True)
class _Batch:
    """A finished training step and the outcomes of its samples."""

    command: a.Train
    answer: a.TrainingFinished
    at: float
    samples: list[a.Settled]


def _outcomes(history: History) -> dict[int, a.Settled]:
    """The one outcome of each trajectory."""
    settled: dict[int, a.Settled] = {}
    for t, item in history.outcomes:
        trajectory = item.trajectory
        # VAL: VAL_KEY_ABSENT(
        #     trajectory, mapping=settled, error=AccountError, about=(settled[trajectory].outcome, item.outcome, t)
        # ) - a trajectory has one outcome
        if trajectory in settled:
            raise AccountError(
                f"_outcomes: trajectory must not yet be a key of settled, got {trajectory!r:.200} "
                f"(settled[trajectory].outcome={settled[trajectory].outcome!r:.200}, "
                f"item.outcome={item.outcome!r:.200}, t={t!r:.200}) - a trajectory has one outcome"
            )
        # END VAL 8e3a44
        # VAL: VAL_KEY_IN(
        #     trajectory, mapping=history.members, error=AccountError, about=(item.outcome, t)
        # ) - what has an outcome was started
        if trajectory not in history.members:
            raise AccountError(
                f"_outcomes: trajectory must be a key of history.members, got {trajectory!r:.200} "
                f"(item.outcome={item.outcome!r:.200}, t={t!r:.200}) - what has an outcome was started"
            )
        # END VAL 028a92
        settled[trajectory] = item
    if history.finish is not None:
        without_outcome = sorted(history.members.keys() - settled.keys())
        # VAL: VAL_EMPTY(without_outcome, error=AccountError) - in a finished run every trajectory has its outcome
        if len(without_outcome) != 0:
            raise AccountError(
                f"_outcomes: without_outcome must be empty, got {without_outcome!r:.200} - in a finished "
                "run every trajectory has its outcome"
            )
        # END VAL 9768b3
    return settled


def _batches(history: History, settled: dict[int, a.Settled]) -> list[_Batch]:
    """The finished training steps, in order."""
    return [
        _Batch(
            span.command,
            span.answer,
            span.start,
            [settled[item.trajectory] for item in span.command.batch],
        )
        for span in history.control
        if isinstance(span.command, a.Train) and isinstance(span.answer, a.TrainingFinished)
    ]


def _step(batch: _Batch) -> Step:
    count = len(batch.samples)
    return Step(
        version=batch.command.version,
        at=batch.at,
        seconds=batch.answer.seconds,
        samples=count,
        tokens=sum(sample.tokens for sample in batch.samples),
        reward=sum(sample.reward for sample in batch.samples) / count,
        success=sum(sample.success for sample in batch.samples) / count,
    )


def _by_group(batch: _Batch, name: str) -> list[list[float]]:
    """Values of the field `name`, one list per group."""
    groups: dict[int, list[float]] = {}
    for sample in batch.samples:
        groups.setdefault(sample.group, []).append(float(getattr(sample, name)))
    return list(groups.values())


def _phase_seconds(history: History) -> dict[str, float]:
    seconds = dict.fromkeys(PHASES, 0.0)
    for span in phases(history):
        seconds[span.label] += span.seconds
    return seconds


def _mean_load(history: History, rank: int) -> float:
    """Mean requests in flight on the rank since `serving_since`."""
    since, end = history.serving_since, history.end
    points = [*history.loads[rank], (end, 0)]
    area = sum(count * max(0.0, later - max(t, since)) for (t, count), (later, _) in pairwise(points))
    return area / (end - since) if end > since else 0.0


def _cycles(history: History) -> int:
    """Training steps for which ranks were released and all of these that lived have come back."""
    released: dict[int, set[int]] = {}
    for span in history.controls(a.Release):
        if isinstance(span.command, a.Release) and isinstance(span.answer, a.MemoryReleased):
            released.setdefault(span.command.epoch, set()).add(span.command.rank)
    back = [
        (span.end, span.command.rank)
        for span in history.controls(a.WakeKV)
        if isinstance(span.command, a.WakeKV) and isinstance(span.answer, a.KVReady)
    ]
    done = 0
    for span in history.controls(a.Train):
        lent = released.get(span.command.epoch, set()) if isinstance(span.command, a.Train) else set()
        dead = {death.rank for t, death in history.deaths if t >= span.start}
        done += bool(lent) and all(any(r == rank and t > span.end for t, r in back) for rank in lent - dead)
    return done


def _staleness(batches: list[_Batch]) -> dict[int, int]:
    """Trained samples by the trainer's version at the start of the step minus that of their oldest segment."""
    counts = Counter(
        batch.command.version - sample.oldest_version
        for batch in batches
        for sample in batch.samples
        if sample.oldest_version >= 0
    )
    return dict(sorted(counts.items()))


def _lengths(history: History, settled: dict[int, a.Settled], trained: set[int]) -> dict[str, Spread]:
    """Generated tokens per training trajectory. cancelled: untrained because it was stopped or its group was
    dropped; started: all that have an outcome, so that a bias of `trained` towards short ones shows (R17)."""
    dropped = {player for _, drop in history.drops for player in drop.trajectories}
    training = [item for item in settled.values() if item.kind == "train"]
    cancelled = [item for item in training if item.outcome == "cancelled" or item.trajectory in dropped]
    return {
        "started": spread([item.tokens for item in training]),
        "trained": spread([item.tokens for item in training if item.trajectory in trained]),
        "cancelled": spread([item.tokens for item in cancelled if item.trajectory not in trained]),
    }


def _evaluations(history: History) -> list[Evaluation]:
    """One line per round, over the episodes that have a score."""
    rounds: dict[int, list[a.Settled]] = {}
    for _, item in history.outcomes:
        if item.kind == "eval" and item.outcome in ("scored", "policy-failed"):
            rounds.setdefault(item.group, []).append(item)
    return [
        Evaluation(
            round=number,
            version=max((item.oldest_version for item in items), default=-1),
            episodes=len(items),
            success=sum(item.success for item in items) / len(items),
            reward=sum(item.reward for item in items) / len(items),
        )
        for number, items in sorted(rounds.items())
    ]
