from pathlib import Path

import pytest

from roll_ts.trainers.architecture import parse_architecture, read_architecture

QWEN3 = {
    "model_type": "qwen3",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 64,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
}


def test_a_qwen3_config_is_read() -> None:
    arch = parse_architecture(QWEN3)
    assert (arch.layers, arch.heads, arch.kv_heads, arch.head_dim) == (2, 4, 2, 32)
    assert (arch.qk_norm, arch.tied, arch.rope_theta) == (True, False, 5000.0)


def test_the_older_rope_key_and_missing_head_sizes_are_understood() -> None:
    llama = {k: v for k, v in QWEN3.items() if k not in ("rope_parameters", "head_dim", "num_key_value_heads")}
    arch = parse_architecture({**llama, "model_type": "llama", "rope_theta": 1e4, "tie_word_embeddings": True})
    assert (arch.head_dim, arch.kv_heads, arch.qk_norm, arch.tied, arch.rope_theta) == (16, 4, False, True, 1e4)


def test_all_that_is_unsupported_is_said_at_once() -> None:
    strange = {**QWEN3, "model_type": "gpt2", "hidden_act": "gelu", "attention_bias": True}
    strange["rope_parameters"] = {"rope_type": "yarn"}
    del strange["vocab_size"]
    with pytest.raises(ValueError) as caught:
        parse_architecture(strange, "here/config.json")
    for part in ("here/config.json", "gpt2", "gelu", "attention_bias", "yarn", "got ['vocab_size', 'rope_theta']"):
        assert part in str(caught.value)
    with pytest.raises(ValueError, match=r"got \{'mlp_bias': True\} .*no biases"):
        parse_architecture({**QWEN3, "mlp_bias": True})


def test_a_folder_without_a_config_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"existing file, got .*config\.json"):
        read_architecture(tmp_path)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"use_sliding_window": True, "sliding_window": 128}, "use_sliding_window"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types"),
        ({"rope_parameters": None, "rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_type"),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0}}, "rope_type"),
        ({"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}}, "partial_rotary_factor"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config"),
        ({"num_key_value_heads": 3}, "num_key_value_heads"),
        ({"model_type": "qwen2"}, "model_type"),
    ],
)
def test_what_would_be_computed_otherwise_is_refused_and_named(change: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        parse_architecture({**QWEN3, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"use_sliding_window": False, "sliding_window": 4096},
        {"layer_types": ["full_attention", "full_attention"]},
        {"rope_parameters": None, "rope_theta": 1e4, "rope_scaling": None},
    ],
)
def test_settings_without_effect_are_no_obstacle(change: dict[str, object]) -> None:
    assert parse_architecture({**QWEN3, **change}).layers == 2
