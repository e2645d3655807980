"""Do rollout and trainer give the same token the same probability under the same weights?

Two engines compute log-probabilities of the same tokens with what should be the same weights. A difference
above rounding means that the engine held other weights than it claimed, or that tokens and log-probs
slipped against each other. Only tokens sampled with the trainer's present version are comparable.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roll_ts.trainers.protocol import LogprobCheck, LogprobMismatch
from roll_ts.trainers.sample import Sample
from roll_ts.trainers.tolerance import Tolerance


def compare_logprobs(
    samples: Sequence[Sample], trainer_logprobs: Sequence[NDArray[np.float32]], version: int, tolerance: Tolerance
) -> LogprobCheck:
    """Compare on generated tokens whose version is `version`. trainer_logprobs: per sample [n], aligned
    with its tokens.

    A NaN on either side counts as an infinite difference. Raises ValueError if the shapes do not match.
    """
    diffs: list[NDArray[np.float64]] = []
    worst, largest, trained = "", -1.0, 0
    for sample, ours in zip(samples, trainer_logprobs, strict=True):
        # VAL: VAL_SAME_SHAPE(ours, sample.logprobs, about=sample.trajectory) - one trainer log-prob for each token
        if ours.shape != sample.logprobs.shape:
            raise ValueError(
                "compare_logprobs: ours must have the shape of sample.logprobs, got "
                f"{tuple(ours.shape)!r:.200} and {tuple(sample.logprobs.shape)!r:.200} "
                f"(sample.trajectory={sample.trajectory!r:.200}) - one trainer log-prob for each token"
            )
        # END VAL 2bc039
        trained += sample.generated
        at = np.flatnonzero(sample.loss_mask & (sample.versions == version))
        diff = np.abs(sample.logprobs[at].astype(np.float64) - ours[at].astype(np.float64))
        diff = np.where(np.isnan(diff), np.inf, diff)
        diffs.append(diff)
        if diff.size and diff.max() > largest:
            largest, top = float(diff.max()), int(at[diff.argmax()])
            worst = f"{sample.trajectory} token {top}"
    every = np.concatenate(diffs) if diffs else np.zeros(0)
    n = int(every.size)
    return LogprobCheck(
        n=n,
        share=n / trained if trained else 0.0,
        max=max(largest, 0.0),
        p99=float(np.percentile(every, 99, method="higher")) if n else 0.0,
        tolerance=tolerance,
        worst=worst,
    )


def check_logprobs(
    samples: Sequence[Sample], trainer_logprobs: Sequence[NDArray[np.float32]], version: int, tolerance: Tolerance
) -> LogprobCheck:
    """`compare_logprobs`, raising LogprobMismatch when the tolerance is exceeded."""
    check = compare_logprobs(samples, trainer_logprobs, version, tolerance)
    largest, p99 = check.max, check.p99
    # VAL: VAL_FLOAT_RANGE(largest, max=tolerance.largest, error=LogprobMismatch, about=(check.worst, check.n,
    #      check.share)), VAL_FLOAT_RANGE(p99, max=tolerance.p99, error=LogprobMismatch, about=(check.worst, check.n,
    #      check.share)) - the engine's weights are not the version it claims, or tokens and log-probs are misaligned
    if not largest <= tolerance.largest:
        raise LogprobMismatch(
            f"check_logprobs: largest must lie in (-inf, {tolerance.largest!r:.200}], got {largest!r} "
            f"(check.worst={check.worst!r:.200}, check.n={check.n!r:.200}, "
            f"check.share={check.share!r:.200}) - the engine's weights are not the version it claims, "
            "or tokens and log-probs are misaligned"
        )
    if not p99 <= tolerance.p99:
        raise LogprobMismatch(
            f"check_logprobs: p99 must lie in (-inf, {tolerance.p99!r:.200}], got {p99!r} "
            f"(check.worst={check.worst!r:.200}, check.n={check.n!r:.200}, "
            f"check.share={check.share!r:.200}) - the engine's weights are not the version it claims, "
            "or tokens and log-probs are misaligned"
        )
    # END VAL e48293
    return check
