"""A real vLLM engine in a process of its own, reached through a proxy: engines are pinned and prepared like in
production, and the test process never imports vLLM."""

from __future__ import annotations

import multiprocessing
from multiprocessing.managers import BaseManager
from typing import Any

from roll_ts.engines.config import EngineConfig, prepare_process
from roll_ts.engines.vllm import VLLMEngine
from roll_ts.weights.rendezvous import GroupSpec


class HostedEngine(VLLMEngine):
    """Ways to hand over weights that can be named from another process, and looks inside."""

    def load_file(self, path: str, drop: int = 0, keep_kv: bool = False) -> str:
        """Load a safetensors file, without its last `drop` tensors."""
        from safetensors.torch import load_file

        named = list(load_file(path).items())
        return self.load_weights(named[: len(named) - drop], keep_kv)

    def load_broadcast(self, spec: GroupSpec, member: str) -> str:
        from roll_ts.weights.broadcast import WeightGroup

        group = WeightGroup(spec, member)
        try:
            return self.load_weights(group.receive())
        finally:
            group.close()

    def parameter_bytes(self) -> int:
        """Bytes in parameters, and 1 for every linear layer that still has packed weights."""

        def count(worker: Any) -> int:
            model = worker.model_runner.get_model()
            packed = sum(getattr(module, "cpu_linear", None) is not None for module in model.modules())
            return packed + sum(p.untyped_storage().nbytes() for p in model.parameters())

        return self._ask("parameter_bytes", lambda: sum(self.core._call(count)))  # type: ignore[attr-defined]

    def break_next_step(self) -> None:
        def broken_step() -> None:
            raise RuntimeError("the device fell off the bus")

        self._ask("break", lambda: setattr(self.core, "step", broken_step))


class _Host(BaseManager):
    pass


_Host.register("Engine", HostedEngine)


class Hosted:
    """A process with an engine; `engine` is a thread-safe proxy."""

    def __init__(self, config: EngineConfig) -> None:
        self._host = _Host(ctx=multiprocessing.get_context("spawn"))
        self._host.start(initializer=prepare_process, initargs=(config,))
        self.engine = self.another(config)

    def another(self, config: EngineConfig) -> Any:
        """One more engine in the same process."""
        return self._host.Engine(config)  # type: ignore[attr-defined]

    def stop(self) -> None:
        """Close the engine and end the process."""
        self.engine.close()
        self._host.shutdown()
