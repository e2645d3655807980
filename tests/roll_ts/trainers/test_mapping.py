from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.trainers.architecture import Architecture
from roll_ts.trainers.mapping import Layout, links, to_hf, to_megatron

SMALL = Architecture(
    layers=2,
    hidden=8,
    ffn=12,
    heads=4,
    kv_heads=2,
    head_dim=2,
    vocab=16,
    positions=32,
    rms_eps=1e-6,
    rope_theta=1e4,
    qk_norm=True,
    tied=False,
)


def weights(arch: Architecture) -> dict[str, torch.Tensor]:
    heads, kv, h = arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim, arch.hidden
    shapes = {
        "embed_tokens": (arch.vocab, h),
        "lm_head": (arch.vocab, h),
        "q_proj": (heads, h),
        "k_proj": (kv, h),
        "v_proj": (kv, h),
        "o_proj": (h, heads),
        "gate_proj": (arch.ffn, h),
        "up_proj": (arch.ffn, h),
        "down_proj": (h, arch.ffn),
        "q_norm": (arch.head_dim,),
        "k_norm": (arch.head_dim,),
    }
    names = [name for link in links(arch) for name in link.hf]
    return {name: torch.randn(shapes.get(name.split(".")[-2], (h,))) for name in names}


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    ways=st.sampled_from([1, 2, 4]),
    kv_heads=st.sampled_from([4, 8]),
    qk_norm=st.booleans(),
    tied=st.booleans(),
    layout=st.sampled_from(["local", "te"]),
)
def test_all_shards_together_give_the_model_back_exactly(
    ways: int, kv_heads: int, qk_norm: bool, tied: bool, layout: Layout
) -> None:
    arch = replace(SMALL, heads=8, kv_heads=kv_heads, qk_norm=qk_norm, tied=tied)
    hf = weights(arch)
    shards = [to_megatron(hf, arch, ways, rank, layout) for rank in range(ways)]
    back = to_hf(shards, arch, layout)
    assert list(back) == list(hf)
    assert all(torch.equal(back[name], hf[name]) for name in hf)


def test_query_key_and_value_rows_are_interleaved_per_key_value_head() -> None:
    # 4 query heads, 2 key-value heads of 2 rows: group 0 is q0 q1 k0 v0, group 1 is q2 q3 k1 v1
    hf = weights(SMALL)
    for letter, start, rows in (("q", 0, 8), ("k", 100, 4), ("v", 200, 4)):
        column = torch.arange(start, start + rows).float()[:, None]
        hf[f"model.layers.0.self_attn.{letter}_proj.weight"] = column.expand(-1, 8)
    whole = to_megatron(hf, SMALL)["decoder.layers.0.self_attention.linear_qkv.weight"][:, 0].tolist()
    first, second = [0, 1, 2, 3, 100, 101, 200, 201], [4, 5, 6, 7, 102, 103, 202, 203]
    assert whole == first + second
    shard = to_megatron(hf, SMALL, 2, 1)["decoder.layers.0.self_attention.linear_qkv.weight"][:, 0].tolist()
    assert shard == second


def test_a_shard_stacks_its_own_gate_on_its_own_up_projection() -> None:
    hf = weights(SMALL)
    gate, up = hf["model.layers.1.mlp.gate_proj.weight"], hf["model.layers.1.mlp.up_proj.weight"]
    shard = to_megatron(hf, SMALL, 2, 1)["decoder.layers.1.mlp.linear_fc1.weight"]
    assert torch.equal(shard, torch.cat([gate[6:], up[6:]]))


def test_a_tied_model_has_no_output_layer_and_may_carry_a_spare_copy_of_it() -> None:
    arch = replace(SMALL, tied=True)
    hf = weights(arch)
    spare = {**hf, "lm_head.weight": hf["model.embed_tokens.weight"]}
    assert "output_layer.weight" not in to_megatron(spare, arch)
    assert "lm_head.weight" not in to_hf([to_megatron(hf, arch)], arch)


def test_missing_and_strange_tensors_are_named() -> None:
    hf = weights(SMALL)
    lacking = {k: v for k, v in hf.items() if k != "model.layers.0.mlp.up_proj.weight"}
    with pytest.raises(KeyError, match=r"got \['model\.layers\.0\.mlp\.up_proj\.weight'\].*lack"):
        to_megatron(lacking, SMALL)
    with pytest.raises(ValueError, match=r"got \['model\.layers\.0\.self_attn\.q_proj\.bias'\] .*no place"):
        to_megatron({**hf, "model.layers.0.self_attn.q_proj.bias": torch.zeros(8)}, SMALL)


def test_an_indivisible_dimension_is_named() -> None:
    with pytest.raises(ValueError, match=r"divisible by 4, got 2 \(name='kv_heads'\)"):
        to_megatron(weights(SMALL), SMALL, 4, 0)
