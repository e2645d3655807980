"""Two tiny checkpoints of one architecture, and one pair of real engines for the whole session."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from roll_ts.engines.config import EngineConfig

KV_BYTES = 256 << 20


def save_tiny_qwen3(folder: Path, seed: int, tied: bool = False) -> str:
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=512,
        hidden_size=64,
        intermediate_size=192,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=1024,
        tie_word_embeddings=tied,
        initializer_range=0.15,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    Qwen3ForCausalLM(config).float().save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    """Folders of two untied models with different weights."""
    return [save_tiny_qwen3(tmp_path_factory.mktemp(f"model{seed}"), seed) for seed in (0, 1)]


@pytest.fixture(scope="session")
def tied_checkpoints(tmp_path_factory):
    """Folders of two models whose output head is the embedding, with different weights."""
    return [save_tiny_qwen3(tmp_path_factory.mktemp(f"tied{seed}"), seed, tied=True) for seed in (0, 1)]


def engine_config(model: str, device: int, kv_bytes: int) -> EngineConfig:
    cores = sorted(os.sched_getaffinity(0))
    return EngineConfig(
        model=model, cores=(cores[device % len(cores)],), kv_bytes=kv_bytes, max_model_len=512, call_timeout_s=120
    )


@pytest.fixture(scope="package")
def hosts(checkpoints):
    """Two engines on the first model, each in its own process; the first has a large KV cache."""
    from tests.roll_ts.engines.hosted import Hosted

    configs = [engine_config(checkpoints[0], 0, KV_BYTES), engine_config(checkpoints[0], 1, 32 << 20)]
    with ThreadPoolExecutor(2) as pool:
        started = list(pool.map(Hosted, configs))
    yield started
    for host in started:
        host.stop()


@pytest.fixture
def engines(hosts, checkpoints):
    """The pair, with the first model's weights, nothing in flight and no event left over."""
    pair = [host.engine for host in hosts]
    for engine in pair:
        engine.abort()
        engine.resume()
        engine.load_file(f"{checkpoints[0]}/model.safetensors")
        engine.wake_kv()
        while engine.next_events(0):
            pass
    return pair


@pytest.fixture
def tied_engine(hosts, tied_checkpoints):
    """A new engine on the first tied model. It lives beside another that has nothing to do meanwhile."""
    engine = hosts[1].another(engine_config(tied_checkpoints[0], 1, 32 << 20))
    yield engine
    engine.close()
