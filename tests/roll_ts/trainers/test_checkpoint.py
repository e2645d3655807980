from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from roll_ts.trainers import checkpoint
from roll_ts.trainers.checkpoint import TrainerState

STATE = TrainerState(version=3, steps=3, world_size=1, tensor_parallel=1, distributed_optimizer=False, dtype="float32")


def test_a_checkpoint_appears_whole_with_the_files_of_its_model(tmp_path: Path) -> None:
    source, target = tmp_path / "model", tmp_path / "out" / "step-3"
    source.mkdir()
    (source / "config.json").write_text("{}")
    (source / "tokenizer.json").write_text("[]")
    (source / "model.safetensors").write_bytes(b"old")
    checkpoint.start(target)
    checkpoint.write_optimizer(target, 0, {"x": torch.ones(2)})
    checkpoint.write_model(target, source, {"w": torch.ones(3)}, STATE)
    assert not target.exists()
    checkpoint.finish(target)
    assert {p.name for p in target.iterdir()} == {
        "config.json",
        "tokenizer.json",
        "model.safetensors",
        "trainer.json",
        "optimizer-0.pt",
    }
    assert [p.name for p in target.parent.iterdir()] == ["step-3"]
    assert checkpoint.read_state(target) == STATE
    assert torch.equal(load_file(target / "model.safetensors")["w"], torch.ones(3))
    assert checkpoint.read_optimizer(target, 0, torch.device("cpu"))["x"].tolist() == [1, 1]


def test_an_existing_checkpoint_is_never_overwritten_but_an_abandoned_part_is(tmp_path: Path) -> None:
    target = tmp_path / "c"
    checkpoint.start(target)
    (checkpoint.partial_folder(target) / "junk").write_text("x")
    checkpoint.start(target)
    assert not list(checkpoint.partial_folder(target).iterdir())
    checkpoint.finish(target)
    with pytest.raises(FileExistsError, match="must not exist yet"):
        checkpoint.start(target)


def test_a_group_of_another_shape_is_refused_with_every_difference(tmp_path: Path) -> None:
    checkpoint.require_same_shape(tmp_path, STATE, replace(STATE, version=9))
    other = replace(STATE, world_size=2, dtype="bfloat16")
    with pytest.raises(ValueError, match=r"'world_size is 1, here 2', .dtype is 'float32', here 'bfloat16'"):
        checkpoint.require_same_shape(tmp_path, STATE, other)


def test_a_model_folder_is_not_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is not a trainer checkpoint"):
        checkpoint.read_state(tmp_path)
