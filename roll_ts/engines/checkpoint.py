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
    known = shapes.keys() | optional
    for name, tensor in named:
        # VAL: VAL_KEY_IN(name, mapping=known) - the model's checkpoint has no other tensor
        if name not in known:
            raise ValueError(
                f"checked: name must be a key of known, got {name!r:.200} - the model's checkpoint has no other tensor"
            )
        # END VAL 2ef0f5
        if name in shapes:
            shape = tuple(tensor.shape)
            # VAL: VAL_EQUAL(shape, shapes[name], about=name)
            if shape != shapes[name]:
                raise ValueError(
                    f"checked: shape must equal shapes[name] ({shapes[name]!r:.200}), got {shape!r:.200} "
                    f"(name={name!r:.200})"
                )
            # END VAL 5a5ef8
        missing.discard(name)
        yield name, tensor
    absent = sorted(missing)
    # VAL: VAL_EMPTY(absent, about=(len(absent), len(shapes))) - a set of weights is complete
    if len(absent) != 0:
        raise ValueError(
            f"checked: absent must be empty, got {absent!r:.200} (len(absent)={len(absent)!r:.200}, "
            f"len(shapes)={len(shapes)!r:.200}) - a set of weights is complete"
        )
    # END VAL a8d8c9


def _files(folder: str) -> list[Path]:
    return sorted(Path(folder).glob("*.safetensors"))
