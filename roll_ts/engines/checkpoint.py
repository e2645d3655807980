"""What the checkpoint folder says about a model's named tensors: which there are, of what shape, with what values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from roll_ts.engines.protocol import NamedTensors

Shapes = Mapping[str, tuple[int, ...]]


def checkpoint_shapes(folder: str) -> dict[str, tuple[int, ...]]:
    """Name → shape of every tensor in the folder's safetensors files; reads headers only."""
    from safetensors import safe_open

    shapes: dict[str, tuple[int, ...]] = {}
    for path in _files(folder):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - not a mapping
                shapes[name] = tuple(file.get_slice(name).get_shape())
    return shapes


def checkpoint_tensors(folder: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Every named tensor in the folder's safetensors files, one at a time."""
    from safetensors import safe_open

    for path in _files(folder):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - not a mapping
                yield name, file.get_tensor(name)


def tied_names(folder: str) -> frozenset[str]:
    """Names a set of weights may leave out, because the model takes another tensor for them."""
    config = json.loads((Path(folder) / "config.json").read_text())
    return frozenset({"lm_head.weight"}) if config.get("tie_word_embeddings") else frozenset()


def checked(named: NamedTensors, shapes: Shapes, optional: frozenset[str]) -> Iterator[tuple[str, torch.Tensor]]:
    """Hand the pairs on, and raise `ValueError` at the first unknown name or wrong shape, or, at the end, if any
    name is missing that is not `optional`."""
    missing = set(shapes) - optional
    for name, tensor in named:
        if name not in shapes and name not in optional:
            raise ValueError(f"weights: {name!r} is not a tensor of this model's checkpoint")
        if name in shapes and tuple(tensor.shape) != shapes[name]:
            raise ValueError(f"weights: {name!r} has shape {tuple(tensor.shape)}, the model needs {shapes[name]}")
        missing.discard(name)
        yield name, tensor
    if missing:
        some = ", ".join(sorted(missing)[:5])
        raise ValueError(f"weights: {len(missing)} of {len(shapes)} tensors are missing: {some}")


def _files(folder: str) -> list[Path]:
    return sorted(Path(folder).glob("*.safetensors"))
