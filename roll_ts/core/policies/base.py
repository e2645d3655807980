"""What a policy is asked and what it answers: a pure function of the figures it is shown (R29)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from roll_ts.core.settings import Problem, Settings


@dataclass(frozen=True)
class View:
    """Figures at one moment. Counts of groups, trajectories and attempts; ranks by id.

    `lendable`: ranks whose devices the trainer uses and that are ACTIVE; `keepable`: the other ACTIVE ranks.
    `unsettled`: trajectories without an outcome, of which `running` hold a request and `queued` want one.
    """

    now: float
    version: int
    complete_groups: int
    groups_needed: int
    unsettled: int
    running: int
    queued: int
    lendable: tuple[int, ...]
    keepable: tuple[int, ...]


@dataclass(frozen=True)
class Decision:
    """Train now or not; the ranks to lend if so; the figures behind it."""

    train: bool
    lend: tuple[int, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)


class Policy(Protocol):
    """When to train and which ranks to lend for it."""

    name: str

    def check(self, settings: Settings) -> list[Problem]:
        """What makes `settings` unusable under this policy."""

    def decide(self, view: View) -> Decision:
        """Asked whenever the trainer is idle and no rank that could be lent is in between states."""
