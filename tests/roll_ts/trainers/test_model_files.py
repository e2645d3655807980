"""A model folder is refused for what is missing, cut off or of another shape, before anything starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from roll_ts.trainers.architecture import read_architecture
from roll_ts.trainers.model_files import expected_shapes, model_problems
from roll_ts.trainers.scratch import make_model
from tests.roll_ts.trainers.helpers import TINY

pytestmark = pytest.mark.engines


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make_model(tmp_path / "model", 0, TINY)


def problems(model: Path) -> str:
    return "\n".join(f"{what}: {wrong}" for what, wrong in model_problems(model, read_architecture(model)))


def test_a_whole_model_has_no_problem_and_its_shapes_are_the_expected_ones(model: Path) -> None:
    assert problems(model) == ""
    tensors = load_file(model / "model.safetensors")
    assert {name: tuple(t.shape) for name, t in tensors.items()} == expected_shapes(read_architecture(model))


def rewrite(model: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    tensors = load_file(model / "model.safetensors")
    change(tensors)
    save_file(tensors, model / "model.safetensors")


def test_a_folder_without_weights_or_tokenizer_says_both(model: Path) -> None:
    (model / "model.safetensors").unlink()
    (model / "tokenizer.json").unlink()
    assert "no .safetensors file" in problems(model)
    assert "tokenizer" in problems(model)


@pytest.mark.parametrize("kept", [0, 4, 8, 100, -1])
def test_a_file_that_was_cut_off_is_named_with_its_size(model: Path, kept: int) -> None:
    file = model / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    assert "model.safetensors: is cut off" in problems(model)


def test_a_file_of_another_kind_is_named(model: Path) -> None:
    (model / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0" + b"no JSON at all!!" + bytes(100))
    assert "is no safetensors file" in problems(model)


def test_a_missing_and_a_strange_tensor_are_named(model: Path) -> None:
    def change(tensors: dict[str, torch.Tensor]) -> None:
        tensors["model.layers.7.extra"] = tensors.pop("model.layers.1.mlp.up_proj.weight")

    rewrite(model, change)
    assert "lack 1 of" in problems(model) and "model.layers.1.mlp.up_proj.weight" in problems(model)
    assert "model.layers.7.extra" in problems(model)


def test_weights_of_another_configuration_are_named_with_both_shapes(model: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"intermediate_size": 96}))
    assert "[64, 32], config.json says [96, 32]" in problems(model)


def test_a_shard_that_the_index_names_and_nobody_brought_is_named(model: Path) -> None:
    index = {"weight_map": {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "1 files that are not there: model-00002-of-00002.safetensors" in problems(model)
