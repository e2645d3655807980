"""What a policy is asked and what it answers: a pure function of the figures it is shown (R29).

A policy of one's own is a class with `name`, `sees`, `check` and `decide`; it is named as `module:Class` wherever a
policy is named (`make_policy`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from roll_ts.core.settings import Problem, Settings


class RankFigures(NamedTuple):
    """One ACTIVE rank: its attempts, the KV tokens booked for them and its KV capacity. `shared`: a trainer's."""

    rank: int
    shared: bool
    running: int
    kv_tokens: int
    kv_capacity: int


class SampleFigures(NamedTuple):
    """One open training trajectory: what it waits for ("environment", "queued", "generating"), what it has so far, how
    many members its group still needs, and the turns and seconds it will probably still take."""

    trajectory: int
    group: int
    phase: str
    turn: int
    tokens: int
    missing: int
    turns_left: float
    seconds_left: float


@dataclass(frozen=True)
class Costs:
    """Measured seconds, recent ones counting more; None until there is one. `drain`: from the decision to lend until
    all lent memory is released; `train`: one optimizer step; `sync`: from its end until every rank serves again."""

    drain: float | None = None
    train: float | None = None
    sync: float | None = None


@dataclass(frozen=True)
class View:
    """Figures at one moment. Counts of groups, trajectories and attempts; ranks by id.

    `complete`: complete groups, the first to complete first; `room`: groups that the staleness bound still lets start.
    `trainer_free`: nothing is being trained, published or lent for it. `lendable`: ranks whose devices the trainer
    uses and that are ACTIVE, `lent`: those that have been given up or are on their way, `keepable`: the other ACTIVE
    ranks. `unsettled`: training trajectories without an outcome; `running` attempts hold a request and `queued` turns
    want one, evaluations included; `parked` of these are kept out by session admission. `asked_since`: since when the
    policy's answer is the same; `ready_since`: since when a whole batch is complete; `group_seconds`: recent seconds
    from one complete group to the next. `rank_figures` and `sample_figures` look at every rank or trajectory: ask them
    sparingly.
    """

    now: float
    version: int
    complete: Sequence[int]
    groups_needed: int
    unsettled: int
    running: int
    queued: int
    lendable: tuple[int, ...]
    keepable: tuple[int, ...]
    lent: tuple[int, ...] = ()
    parked: int = 0
    room: int = 0
    trainer_free: bool = True
    asked_since: float = 0.0
    ready_since: float = 0.0
    group_seconds: float | None = None
    costs: Costs = Costs()
    rank_figures: Callable[[], Sequence[RankFigures]] = tuple
    sample_figures: Callable[[], Sequence[SampleFigures]] = tuple
    seconds_per_token: Callable[[float], float | None] = lambda running: None

    @property
    def complete_groups(self) -> int:
        """How many groups are complete."""
        return len(self.complete)

    @property
    def batch(self) -> tuple[int, ...]:
        """The oldest complete groups, as many as a step needs."""
        return tuple(self.complete[: self.groups_needed])


@dataclass(frozen=True)
class Decision:
    """What shall be done. Nothing given: nothing, and `reason` says what is waited for.

    `train`: ids of complete groups to train on as soon as the devices are there. `lend`: ranks to drain for the trainer
    now, with or without a batch. `recall`: ranks that are lent or on their way and shall serve again.
    `outlast`: turns of trajectories that will probably need more than so many seconds are kept off the ranks that can
    be lent (None: no difference). `live`: most training episodes that may be open (None: by the KV there is).
    `shed`: open groups that can no longer be trained after this step are cancelled now. `again_at`: ask again at this
    time at the latest; `hold`: and not before, unless a rank changes state. `figures`: the numbers behind it.
    """

    train: tuple[int, ...] = ()
    lend: tuple[int, ...] = ()
    recall: tuple[int, ...] = ()
    outlast: float | None = None
    live: int | None = None
    shed: bool = False
    again_at: float | None = None
    hold: bool = False
    reason: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)


class Policy(Protocol):
    """When to train and which ranks to lend for it. `sees`: the changes after which it is asked again, of "groups" (one
    is complete or gone), "trajectories" (one is settled), "turns" (one has ended), "ranks" (one changed state)."""

    name: str
    sees: frozenset[str]

    def check(self, settings: Settings) -> list[Problem]:
        """What makes `settings` unusable under this policy."""

    def decide(self, view: View) -> Decision:
        """Asked after a change that it sees, and when its `again_at` has come."""
