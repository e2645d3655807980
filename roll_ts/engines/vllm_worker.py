"""What a vLLM worker needs beside vLLM's own methods: really giving memory back, and named tensors from anywhere.

vLLM mixes this class into its worker (`worker_extension_cls`); it runs in the process that holds the device. On CUDA
it uses vLLM's sleep mode. On CPU that mode does nothing, so the memory is taken away here: KV and parameter storages
are resized to nothing, prepacked linear weights dropped, and the allocator asked to return its pages.
"""

from __future__ import annotations

import ctypes
import gc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from roll_ts.engines.protocol import NamedTensors


class WorkerExtension:
    """Every method starts with `rts_`, since names may not clash with the worker's own."""

    model_runner: Any
    vllm_config: Any
    device: Any

    def rts_release(self, weights: bool, kv: bool) -> None:
        """Discard what is asked for, without a copy. Buffers that no checkpoint holds are kept."""
        if self.device.type != "cpu":
            self.sleep(level=2)  # type: ignore[attr-defined]
            return
        if kv:
            self._rts_kv = _emptied(_tensors(self.model_runner.kv_caches))
        if weights:
            model = self.model_runner.get_model()
            for module in model.modules():
                if getattr(module, "cpu_linear", None) is not None:
                    module.cpu_linear = None
            self._rts_weights = _emptied(list(model.parameters()))
        _return_pages()

    def rts_wake_weights(self) -> None:
        """Give the parameters memory again; their values are undefined until loaded."""
        if self.device.type != "cpu":
            self.wake_up(tags=["weights"])  # type: ignore[attr-defined]
            return
        _refill(self.__dict__.pop("_rts_weights", []))

    def rts_wake_kv(self) -> None:
        """Give the KV cache memory again, all zero."""
        if self.device.type != "cpu":
            self.wake_up(tags=["kv_cache"])  # type: ignore[attr-defined]
            return
        _refill(self.__dict__.pop("_rts_kv", []))
        for tensor in _tensors(self.model_runner.kv_caches):
            tensor.zero_()

    def rts_load(self, named: NamedTensors) -> None:
        """Load a complete set of weights in checkpoint names. After a failure the values are undefined, but the
        model is in a shape to be loaded again."""
        from vllm.model_executor.model_loader.reload import finalize_layerwise_reload

        try:
            self.reload_weights(weights_iterator=iter(named))  # type: ignore[attr-defined]
        except BaseException:
            # Layers half loaded would otherwise count their tensors into the next load.
            finalize_layerwise_reload(self.model_runner.get_model(), self.vllm_config.model_config)
            raise
        _repack_tied(self.model_runner.get_model())

    def rts_load_file(self, path: str) -> None:
        """`rts_load` from a safetensors file, for a worker process that cannot be handed tensors."""
        from safetensors import safe_open

        with safe_open(path, framework="pt") as file:
            self.rts_load((name, file.get_tensor(name)) for name in file.keys())  # noqa: SIM118 - not a mapping

    def rts_memory(self) -> int:
        """Bytes held: the resident set of this process on CPU, the used memory of the device on CUDA."""
        if self.device.type != "cpu":
            import torch

            free, total = torch.cuda.mem_get_info(self.device)
            return total - free
        import psutil

        return psutil.Process().memory_info().rss


def _tensors(kv_caches: Any) -> list[torch.Tensor]:
    """KV caches flattened: a layer has one tensor or several."""
    flat: list[torch.Tensor] = []
    for cache in kv_caches:
        flat += cache if isinstance(cache, (list, tuple)) else [cache]
    return flat


def _emptied(tensors: list[torch.Tensor]) -> list[tuple[torch.UntypedStorage, int]]:
    """Shrink each distinct storage to nothing; returns the storages and the sizes they had, in bytes."""
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage() for tensor in tensors}
    sized = [(storage, storage.nbytes()) for storage in storages.values() if storage.nbytes()]
    for storage, _ in sized:
        storage.resize_(0)
    return sized


def _refill(sized: list[tuple[torch.UntypedStorage, int]]) -> None:
    for storage, nbytes in sized:
        storage.resize_(nbytes)


def _repack_tied(model: torch.nn.Module) -> None:
    """vLLM repacks a layer for the CPU when a tensor of its own is loaded. A tied output head gets none, and would
    go on with the packed copy of the old embedding."""
    holders: dict[int, list[Any]] = {}
    for module in model.modules():
        weight = getattr(module, "weight", None)
        if weight is not None and weight.numel() and hasattr(module, "cpu_linear"):
            holders.setdefault(weight.data_ptr(), []).append(module)
    for modules in holders.values():
        if len(modules) > 1:
            for module in modules:
                module.quant_method.process_weights_after_loading(module)


def _return_pages() -> None:
    """Freed memory goes back to the operating system only when the C library is asked to trim its heaps."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
