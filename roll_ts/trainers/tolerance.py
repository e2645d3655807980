"""How far two right computations of the same log-prob may lie apart, by the number format that they use.

A format with unit roundoff u makes a relative error of about u in each sub-layer's output; the errors of the layers
add like a random walk, so the last hidden state, and with it each logit, is off by about u * sqrt(layers). Measured
with tiny models of 2 and 8 layers against float32, the 99th percentile in bfloat16 is 0.031 and 0.051 nats;
8 u sqrt(layers + 1) gives 0.054 and 0.094. The largest of some thousand differences was 1.6 times the 99th percentile;
4 times leaves room for batches of millions. One optimizer step at the demo's rate moves the 99th percentile by 0.6 nats
and more, six times what is allowed, so weights that are one version old still fail.

In float32 the bound is not the format but the order of the sums in two engines: 1e-4, on the largest difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Dtype = Literal["float32", "bfloat16", "float16"]

_ROUNDOFF: dict[str, float] = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
_FLOAT32 = 1e-4
_LARGEST_TO_P99 = 4.0


@dataclass(frozen=True)
class Tolerance:
    """Bounds of the 99th percentile and of the largest |difference|, nats."""

    p99: float
    largest: float


def tolerance(dtypes: Iterable[Dtype], layers: int, given: float | None = None) -> Tolerance:
    """What the coarsest of the formats allows a model of so many layers; `given` replaces the derived bound."""
    coarsest = max(dtypes, key=_ROUNDOFF.__getitem__)
    if coarsest == "float32":
        bound = _FLOAT32 if given is None else given
        return Tolerance(bound, bound)
    bound = 8 * _ROUNDOFF[coarsest] * math.sqrt(layers + 1) if given is None else given
    return Tolerance(bound, _LARGEST_TO_P99 * bound)
