"""Named tensors as numpy arrays and back, for an object store that shares numpy buffers without a copy.

The trainer puts the packed dict once; each engine on that host gets views into the same shared memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roll_ts.weights.layout import as_bytes, dtype_name, from_bytes

if TYPE_CHECKING:
    import numpy as np
    import torch


@dataclass(frozen=True, slots=True)
class PackedTensor:
    """A tensor's bytes as a flat uint8 array, since numpy knows no bfloat16."""

    dtype: str
    shape: tuple[int, ...]
    data: np.ndarray


def pack(named: Iterable[tuple[str, torch.Tensor]]) -> dict[str, PackedTensor]:
    """Views, not copies, of tensors in host memory; others are copied there. `ValueError` if a name repeats."""
    packed: dict[str, PackedTensor] = {}
    for name, tensor in named:
        # VAL: VAL_KEY_ABSENT(name, mapping=packed) - a tensor comes once in one set of weights
        if name in packed:
            raise ValueError(
                f"pack: name must not yet be a key of packed, got {name!r:.200} - a tensor comes once in "
                "one set of weights"
            )
        # END VAL 949d43
        host = tensor.detach().cpu()
        packed[name] = PackedTensor(dtype_name(host.dtype), tuple(host.shape), as_bytes(host).numpy())
    return packed


def unpack(packed: Mapping[str, PackedTensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """The named tensors, as views of the arrays: read only, if the store's buffers are."""
    import torch

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        named = {name: torch.from_numpy(tensor.data) for name, tensor in packed.items()}
    for name, flat in named.items():
        yield name, from_bytes(flat, packed[name].dtype, packed[name].shape)
