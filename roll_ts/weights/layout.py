"""Tensors as flat bytes and back, for every dtype, numpy-known or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's contents as a flat uint8 tensor; a view when the tensor is contiguous."""
    import torch

    return tensor.contiguous().reshape(-1).view(torch.uint8)


def from_bytes(flat: torch.Tensor, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
    """A view of a flat uint8 tensor as `shape` elements of `dtype` (as given by `dtype_name`)."""
    import torch

    kind = getattr(torch, dtype)
    if not flat.numel():
        return torch.empty(shape, dtype=kind, device=flat.device)
    return flat.view(kind).reshape(shape)


def dtype_name(dtype: torch.dtype) -> str:
    """`float32` for `torch.float32`."""
    return str(dtype).removeprefix("torch.")
