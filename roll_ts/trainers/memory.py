"""Gives tensor memory back while the tensors stay in place, and takes it back bit for bit.

A tensor's storage is shrunk to zero bytes, so every view of it (parameters, buffers, optimizer state)
stays valid as an object and is usable again after `take_back`. Bits that must survive go one level down
the hierarchy: from the GPU to host memory, from host memory to a private file. What is counted is storage
bytes, each storage once.
"""

from __future__ import annotations

import ctypes
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import torch


@dataclass
class _Parked:
    storage: torch.UntypedStorage
    nbytes: int
    copy: torch.Tensor | Path | None


@dataclass
class Parking:
    """Storages that were given back, in order. `folder`: where host memory is spilled; a temporary one by
    default."""

    folder: Path | None = None
    _parked: list[_Parked] = field(default_factory=list)
    _owned: Path | None = None
    _files: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes given back and not yet taken back."""
        return sum(p.nbytes for p in self._parked)

    def give_back(self, tensors: Iterable[torch.Tensor], keep: bool) -> int:
        """Free the storages behind `tensors` and return their bytes. keep: the bits come back with
        `take_back`; otherwise they come back as zeros. Storages already given back count for nothing."""
        freed = 0
        for storage in _distinct(tensors):
            size = storage.nbytes()
            copy = self._put_away(storage) if keep else None
            storage.resize_(0)
            self._parked.append(_Parked(storage, size, copy))
            freed += size
        return freed

    def take_back(self) -> int:
        """Restore every storage and return the bytes taken."""
        taken = 0
        while self._parked:
            parked = self._parked.pop()
            parked.storage.resize_(parked.nbytes)
            whole = _as_bytes(parked.storage)
            if parked.copy is None:
                whole.zero_()
            elif isinstance(parked.copy, Path):
                whole.copy_(torch.from_file(str(parked.copy), size=parked.nbytes, dtype=torch.uint8))
                parked.copy.unlink()
            else:
                whole.copy_(parked.copy)
            taken += parked.nbytes
        return taken

    def close(self) -> None:
        """Remove the files. What was not taken back is lost."""
        self._parked.clear()
        if self._owned is not None:
            shutil.rmtree(self._owned)
            self._owned = None

    def _put_away(self, storage: torch.UntypedStorage) -> torch.Tensor | Path:
        whole = _as_bytes(storage)
        if storage.device.type != "cpu":
            return whole.to("cpu", copy=True)
        if self._owned is None:
            self._owned = Path(tempfile.mkdtemp(prefix="roll-ts-parked-", dir=self.folder))
        path = self._owned / f"{self._files}.bin"
        self._files += 1
        # through a mapped file, not numpy: a storage that numpy has seen can no longer be resized
        torch.from_file(str(path), shared=True, size=storage.nbytes(), dtype=torch.uint8).copy_(whole)
        return path


def return_to_system() -> None:
    """Hand freed memory from the allocators to the operating system or the GPU."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
    if trim is not None:
        trim(0)


def _distinct(tensors: Iterable[torch.Tensor]) -> list[torch.UntypedStorage]:
    found: dict[int, torch.UntypedStorage] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        if storage.nbytes():
            found.setdefault(storage.data_ptr(), storage)
    return list(found.values())


def _as_bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
