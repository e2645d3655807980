"""Named tensors ↔ flat byte buckets with a header that describes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roll_ts.weights.layout import as_bytes, dtype_name, from_bytes

if TYPE_CHECKING:
    import torch

# Offsets are multiples of this, so that every dtype can be viewed in place.
ALIGN = 64


@dataclass(frozen=True, slots=True)
class Entry:
    """Where one tensor lies in a bucket; `offset` and `nbytes` in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """Tensors that travel together, and where each lies."""

    entries: tuple[Entry, ...]
    tensors: tuple[torch.Tensor, ...]

    @property
    def nbytes(self) -> int:
        """Size of the flat buffer."""
        return _end(self.entries)

    def header(self) -> bytes:
        """Description from which `parse_header` makes the entries again."""
        return json.dumps([[e.name, e.dtype, e.shape, e.offset, e.nbytes] for e in self.entries]).encode()

    def flat(self, device: torch.device) -> torch.Tensor:
        """All bytes as one uint8 tensor on `device`; a view, if a single tensor lies there already."""
        import torch

        if len(self.tensors) == 1:
            return as_bytes(self.tensors[0].detach()).to(device)
        buffer = torch.empty(self.nbytes, dtype=torch.uint8, device=device)
        for entry, tensor in zip(self.entries, self.tensors, strict=True):
            buffer[entry.offset : entry.offset + entry.nbytes].copy_(as_bytes(tensor.detach()))
        return buffer


def split(named: Iterable[tuple[str, torch.Tensor]], bucket_bytes: int) -> Iterator[Bucket]:
    """Fill buckets in the order given. A bucket exceeds `bucket_bytes` only if it holds a single tensor."""
    entries: list[Entry] = []
    tensors: list[torch.Tensor] = []
    for name, tensor in named:
        start = -(-_end(entries) // ALIGN) * ALIGN
        if entries and start + tensor.nbytes > bucket_bytes:
            yield Bucket(tuple(entries), tuple(tensors))
            entries, tensors, start = [], [], 0
        entries.append(Entry(name, dtype_name(tensor.dtype), tuple(tensor.shape), start, tensor.nbytes))
        tensors.append(tensor)
    if entries:
        yield Bucket(tuple(entries), tuple(tensors))


def parse_header(header: bytes) -> tuple[tuple[Entry, ...], int]:
    """The entries a header describes, and the size of their buffer in bytes."""
    entries = tuple(Entry(n, d, tuple(shape), offset, size) for n, d, shape, offset, size in json.loads(header))
    return entries, _end(entries)


def views(entries: Iterable[Entry], flat: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """The named tensors as views into a flat uint8 buffer."""
    for entry in entries:
        part = flat[entry.offset : entry.offset + entry.nbytes]
        yield entry.name, from_bytes(part, entry.dtype, entry.shape)


def _end(entries: tuple[Entry, ...] | list[Entry]) -> int:
    return entries[-1].offset + entries[-1].nbytes if entries else 0
