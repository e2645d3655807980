"""The Megatron-core trainer: GRPO on a GPTModel built from a Hugging Face folder (see `protocol.Trainer`).

Invariants: weights change only in `train` and `load`; the version moves with them. A failed log-prob check
or a gradient that is not finite raises before the optimizer step it belongs to. Every public method is
collective over the group, and every rank raises when one must.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from roll_ts.trainers import checkpoint, megatron_cpu
from roll_ts.trainers.agreement import check_logprobs, compare_logprobs
from roll_ts.trainers.architecture import read_architecture
from roll_ts.trainers.batches import MicroBatch, Tensors, collate, plan
from roll_ts.trainers.losses import group_advantages, policy_loss, token_scale
from roll_ts.trainers.memory import Parking, return_to_system
from roll_ts.trainers.protocol import ALL_PARTS, EARLY_PARTS, LogprobCheck, Part, TrainerConfig, TrainReport
from roll_ts.trainers.sample import Sample

Logprobs = dict[int, NDArray[np.float32]]


@dataclass
class _Update:
    """Sums over the trained tokens of one optimizer step, all ranks, and this rank's seconds."""

    loss: float = 0.0
    weights: float = 0.0
    truncated: float = 0.0
    clipped: float = 0.0
    nll: float = 0.0
    grad_norm: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)


class MegatronTrainer:
    """One rank of a trainer group; one per process at a time (Megatron's parallel state is global).

    Raises ValueError for a bad configuration or model, FileNotFoundError without a model, RuntimeError if
    the process is already in a process group; torch's DistStoreError when the other ranks do not come
    within `config.timeout_s`.
    """

    def __init__(self, config: TrainerConfig, rank: int, world_size: int, master_addr: str, master_port: int) -> None:
        problems = config.problems()
        if problems:
            lines = "; ".join(f"{key} is {value!r}, must be {must}" for key, value, must in problems)
            raise ValueError(f"trainer configuration: {lines}")
        if world_size % config.tensor_parallel:
            raise ValueError(f"tensor_parallel={config.tensor_parallel} does not divide world_size={world_size}")
        if dist.is_initialized():
            raise RuntimeError("this process is already in a process group: one trainer per process")
        self.config, self.rank, self.world_size = config, rank, world_size
        self._arch = read_architecture(config.model)
        self._arch.check_tensor_parallel(config.tensor_parallel)
        self._version = self._steps = 0
        self._released: set[Part] = set()
        self._parking = Parking(Path(config.spill_folder) if config.spill_folder else None)
        self._closed = False
        self._undo_cpu = megatron_cpu.install()
        if torch.cuda.is_available():
            torch.cuda.set_device(rank % torch.cuda.device_count())
        dist.init_process_group(
            "nccl" if torch.cuda.is_available() else "gloo",
            init_method=f"tcp://{master_addr}:{master_port}",
            rank=rank,
            world_size=world_size,
            timeout=timedelta(seconds=config.timeout_s),
        )
        self._build()

    def _build(self) -> None:
        from megatron.core import parallel_state as ps
        from megatron.core.distributed import (
            DistributedDataParallel,
            DistributedDataParallelConfig,
            finalize_model_grads,
        )
        from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
        from megatron.core.tensor_parallel import model_parallel_cuda_manual_seed

        from roll_ts.trainers import megatron_model

        config, self._ps, self._mm = self.config, ps, megatron_model
        ps.initialize_model_parallel(config.tensor_parallel, 1)
        model_parallel_cuda_manual_seed(config.seed)
        dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[config.dtype]
        self._layout = megatron_model.choose_layout()
        transformer = megatron_model.transformer_config(self._arch, config.tensor_parallel, dtype)
        self._model = megatron_model.build_model(self._arch, transformer, self._layout)
        weights = megatron_model.read_weights(config.model)
        megatron_model.load_weights(self._model, weights, self._arch, self._layout)
        self._device = next(self._model.parameters()).device
        ddp_config = DistributedDataParallelConfig(
            use_distributed_optimizer=config.distributed_optimizer, grad_reduce_in_fp32=True
        )
        optimizer_config = OptimizerConfig(
            optimizer="adam",
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            adam_beta1=config.adam_beta1,
            adam_beta2=config.adam_beta2,
            adam_eps=config.adam_eps,
            clip_grad=config.grad_clip,
            use_distributed_optimizer=config.distributed_optimizer,
            params_dtype=dtype,
            bf16=dtype == torch.bfloat16,
        )
        with megatron_cpu.cuda_as_cpu():
            self._ddp = DistributedDataParallel(transformer, ddp_config, self._model)
            self._optimizer = get_megatron_optimizer(optimizer_config, [self._ddp])
        transformer.finalize_model_grads_func = finalize_model_grads
        transformer.no_sync_func = self._ddp.no_sync
        self._dp_rank = ps.get_data_parallel_rank()
        self._dp = ps.get_data_parallel_world_size()

    @property
    def version(self) -> int:
        """Version of the present weights: number of `train` calls since version 0."""
        return self._version

    def train(self, samples: Sequence[Sample]) -> TrainReport:
        """One policy update on `samples` (whole groups, the same on every rank); the version rises by one.

        Raises ValueError for samples the model cannot take, LogprobMismatch and FloatingPointError (see
        the module), RuntimeError while memory is released.
        """
        self._need_memory("train")
        self._check_samples(samples)
        began, config = perf_counter(), self.config
        advantages = group_advantages([s.reward for s in samples], [s.group for s in samples], config.normalise_std)
        single = config.epochs * config.minibatches == 1
        old, check = None, None
        if not single:  # later steps need pi_old, which the single step's own forward pass gives for nothing
            old = self._logprobs(samples)
            check = self._check_logprobs(samples, old)
        updates = []
        for rows in self._minibatches(len(samples)):
            update, seen = self._accumulate(samples, rows, advantages, old)
            if single:
                check = self._check_logprobs(samples, seen)
            self._step(update)
            updates.append(update)
        assert check is not None
        report = self._report(samples, updates, check, perf_counter() - began)
        self._version += 1
        return report

    def logprobs(self, samples: Sequence[Sample]) -> list[NDArray[np.float32]]:
        """Per sample [n]: log-prob of tokens[i] given tokens[:i] under the present weights, nats; index 0
        is 0."""
        self._need_memory("logprobs")
        self._check_samples(samples)
        found = self._logprobs(samples)
        return [found[i] for i in range(len(samples))]

    def export(self) -> dict[str, torch.Tensor]:
        """Present weights by Hugging Face name, fresh CPU memory; the whole model on rank 0, empty
        elsewhere."""
        self._need_memory("export", parts=("parameters",))
        weights = {}
        if self._dp_rank == 0:  # every data-parallel replica holds the same
            weights = self._mm.gather_weights(self._model, self._arch, self._layout)
        return weights if self.rank == 0 else {}

    def release(self, parts: Collection[Part] = EARLY_PARTS) -> int:
        """Give the memory of `parts` back to the system. Returns the bytes freed on this rank by this call.

        Gradients and activations are dropped, optimizer state and parameters put one level down the memory
        hierarchy. Order (R22): parameters go last, so asking for them alone while an early part is held
        raises RuntimeError. Releasing a part twice frees nothing. `export` works until parameters are
        released.
        """
        unknown = set(parts) - set(ALL_PARTS)
        if unknown:
            raise ValueError(f"cannot release {sorted(unknown)}; parts are {', '.join(ALL_PARTS)}")
        held = set(EARLY_PARTS) - self._released - set(parts)
        if "parameters" in parts and held:
            raise RuntimeError(f"release {', '.join(sorted(held))} before parameters")
        freed = sum(self._release_part(p) for p in ALL_PARTS if p in parts and p not in self._released)
        self._released |= set(parts)
        return_to_system()
        return freed

    def restore(self) -> int:
        """Take back all that was released; optimizer state and parameters return bit for bit. Returns
        bytes."""
        taken = self._parking.take_back()
        self._released.clear()
        return taken

    def save(self, folder: str | Path) -> None:
        """Write a checkpoint (see `checkpoint`). Raises FileExistsError if `folder` exists, RuntimeError
        if released."""
        self._need_memory("save")
        target = Path(folder)
        self._on_rank_0(partial(checkpoint.start, target))
        weights = self.export()
        checkpoint.write_optimizer(target, self.rank, self._optimizer_state())
        state = self._state()
        self._on_rank_0(partial(checkpoint.write_model, target, Path(self.config.model), weights, state))
        self._on_rank_0(partial(checkpoint.finish, target))

    def load(self, folder: str | Path) -> None:
        """Resume from a checkpoint of a group of the same shape. Raises ValueError naming what differs."""
        self._need_memory("load")
        source = Path(folder)
        saved, own = checkpoint.read_state(source), self._state()
        fixed = ("world_size", "tensor_parallel", "distributed_optimizer", "dtype")
        differs = [
            f"{k}={getattr(saved, k)!r}, here {getattr(own, k)!r}"
            for k in fixed
            if getattr(saved, k) != getattr(own, k)
        ]
        if differs:
            raise ValueError(f"checkpoint {source} does not fit this trainer: " + "; ".join(differs))
        weights = self._mm.read_weights(source)
        self._mm.load_weights(self._model, weights, self._arch, self._layout)
        self._load_optimizer_state(checkpoint.read_optimizer(source, self.rank, self._device))
        self._version, self._steps = saved.version, saved.steps
        self._barrier()

    def close(self) -> None:
        """Leave the process group and remove spilled files. Idempotent; the trainer is of no use
        afterwards."""
        if self._closed:
            return
        self._closed = True
        self._parking.close()
        self._ps.destroy_model_parallel()
        dist.destroy_process_group()
        self._undo_cpu()

    def _minibatches(self, n: int) -> Iterator[list[int]]:
        if self.config.minibatches == 1:
            yield from [list(range(n))] * self.config.epochs
            return
        for epoch in range(self.config.epochs):
            order = np.random.default_rng([self.config.seed, self._version, epoch]).permutation(n)
            yield from (sorted(part.tolist()) for part in np.array_split(order, self.config.minibatches) if part.size)

    def _accumulate(
        self, samples: Sequence[Sample], rows: list[int], advantages: torch.Tensor, old: Logprobs | None
    ) -> tuple[_Update, Logprobs]:
        """Gradients of the loss over `rows` into the gradient buffers; also the log-probs computed on the
        way."""
        from megatron.core.pipeline_parallel import get_forward_backward_func

        began = perf_counter()
        scale = torch.zeros(len(samples))
        scale[rows] = token_scale([samples[i].generated for i in rows], self.config.loss_norm)
        batches = self._own_batches(samples, rows)
        seen: Logprobs = {}
        # Megatron divides by the number of micro-batches and by the data-parallel size; the loss is a
        # plain sum
        undo = len(batches) * self._dp

        def forward(batch_iterator: Iterator[MicroBatch], model: torch.nn.Module) -> tuple[torch.Tensor, Any]:
            batch = next(batch_iterator)
            data = collate(samples, batch).to(self._device)
            logprobs = self._mm.token_logprobs(model, data.tokens, self._layout)
            _scatter(seen, samples, batch, logprobs)
            return logprobs, partial(self._loss, batch, data, advantages, scale, self._old(old, batch, data), undo)

        with megatron_cpu.cuda_as_cpu():
            self._ddp.zero_grad_buffer()
            self._optimizer.zero_grad()
            sums = get_forward_backward_func()(
                forward_step_func=forward,
                data_iterator=iter(batches),
                model=[self._ddp],
                num_microbatches=len(batches),
                seq_length=max(b.length for b in batches),
                micro_batch_size=max(1, max(len(b.rows) for b in batches)),
                forward_only=False,
            )
        total = torch.stack(sums).sum(0)
        if self._dp > 1:
            dist.all_reduce(total, group=self._ps.get_data_parallel_group())
        loss, weights, truncated, clipped, nll = total.tolist()
        seconds = {"forward_backward": perf_counter() - began}
        return _Update(loss, weights, truncated, clipped, nll, seconds=seconds), self._share(seen)

    def _loss(
        self,
        batch: MicroBatch,
        data: Tensors,
        advantages: torch.Tensor,
        scale: torch.Tensor,
        old: torch.Tensor | None,
        undo: int,
        logprobs: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        rows, config = list(batch.rows), self.config
        clip = None
        if config.clip_low is not None and config.clip_high is not None:
            clip = (config.clip_low, config.clip_high)
        loss = policy_loss(
            logprobs,
            logprobs.detach() if old is None else old,
            data.behaviour_logprobs,
            advantages[rows].to(self._device) if rows else torch.zeros(1, device=self._device),
            data.mask,
            scale[rows].to(self._device) if rows else torch.zeros(1, device=self._device),
            config.truncate_weight,
            clip,
        )
        nll = -torch.where(data.mask, logprobs.detach(), torch.zeros_like(logprobs)).sum()
        sums = (loss.total.detach(), loss.weight_sum, loss.truncated, loss.clipped, nll)
        return loss.total * undo, torch.stack([s.double() for s in sums])

    def _step(self, update: _Update) -> None:
        """Clip and step. Raises FloatingPointError on every rank if any gradient is not finite."""
        began = perf_counter()
        finite = torch.stack([b.grad_data.isfinite().all() for b in self._ddp.buffers]).all().float()
        if self.world_size > 1:
            dist.all_reduce(finite, dist.ReduceOp.MIN)
        if not finite.item():
            raise FloatingPointError(f"gradient is not finite at version {self._version}: weights are left unchanged")
        rate = self.config.learning_rate * min(1.0, (self._steps + 1) / max(1, self.config.warmup_steps))
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        with megatron_cpu.cuda_as_cpu():
            _, norm, _ = self._optimizer.step()
        self._steps += 1
        update.grad_norm = float(norm)
        update.seconds["optimizer"] = perf_counter() - began

    @torch.no_grad()
    def _logprobs(self, samples: Sequence[Sample]) -> Logprobs:
        found: Logprobs = {}
        for batch in self._own_batches(samples, list(range(len(samples)))):
            data = collate(samples, batch).to(self._device)
            _scatter(found, samples, batch, self._mm.token_logprobs(self._model, data.tokens, self._layout))
        return self._share(found)

    def _own_batches(self, samples: Sequence[Sample], rows: list[int]) -> list[MicroBatch]:
        config = self.config
        dealt = plan([len(samples[i]) for i in rows], config.micro_batch_tokens, config.length_bucket, self._dp)
        own = [MicroBatch(tuple(rows[i] for i in b.rows), b.length) for b in dealt[self._dp_rank]]
        return own or [MicroBatch((), config.length_bucket)]

    def _share(self, own: Logprobs) -> Logprobs:
        """Every data-parallel rank's part, on all of them."""
        if self._dp == 1:
            return own
        parts: list[Logprobs] = [{} for _ in range(self._dp)]
        dist.all_gather_object(parts, own, group=self._ps.get_data_parallel_group())
        return {index: values for part in parts for index, values in part.items()}

    def _old(self, old: Logprobs | None, batch: MicroBatch, data: Tensors) -> torch.Tensor | None:
        if old is None:
            return None
        out = np.zeros(data.mask.shape, np.float32)
        for row, index in enumerate(batch.rows):
            out[row, : len(old[index]) - 1] = old[index][1:]
        return torch.from_numpy(out).to(self._device)

    def _check_logprobs(self, samples: Sequence[Sample], found: Logprobs) -> LogprobCheck:
        ours = [found[i] for i in range(len(samples))]
        compare = check_logprobs if self.config.strict_logprobs else compare_logprobs
        return compare(samples, ours, self._version, self.config.logprob_tolerance)

    def _report(
        self, samples: Sequence[Sample], updates: list[_Update], check: LogprobCheck, seconds: float
    ) -> TrainReport:
        trained = sum(s.generated for s in samples)
        passed = trained * self.config.epochs
        staleness: dict[int, int] = {}
        for sample in samples:
            made = np.unique(sample.versions[sample.loss_mask], return_counts=True)
            for version, count in zip(*made, strict=True):
                lag = self._version - int(version)
                staleness[lag] = staleness.get(lag, 0) + int(count)
        parts = {key: sum(u.seconds[key] for u in updates) for key in ("forward_backward", "optimizer")}
        return TrainReport(
            version=self._version + 1,
            samples=len(samples),
            tokens=sum(map(len, samples)),
            trained_tokens=trained,
            loss=sum(u.loss for u in updates) / len(updates),
            grad_norm=max(u.grad_norm for u in updates),
            mean_reward=sum(s.reward for s in samples) / len(samples),
            success_rate=sum(s.success for s in samples) / len(samples),
            mean_weight=sum(u.weights for u in updates) / passed,
            truncated_share=sum(u.truncated for u in updates) / passed,
            clipped_share=sum(u.clipped for u in updates) / passed,
            mean_nll=sum(u.nll for u in updates) / passed,
            staleness=dict(sorted(staleness.items())),
            logprob_check=check,
            seconds={**parts, "total": seconds},
        )

    def _check_samples(self, samples: Sequence[Sample]) -> None:
        if not samples or not any(s.generated for s in samples):
            raise ValueError(f"nothing to train on: {len(samples)} samples without a generated token")
        for s in samples:
            if len(s) > self._arch.positions:
                raise ValueError(
                    f"sample {s.trajectory!r} has {len(s)} tokens, the model has {self._arch.positions} positions"
                )
            if s.tokens.min() < 0 or s.tokens.max() >= self._arch.vocab:
                raise ValueError(f"sample {s.trajectory!r} has a token outside 0..{self._arch.vocab - 1}")
            if s.loss_mask.any() and int(s.versions.max()) > self._version:
                raise ValueError(
                    f"sample {s.trajectory!r} claims version {int(s.versions.max())}, the trainer is at {self._version}"
                )

    def _release_part(self, part: Part) -> int:
        if part == "gradients":
            self._optimizer.zero_grad()
            return self._parking.give_back((b.grad_data for b in self._ddp.buffers), keep=False)
        if part == "optimizer":
            return self._parking.give_back(self._optimizer_tensors(), keep=True)
        if part == "parameters":
            return self._parking.give_back((p.data for p in self._model.parameters()), keep=True)
        scratch = self._ps.get_global_memory_buffer().buffer
        freed = sum(t.untyped_storage().nbytes() for t in scratch.values())
        scratch.clear()
        return freed

    def _inner_optimizers(self) -> list[torch.optim.Optimizer]:
        return [o.optimizer for o in getattr(self._optimizer, "chained_optimizers", [self._optimizer])]

    def _optimizer_tensors(self) -> Iterator[torch.Tensor]:
        """State, and master weights where they are not the parameters themselves."""
        parameters = {p.untyped_storage().data_ptr() for p in self._model.parameters()}
        for optimizer in self._inner_optimizers():
            for state in optimizer.state.values():
                yield from (v for v in state.values() if torch.is_tensor(v) and v.numel() > 1)
            for group in optimizer.param_groups:
                yield from (p for p in group["params"] if p.untyped_storage().data_ptr() not in parameters)

    def _optimizer_state(self) -> dict[str, Any]:
        inner = self._inner_optimizers()
        state: dict[str, Any] = {"inner": [o.state_dict() for o in inner]}
        if self.config.dtype != "float32":  # the model file holds the rounded weights only
            state["masters"] = [[p.detach() for g in o.param_groups for p in g["params"]] for o in inner]
        return state

    @torch.no_grad()
    def _load_optimizer_state(self, state: dict[str, Any]) -> None:
        for optimizer, saved in zip(self._inner_optimizers(), state["inner"], strict=True):
            optimizer.load_state_dict(saved)
        for optimizer, masters in zip(self._inner_optimizers(), state.get("masters", ()), strict=False):
            own = (p for group in optimizer.param_groups for p in group["params"])
            for parameter, master in zip(own, masters, strict=True):
                parameter.copy_(master)

    def _state(self) -> checkpoint.TrainerState:
        c = self.config
        return checkpoint.TrainerState(
            version=self._version,
            steps=self._steps,
            world_size=self.world_size,
            tensor_parallel=c.tensor_parallel,
            distributed_optimizer=c.distributed_optimizer,
            dtype=c.dtype,
        )

    def _need_memory(self, what: str, parts: Sequence[Part] = ALL_PARTS) -> None:
        if self._closed:
            raise RuntimeError(f"{what}: the trainer is closed")
        gone = [p for p in parts if p in self._released]
        if gone:
            raise RuntimeError(f"{what}: {', '.join(gone)} released, call restore first")

    def _on_rank_0(self, action: Any) -> None:
        """Run on rank 0 between barriers; its error is raised on every rank."""
        self._barrier()
        failure: list[Exception | None] = [None]
        if self.rank == 0:
            try:
                action()
            except (OSError, ValueError) as error:
                failure = [error]
        if self.world_size > 1:
            dist.broadcast_object_list(failure, src=0)
        if failure[0] is not None:
            raise failure[0]

    def _barrier(self) -> None:
        if self.world_size > 1:
            dist.barrier()


def _scatter(into: Logprobs, samples: Sequence[Sample], batch: MicroBatch, logprobs: torch.Tensor) -> None:
    """Put the rows of `logprobs` ([rows, length - 1]) where they belong, as [n] with a leading 0."""
    values = logprobs.detach().float().cpu().numpy()
    for row, index in enumerate(batch.rows):
        n = len(samples[index])
        into[index] = np.concatenate([np.zeros(1, np.float32), values[row, : n - 1]])
