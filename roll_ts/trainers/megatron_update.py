"""One optimizer step on a GPTModel: gradients of the policy loss through Megatron's schedule, then clip and step.

Invariant: `accumulate` touches gradients only; weights change in `step`, and only if every gradient on every rank is
finite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import torch
from megatron.core.distributed import (
    DistributedDataParallel,
    DistributedDataParallelConfig,
    finalize_model_grads,
)
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler
from megatron.core.pipeline_parallel import get_forward_backward_func
from numpy.typing import NDArray

from roll_ts.trainers.algorithms.corrections import Correction
from roll_ts.trainers.algorithms.objective import Batch, Objective, policy_loss, token_scale
from roll_ts.trainers.batches import MicroBatch, Tensors, collate, plan
from roll_ts.trainers.mapping import Layout
from roll_ts.trainers.megatron_cpu import cuda_as_cpu
from roll_ts.trainers.megatron_group import TrainerGroup
from roll_ts.trainers.megatron_model import logprobs_and_entropy, token_logprobs
from roll_ts.trainers.protocol import TrainerConfig
from roll_ts.trainers.sample import Sample

# sample index -> log-prob of tokens[i] given tokens[:i], float32 [n], index 0 is 0
Logprobs = dict[int, NDArray[np.float32]]


@dataclass
class Update:
    """Sums over the trained tokens of one optimizer step, all ranks, and this rank's seconds."""

    loss: float = 0.0
    weights: float = 0.0
    truncated: float = 0.0
    rejected: float = 0.0
    clipped: float = 0.0
    kl: float = 0.0
    entropy: float = 0.0
    nll: float = 0.0
    grad_norm: float = 0.0
    learning_rate: float = 0.0
    stepped: bool = False
    seconds: dict[str, float] = field(default_factory=dict)


class Updater:
    """The model under Megatron's gradient buffers, and its optimizer."""

    def __init__(self, config: TrainerConfig, model: GPTModel, layout: Layout, group: TrainerGroup) -> None:
        self._config, self._model, self._layout, self._group = config, model, layout, group
        self._device = next(model.parameters()).device
        self._objective = objective_of(config)
        # In host memory: it is read once a batch, and the device is shared with engines.
        keep = config.kl_weight > 0
        self._reference = [p.detach().to("cpu", copy=True) for p in model.parameters()] if keep else None
        self.steps = 0
        ddp_config = DistributedDataParallelConfig(
            use_distributed_optimizer=config.distributed_optimizer, grad_reduce_in_fp32=True
        )
        optimizer_config = OptimizerConfig(
            optimizer="adam",
            lr=config.learning_rate,
            min_lr=config.min_learning_rate,
            weight_decay=config.weight_decay,
            adam_beta1=config.adam_beta1,
            adam_beta2=config.adam_beta2,
            adam_eps=config.adam_eps,
            clip_grad=config.grad_clip,
            use_distributed_optimizer=config.distributed_optimizer,
            params_dtype=model.config.params_dtype,
            bf16=model.config.bf16,
        )
        with cuda_as_cpu():
            self.ddp = DistributedDataParallel(model.config, ddp_config, model)
            self.optimizer = get_megatron_optimizer(optimizer_config, [self.ddp])
        # Megatron gives norms and biases a multiplier of 0, which this scheduler alone applies.
        self._schedule = OptimizerParamScheduler(
            self.optimizer,
            init_lr=0.0,
            max_lr=config.learning_rate,
            min_lr=config.min_learning_rate,
            lr_warmup_steps=config.warmup_steps,
            lr_decay_steps=max(config.decay_steps, config.warmup_steps + 1),
            lr_decay_style=config.decay,
            start_wd=config.weight_decay,
            end_wd=config.weight_decay,
            wd_incr_steps=0,
            wd_incr_style="constant",
        )
        model.config.finalize_model_grads_func = finalize_model_grads
        model.config.no_sync_func = self.ddp.no_sync

    @torch.no_grad()
    def logprobs(self, samples: Sequence[Sample]) -> Logprobs:
        """Log-probs of every sample under the present weights, on every rank."""
        found: Logprobs = {}
        for batch in self._own_batches(samples, list(range(len(samples)))):
            data = collate(samples, batch).to(self._device)
            _scatter(found, samples, batch, token_logprobs(self._model, data.tokens, self._layout))
        return self._group.share(found)

    @torch.no_grad()
    def reference_logprobs(self, samples: Sequence[Sample]) -> Logprobs | None:
        """Log-probs under the weights that the run began with; None where the objective does not ask for them."""
        if self._reference is None:
            return None
        own = [p.detach().clone() for p in self._model.parameters()]
        self._copy_in(self._reference)
        try:
            return self.logprobs(samples)
        finally:
            self._copy_in(own)

    def accumulate(
        self,
        samples: Sequence[Sample],
        rows: list[int],
        advantages: torch.Tensor,
        version: int,
        old: Logprobs | None,
        reference: Logprobs | None,
    ) -> tuple[Update, Logprobs]:
        """Gradients of the loss over `rows` into the gradient buffers, reduced over the group.

        advantages: float32 [samples]. version: of pi_old; tokens of an older one are stale. old: log-probs under
        pi_old; None when the present weights are pi_old. reference: see `reference_logprobs`. Also returns the
        log-probs of `rows` computed on the way, on every rank.
        """
        began = perf_counter()
        scale = torch.zeros(len(samples))
        left_out = {i for i in rows if self._config.mask_truncated and samples[i].truncated}
        trained = [0 if i in left_out else samples[i].generated for i in rows]
        scale[rows] = token_scale(trained, self._config.loss_norm)
        scale[list(left_out)] = 0.0
        batches = self._own_batches(samples, rows)
        seen: Logprobs = {}
        # Megatron divides by the number of micro-batches and by the data-parallel size; this loss is a plain sum
        undo = len(batches) * self._group.data_ways

        def forward(iterator: Iterator[MicroBatch], model: torch.nn.Module) -> tuple[torch.Tensor, Any]:
            batch = next(iterator)
            data = collate(samples, batch).to(self._device)
            if self._config.entropy_weight:
                logprobs, entropy = logprobs_and_entropy(model, data.tokens, self._layout)
            else:
                logprobs, entropy = token_logprobs(model, data.tokens, self._layout), None
            _scatter(seen, samples, batch, logprobs)
            gain, share = _rows(advantages, batch, self._device), _rows(scale, batch, self._device)
            now = logprobs.detach()
            known = Batch(
                now if old is None else _gather(old, batch, data),
                data.behaviour_logprobs,
                data.versions < version,
                data.mask,
                None if reference is None else _gather(reference, batch, data),
            )
            return logprobs, partial(self._loss, known, gain, share, entropy, undo)

        with cuda_as_cpu():
            self.ddp.zero_grad_buffer()
            self.optimizer.zero_grad()
            sums = get_forward_backward_func()(
                forward_step_func=forward,
                data_iterator=iter(batches),
                model=[self.ddp],
                num_microbatches=len(batches),
                seq_length=max(b.length for b in batches),
                micro_batch_size=max(1, max(len(b.rows) for b in batches)),
                forward_only=False,
            )
        total = self._group.sum_over_data(torch.stack(sums).sum(0))
        update = _update(total)
        update.seconds["forward_backward"] = perf_counter() - began
        return update, self._group.share(seen)

    def step(self, update: Update) -> None:
        """Clip and step; completes `update`. Raises FloatingPointError on every rank, with the weights unchanged, if a
        gradient anywhere is not finite."""
        began = perf_counter()
        finite_here = torch.stack([b.grad_data.isfinite().all() for b in self.ddp.buffers]).all()
        gradients_finite = self._group.all_true(finite_here)
        # AST: AST_PRECONDITION(gradients_finite, error=FloatingPointError) - weights are left unchanged
        if not gradients_finite:
            raise FloatingPointError(
                f"Pre-condition: gradients_finite, got {gradients_finite!r:.200} - weights are left unchanged"
            )
        # END AST 7c1ff9
        self._schedule.num_steps = self.steps
        self._schedule.step(1)
        with cuda_as_cpu():
            _, norm, _ = self.optimizer.step()
        self.steps += 1
        update.stepped, update.grad_norm = True, float(norm)
        update.learning_rate = float(self.optimizer.param_groups[0]["lr"])
        update.seconds["optimizer"] = perf_counter() - began

    def _loss(
        self,
        known: Batch,
        advantages: torch.Tensor,
        scale: torch.Tensor,
        entropy: torch.Tensor | None,
        undo: int,
        logprobs: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        loss = policy_loss(self._objective, logprobs, known, advantages, scale, entropy)
        nll = -torch.where(known.mask, logprobs.detach(), torch.zeros_like(logprobs)).sum()
        counts = (loss.weights, loss.truncated, loss.rejected, loss.clipped, loss.kl, loss.entropy)
        sums = (loss.total.detach(), *counts, nll)
        return loss.total * undo, torch.stack([s.double() for s in sums])

    def _copy_in(self, weights: Sequence[torch.Tensor]) -> None:
        for parameter, value in zip(self._model.parameters(), weights, strict=True):
            parameter.data.copy_(value)

    def _own_batches(self, samples: Sequence[Sample], rows: list[int]) -> list[MicroBatch]:
        config = self._config
        lengths = [len(samples[i]) for i in rows]
        dealt = plan(lengths, config.micro_batch_tokens, config.length_bucket, self._group.data_ways)
        own = [MicroBatch(tuple(rows[i] for i in b.rows), b.length) for b in dealt[self._group.data_rank]]
        return own or [MicroBatch((), config.length_bucket)]


def _update(sums: torch.Tensor) -> Update:
    loss, weights, truncated, rejected, clipped, kl, entropy, nll = sums.tolist()
    return Update(loss, weights, truncated, rejected, clipped, kl, entropy, nll)


def objective_of(config: TrainerConfig) -> Objective:
    """What the configuration asks for, without its Nones."""
    clip = None
    if config.clip_low is not None and config.clip_high is not None:
        clip = (config.clip_low, config.clip_high)
    correction = Correction(
        source=config.weight_source,
        level=config.weight_level,
        upper=config.truncate_weight,
        reject=config.reject_level,
        reject_low=config.reject_low,
        reject_high=float("inf") if config.reject_high is None else config.reject_high,
    )
    return Objective(
        ratio=config.ratio,
        clip=clip,
        dual_clip=config.dual_clip,
        correction=correction,
        kl=config.kl_weight,
        estimator=config.kl_estimator,
        entropy=config.entropy_weight,
    )


def _rows(values: torch.Tensor, batch: MicroBatch, device: torch.device) -> torch.Tensor:
    """Values of the batch's rows; one zero for a batch of padding only."""
    return (values[list(batch.rows)] if batch.rows else torch.zeros(1)).to(device)


def _gather(found: Logprobs, batch: MicroBatch, data: Tensors) -> torch.Tensor:
    out = np.zeros(data.mask.shape, np.float32)
    for row, index in enumerate(batch.rows):
        out[row, : len(found[index]) - 1] = found[index][1:]
    return torch.from_numpy(out).to(data.mask.device)


def _scatter(into: Logprobs, samples: Sequence[Sample], batch: MicroBatch, logprobs: torch.Tensor) -> None:
    values = logprobs.detach().float().cpu().numpy()
    for row, index in enumerate(batch.rows):
        n = len(samples[index])
        into[index] = np.concatenate([np.zeros(1, np.float32), values[row, : n - 1]])
