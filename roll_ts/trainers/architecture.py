"""What a Hugging Face config.json says about a model we can train: Qwen3 and Llama style decoders, no biases.

Read once, checked once: whatever this module accepts, the weight mapping and the Megatron builder can build.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUPPORTED = {"qwen3": True, "llama": False}  # model_type: has norms on queries and keys


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
            if getattr(self, name) % ways:
                raise ValueError(f"tensor_parallel={ways} does not divide {name}={getattr(self, name)}")


def read_architecture(folder: str | Path) -> Architecture:
    """Architecture of the model in `folder`. Raises FileNotFoundError without a config.json, ValueError
    (all faults in one message) for a model that is outside the supported family."""
    path = Path(folder) / "config.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: not a Hugging Face model folder")
    return parse_architecture(json.loads(path.read_text(encoding="utf-8")), str(path))


def parse_architecture(config: Mapping[str, Any], where: str = "config.json") -> Architecture:
    """Architecture from the parsed config; `where` names the source in errors."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = rope.get("rope_theta", config.get("rope_theta"))
    heads = config.get("num_attention_heads")
    faults = [
        f"{key} is missing"
        for key in (
            "num_hidden_layers",
            "hidden_size",
            "intermediate_size",
            "num_attention_heads",
            "vocab_size",
            "max_position_embeddings",
            "rms_norm_eps",
        )
        if key not in config
    ]
    if config.get("model_type") not in SUPPORTED:
        faults.append(f"model_type is {config.get('model_type')!r}, supported: {', '.join(SUPPORTED)}")
    if config.get("hidden_act", "silu") != "silu":
        faults.append(f"hidden_act is {config['hidden_act']!r}, supported: silu")
    faults += [f"{key} is set, biases are not supported" for key in ("attention_bias", "mlp_bias") if config.get(key)]
    if rope.get("rope_type", "default") != "default":
        faults.append(f"rope_type is {rope['rope_type']!r}, supported: default")
    if theta is None:
        faults.append("rope_theta is missing")
    if faults:
        raise ValueError(f"{where}: cannot train this model: " + "; ".join(faults))
    assert heads is not None and theta is not None
    return Architecture(
        layers=config["num_hidden_layers"],
        hidden=config["hidden_size"],
        ffn=config["intermediate_size"],
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        head_dim=config.get("head_dim") or config["hidden_size"] // heads,
        vocab=config["vocab_size"],
        positions=config["max_position_embeddings"],
        rms_eps=config["rms_norm_eps"],
        rope_theta=float(theta),
        qk_norm=SUPPORTED[config["model_type"]],
        tied=bool(config.get("tie_word_embeddings", False)),
    )
