"""What a device is on this kind of machine: one pinned core on CPU, one GPU on CUDA. The rest of the runtime does not
know the difference.

A process is told its devices twice: by environment variables that must be there when it starts, and by pinning that
must happen before torch is imported.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from roll_ts.config import RunConfig
from roll_ts.engines.config import EngineConfig, process_env

_COMMON = {
    "HF_HUB_OFFLINE": "1",
    "PYTHONWARNINGS": "ignore",
    "TOKENIZERS_PARALLELISM": "false",
    # The devices of a process are named here; Ray must not hide them because no Ray resource was asked for.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def engine_config(config: RunConfig, rank: int, model: str) -> EngineConfig:
    """The configuration of rollout rank `rank`, which starts without proven weights."""
    devices = config.layout.ranks[rank]
    on_cpu = config.layout.device == "cpu"
    return EngineConfig(
        model=model,
        device=config.layout.device,
        cores=devices if on_cpu else (),
        dtype=config.engine.dtype,
        max_model_len=config.rollout.max_context_tokens,
        max_num_seqs=config.rollout.max_running_per_rank,
        kv_bytes=config.engine.kv_mib << 20,
        block_size=config.engine.block_size,
        seed=config.seed + rank,
        tensor_parallel=1 if on_cpu else len(devices),
        initial_weights=False,
        tick_s=config.engine.tick_s,
    )


def engine_environment(config: EngineConfig, devices: Sequence[int]) -> dict[str, str]:
    """Variables that an engine's process must start with."""
    return _COMMON | process_env(config) | _visible(config.device, devices)


def trainer_environment(kind: str, device: int) -> dict[str, str]:
    """Variables that the process of one trainer rank must start with."""
    cpu = {"OMP_NUM_THREADS": "1", "TORCH_COMPILE_DISABLE": "1", "GLOO_SOCKET_IFNAME": "lo"} if kind == "cpu" else {}
    return _COMMON | cpu | _visible(kind, (device,))


def pin_process(cores: Collection[int]) -> None:
    """Bind every thread of this process to `cores`; threads started later inherit it. Nothing happens without cores.

    Raises ValueError for a core that this machine does not have.
    """
    machine = range(os.cpu_count() or 1)
    # VAL: VAL_SUBSET(cores, of=machine)
    _extra = sorted(set(cores) - set(machine), key=repr)
    if _extra:
        raise ValueError(
            f"pin_process: cores must be a subset of machine, but has {_extra!r:.200} outside {machine!r:.200}"
        )
    # END VAL f03371
    if not cores:
        return
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)


def _visible(kind: str, devices: Sequence[int]) -> dict[str, str]:
    return {"CUDA_VISIBLE_DEVICES": ",".join(map(str, devices)) if kind == "cuda" else ""}
