"""Makes a tiny Qwen3-architecture policy from nothing: a Hugging Face model folder with its character
tokenizer.

Same arguments, same bytes. Every row of the embedding is drawn, the end token's too: transformers zeroes
the row of `pad_token_id`, and a sampled token with a zero embedding makes the RMSNorm gradient explode, so
no pad id is set.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from roll_ts.envs.tokenizer import DEFAULT_ALPHABET, CharTokenizer
from roll_ts.trainers.architecture import parse_architecture
from roll_ts.trainers.mapping import links


@dataclass(frozen=True)
class ScratchModel:
    """Sizes of the model. The default has about 0.8 million parameters. `init_std`: of every weight
    matrix."""

    hidden: int = 128
    layers: int = 4
    ffn: int = 384
    heads: int = 4
    kv_heads: int = 2
    positions: int = 1024
    tied: bool = False
    init_std: float = 0.02
    alphabet: str = DEFAULT_ALPHABET


def make_model(folder: str | Path, seed: int, model: ScratchModel | None = None) -> Path:
    """Write config.json, generation_config.json, model.safetensors and the tokenizer. Returns the folder.

    Atomic. Raises FileExistsError if the folder exists, ValueError for sizes that do not fit together.
    """
    target, model = Path(folder), model or ScratchModel()
    # VAL: VAL_PATH_ABSENT(target) - remove it or choose another folder
    if os.path.lexists(target):
        raise FileExistsError(
            f"make_model: target must not exist yet, got {target!r:.200} - remove it or choose another folder"
        )
    # END VAL ed190d
    # VAL: VAL_DIVISIBLE(model.hidden, 2 * model.heads) - each head has an even width
    if model.hidden % (2 * model.heads) != 0:
        raise ValueError(
            f"make_model: model.hidden must be divisible by {2 * model.heads!r:.200}, got "
            f"{model.hidden!r} - each head has an even width"
        )
    # END VAL 75e98b
    # VAL: VAL_DIVISIBLE(model.heads, model.kv_heads) - kv_heads divides heads
    if model.heads % model.kv_heads != 0:
        raise ValueError(
            f"make_model: model.heads must be divisible by {model.kv_heads!r:.200}, got "
            f"{model.heads!r} - kv_heads divides heads"
        )
    # END VAL 83d0dc
    tokenizer = CharTokenizer(model.alphabet)
    config = _config(model, len(tokenizer), tokenizer.eos_id)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        (part / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        generation = {"eos_token_id": tokenizer.eos_id, "do_sample": True, "temperature": 1.0}
        (part / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n", encoding="utf-8")
        tokenizer.save(part)
        save_file(_weights(model, config, seed), part / "model.safetensors", metadata={"format": "pt"})
        part.chmod(0o755)
        os.rename(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def _config(model: ScratchModel, vocab: int, eos: int) -> dict[str, Any]:
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": vocab,
        "hidden_size": model.hidden,
        "intermediate_size": model.ffn,
        "num_hidden_layers": model.layers,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.kv_heads,
        "head_dim": model.hidden // model.heads,
        "max_position_embeddings": model.positions,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": model.tied,
        "initializer_range": model.init_std,
        "bos_token_id": None,
        "eos_token_id": eos,
        "pad_token_id": None,
        "dtype": "float32",
        "use_cache": True,
    }


def _weights(model: ScratchModel, config: dict[str, Any], seed: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    head = model.hidden // model.heads
    shapes = {
        "embed_tokens": (config["vocab_size"], model.hidden),
        "lm_head": (config["vocab_size"], model.hidden),
        "q_proj": (model.heads * head, model.hidden),
        "k_proj": (model.kv_heads * head, model.hidden),
        "v_proj": (model.kv_heads * head, model.hidden),
        "o_proj": (model.hidden, model.heads * head),
        "gate_proj": (model.ffn, model.hidden),
        "up_proj": (model.ffn, model.hidden),
        "down_proj": (model.hidden, model.ffn),
    }
    weights: dict[str, torch.Tensor] = {}
    for name in (name for link in links(parse_architecture(config)) for name in link.hf):
        kind = name.split(".")[-2]
        if kind in shapes:
            weights[name] = torch.randn(shapes[kind], generator=generator) * model.init_std
        else:
            weights[name] = torch.ones(head if kind in ("q_norm", "k_norm") else model.hidden)
    return weights
