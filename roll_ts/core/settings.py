"""What the scheduler must know before it starts: layout, batch, limits and deadlines. All problems are told at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple


class Problem(NamedTuple):
    """One configuration error: which key, its value, what is wrong, how to fix it (R31)."""

    key: str
    value: str
    wrong: str
    fix: str


@dataclass(frozen=True)
class Layout:
    """Who may use which device. `ranks[i]` are the devices of rollout rank i: its whole collective domain (R5)."""

    ranks: tuple[tuple[int, ...], ...]
    train_devices: tuple[int, ...]

    def ranks_on(self, devices: tuple[int, ...]) -> tuple[int, ...]:
        """The ranks that use any of `devices`, in order."""
        wanted = set(devices)
        return tuple(rank for rank, own in enumerate(self.ranks) if wanted & set(own))

    @cached_property
    def shared_ranks(self) -> tuple[int, ...]:
        """Ranks whose devices the trainer uses too; they can be lent."""
        return self.ranks_on(self.train_devices)


@dataclass(frozen=True)
class Deadlines:
    """Seconds that each party has to answer (R26). `quarantine`: how long a run that cannot train waits for the end of
    a process on the trainer's devices to be confirmed (R34)."""

    generate: float = 120.0
    abort: float = 10.0
    environment: float = 60.0
    drain: float = 30.0
    release: float = 30.0
    form_group: float = 60.0
    load_weights: float = 120.0
    kv_ready: float = 60.0
    train: float = 600.0
    release_trainer: float = 60.0
    checkpoint: float = 120.0
    fence: float = 30.0
    boot: float = 300.0
    trainer_boot: float = 600.0
    quarantine: float = 600.0
    trajectory: float = 600.0
    group: float = 3600.0


@dataclass(frozen=True)
class Settings:
    """Everything the core reads. Sizes are in groups, trajectories or tokens; `async_ratio` is a real number (R17).

    A rank, and the trainer, may be restarted as often as its `max_restarts…` says; one restart comes back every
    `restart_refill_seconds`. A rank that was taken out as sick waits `probation_seconds` before it is started, twice as
    long each time in a row (R35).
    """

    layout: Layout
    groups_per_batch: int
    group_size: int
    async_ratio: float
    max_turns: int
    max_reply_tokens: int
    max_context_tokens: int
    max_running_per_rank: int
    seed: int = 0
    evaluation_episodes: int = 0
    evaluation_seed: int = 1_000_000
    checkpoint_every: int = 0
    canary_tolerance: float = 1e-3
    prefix_worth_tokens: int = 512
    max_restarts_per_rank: int = 2
    max_trainer_restarts: int = 2
    restart_refill_seconds: float = 1800.0
    probation_seconds: float = 30.0
    max_replacements_per_member: int = 3
    reserve_quantile: float = 0.9
    session_admission: bool = False
    evaluation_first: bool = False
    redundant_members: int = 0
    filter_equal_rewards: bool = False
    max_filtered_batches: int = 10
    max_void_share: float = 0.5
    deadlines: Deadlines = field(default_factory=Deadlines)


def check_settings(settings: Settings) -> list[Problem]:
    """All problems of `settings`; empty if there are none."""
    found: list[Problem] = []

    def need(good: bool, key: str, value: object, wrong: str, fix: str) -> None:
        if not good:
            found.append(Problem(key, repr(value), wrong, fix))

    for key, low in (
        ("groups_per_batch", 1),
        ("group_size", 2),
        ("max_turns", 1),
        ("max_reply_tokens", 1),
        ("max_context_tokens", 2),
        ("max_running_per_rank", 1),
        ("evaluation_episodes", 0),
        ("checkpoint_every", 0),
        ("max_restarts_per_rank", 0),
        ("max_trainer_restarts", 0),
        ("max_replacements_per_member", 0),
        ("redundant_members", 0),
        ("max_filtered_batches", 1),
    ):
        value = getattr(settings, key)
        need(value >= low, key, value, f"must be at least {low}", f"set {key} to {low} or more")
    need(
        settings.async_ratio >= 0, "async_ratio", settings.async_ratio, "must not be negative", "use 0 for synchronous"
    )
    need(
        settings.max_reply_tokens < settings.max_context_tokens,
        "max_reply_tokens",
        settings.max_reply_tokens,
        f"leaves no room for a prompt within max_context_tokens={settings.max_context_tokens}",
        "lower max_reply_tokens or raise max_context_tokens",
    )
    need(
        0 < settings.reserve_quantile <= 1,
        "reserve_quantile",
        settings.reserve_quantile,
        "must lie in (0, 1]",
        "use the share of replies whose KV shall be there without preemption, such as 0.9",
    )
    need(
        0 < settings.max_void_share <= 1,
        "max_void_share",
        settings.max_void_share,
        "must lie in (0, 1]",
        "use the share of void episodes above which the run ends; 1 never ends it",
    )
    for key in ("restart_refill_seconds", "probation_seconds"):
        seconds = getattr(settings, key)
        need(seconds > 0, key, seconds, "must be positive", f"give {key} in seconds")
    for name, seconds in vars(settings.deadlines).items():
        need(seconds > 0, f"deadlines.{name}", seconds, "must be positive", "give the seconds the party has to answer")
    return found + check_layout(settings.layout)


def check_layout(layout: Layout) -> list[Problem]:
    """Problems of the device layout: empty, doubled or cut ranks (R5)."""
    found: list[Problem] = []
    owner: dict[int, int] = {}
    if not layout.ranks:
        found.append(Problem("layout.ranks", "()", "there is no rollout rank", "give at least one rank its devices"))
    for rank, devices in enumerate(layout.ranks):
        if not devices:
            found.append(Problem(f"layout.ranks[{rank}]", "()", "has no device", "name its devices or remove the rank"))
        for device in devices:
            if owner.setdefault(device, rank) != rank or devices.count(device) > 1:
                found.append(
                    Problem(
                        f"layout.ranks[{rank}]",
                        str(device),
                        f"device {device} is named twice (first in rank {owner[device]})",
                        "give every device to one rank",
                    )
                )
    train = set(layout.train_devices)
    if not train:
        found.append(Problem("layout.train_devices", "()", "the trainer has no device", "name its devices"))
    if len(train) < len(layout.train_devices):
        found.append(
            Problem("layout.train_devices", str(layout.train_devices), "a device is named twice", "name each once")
        )
    for rank in layout.shared_ranks:
        rest = sorted(set(layout.ranks[rank]) - train)
        if rest:
            found.append(
                Problem(
                    "layout.train_devices",
                    str(layout.train_devices),
                    f"cuts rank {rank}: its devices {rest} would stay behind",
                    f"let the trainer use all of {layout.ranks[rank]} or none",
                )
            )
    return found
