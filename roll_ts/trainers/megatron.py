"""The Megatron-core trainer: GRPO on a GPTModel built from a Hugging Face folder (see `protocol.Trainer`)."""

from __future__ import annotations

from roll_ts.trainers.protocol import TrainerConfig


class MegatronTrainer:
    """One rank of a trainer group; use one per process (Megatron's parallel state is global)."""

    def __init__(
        self, config: TrainerConfig, rank: int, world_size: int, master_addr: str, master_port: int
    ) -> None: ...
