"""Turns what the optimizer steps of one update summed up into its `TrainReport`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from roll_ts.trainers.protocol import LogprobCheck, TrainReport
from roll_ts.trainers.sample import Sample

if TYPE_CHECKING:
    from roll_ts.trainers.megatron_update import Update


def staleness_histogram(samples: Sequence[Sample], version: int) -> dict[int, int]:
    """{version - version of the token: generated tokens}, ascending."""
    made = np.concatenate([version - s.versions[s.loss_mask] for s in samples])
    lags, counts = np.unique(made, return_counts=True)
    return {int(lag): int(count) for lag, count in zip(lags, counts, strict=True)}


def make_report(
    samples: Sequence[Sample],
    updates: Sequence[Update],
    check: LogprobCheck,
    version: int,
    epochs: int,
    seconds: float,
) -> TrainReport:
    """The report of an update that started from `version` and went over the samples `epochs` times."""
    trained = sum(s.generated for s in samples)
    passed = trained * epochs
    parts = {key: sum(u.seconds.get(key, 0.0) for u in updates) for key in ("forward_backward", "optimizer")}
    return TrainReport(
        version=version + 1,
        samples=len(samples),
        tokens=sum(map(len, samples)),
        trained_tokens=trained,
        loss=sum(u.loss for u in updates) / len(updates),
        grad_norm=max(u.grad_norm for u in updates),
        mean_reward=sum(s.reward for s in samples) / len(samples),
        success_rate=sum(s.success for s in samples) / len(samples),
        mean_weight=sum(u.weights for u in updates) / passed,
        truncated_share=sum(u.truncated for u in updates) / passed,
        rejected_share=sum(u.rejected for u in updates) / passed,
        clipped_share=sum(u.clipped for u in updates) / passed,
        mean_nll=sum(u.nll for u in updates) / passed,
        reference_kl=sum(u.kl for u in updates) / passed,
        entropy=sum(u.entropy for u in updates) / passed,
        stepped=any(u.stepped for u in updates),
        learning_rate=updates[-1].learning_rate,
        staleness=staleness_histogram(samples, version),
        logprob_check=check,
        seconds={**parts, "total": seconds},
    )
