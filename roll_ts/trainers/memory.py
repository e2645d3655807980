"""Gives tensor memory back while the tensors stay in place, and takes it back bit for bit.

A tensor's storage is shrunk to zero bytes, so every view of it (parameters, buffers, optimizer state) stays valid as an
object and is usable again after `take_back`. Bits that must survive go one level down the hierarchy: from the GPU to
host memory, from host memory to a file without a name, which is gone with the process however that ends. What is
counted is storage bytes, each storage once.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import torch


@dataclass
class _Parked:
    storage: torch.UntypedStorage
    nbytes: int
    copy: torch.Tensor | IO[bytes] | None


@dataclass
class Parking:
    """Storages that were given back, in order. `folder`: on which disk host memory is spilled, the system's temporary
    folder by default; on a RAM disk nothing is gained."""

    folder: Path | None = None
    _parked: list[_Parked] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """Bytes given back and not yet taken back."""
        return sum(p.nbytes for p in self._parked)

    def give_back(self, tensors: Iterable[torch.Tensor], keep: bool) -> int:
        """Free the storages behind `tensors` and return their bytes. keep: the bits come back with `take_back`;
        otherwise they come back as zeros. Storages already given back count for nothing. Raises RuntimeError for a
        storage that cannot be resized (memory shared with numpy or read from a file), before anything of it is lost."""
        freed = 0
        for storage in _distinct(tensors):
            if not storage.resizable():
                raise RuntimeError(f"a storage of {storage.nbytes()} bytes is shared with numpy or a file: clone it")
            size = storage.nbytes()
            copy = self._put_away(storage) if keep else None
            storage.resize_(0)
            self._parked.append(_Parked(storage, size, copy))
            freed += size
        return freed

    def take_back(self) -> int:
        """Restore every storage and return the bytes taken. Raises OSError if a spilled file is cut short."""
        taken = 0
        while self._parked:
            parked = self._parked.pop()
            parked.storage.resize_(parked.nbytes)
            if parked.copy is None:
                _as_tensor(parked.storage).zero_()
            elif isinstance(parked.copy, torch.Tensor):
                _as_tensor(parked.storage).copy_(parked.copy)
            else:
                with parked.copy as file:
                    file.seek(0)
                    if file.readinto(_as_bytes(parked.storage)) != parked.nbytes:  # type: ignore[attr-defined]
                        raise OSError(f"a spilled file gave back fewer than {parked.nbytes} bytes")
            taken += parked.nbytes
        return taken

    def close(self) -> None:
        """Forget what was not taken back."""
        for parked in self._parked:
            if parked.copy is not None and not isinstance(parked.copy, torch.Tensor):
                parked.copy.close()
        self._parked.clear()

    def _put_away(self, storage: torch.UntypedStorage) -> torch.Tensor | IO[bytes]:
        if storage.device.type != "cpu":
            return _as_tensor(storage).to("cpu", copy=True)
        file = tempfile.TemporaryFile(prefix="roll-ts-parked-", dir=self.folder)  # noqa: SIM115  lives until taken back
        file.write(_as_bytes(storage))
        file.flush()
        return file


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


def _as_tensor(storage: torch.UntypedStorage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _as_bytes(storage: torch.UntypedStorage) -> memoryview:
    # not through numpy: a storage that numpy has seen can no longer be resized
    return memoryview((ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())).cast("B")
