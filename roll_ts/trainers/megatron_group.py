"""Joining and leaving the group of trainer ranks, and the few collectives that are not Megatron's own.

Data-parallel ranks hold equal weights and take different samples; tensor-parallel ranks hold different shards and take
the same samples.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from megatron.core import parallel_state as ps
from megatron.core.tensor_parallel import model_parallel_cuda_manual_seed

T = TypeVar("T")


class TrainerGroup:
    """This process's seat in the group. Every method is collective."""

    def __init__(
        self, rank: int, world_size: int, store: dist.Store, tensor_parallel: int, seed: int, timeout_s: float
    ) -> None:
        """Join the ranks that meet at `store`. Raises RuntimeError if the process is in a group already, torch's
        DistStoreError when the others do not come within `timeout_s`."""
        free = not dist.is_initialized()
        # AST: AST_PRECONDITION(free, error=RuntimeError) - in a process group already: one trainer per process
        if not free:
            raise RuntimeError(
                f"Pre-condition: free, got {free!r:.200} - in a process group already: one trainer per process"
            )
        # END AST ee89de
        self.rank, self.world_size = rank, world_size
        if torch.cuda.is_available():
            torch.cuda.set_device(rank % torch.cuda.device_count())
        dist.init_process_group(
            "nccl" if torch.cuda.is_available() else "gloo",
            store=store,
            rank=rank,
            world_size=world_size,
            timeout=timedelta(seconds=timeout_s),
        )
        ps.initialize_model_parallel(tensor_parallel, 1)
        model_parallel_cuda_manual_seed(seed)
        self.data_rank: int = ps.get_data_parallel_rank()
        self.data_ways: int = ps.get_data_parallel_world_size()

    def leave(self) -> None:
        """Tear down Megatron's parallel state and the process group."""
        ps.destroy_model_parallel()
        dist.destroy_process_group()

    def share(self, own: dict[int, T]) -> dict[int, T]:
        """The union of every data-parallel rank's dictionary, on all of them."""
        if self.data_ways == 1:
            return own
        parts: list[dict[int, T]] = [{} for _ in range(self.data_ways)]
        dist.all_gather_object(parts, own, group=ps.get_data_parallel_group())
        return {index: value for part in parts for index, value in part.items()}

    def sum_over_data(self, values: torch.Tensor) -> torch.Tensor:
        """Sum over data-parallel ranks, in place."""
        if self.data_ways > 1:
            dist.all_reduce(values, group=ps.get_data_parallel_group())
        return values

    def all_true(self, flag: torch.Tensor) -> bool:
        """Whether `flag` holds on every rank."""
        low = flag.float()
        if self.world_size > 1:
            dist.all_reduce(low, dist.ReduceOp.MIN)
        return bool(low.item())

    def barrier(self) -> None:
        """Wait for every rank."""
        if self.world_size > 1:
            dist.barrier()

    def on_rank_0(self, action: Callable[[], None]) -> None:
        """Run `action` on rank 0 once every rank has come; its OSError or ValueError is raised on every rank."""
        self.barrier()
        failure: list[Exception | None] = [None]
        if self.rank == 0:
            try:
                action()
            except (OSError, ValueError) as error:
                failure = [error]
        if self.world_size > 1:
            dist.broadcast_object_list(failure, src=0)
        if failure[0] is not None:  # unmanaged: passes on the very error that rank 0 met
            raise failure[0]
