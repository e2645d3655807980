"""A trainer checkpoint on disk: a Hugging Face model folder that also holds what the trainer needs to go on.

Layout: the model folder's own files (config, tokenizer, model.safetensors) so that any engine can serve
it, plus `trainer.json` (version, step, how many ranks) and `optimizer-<rank>.pt`. The folder appears whole
or not at all: it is written beside its final name and renamed.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

STATE_FILE = "trainer.json"
_WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class TrainerState:
    """What must match, and what is resumed. steps: optimizer steps taken."""

    version: int
    steps: int
    world_size: int
    tensor_parallel: int
    distributed_optimizer: bool
    dtype: str


def partial_folder(folder: Path) -> Path:
    """Where the checkpoint grows until it is complete."""
    return folder.with_name(f".{folder.name}.part")


def start(folder: Path) -> None:
    """Make an empty partial folder. Raises FileExistsError if the checkpoint exists; an abandoned part is
    cleared."""
    # VAL: VAL_PATH_ABSENT(folder) - choose another name for the checkpoint, or remove it
    if os.path.lexists(folder):
        raise FileExistsError(
            f"start: folder must not exist yet, got {folder!r:.200} - choose another name for the "
            "checkpoint, or remove it"
        )
    # END VAL 73ed86
    part = partial_folder(folder)
    if part.exists():
        shutil.rmtree(part)
    part.mkdir(parents=True)


def write_model(folder: Path, source: Path, weights: dict[str, torch.Tensor], state: TrainerState) -> None:
    """Write weights and state into the partial folder, and copy the small files (config, tokenizer) of
    `source`."""
    part = partial_folder(folder)
    for file in sorted(source.iterdir()):
        carried = file.suffix in {".json", ".jinja", ".txt", ".model"} and file.name != STATE_FILE
        if file.is_file() and carried and not file.name.endswith(".index.json"):
            shutil.copyfile(file, part / file.name)
    save_file(weights, part / _WEIGHTS, metadata={"format": "pt"})
    (part / STATE_FILE).write_text(json.dumps(asdict(state), indent=2) + "\n", encoding="utf-8")


def write_optimizer(folder: Path, rank: int, state: dict[str, Any]) -> None:
    """Write one rank's optimizer state into the partial folder."""
    torch.save(state, partial_folder(folder) / f"optimizer-{rank}.pt")


def finish(folder: Path) -> None:
    """The checkpoint appears."""
    os.rename(partial_folder(folder), folder)


def read_state(folder: Path) -> TrainerState:
    """Raises FileNotFoundError if `folder` is not a trainer checkpoint."""
    path = folder / STATE_FILE
    # VAL: VAL_FILE_EXISTS(path) - without it the folder is not a trainer checkpoint
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"read_state: path must be an existing file, got {path!r:.200} - without it the folder is "
            "not a trainer checkpoint"
        )
    # END VAL 2ef326
    return TrainerState(**json.loads(path.read_text(encoding="utf-8")))


def require_same_shape(folder: Path, saved: TrainerState, own: TrainerState) -> None:
    """Raises ValueError naming every field in which the groups differ: optimizer state is cut by rank."""
    fields = ("world_size", "tensor_parallel", "distributed_optimizer", "dtype")
    pairs = [(name, getattr(saved, name), getattr(own, name)) for name in fields]
    differs = [f"{name} is {theirs!r}, here {ours!r}" for name, theirs, ours in pairs if theirs != ours]
    # VAL: VAL_EMPTY(differs, about=folder) - the checkpoint does not fit this trainer
    if len(differs) != 0:
        raise ValueError(
            f"require_same_shape: differs must be empty, got {differs!r:.200} (folder={folder!r:.200}) "
            "- the checkpoint does not fit this trainer"
        )
    # END VAL a8714e


def read_optimizer(folder: Path, rank: int, device: torch.device) -> dict[str, Any]:
    """One rank's optimizer state."""
    state: dict[str, Any] = torch.load(folder / f"optimizer-{rank}.pt", map_location=device, weights_only=True)
    return state
