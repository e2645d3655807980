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
            size, resizable = storage.nbytes(), storage.resizable()
            # AST: AST_PRECONDITION(resizable, error=RuntimeError, about=size) - shared with numpy or a file: clone it
            if not resizable:
                raise RuntimeError(
                    f"Pre-condition: resizable, got {resizable!r:.200} (size={size!r:.200}) - shared with "
                    "numpy or a file: clone it"
                )
            # END AST df6130
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
                    read = file.readinto(_as_bytes(parked.storage))  # type: ignore[union-attr]
                    # VAL: VAL_EQUAL(read, parked.nbytes, error=OSError) - bytes, the spilled file was cut short
                    if read != parked.nbytes:
                        raise OSError(
                            f"Parking.take_back: read must equal parked.nbytes ({parked.nbytes!r:.200}), got "
                            f"{read!r:.200} - bytes, the spilled file was cut short"
                        )
                    # END VAL 9a0bab
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
