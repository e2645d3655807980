"""Configuration of one rollout engine, and the preparation its process needs before torch is imported.

A device is a set of pinned cores on CPU and the visible GPUs on CUDA. Pinning and thread counts are read once, when
torch and vLLM are imported, so `prepare_process` must come first; it refuses to come late.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """One engine = one rank.

    `model` is a folder in Hugging Face format with safetensors weights. `kv_bytes` is the size of the KV cache per
    device, `max_model_len` counts prompt and generated tokens. `cores` (CPU only) are the cores the engine's
    processes may use; empty leaves the affinity alone. `initial_weights=False` starts without reading the weights,
    in state NO_WEIGHTS. `tick_s` is how often progress is reported; `call_timeout_s` bounds every control call.
    """

    model: str
    device: Literal["cpu", "cuda"] = "cpu"
    cores: tuple[int, ...] = ()
    dtype: str = "float32"
    max_model_len: int = 1024
    max_num_seqs: int = 64
    kv_bytes: int = 64 << 20
    block_size: int = 32
    seed: int = 0
    tensor_parallel: int = 1
    initial_weights: bool = True
    tick_s: float = 0.03
    call_timeout_s: float = 300.0

    def __post_init__(self) -> None:
        problems = self._problems()
        # VAL: VAL_NO_PROBLEMS(problems)
        if len(problems) != 0:
            raise ValueError(
                f"EngineConfig.__post_init__: problems must be empty, got {len(problems)!r}: "
                f"{'; '.join(map(str, problems))}"
            )
        # END VAL 77f9d9

    def _problems(self) -> list[str]:
        """Everything that is wrong, found without importing an engine."""
        found: list[str] = []
        folder = Path(self.model)
        if not (folder / "config.json").is_file():
            found.append(f"model: no config.json in {self.model!r}; give a folder in Hugging Face format")
        elif not any(folder.glob("*.safetensors")):
            found.append(f"model: no *.safetensors in {self.model!r}; save the weights as safetensors")
        if self.device not in ("cpu", "cuda"):
            found.append(f"device: {self.device!r} is neither 'cpu' nor 'cuda'")
        if self.dtype not in _DTYPES:
            found.append(f"dtype: {self.dtype!r} is none of {', '.join(_DTYPES)}")
        if self.cores and self.device == "cuda":
            found.append("cores: only CPU engines are pinned; leave it empty on cuda")
        for name in ("max_model_len", "max_num_seqs", "kv_bytes", "block_size", "tensor_parallel"):
            if getattr(self, name) < 1:
                found.append(f"{name}: must be at least 1, got {getattr(self, name)}")
        for name in ("tick_s", "call_timeout_s"):
            if not getattr(self, name) > 0:
                found.append(f"{name}: must be above 0 seconds, got {getattr(self, name)}")
        return found


def process_env(config: EngineConfig) -> dict[str, str]:
    """Environment variables the engine's process must start with (for a launcher that sets them from outside)."""
    env = {
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": os.environ.get("VLLM_LOGGING_LEVEL", "ERROR"),
        # One process, stepped by one thread: tensors reach the worker without pickling.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }
    if config.device == "cpu":
        env |= {
            "OMP_NUM_THREADS": str(max(1, len(config.cores) // config.tensor_parallel)),
            # The affinity of the process is the binding; vLLM's own "auto" gives every engine core 0.
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            # Without this the first request with log-probs compiles C++ for some 20 s.
            "TORCH_COMPILE_DISABLE": "1",
            "GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo"),
        }
    return env


def prepare_process(config: EngineConfig) -> dict[str, str]:
    """Pin this process and set its environment for `config`; returns the variables set.

    Call it before anything imports torch. Raises `RuntimeError` when torch is loaded and something would change,
    `ValueError` for cores this machine does not have.
    """
    env = process_env(config)
    changed = sorted(name for name, value in env.items() if os.environ.get(name) != value)
    pin = bool(config.cores) and os.sched_getaffinity(0) != set(config.cores)
    if "torch" in sys.modules:
        too_late = changed + (["the CPU affinity"] if pin else [])
        # VAL: VAL_EMPTY(
        #     too_late, error=RuntimeError
        # ) - torch is imported: call this first in the process, or start it with process_env(config)
        if len(too_late) != 0:
            raise RuntimeError(
                f"prepare_process: too_late must be empty, got {too_late!r:.200} - torch is imported: call "
                "this first in the process, or start it with process_env(config)"
            )
        # END VAL e95a38
    # VAL: VAL_INT_RANGE(config.cores, min=0, max=(os.cpu_count() or 1) - 1, each=items)
    _max = (os.cpu_count() or 1) - 1
    for _core in config.cores:
        if not 0 <= _core <= _max:
            raise ValueError(f"prepare_process: config.cores must lie in [0, {_max!r:.200}], got {_core!r}")
    # END VAL a9b329
    os.environ.update(env)
    if pin:
        os.sched_setaffinity(0, config.cores)
    return env
