"""One digest for a set of named tensors, the same on the trainer that sends them and the engine that got them.

The digest covers names, shapes, dtypes and bytes, and not the order in which the tensors come or the device they
are on. Each tensor is hashed by itself (BLAKE2b, 128 bits); the sorted list of these hashes is hashed again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from roll_ts.weights.layout import as_bytes, dtype_name

if TYPE_CHECKING:
    import torch

_BYTES = 16


class Digester:
    """Collects tensors one by one; `hexdigest` may be read at any time."""

    def __init__(self) -> None:
        self._parts: dict[str, bytes] = {}

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, name: str, tensor: torch.Tensor) -> None:
        """Hash one tensor. `ValueError` if the name came before."""
        # VAL: VAL_KEY_ABSENT(name, mapping=self._parts) - a tensor comes once in one set of weights
        if name in self._parts:
            raise ValueError(
                f"Digester.add: name must not yet be a key of self._parts, got {name!r:.200} - a tensor "
                "comes once in one set of weights"
            )
        # END VAL 4a9ed5
        self._parts[name] = tensor_digest(name, tensor)

    def hexdigest(self) -> str:
        """Digest of all tensors so far, as 32 hex digits."""
        whole = hashlib.blake2b(digest_size=_BYTES)
        for name in sorted(self._parts):
            whole.update(self._parts[name])
        return whole.hexdigest()

    def passing(self, named: Iterable[tuple[str, torch.Tensor]]) -> Iterator[tuple[str, torch.Tensor]]:
        """Hand the pairs on unchanged, hashing each on its way."""
        for name, tensor in named:
            self.add(name, tensor)
            yield name, tensor


def tensor_digest(name: str, tensor: torch.Tensor) -> bytes:
    """16 bytes over name, dtype, shape and contents."""
    head = f"{name}\0{dtype_name(tensor.dtype)}\0{tuple(tensor.shape)}\0"
    part = hashlib.blake2b(head.encode(), digest_size=_BYTES)
    part.update(as_bytes(tensor.detach().cpu()).numpy().data)
    return part.digest()


def digest(named: Iterable[tuple[str, torch.Tensor]]) -> str:
    """Digest of a whole set of named tensors."""
    digester = Digester()
    for name, tensor in named:
        digester.add(name, tensor)
    return digester.hexdigest()
