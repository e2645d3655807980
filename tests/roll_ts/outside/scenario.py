"""What a world is like: policy, layout, load, rates of faults, and the faults that were injected, by name.

A scenario is all that is needed to play a history again; as JSON it is the file that a failing test prints.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roll_ts.core.settings import Deadlines, Layout, Settings
from tests.roll_ts.outside.dice import Dice

SLOW = Deadlines(trajectory=3000.0)
BRISK = Deadlines(
    generate=8.0, abort=2.0, environment=6.0, drain=4.0, release=3.0, form_group=4.0, load_weights=6.0, kv_ready=4.0,
    train=20.0, release_trainer=4.0, checkpoint=8.0, fence=4.0, boot=10.0, trajectory=120.0,
)  # fmt: skip


@dataclass(frozen=True)
class Scenario:
    """One world. Rates are shares of commands (or events); times are seconds on the world's clock.

    `faults`: None draws faults by the rates; a dict from the name of a place ("Drain#3") to a fault injects those
    alone. `restore_every`: the scheduler is saved and restored after so many events; 0: never. `evaluate_at`: a person
    wants an evaluation then. `stop_at`: a person asks for the end at that event; −1: never. `sick`: rank → "fails"
    (every request fails at once), "alone" (every group with it fails), "immortal" (its end is never confirmed),
    "boots" (never comes up). `changes` of the settings, `deadlines` of the deadlines.
    """

    seed: int = 0
    policy: str = "time_sharing"
    ranks: int = 4
    tp: int = 1
    lent: int = 2
    until: int = 3
    groups_per_batch: int = 4
    group_size: int = 2
    async_ratio: float = 1.0
    max_turns: int = 6
    max_reply_tokens: int = 24
    max_context_tokens: int = 400
    max_running_per_rank: int = 8
    kv_capacity: int = 4000
    evaluation_episodes: int = 0
    evaluate_at: float = -1.0
    checkpoint_every: int = 0
    brisk: bool = True
    changes: dict[str, Any] = field(default_factory=dict)
    deadlines: dict[str, float] = field(default_factory=dict)
    rate: float = 0.0
    noise: float = 0.0
    jumps: float = 0.0
    restore_every: int = 0
    stop_at: int = -1
    start_version: int = 0
    sick: dict[int, str] = field(default_factory=dict)
    faults: dict[str, str] | None = None

    def settings(self) -> Settings:
        """The settings of the scheduler in this world."""
        devices = [tuple(range(rank * self.tp, (rank + 1) * self.tp)) for rank in range(self.ranks)]
        if self.policy == "disaggregated":
            train = tuple(range(self.ranks * self.tp, (self.ranks + 2) * self.tp))
        else:
            shared = self.ranks if self.policy == "colocated" else self.lent
            train = tuple(device for own in devices[:shared] for device in own)
        fields: dict[str, Any] = dict(
            layout=Layout(tuple(devices), train),
            groups_per_batch=self.groups_per_batch,
            group_size=self.group_size,
            async_ratio=0.0 if self.policy == "colocated" else self.async_ratio,
            max_turns=self.max_turns,
            max_reply_tokens=self.max_reply_tokens,
            max_context_tokens=self.max_context_tokens,
            max_running_per_rank=self.max_running_per_rank,
            seed=self.seed,
            evaluation_episodes=self.evaluation_episodes,
            checkpoint_every=self.checkpoint_every,
            deadlines=dataclasses.replace(BRISK if self.brisk else SLOW, **self.deadlines),
        )
        return Settings(**(fields | self.changes))

    def with_(self, **changes: Any) -> Scenario:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **changes)

    def to_json(self) -> str:
        """The file that plays it again."""
        return json.dumps(dataclasses.asdict(self), indent=1)

    @staticmethod
    def from_json(text: str) -> Scenario:
        """The inverse of `to_json`."""
        fields = json.loads(text)
        fields["sick"] = {int(rank): what for rank, what in fields["sick"].items()}
        return Scenario(**fields)

    @staticmethod
    def read(path: Path | str) -> Scenario:
        """The scenario in a file."""
        return Scenario.from_json(Path(path).read_text())


def draw(seed: int, policies: tuple[str, ...], sizes: tuple[int, ...] = (2, 3, 4, 6)) -> Scenario:
    """A random world: every kind of trouble comes up over the seeds, each world has some of them."""
    dice = Dice(seed, "scenario")
    policy = policies[seed % len(policies)]
    ranks = max(2, dice.choose(sizes))
    big = ranks > 20
    groups = ranks if big else dice.choose((2, 3, 4))
    sick = {}
    if dice.chance(0.25):
        sick[dice.below(ranks)] = dice.choose(("fails", "alone", "immortal", "boots"))
    return Scenario(
        seed=seed,
        policy=policy,
        ranks=ranks,
        tp=dice.choose((1, 1, 2, 4)),
        lent=max(1, min(ranks - 1, ranks * dice.choose((1, 2, 3)) // 4)),
        until=2 if big else dice.choose((2, 3, 4)),
        groups_per_batch=groups,
        group_size=dice.choose((2, 3)),
        async_ratio=dice.choose((0.0, 0.5, 1.0, 1.0, 1.75)),
        max_turns=dice.choose((2, 4, 6)),
        max_reply_tokens=dice.choose((8, 24, 40)),
        max_context_tokens=dice.choose((60, 110, 400, 400)),
        max_running_per_rank=dice.choose((1, 2, 8)),
        kv_capacity=dice.choose((500, 1000, 4000)),
        evaluation_episodes=dice.choose((0, 0, 3)),
        evaluate_at=20.0 * dice.real() if dice.chance(0.1) else -1.0,
        checkpoint_every=dice.choose((0, 1, 2)),
        changes={
            "max_restarts_per_rank": 60,
            "max_trainer_restarts": 60,
            "max_void_share": dice.choose((1.0, 1.0, 0.5)),
            "redundant_members": dice.choose((0, 0, 1)),
            "filter_equal_rewards": dice.chance(0.2),
            "evaluation_first": dice.chance(0.3),
            "session_admission": dice.chance(0.7),
        },
        deadlines={"trajectory": 5.0} if Dice(seed, "hasty").chance(0.2) else {},
        rate=dice.choose((0.0, 0.01, 0.03, 0.08)),
        noise=dice.choose((0.0, 0.02, 0.1)),
        jumps=dice.choose((0.0, 0.0, 0.002)),
        restore_every=dice.choose((0, 0, 0, 0, 0, 0, 0, 97)) if ranks < 20 else 0,
        stop_at=dice.below(900) if dice.chance(0.25) else -1,
        sick=sick,
    )
