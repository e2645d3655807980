"""What things cost in virtual seconds: one flat, calibratable table.

Decode is memory-bound: a step of the whole batch reads the weights once, each sequence adds its own work, and
each KV token held adds its read. Prefill is a serial lane of its own that slows decoding while it is busy
(chunked prefill).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from roll_ts.core.settings import Problem


@dataclass(frozen=True)
class CostModel:
    """Seconds, tokens and bytes of one rollout rank, the trainer and the switches between them.

    A decode step with `n` sequences that hold `k` KV tokens takes
    `step_seconds + n · sequence_seconds + k · kv_token_seconds`; each sequence gains one token per step. While
    a prefill runs, a step takes `1 + prefill_interference` times as long. Training takes
    `train_fixed_seconds + tokens ÷ (train_tokens_per_second · training devices)`. A sync takes
    `sync_seconds + sync_member_seconds · members`; who has joined a weight group that is not complete gives up after
    `group_timeout_seconds`.

    The default is an 8B dense model in bfloat16 on one 80 GB device per rank: weights 16.4 GB at 3.35 TB/s (the
    floor is 4.9 ms a step), 144 KiB of KV per token, prefill and training at about half of the dense peak;
    sleep and wake from the published level-2 figures of an 8B model, sync from published figures for small
    models.
    """

    step_seconds: float = 6.5e-3
    sequence_seconds: float = 6e-5
    kv_token_seconds: float = 4.5e-8
    kv_capacity: int = 330_000
    prefill_tokens_per_second: float = 28_000.0
    prefill_interference: float = 0.5
    progress_seconds: float = 2.0
    submit_seconds: float = 0.005
    abort_seconds: float = 0.02
    train_tokens_per_second: float = 5_500.0
    train_fixed_seconds: float = 2.0
    sync_seconds: float = 0.8
    sync_member_seconds: float = 0.15
    form_group_seconds: float = 0.3
    group_timeout_seconds: float = 60.0
    drain_seconds: float = 0.05
    release_seconds: float = 0.3
    release_bytes: int = 66_000_000_000
    release_trainer_seconds: float = 1.2
    trainer_bytes: int = 70_000_000_000
    wake_seconds: float = 1.2
    reset_cache_seconds: float = 0.02
    canary_seconds: float = 0.1
    checkpoint_seconds: float = 8.0
    boot_seconds: float = 20.0
    trainer_boot_seconds: float = 15.0
    fence_seconds: float = 0.5

    def step_time(self, sequences: int, kv_tokens: float, prefilling: bool) -> float:
        """Seconds of one decode step of the batch."""
        plain = self.step_seconds + sequences * self.sequence_seconds + kv_tokens * self.kv_token_seconds
        return plain * (1.0 + self.prefill_interference) if prefilling else plain

    def train_time(self, tokens: int, devices: int) -> float:
        """Seconds of one optimizer step on `tokens` tokens."""
        return self.train_fixed_seconds + tokens / (self.train_tokens_per_second * devices)

    def sync_time(self, members: int) -> float:
        """Seconds of one weight transfer to `members` ranks."""
        return self.sync_seconds + self.sync_member_seconds * members

    def problems(self, prefix: str = "cost") -> list[Problem]:
        """All bad values; empty if there are none."""
        found: list[Problem] = []
        must_be_positive = {
            "step_seconds", "kv_capacity", "prefill_tokens_per_second", "progress_seconds", "train_tokens_per_second",
        }  # fmt: skip
        for spec in fields(self):
            value = getattr(self, spec.name)
            if spec.name in must_be_positive and not value > 0:
                found.append(Problem(f"{prefix}.{spec.name}", repr(value), "must be positive", "give a number above 0"))
            elif not value >= 0:
                found.append(Problem(f"{prefix}.{spec.name}", repr(value), "must not be negative", "use 0 or more"))
        return found


DENSE_8B = CostModel()

PRESETS: dict[str, CostModel] = {"dense_8b": DENSE_8B}
"""Named cost models, for configuration files."""
