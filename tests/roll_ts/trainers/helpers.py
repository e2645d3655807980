"""Small models and samples for trainer tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from roll_ts.trainers.sample import Sample
from roll_ts.trainers.scratch import ScratchModel

TINY = ScratchModel(hidden=32, layers=2, ffn=64, positions=256, init_std=0.1)


def make_samples(seed: int, count: int = 12, group_size: int = 4, vocab: int = 64) -> list[Sample]:
    """Random token streams of several turns and lengths; behaviour log-probs are uniform, version 0."""
    rng = np.random.default_rng(seed)
    samples = []
    for i in range(count):
        turns = int(rng.integers(1, 4))
        mask = np.concatenate(
            [[False] * int(rng.integers(2, 9)) + [True] * int(rng.integers(1, 25)) for _ in range(turns)]
        )
        samples.append(
            Sample(
                rng.integers(0, vocab, mask.size),
                mask,
                np.where(mask, -np.log(vocab), 0),
                np.where(mask, 0, -1),
                group=f"g{i // group_size}",
                trajectory=f"t{i}",
                reward=float(rng.normal()),
                turns=turns,
            )
        )
    return samples


def with_logprobs(samples: Sequence[Sample], logprobs: Sequence[NDArray[np.float32]], version: int) -> list[Sample]:
    """The same samples as if sampled with these log-probs at `version`."""
    return [
        replace(s, logprobs=np.where(s.loss_mask, lp, 0), versions=np.where(s.loss_mask, version, -1))
        for s, lp in zip(samples, logprobs, strict=True)
    ]
