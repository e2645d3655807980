"""Whether a model folder holds what its config.json promises: every tensor, whole, in its shape, and a tokenizer.

Reads the heads of the safetensors files only (some kilobytes), so that a missing shard of a large model is found before
anything starts. Format: 8 bytes little-endian length, then JSON with dtype, shape and byte range of each tensor, then
the bytes (huggingface/safetensors, README).
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from roll_ts.trainers.architecture import Architecture

_TOKENIZERS = ("tokenizer.json", "tokenizer.model")
_LARGEST_HEAD = 100 << 20
_SHOWN = 3
_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


def model_problems(folder: Path, arch: Architecture) -> list[tuple[str, str]]:
    """(what, what is wrong with it) of everything that a trainer or an engine would fail on."""
    found: list[tuple[str, str]] = []
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        found.append(("tokenizer", f"the folder has neither {' nor '.join(_TOKENIZERS)}"))
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        return [*found, ("weights", "the folder has no .safetensors file")]
    found += _absent_shards(folder)
    shapes: dict[str, tuple[int, ...]] = {}
    for file in files:
        try:
            shapes |= _read_head(file)
        except ValueError as error:
            found.append((file.name, str(error)))
    if not found or shapes:
        found += _differences(shapes, arch)
    return found


def expected_shapes(arch: Architecture) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of the model, by its Hugging Face name; without the head of a tied model."""
    h, d = arch.hidden, arch.head_dim
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (arch.vocab, h), "model.norm.weight": (h,)}
    if not arch.tied:
        shapes["lm_head.weight"] = (arch.vocab, h)
    layer: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (h,),
        "post_attention_layernorm.weight": (h,),
        "self_attn.q_proj.weight": (arch.heads * d, h),
        "self_attn.k_proj.weight": (arch.kv_heads * d, h),
        "self_attn.v_proj.weight": (arch.kv_heads * d, h),
        "self_attn.o_proj.weight": (h, arch.heads * d),
        "mlp.gate_proj.weight": (arch.ffn, h),
        "mlp.up_proj.weight": (arch.ffn, h),
        "mlp.down_proj.weight": (h, arch.ffn),
    }
    if arch.qk_norm:
        layer |= {"self_attn.q_norm.weight": (d,), "self_attn.k_norm.weight": (d,)}
    for i in range(arch.layers):
        shapes |= {f"model.layers.{i}.{name}": shape for name, shape in layer.items()}
    return shapes


def _absent_shards(folder: Path) -> Iterator[tuple[str, str]]:
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return
    try:
        named = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        yield (index.name, f"cannot be read: {error!r}")
        return
    absent = [name for name in named if not (folder / name).is_file()]
    if absent:
        yield (index.name, f"names {len(absent)} files that are not there: {_some(absent)}")


def _read_head(file: Path) -> dict[str, tuple[int, ...]]:
    """The shapes in a file. Raises ValueError when the file is cut off or no safetensors file."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        first = stream.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
        if not 2 <= length <= min(_LARGEST_HEAD, size - 8):  # unmanaged: a finding about a file, not a contract
            raise ValueError(f"is cut off or no safetensors file: {size} bytes, and a head of {length}")
        head = stream.read(length)
    try:
        tensors: dict[str, Any] = json.loads(head)
        rows = {name: (tuple(row["shape"]), row) for name, row in tensors.items() if name != "__metadata__"}
        end = max((row["data_offsets"][1] for _, row in rows.values()), default=0)
        promised = {name: math.prod(shape) * _BYTES.get(row["dtype"], 0) for name, (shape, row) in rows.items()}
        held = {name: row["data_offsets"][1] - row["data_offsets"][0] for name, (_, row) in rows.items()}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"is no safetensors file: {error!r}") from error
    if 8 + length + end != size:  # unmanaged: a finding about a file, not a contract
        raise ValueError(f"is cut off: it has {size} bytes, and its head promises {8 + length + end}")
    odd = [name for name in rows if promised[name] not in (0, held[name])]
    if odd:  # unmanaged: a finding about a file, not a contract
        raise ValueError(f"contradicts itself about {_some(odd)}")
    return {name: shape for name, (shape, _) in rows.items()}


def _differences(shapes: dict[str, tuple[int, ...]], arch: Architecture) -> Iterator[tuple[str, str]]:
    expected = expected_shapes(arch)
    known = {*expected, "lm_head.weight"}
    if missing := [name for name in expected if name not in shapes]:
        yield ("weights", f"lack {len(missing)} of {len(expected)} tensors that config.json promises: {_some(missing)}")
    if strange := [name for name in shapes if name not in known]:
        yield ("weights", f"hold {len(strange)} tensors that the model has no place for: {_some(strange)}")
    for name, shape in expected.items():
        if name in shapes and shapes[name] != shape:
            yield ("weights", f"{name} has shape {list(shapes[name])}, config.json says {list(shape)}")
            return  # one tells it: the others follow from the same number


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
