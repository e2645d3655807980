import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from roll_ts.envs.tokenizer import CharTokenizer
from roll_ts.trainers.architecture import read_architecture
from roll_ts.trainers.mapping import to_megatron
from roll_ts.trainers.scratch import ScratchModel, make_model


def test_the_same_seed_makes_the_same_bytes_and_another_seed_other_weights(tmp_path: Path) -> None:
    a, b, c = (make_model(tmp_path / n, seed) for n, seed in (("a", 1), ("b", 1), ("c", 2)))
    for file in sorted(a.iterdir()):
        assert file.read_bytes() == (b / file.name).read_bytes()
    assert (a / "model.safetensors").read_bytes() != (c / "model.safetensors").read_bytes()


def test_the_model_is_about_a_million_parameters_with_a_vocabulary_of_its_tokenizer(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "m", 0)
    weights = load_file(folder / "model.safetensors")
    assert 0.7e6 < sum(w.numel() for w in weights.values()) < 1.3e6
    assert read_architecture(folder).vocab == len(CharTokenizer.load(folder)) == 64
    to_megatron(weights, read_architecture(folder))


@pytest.mark.parametrize("tied", [False, True])
def test_no_embedding_row_is_zero_and_no_pad_token_is_set(tmp_path: Path, tied: bool) -> None:
    folder = make_model(tmp_path / "m", 0, ScratchModel(tied=tied))
    weights = load_file(folder / "model.safetensors")
    assert weights["model.embed_tokens.weight"].norm(dim=1).min() > 0
    assert json.loads((folder / "config.json").read_text())["pad_token_id"] is None
    assert ("lm_head.weight" in weights) is not tied


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    with pytest.raises(FileExistsError, match="must not exist yet"):
        make_model(tmp_path / "m", 0)
    assert not list((tmp_path / "m").iterdir())


def test_sizes_that_do_not_fit_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"model\.heads must be divisible by 3, got 4"):
        make_model(tmp_path / "m", 0, ScratchModel(kv_heads=3))
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_transformers_loads_the_folder(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(make_model(tmp_path / "m", 0), dtype=torch.float32)
    assert model(torch.zeros(1, 3, dtype=torch.long)).logits.shape == (1, 3, 64)
