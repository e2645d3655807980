"""Builds the Megatron-core GPTModel of a Hugging Face folder, and runs it for per-token log-probabilities.

On a CPU the plain ("local") layer modules in float32; on a GPU with Transformer Engine installed, its
modules. Parallel state must be initialised before; tensor parallelism is taken from it.
"""

from __future__ import annotations

from pathlib import Path

import torch
from megatron.core import parallel_state as ps
from megatron.core.models.gpt.gpt_layer_specs import (
    get_gpt_layer_local_spec,
    get_gpt_layer_with_transformer_engine_spec,
)
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.tensor_parallel import (
    gather_from_tensor_model_parallel_region,
    reduce_from_tensor_model_parallel_region,
    vocab_parallel_cross_entropy,
)
from megatron.core.transformer.transformer_config import TransformerConfig
from safetensors.torch import load_file

from roll_ts.trainers.architecture import Architecture
from roll_ts.trainers.mapping import Layout, Weights, to_hf, to_megatron


def choose_layout() -> Layout:
    """Transformer Engine's modules when both it and a GPU are there, plain ones otherwise."""
    from megatron.core.models.gpt.gpt_layer_specs import HAVE_TE

    return "te" if HAVE_TE and torch.cuda.is_available() else "local"


def transformer_config(arch: Architecture, ways: int, dtype: torch.dtype) -> TransformerConfig:
    """Megatron's configuration of `arch`. Fusions that need apex or a GPU are off."""
    return TransformerConfig(
        num_layers=arch.layers,
        hidden_size=arch.hidden,
        ffn_hidden_size=arch.ffn,
        num_attention_heads=arch.heads,
        num_query_groups=arch.kv_heads,
        kv_channels=arch.head_dim,
        normalization="RMSNorm",
        layernorm_epsilon=arch.rms_eps,
        qk_layernorm=arch.qk_norm,
        gated_linear_unit=True,
        activation_func=torch.nn.functional.silu,
        add_bias_linear=False,
        add_qkv_bias=False,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        use_cpu_initialization=not torch.cuda.is_available(),
        params_dtype=dtype,
        pipeline_dtype=dtype,
        bf16=dtype == torch.bfloat16,
        tensor_model_parallel_size=ways,
        gradient_accumulation_fusion=False,
        masked_softmax_fusion=False,
        bias_activation_fusion=False,
        bias_dropout_fusion=False,
        apply_rope_fusion=False,
        persist_layer_norm=False,
    )


def build_model(arch: Architecture, config: TransformerConfig, layout: Layout) -> GPTModel:
    """The model with Megatron's own random weights, on the current device."""
    if layout == "te":
        spec = get_gpt_layer_with_transformer_engine_spec(qk_layernorm=arch.qk_norm)
    else:
        spec = get_gpt_layer_local_spec(qk_layernorm=arch.qk_norm, normalization="RMSNorm")
    model = GPTModel(
        config,
        spec,
        vocab_size=arch.vocab,
        max_sequence_length=arch.positions,
        position_embedding_type="rope",
        rotary_base=arch.rope_theta,
        share_embeddings_and_output_weights=arch.tied,
        parallel_output=True,
    )
    return model.to(torch.cuda.current_device())


def read_weights(folder: str | Path) -> Weights:
    """All tensors of the folder's safetensors files. Raises FileNotFoundError if it has none."""
    files = sorted(Path(folder).glob("*.safetensors"))
    # VAL: VAL_NON_EMPTY(files, error=FileNotFoundError, about=folder) - the folder holds no .safetensors file
    if len(files) == 0:
        raise FileNotFoundError(
            f"read_weights: files must not be empty, got {files!r:.200} (folder={folder!r:.200}) - the "
            "folder holds no .safetensors file"
        )
    # END VAL d674ce
    return {name: tensor for file in files for name, tensor in load_file(file).items()}


@torch.no_grad()
def load_weights(model: GPTModel, weights: Weights, arch: Architecture, layout: Layout) -> None:
    """Copy Hugging Face weights into this rank's shard, in place. Raises KeyError or ValueError on a
    misfit."""
    rank, ways = ps.get_tensor_model_parallel_rank(), ps.get_tensor_model_parallel_world_size()
    shard = to_megatron(weights, arch, ways, rank, layout)
    own = dict(model.named_parameters())
    # VAL: VAL_SAME_ELEMENTS(own, shard, error=KeyError) - Megatron's model and our mapping disagree on parameters
    _differing = sorted(set(own) ^ set(shard), key=repr)
    if _differing:
        raise KeyError(
            "load_weights: own must have the same elements as shard, but only one has "
            f"{_differing!r:.200} - Megatron's model and our mapping disagree on parameters"
        )
    # END VAL 76191d
    for name, parameter in own.items():
        # VAL: VAL_SAME_SHAPE(parameter, shard[name], about=name) - the weights are of a model of another shape
        if parameter.shape != shard[name].shape:
            raise ValueError(
                "load_weights: parameter must have the shape of shard[name], got "
                f"{tuple(parameter.shape)!r:.200} and {tuple(shard[name].shape)!r:.200} "
                f"(name={name!r:.200}) - the weights are of a model of another shape"
            )
        # END VAL d2c9c1
        parameter.copy_(shard[name])


@torch.no_grad()
def gather_weights(model: GPTModel, arch: Architecture, layout: Layout) -> Weights:
    """The whole model by Hugging Face name, on the CPU, as fresh memory. Collective over the
    tensor-parallel group; every rank of it gets the result."""
    ways, group = ps.get_tensor_model_parallel_world_size(), ps.get_tensor_model_parallel_group()
    shards: list[Weights] = [{} for _ in range(ways)]
    for name, parameter in model.named_parameters():
        parts = [torch.empty_like(parameter) for _ in range(ways)]
        if ways > 1:
            torch.distributed.all_gather(parts, parameter.detach().contiguous(), group=group)
        else:
            parts[0].copy_(parameter)
        for shard, part in zip(shards, parts, strict=True):
            shard[name] = part.cpu()
    return {name: tensor.contiguous() for name, tensor in to_hf(shards, arch, layout).items()}


def token_logprobs(model: torch.nn.Module, tokens: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Log-probability (nats, float32) of tokens[:, 1:] given what precedes each, shape [rows, length - 1];
    right padding does no harm, attention is causal. Differentiable; equal on all tensor-parallel ranks."""
    logits = _logits(model, tokens, layout)
    # Megatron's cross entropy works on [length, rows, vocabulary shard] and overwrites its input
    ahead = logits[:, :-1].transpose(0, 1).contiguous().float()
    targets = tokens[:, 1:].transpose(0, 1).contiguous()
    return -vocab_parallel_cross_entropy(ahead, targets).transpose(0, 1)


def logprobs_and_entropy(
    model: torch.nn.Module, tokens: torch.Tensor, layout: Layout
) -> tuple[torch.Tensor, torch.Tensor]:
    """`token_logprobs`, and the entropy (nats, float32) of the distribution each of those tokens was drawn from, same
    shape. Differentiable; equal on all tensor-parallel ranks."""
    logits = _logits(model, tokens, layout)[:, :-1].float()
    # H = log Z - sum p z. Shifted by the largest logit of all ranks, so that no exponential overflows.
    top = logits.detach().amax(dim=-1)
    if ps.get_tensor_model_parallel_world_size() > 1:
        torch.distributed.all_reduce(top, torch.distributed.ReduceOp.MAX, group=ps.get_tensor_model_parallel_group())
    shifted = logits - top[..., None]
    weight = shifted.exp()
    total = reduce_from_tensor_model_parallel_region(weight.sum(dim=-1))
    mean = reduce_from_tensor_model_parallel_region((weight * shifted).sum(dim=-1)) / total
    # A copy: the cross entropy overwrites its input, and the entropy's gradient still needs it.
    ahead, targets = (
        logits.transpose(0, 1).clone(memory_format=torch.contiguous_format),
        tokens[:, 1:].transpose(0, 1).contiguous(),
    )
    return -vocab_parallel_cross_entropy(ahead, targets).transpose(0, 1), total.log() - mean


@torch.no_grad()
def next_logprobs(model: torch.nn.Module, tokens: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Log-probability (nats, float32) of every token of the vocabulary after each row, shape [rows, vocabulary]; equal
    on all tensor-parallel ranks."""
    last = _logits(model, tokens, layout)[:, -1].float()
    return torch.log_softmax(gather_from_tensor_model_parallel_region(last), dim=-1)


def _logits(model: torch.nn.Module, tokens: torch.Tensor, layout: Layout) -> torch.Tensor:
    rows, length = tokens.shape
    positions = torch.arange(length, device=tokens.device)[None].expand(rows, -1)
    mask = None
    if layout == "local":  # the plain attention wants its causal mask spelled out: True is hidden
        mask = torch.ones(1, 1, length, length, dtype=torch.bool, device=tokens.device).triu(1)
    return model(tokens, positions, mask)
