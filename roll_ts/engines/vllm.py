"""The rollout engine on vLLM: an in-process `LLMEngine` and the thread that owns it.

With one device the worker lives in this process and is handed tensors as they are; with tensor parallelism vLLM
starts one worker process per device and weights travel through a file in shared memory. Importing this module
imports neither vLLM nor torch: call `prepare_process(config)` first, then make the engine.

vLLM keeps process-wide state during a forward pass, so one process holds one engine.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from roll_ts.engines.checkpoint import checked, checkpoint_shapes, checkpoint_tensors, tied_names
from roll_ts.engines.config import EngineConfig
from roll_ts.engines.core import Delta
from roll_ts.engines.protocol import EngineState, EngineStats, MemoryReport, NamedTensors, Request, Sampling
from roll_ts.engines.stepped import SteppedEngine
from roll_ts.weights.digest import Digester, digest

if TYPE_CHECKING:
    import torch
    from vllm import SamplingParams
    from vllm.v1.engine.llm_engine import LLMEngine


class VLLMEngine(SteppedEngine):
    """A `RolloutEngine` on vLLM. The constructor returns when the engine can be called (seconds; the first import
    of vLLM in a process alone takes some 15 s) and raises what vLLM raises if it cannot start."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        where = f"cores {list(config.cores)}" if config.cores else config.device
        super().__init__(lambda: VLLMCore(config), config.tick_s, config.call_timeout_s, name=f"vLLM engine on {where}")


class VLLMCore:
    """`Core` over vLLM's engine; everything here runs on one thread."""

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        self._shapes = checkpoint_shapes(config.model)
        self._optional = tied_names(config.model)
        self.vllm = _start(config)
        self._scheduler: Any = self.vllm.engine_core.engine_core.scheduler
        self._vocabulary = self.vllm.vllm_config.model_config.get_vocab_size()
        self._digest: str | None = None
        self._weights_valid = config.initial_weights
        self._weights_resident = True
        self._kv_resident = True
        # Part of the prefix cache's key: prefixes of other weights are never found.
        self._cache_key = 0
        self._fresh_made = 0
        self._warm_up()

    @property
    def state(self) -> EngineState:
        """What the core can do now."""
        if self._weights_valid:
            return EngineState.SERVING if self._kv_resident else EngineState.KV_ASLEEP
        if self._weights_resident or self._kv_resident:
            return EngineState.NO_WEIGHTS
        return EngineState.RELEASED

    def stats(self) -> EngineStats:
        """vLLM's scheduler's own counts; block 0 of its pool is never handed out."""
        running, waiting = self._scheduler.get_request_counts()
        pool = self._scheduler.kv_cache_manager.block_pool
        usable = pool.num_gpu_blocks - 1
        size = self._config.block_size
        held = usable - pool.get_num_free_blocks()
        return EngineStats(running, waiting, held * size, usable * size, self.state)

    def add(self, request: Request, fresh: bool = False) -> None:
        """Hand a request to vLLM. `ValueError` for a prompt that is empty, too long or out of the vocabulary."""
        prompt = request.prompt
        # VAL: VAL_LENGTH(
        #     prompt, min=1, max=self._config.max_model_len - 1, about=request.id
        # ) - a prompt leaves room for a reply within max_model_len
        if not 1 <= len(prompt) <= self._config.max_model_len - 1:
            raise ValueError(
                f"VLLMCore.add: prompt must have 1 to {self._config.max_model_len - 1!r:.200} elements, "
                f"got {len(prompt)!r}: {prompt!r:.200} (request.id={request.id!r:.200}) - a prompt leaves "
                "room for a reply within max_model_len"
            )
        # END VAL 9bdec0
        # VAL: VAL_INT_RANGE(prompt, min=0, max=self._vocabulary - 1, each=items, about=request.id)
        for _item in prompt:
            if not 0 <= _item <= self._vocabulary - 1:
                raise ValueError(
                    f"VLLMCore.add: prompt must lie in [0, {self._vocabulary - 1!r:.200}], got {_item!r} "
                    f"(request.id={request.id!r:.200})"
                )
        # END VAL aab2f7
        key = f"weights {self._cache_key}"
        if fresh:
            self._fresh_made += 1
            key += f" fresh {self._fresh_made}"
        self.vllm.add_request(request.id, {"prompt_token_ids": prompt, "cache_salt": key}, sampling_params(request))

    def abort(self, ids: Sequence[str]) -> None:
        """Take requests out of vLLM; it keeps nothing of them but cached prefixes."""
        if ids:
            self.vllm.abort_request(list(ids))

    def step(self) -> Iterator[Delta]:
        """One forward pass, and what it added."""
        for output in self.vllm.step():
            part = cast(Any, output).outputs[0]
            reason = part.finish_reason
            if reason is None or reason == "stop" or reason == "length":
                yield Delta(output.request_id, part.token_ids, part.logprobs.logprobs, reason)
            else:
                error = f"vLLM ended the request with reason {reason!r}"
                yield Delta(output.request_id, part.token_ids, part.logprobs.logprobs, error=error)

    def release(self) -> MemoryReport:
        """Discard weights and KV cache."""
        begin, before = time.monotonic(), self._memory()
        if self._weights_resident or self._kv_resident:
            self._forget_prefixes()
            self._weights_valid = False
            self._digest = None
            self._call("rts_release", self._weights_resident, self._kv_resident)
            self._weights_resident = self._kv_resident = False
        return MemoryReport(before, self._memory(), time.monotonic() - begin)

    def load(self, named: NamedTensors) -> str:
        """Replace all weights; returns the digest of what came."""
        self._weights_valid = False
        self._digest = None
        self._cache_key += 1
        if not self._weights_resident:
            self._call("rts_wake_weights")
            self._weights_resident = True
        digester = Digester()
        arriving = digester.passing(checked(named, self._shapes, self._optional))
        if self._config.tensor_parallel == 1:
            self._call("rts_load", arriving)
        else:
            self._load_through_file(arriving)
        self._digest = digester.hexdigest()
        self._weights_valid = True
        if not any(self._scheduler.get_request_counts()):
            self._forget_prefixes()
        return self._digest

    def wake_kv(self) -> MemoryReport:
        """Give the KV cache its memory again."""
        begin, before = time.monotonic(), self._memory()
        if not self._kv_resident:
            self._call("rts_wake_kv")
            self._kv_resident = True
        return MemoryReport(before, self._memory(), time.monotonic() - begin)

    def reset_cache(self) -> None:
        """Forget cached prefixes."""
        self._forget_prefixes()

    def digest(self) -> str:
        """Digest of the tensors as received, or, before any came, of those in the checkpoint folder."""
        if self._digest is None:
            self._digest = digest(checkpoint_tensors(self._config.model))
        return self._digest

    def close(self) -> None:
        """Stop vLLM and its workers and give the memory back."""
        if self._config.tensor_parallel == 1 and (self._weights_resident or self._kv_resident):
            self._call("rts_release", self._weights_resident, self._kv_resident)
        self.vllm.engine_core.shutdown()

    def _warm_up(self) -> None:
        """Generate a token, so that a model that loads but cannot run fails at the start."""
        self.add(Request("warm-up", [0], Sampling.greedy(1)), fresh=True)
        while any(self._scheduler.get_request_counts()):
            for _ in self.step():
                pass

    def _load_through_file(self, named: NamedTensors) -> None:
        from safetensors.torch import save_file

        tensors: dict[str, torch.Tensor] = {name: tensor.cpu().clone() for name, tensor in named}
        size = sum(tensor.nbytes for tensor in tensors.values())
        shm = Path("/dev/shm")
        roomy = shm.is_dir() and shutil.disk_usage(shm).free > size + (64 << 20)
        with tempfile.TemporaryDirectory(prefix="roll_ts_weights_", dir=shm if roomy else None) as folder:
            path = str(Path(folder) / "weights.safetensors")
            save_file(tensors, path)
            self._call("rts_load_file", path)

    def _forget_prefixes(self) -> None:
        forgotten = self.vllm.reset_prefix_cache()
        # AST: AST_POSTCONDITION(forgotten, error=RuntimeError) - without a request vLLM counts no block in use
        if not forgotten:
            raise RuntimeError(
                f"Post-condition: forgotten, got {forgotten!r:.200} - without a request vLLM counts no block in use"
            )
        # END AST e14e74

    def _memory(self) -> int:
        return sum(self._call("rts_memory"))

    def _call(self, method: str, *args: object) -> list[Any]:
        return self.vllm.collective_rpc(method, timeout=self._config.call_timeout_s, args=args)


def _start(config: EngineConfig) -> LLMEngine:
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.engine.llm_engine import LLMEngine

    return LLMEngine.from_engine_args(
        EngineArgs(
            model=config.model,
            dtype=cast(Any, config.dtype),
            seed=config.seed,
            max_model_len=config.max_model_len,
            max_num_seqs=config.max_num_seqs,
            kv_cache_memory_bytes=config.kv_bytes,
            block_size=cast(Any, config.block_size),
            enable_prefix_caching=True,
            load_format="auto" if config.initial_weights else "dummy",
            # Tokens in, tokens out; generation settings come with each request and from nowhere else.
            skip_tokenizer_init=True,
            generation_config="vllm",
            # A step's tokens are known when it returns, so an abort loses none.
            async_scheduling=False,
            enforce_eager=config.device == "cpu",
            enable_sleep_mode=config.device == "cuda",
            tensor_parallel_size=config.tensor_parallel,
            distributed_executor_backend="uni" if config.tensor_parallel == 1 else "mp",
            worker_extension_cls="roll_ts.engines.vllm_worker.WorkerExtension",
            disable_log_stats=True,
            use_tqdm_on_load=False,
        )
    )


def sampling_params(request: Request) -> SamplingParams:
    """What vLLM calls a request's sampling: plain tokens with one log-prob each, in deltas."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    sampling = request.sampling
    return SamplingParams(
        max_tokens=sampling.max_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        seed=sampling.seed,
        stop_token_ids=list(sampling.stop_token_ids),
        ignore_eos=True,
        detokenize=False,
        logprobs=0,
        flat_logprobs=True,
        output_kind=RequestOutputKind.DELTA,
    )
