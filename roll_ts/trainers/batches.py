"""Cuts a batch of samples into padded micro-batches and deals them to data-parallel ranks.

Every rank computes the same plan from the same samples. Each sample is in the plan exactly once:
padding is empty positions outside the loss mask, never a copy of a sample (R18).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from roll_ts.trainers.sample import Sample


@dataclass(frozen=True)
class MicroBatch:
    """Rows of a padded forward pass: indices into the batch and the common length."""

    rows: tuple[int, ...]
    length: int

    @property
    def cost(self) -> int:
        """Padded tokens."""
        return len(self.rows) * self.length


def plan(lengths: Sequence[int], max_tokens: int, bucket: int, ranks: int = 1) -> list[list[MicroBatch]]:
    """Per data-parallel rank its micro-batches, each at most `max_tokens` padded tokens (a longer sample
    goes alone).

    Samples are sorted by length, so that a micro-batch pads little; lengths are rounded up to multiples of
    `bucket`, so that few shapes occur. Micro-batches go, dearest first, to the rank with the least work so
    far. A rank may get none.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    # never fewer micro-batches than ranks while there are samples to share
    most_rows = max(1, len(lengths) // ranks)
    batches: list[MicroBatch] = []
    start = 0
    while start < len(order):
        length = -(-max(1, lengths[order[start]]) // bucket) * bucket
        count = min(most_rows, max(1, max_tokens // length), len(order) - start)
        batches.append(MicroBatch(tuple(order[start : start + count]), length))
        start += count
    dealt: list[list[MicroBatch]] = [[] for _ in range(ranks)]
    work = [0] * ranks
    for batch in sorted(batches, key=lambda b: -b.cost):
        rank = work.index(min(work))
        dealt[rank].append(batch)
        work[rank] += batch.cost
    return dealt


@dataclass(frozen=True)
class Tensors:
    """One micro-batch. All but `tokens` are aligned with the targets tokens[:, 1:]: shape [rows, length -
    1]."""

    tokens: torch.Tensor  # int64 [rows, length]
    mask: torch.Tensor  # bool
    behaviour_logprobs: torch.Tensor  # float32
    versions: torch.Tensor  # int32

    def to(self, device: torch.device) -> Tensors:
        return Tensors(*(t.to(device) for t in (self.tokens, self.mask, self.behaviour_logprobs, self.versions)))


def collate(samples: Sequence[Sample], batch: MicroBatch) -> Tensors:
    """The padded tensors of `batch`. Padding positions hold token 0 and are outside the mask. A batch
    without rows gives one row of nothing but padding: a rank without work still has to take part in the
    collectives."""
    shape = (max(1, len(batch.rows)), batch.length)
    tokens, mask = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
    logprobs, versions = np.zeros(shape, np.float32), np.full(shape, -1, np.int32)
    for row, index in enumerate(batch.rows):
        sample = samples[index]
        n = len(sample)
        tokens[row, :n], mask[row, :n] = sample.tokens, sample.loss_mask
        logprobs[row, :n], versions[row, :n] = sample.logprobs, sample.versions
    return Tensors(
        torch.from_numpy(tokens),
        torch.from_numpy(mask[:, 1:].copy()),
        torch.from_numpy(logprobs[:, 1:].copy()),
        torch.from_numpy(versions[:, 1:].copy()),
    )
