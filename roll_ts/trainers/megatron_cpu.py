"""Lets megatron-core 0.16 run on a CPU with gloo: answers for the few torch.cuda calls it makes without
asking.

`install` replaces torch.cuda functions for as long as a trainer lives (call what it returns to undo it);
`cuda_as_cpu` must surround optimizer construction, the forward-backward schedule and the optimizer step,
which name the device "cuda" outright or compare tensor type strings. With a GPU present neither does
anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_CUDA_TYPE_NAMES = {f"torch.{kind}Tensor": f"torch.cuda.{kind}Tensor" for kind in ("Float", "BFloat16", "Half")}


def install() -> Callable[[], None]:
    """Replace functions of torch.cuda; returns the function that puts the originals back. Import megatron
    afterwards."""
    if torch.cuda.is_available():
        return lambda: None
    import megatron.core.tensor_parallel.random as megatron_random

    # One function object per name: torch.compile's rule table rejects an object that appears under two names.
    stand_ins: dict[str, Callable[..., Any]] = {
        "current_device": lambda *a, **k: torch.device("cpu"),
        "get_rng_state": lambda *a, **k: torch.get_rng_state(),
        "set_rng_state": lambda state, *a, **k: torch.set_rng_state(state),
        # not torch.manual_seed, which calls torch.cuda and so itself
        "manual_seed": lambda seed: torch.default_generator.manual_seed(int(seed)),
    }
    stand_ins |= {name: _answer(None) for name in ("synchronize", "empty_cache", "set_device", "manual_seed_all")}
    stand_ins |= {name: _answer(0) for name in ("memory_allocated", "max_memory_allocated", "memory_reserved")}
    originals = {name: getattr(torch.cuda, name) for name in stand_ins}
    rng = {name: getattr(megatron_random, name) for name in ("_get_cuda_rng_state", "_set_cuda_rng_state")}
    _set_all(torch.cuda, stand_ins.items())
    megatron_random._get_cuda_rng_state = lambda *a, **k: torch.get_rng_state()
    megatron_random._set_cuda_rng_state = lambda state, *a, **k: torch.set_rng_state(state)

    def undo() -> None:
        _set_all(torch.cuda, originals.items())
        _set_all(megatron_random, rng.items())

    return undo


def cuda_as_cpu() -> AbstractContextManager[object]:
    """Inside it, device "cuda" means the CPU and tensor type names read as their CUDA names."""
    return nullcontext() if torch.cuda.is_available() else _CudaAsCpu()


class _CudaAsCpu(TorchFunctionMode):
    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.cuda:
            return args[0]
        if _names_cuda(kwargs.get("device")):
            kwargs = {**kwargs, "device": "cpu"}
        result = func(*args, **kwargs)
        if func is torch.Tensor.type and len(args) == 1 and not kwargs:
            return _CUDA_TYPE_NAMES.get(result, result)
        return result


def _names_cuda(device: Any) -> bool:
    return isinstance(device, int) or str(device).partition(":")[0] == "cuda"


def _answer(value: Any) -> Callable[..., Any]:
    return lambda *a, **k: value


def _set_all(target: Any, items: Iterable[tuple[str, Any]]) -> None:
    for name, value in items:
        setattr(target, name, value)
