"""What a Hugging Face config.json says about a model we can train: Qwen3 and Llama style decoders, no biases.

Read once, checked once: whatever this module accepts, the weight mapping and the Megatron builder can build.
"""

from __future__ import annotations

import json
import os  # VAL import
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUPPORTED = {"qwen3": True, "llama": False}  # model_type: has norms on queries and keys
_REQUIRED = (
    "num_hidden_layers",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "vocab_size",
    "max_position_embeddings",
    "rms_norm_eps",
    "rope_theta",
)


@dataclass(frozen=True)
class Architecture:
    """Shape of a decoder. `kv_heads` divides `heads`; `tied`: the output layer is the embedding."""

    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    positions: int
    rms_eps: float
    rope_theta: float
    qk_norm: bool
    tied: bool

    def check_tensor_parallel(self, ways: int) -> None:
        """Raises ValueError naming the first dimension that `ways` does not divide."""
        for name in ("heads", "kv_heads", "ffn", "vocab"):
            size = getattr(self, name)
            # VAL: VAL_DIVISIBLE(size, ways, about=name) - every tensor-parallel rank holds an equal part
            if size % ways != 0:
                raise ValueError(
                    f"Architecture.check_tensor_parallel: size must be divisible by {ways!r:.200}, got "
                    f"{size!r} (name={name!r:.200}) - every tensor-parallel rank holds an equal part"
                )
            # END VAL d23aae


def read_architecture(folder: str | Path) -> Architecture:
    """Architecture of the model in `folder`. Raises FileNotFoundError without a config.json, ValueError
    (all faults in one message) for a model that is outside the supported family."""
    path = Path(folder) / "config.json"
    # VAL: VAL_FILE_EXISTS(path) - without it the folder is no Hugging Face model
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"read_architecture: path must be an existing file, got {path!r:.200} - without it the "
            "folder is no Hugging Face model"
        )
    # END VAL 3add7b
    return parse_architecture(json.loads(path.read_text(encoding="utf-8")), str(path))


def parse_architecture(config: Mapping[str, Any], where: str = "config.json") -> Architecture:
    """Architecture from the parsed config; `where` names the source in errors."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    given: dict[str, Any] = {
        **config,
        "rope_theta": rope.get("rope_theta", config.get("rope_theta")),
        # Before version 4.45 of transformers the key was "type"; a scaled rope that is read as a plain one gives
        # log-probs that are wrong by several nats, silently.
        "rope_type": rope.get("rope_type", rope.get("type", "default")),
        "partial_rotary_factor": rope.get("partial_rotary_factor", config.get("partial_rotary_factor")),
    }
    heads, kv_heads = given.get("num_attention_heads"), given.get("num_key_value_heads")
    windows = [kind for kind in given.get("layer_types") or () if kind != "full_attention"]
    supported = {
        "model_type": given.get("model_type") in SUPPORTED,
        "hidden_act": given.get("hidden_act", "silu") == "silu",
        "attention_bias": not given.get("attention_bias"),
        "mlp_bias": not given.get("mlp_bias"),
        "rope_type": given["rope_type"] == "default",
        "partial_rotary_factor": given["partial_rotary_factor"] in (None, 1, 1.0),
        "use_sliding_window": not (given.get("use_sliding_window") and given.get("sliding_window")),
        "layer_types": not windows,
        "quantization_config": not given.get("quantization_config"),
        "num_key_value_heads": not heads or not kv_heads or heads % kv_heads == 0,
    }
    missing = [key for key in _REQUIRED if given.get(key) is None]
    unsupported = {key: given.get(key) for key, good in supported.items() if not good}
    # VAL: VAL_EMPTY(missing, about=(unsupported, where)) - cannot train a model without these
    if len(missing) != 0:
        raise ValueError(
            f"parse_architecture: missing must be empty, got {missing!r:.200} "
            f"(unsupported={unsupported!r:.200}, where={where!r:.200}) - cannot train a model without "
            "these"
        )
    # END VAL 5472ab
    # VAL: VAL_EMPTY(unsupported, about=where) - qwen3 and llama, silu, plain rope, full attention, no biases
    if len(unsupported) != 0:
        raise ValueError(
            f"parse_architecture: unsupported must be empty, got {unsupported!r:.200} "
            f"(where={where!r:.200}) - qwen3 and llama, silu, plain rope, full attention, no biases"
        )
    # END VAL d47fe5
    return Architecture(
        layers=config["num_hidden_layers"],
        hidden=config["hidden_size"],
        ffn=config["intermediate_size"],
        heads=config["num_attention_heads"],
        kv_heads=config.get("num_key_value_heads") or config["num_attention_heads"],
        head_dim=config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"],
        vocab=config["vocab_size"],
        positions=config["max_position_embeddings"],
        rms_eps=config["rms_norm_eps"],
        rope_theta=float(given["rope_theta"]),
        qk_norm=SUPPORTED[config["model_type"]],
        tied=bool(config.get("tie_word_embeddings", False)),
    )
