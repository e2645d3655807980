"""The Megatron-core trainer: GRPO on a GPTModel built from a Hugging Face folder (see `protocol.Trainer`).

Invariants: weights change only in `train` and `load`, and the version moves with them. A failed log-prob check or a
gradient that is not finite raises before the optimizer step it belongs to. Every public method is collective over the
group, and every rank raises when one must.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray
from torch.distributed import Store

from roll_ts.trainers import checkpoint, megatron_cpu
from roll_ts.trainers.agreement import check_logprobs, compare_logprobs
from roll_ts.trainers.algorithms.advantages import advantages
from roll_ts.trainers.architecture import read_architecture
from roll_ts.trainers.memory import Parking, return_to_system
from roll_ts.trainers.protocol import ALL_PARTS, EARLY_PARTS, LogprobCheck, Part, TrainerConfig, TrainReport
from roll_ts.trainers.report import make_report
from roll_ts.trainers.sample import Sample
from roll_ts.trainers.tolerance import tolerance


class MegatronTrainer:
    """One rank of a trainer group; one per process at a time (Megatron's parallel state is global)."""

    def __init__(self, config: TrainerConfig, rank: int, world_size: int, store: Store) -> None:
        """Join the ranks that meet at `store` and load the model. Waits for them, at most `config.timeout_s`.

        Raises ValueError for a bad configuration or model, FileNotFoundError without a model, RuntimeError if the
        process is already in a process group, torch's DistStoreError when the other ranks do not come.
        """
        config.require_sound()
        # VAL: VAL_DIVISIBLE(world_size, config.tensor_parallel) - tensor_parallel ranks share one copy of the model
        if world_size % config.tensor_parallel != 0:
            raise ValueError(
                "MegatronTrainer.__init__: world_size must be divisible by "
                f"{config.tensor_parallel!r:.200}, got {world_size!r} - tensor_parallel ranks share one "
                "copy of the model"
            )
        # END VAL 5f5bd2
        self.config, self.rank, self.world_size = config, rank, world_size
        self._arch = read_architecture(config.model)
        self._arch.check_tensor_parallel(config.tensor_parallel)
        dtypes = (config.dtype, config.rollout_dtype)
        self._tolerance = tolerance(dtypes, self._arch.layers, config.logprob_tolerance)
        self._version = 0
        self._released: set[Part] = set()
        self._open = True
        with ExitStack() as leaving:  # what was set up is undone if a later part fails, and by `close` if none does
            leaving.callback(megatron_cpu.install())
            self._build(store, leaving)
            self._leaving = leaving.pop_all()

    def _build(self, store: Store, leaving: ExitStack) -> None:
        # Megatron looks at torch.cuda while it is imported, so the stand-ins must be there first
        from megatron.core import parallel_state

        from roll_ts.trainers import megatron_model, optimizer_state
        from roll_ts.trainers.megatron_group import TrainerGroup
        from roll_ts.trainers.megatron_update import Updater

        self._ps, self._mm, self._os, config = parallel_state, megatron_model, optimizer_state, self.config
        self._group = TrainerGroup(
            self.rank, self.world_size, store, config.tensor_parallel, config.seed, config.timeout_s
        )
        leaving.callback(self._group.leave)
        self._parking = Parking(Path(config.spill_folder) if config.spill_folder else None)
        leaving.callback(self._parking.close)
        dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[config.dtype]
        self._layout = megatron_model.choose_layout()
        transformer = megatron_model.transformer_config(self._arch, config.tensor_parallel, dtype)
        self._model = megatron_model.build_model(self._arch, transformer, self._layout)
        self._load_weights(Path(config.model))
        self._updater = Updater(config, self._model, self._layout, self._group)

    @property
    def version(self) -> int:
        """Version of the present weights: number of `train` calls since version 0."""
        return self._version

    def train(self, samples: Sequence[Sample]) -> TrainReport:
        """One policy update on `samples` (whole groups, the same on every rank); the version rises by one.

        Raises ValueError for samples the model cannot take, LogprobMismatch and FloatingPointError (see the module),
        RuntimeError while memory is released.
        """
        self._need_memory("train")
        self._check_samples(samples)
        began, config = perf_counter(), self.config
        rewards, groups = [s.reward for s in samples], [s.group for s in samples]
        gains = advantages(config.advantage, rewards, groups)
        single = config.epochs * config.minibatches == 1
        old, check = None, None
        if not single:  # later steps need pi_old, which the single step's own forward pass gives for nothing
            old = self._updater.logprobs(samples)
            check = self._check_logprobs(samples, old)
        reference = self._updater.reference_logprobs(samples)
        updates = []
        for rows in self._minibatches(len(samples)):
            update, seen = self._updater.accumulate(samples, rows, gains, self._version, old, reference)
            if check is None:
                check = self._check_logprobs(samples, seen)
            if self._teaches(samples, rows, gains):
                self._updater.step(update)
            updates.append(update)
        # AST: AST_INVARIANT(check is not None) - the first minibatch is checked at the latest
        assert check is not None, (
            f"Invariant: check is not None, got check={check!r:.200} - the first minibatch is checked at the latest"
        )
        # END AST 92624e
        report = make_report(samples, updates, check, self._version, config.epochs, perf_counter() - began)
        self._version += 1
        return report

    def logprobs(self, samples: Sequence[Sample]) -> list[NDArray[np.float32]]:
        """Per sample [n]: log-prob of tokens[i] given tokens[:i] under the present weights, nats; index 0 is 0."""
        self._need_memory("logprobs")
        self._check_samples(samples)
        found = self._updater.logprobs(samples)
        return [found[i] for i in range(len(samples))]

    def greedy(self, prompt: Sequence[int], count: int) -> tuple[list[int], list[float]]:
        """The `count` most likely tokens after `prompt`, one after the other, and the log-prob (nats) of each."""
        self._need_memory("greedy", parts=("parameters",))
        said, logprobs = list(prompt), []
        for _ in range(count):
            tokens = torch.tensor([said], device=next(self._model.parameters()).device)
            best, token = self._mm.next_logprobs(self._model, tokens, self._layout)[0].max(dim=0)
            said.append(int(token))
            logprobs.append(float(best))
        return said[len(prompt) :], logprobs

    def export(self) -> dict[str, torch.Tensor]:
        """Present weights by Hugging Face name, fresh CPU memory; the whole model on rank 0, empty elsewhere."""
        self._need_memory("export", parts=("parameters",))
        weights = {}
        if self._group.data_rank == 0:  # every data-parallel replica holds the same
            weights = self._mm.gather_weights(self._model, self._arch, self._layout)
        return weights if self.rank == 0 else {}

    def release(self, parts: Collection[Part] = EARLY_PARTS) -> int:
        """Give the memory of `parts` back to the system. Returns the bytes freed on this rank by this call.

        Gradients and activations are dropped, optimizer state and parameters put one level down the memory hierarchy.
        Order (R22): asking for parameters while an early part is held raises RuntimeError. Releasing a part twice frees
        nothing. `export` works until parameters are released.
        """
        # VAL: VAL_SUBSET(parts, of=ALL_PARTS) - nothing else can be released
        _extra = sorted(set(parts) - set(ALL_PARTS), key=repr)
        if _extra:
            raise ValueError(
                f"MegatronTrainer.release: parts must be a subset of ALL_PARTS, but has {_extra!r:.200} "
                f"outside {ALL_PARTS!r:.200} - nothing else can be released"
            )
        # END VAL c9d294
        if "parameters" in parts:
            held = sorted(set(EARLY_PARTS) - self._released - set(parts))
            # VAL: VAL_EMPTY(held, error=RuntimeError) - release these before parameters, or with them
            if len(held) != 0:
                raise RuntimeError(
                    f"MegatronTrainer.release: held must be empty, got {held!r:.200} - release these before "
                    "parameters, or with them"
                )
            # END VAL 43bb81
        freed = sum(self._release_part(p) for p in ALL_PARTS if p in parts and p not in self._released)
        self._released |= set(parts)
        return_to_system()
        return freed

    def restore(self) -> int:
        """Take back all that was released; optimizer state and parameters return bit for bit. Returns bytes."""
        taken = self._parking.take_back()
        self._released.clear()
        return taken

    def save(self, folder: str | Path) -> None:
        """Write a checkpoint (see `checkpoint`). Raises FileExistsError if `folder` exists."""
        self._need_memory("save")
        target, group = Path(folder), self._group
        group.on_rank_0(partial(checkpoint.start, target))
        weights = self.export()
        masters = self.config.dtype != "float32"
        state = self._os.save_state(self._updater.optimizer, masters)
        checkpoint.write_optimizer(target, self.rank, state)
        group.on_rank_0(partial(checkpoint.write_model, target, Path(self.config.model), weights, self._state()))
        group.on_rank_0(partial(checkpoint.finish, target))

    def load(self, folder: str | Path) -> None:
        """Resume from a checkpoint of a group of the same shape. Raises FileNotFoundError if `folder` is none,
        ValueError naming what differs."""
        self._need_memory("load")
        source = Path(folder)
        saved = checkpoint.read_state(source)
        checkpoint.require_same_shape(source, saved, self._state())
        self._load_weights(source)
        state = checkpoint.read_optimizer(source, self.rank, next(self._model.parameters()).device)
        self._os.load_state(self._updater.optimizer, state)
        self._version, self._updater.steps = saved.version, saved.steps
        self._group.barrier()

    def close(self) -> None:
        """Leave the process group and remove spilled files. Idempotent; the trainer is of no use afterwards."""
        if self._open:
            self._open = False
            self._leaving.close()

    def _load_weights(self, folder: Path) -> None:
        weights = self._mm.read_weights(folder)
        self._mm.load_weights(self._model, weights, self._arch, self._layout)

    def _minibatches(self, n: int) -> Iterator[list[int]]:
        for epoch in range(self.config.epochs):
            order = np.arange(n)
            if self.config.minibatches > 1:
                order = np.random.default_rng([self.config.seed, self._version, epoch]).permutation(n)
            parts = np.array_split(order, self.config.minibatches)
            yield from (sorted(part.tolist()) for part in parts if part.size)

    def _teaches(self, samples: Sequence[Sample], rows: list[int], gains: torch.Tensor) -> bool:
        """Whether the loss over these rows has a gradient. Where every trained sample's advantage is zero and nothing
        else is weighed, a step would move the weights by Adam's momentum and their decay alone."""
        if self.config.kl_weight or self.config.entropy_weight:
            return True
        return any(gains[i] != 0 and not (self.config.mask_truncated and samples[i].truncated) for i in rows)

    def _check_logprobs(self, samples: Sequence[Sample], found: dict[int, NDArray[np.float32]]) -> LogprobCheck:
        ours = [found[i] for i in range(len(samples))]
        compare = check_logprobs if self.config.strict_logprobs else compare_logprobs
        return compare(samples, ours, self._version, self._tolerance)

    def _check_samples(self, samples: Sequence[Sample]) -> None:
        generated = sum(s.generated for s in samples)
        # VAL: VAL_POSITIVE(generated, about=len(samples)) - without a generated token there is nothing to train on
        if not generated > 0:
            raise ValueError(
                f"MegatronTrainer._check_samples: generated must be positive, got {generated!r} "
                f"(len(samples)={len(samples)!r:.200}) - without a generated token there is nothing to "
                "train on"
            )
        # END VAL 6c7822
        for s in samples:
            length, lowest, highest = len(s), int(s.tokens.min()), int(s.tokens.max())
            newest = int(s.versions.max())
            # VAL: VAL_INT_RANGE(length, max=self._arch.positions, about=s.trajectory) - the model's positions
            if not length <= self._arch.positions:
                raise ValueError(
                    f"MegatronTrainer._check_samples: length must be at most {self._arch.positions!r:.200}, "
                    f"got {length!r} (s.trajectory={s.trajectory!r:.200}) - the model's positions"
                )
            # END VAL 85d394
            # VAL: VAL_INT_RANGE(lowest, min=0, about=s.trajectory) - tokens of the model's vocabulary
            if not lowest >= 0:
                raise ValueError(
                    f"MegatronTrainer._check_samples: lowest must be at least 0, got {lowest!r} "
                    f"(s.trajectory={s.trajectory!r:.200}) - tokens of the model's vocabulary"
                )
            # END VAL 451888
            # VAL: VAL_INT_RANGE(highest, max=self._arch.vocab - 1, about=s.trajectory) - tokens of the vocabulary
            if not highest <= self._arch.vocab - 1:
                raise ValueError(
                    f"MegatronTrainer._check_samples: highest must be at most {self._arch.vocab - 1!r:.200}, "
                    f"got {highest!r} (s.trajectory={s.trajectory!r:.200}) - tokens of the vocabulary"
                )
            # END VAL c61096
            # VAL: VAL_INT_RANGE(newest, max=self._version, about=s.trajectory) - the trainer's version is the newest
            if not newest <= self._version:
                raise ValueError(
                    f"MegatronTrainer._check_samples: newest must be at most {self._version!r:.200}, got "
                    f"{newest!r} (s.trajectory={s.trajectory!r:.200}) - the trainer's version is the newest"
                )
            # END VAL c3a760

    def _release_part(self, part: Part) -> int:
        if part == "gradients":
            self._updater.optimizer.zero_grad()
            return self._parking.give_back((b.grad_data for b in self._updater.ddp.buffers), keep=False)
        if part == "optimizer":
            tensors = self._os.state_tensors(self._updater.optimizer, list(self._model.parameters()))
            return self._parking.give_back(tensors, keep=True)
        if part == "parameters":
            return self._parking.give_back((p.data for p in self._model.parameters()), keep=True)
        scratch = self._ps.get_global_memory_buffer().buffer
        freed = sum(t.untyped_storage().nbytes() for t in scratch.values())
        scratch.clear()
        return freed

    def _state(self) -> checkpoint.TrainerState:
        c = self.config
        return checkpoint.TrainerState(
            version=self._version,
            steps=self._updater.steps,
            world_size=self.world_size,
            tensor_parallel=c.tensor_parallel,
            distributed_optimizer=c.distributed_optimizer,
            dtype=c.dtype,
        )

    def _need_memory(self, what: str, parts: Sequence[Part] = ALL_PARTS) -> None:
        # AST: AST_PRECONDITION(self._open, error=RuntimeError, about=what) - a closed trainer is of no use
        if not self._open:
            raise RuntimeError(
                f"Pre-condition: self._open, got {self._open!r:.200} (what={what!r:.200}) - a closed "
                "trainer is of no use"
            )
        # END AST 208646
        released = [p for p in parts if p in self._released]
        # VAL: VAL_EMPTY(released, error=RuntimeError, about=what) - call restore first
        if len(released) != 0:
            raise RuntimeError(
                f"MegatronTrainer._need_memory: released must be empty, got {released!r:.200} "
                f"(what={what!r:.200}) - call restore first"
            )
        # END VAL 81e2b8
