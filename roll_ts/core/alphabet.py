"""The words the scheduler hears (events) and says (commands).

Everything here is a frozen dataclass of numbers and short strings, so that a journal of them is complete: feeding the
events of a journal to a fresh `Scheduler` gives the same commands. Tokens and log-probs never pass through; they live
in the sample store under the same ids.

Events that answer a command echo its id in `command`. A command that expects an answer has `due`, the time (seconds on
the driver's clock) after which the scheduler acts on silence, and `awaits`, the party that owes the answer.

Every process of a rank and of the trainer has an incarnation, a number that its `Restart` or `StartTrainer` names, from
1. Events that may come unasked carry it; an answer needs none, because no command of a dead incarnation is waited for.
A party is written "rank:<id>" or "trainer".
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Scalar = int | float | str | bool | None


class AttemptId(NamedTuple):
    """One try at generating one turn of one trajectory. Never reused (R6)."""

    trajectory: int
    turn: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.trajectory}.{self.turn}.{self.attempt}"


class Assignment(NamedTuple):
    """One member of a group: who it is and which trajectory now plays it."""

    group: int
    member: int
    trajectory: int


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened outside. `command` is the id of the command it answers, if any."""

    command: int | None = None


@dataclass(frozen=True, kw_only=True)
class TrajectoriesWanted(Event):
    """Start training; the run ends when the trainer reaches version `until`."""

    until: int


@dataclass(frozen=True, kw_only=True)
class EvaluationWanted(Event):
    """Play `episodes` greedy episodes with environment seeds from `first_seed`; scored, never trained on (R13).

    Their trajectories have kind "eval", `group` = the round (0, 1, …) and `member` = the episode.
    """

    episodes: int
    first_seed: int


@dataclass(frozen=True, kw_only=True)
class UserStop(Event):
    """A person asked for the end: settle what is open, save, finish."""


@dataclass(frozen=True, kw_only=True)
class TimerFired(Event):
    """The time asked for with `SetTimer` has come."""


@dataclass(frozen=True, kw_only=True)
class TrainerReady(Event):
    """The answer to `StartTrainer`: the trainer holds `version` with this digest and can publish it (R28)."""

    incarnation: int
    version: int
    digest: str


@dataclass(frozen=True, kw_only=True)
class TrainerDied(Event):
    """The trainer's processes are gone, with all they held."""

    incarnation: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class TrainingFinished(Event):
    """One optimizer step is done: the trainer now holds `version`. `figures` are for the report only."""

    epoch: int
    version: int
    digest: str
    seconds: float
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class WeightsSent(Event):
    """The trainer's side of a `Sync` is complete."""

    epoch: int
    version: int


@dataclass(frozen=True, kw_only=True)
class GroupFormed(Event):
    """All members of the epoch's weight group can be reached."""

    epoch: int


@dataclass(frozen=True, kw_only=True)
class CheckpointSaved(Event):
    """`version` is on disk at `path`."""

    version: int
    path: str


@dataclass(frozen=True, kw_only=True)
class MemoryReleased(Event):
    """The holder measured that its memory has gone back: more than 0 bytes. `holder` is "rank:<id>" or "trainer"; it
    is believed only with the holder and the epoch of the command (R2)."""

    holder: str
    epoch: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class CommandFailed(Event):
    """The party answered the command with an error instead of the expected event. `culprits` are the parties that it
    knows to be at fault ("rank:3", "trainer"); empty when it does not know (R32)."""

    error: str
    culprits: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RankBooted(Event):
    """The engine process is up and holds no proven weights. `kv_capacity` in tokens."""

    rank: int
    incarnation: int
    kv_capacity: int


@dataclass(frozen=True, kw_only=True)
class RankDied(Event):
    """The engine process is gone, with all it held. `lost_tokens`: generated but never reported, where known (R8)."""

    rank: int
    incarnation: int
    reason: str
    lost_tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class RankStats(Event):
    """The engine's own counts. As the answer to `Drain` it is the only proof of it (R7)."""

    rank: int
    incarnation: int
    running: int
    waiting: int
    kv_tokens: int


@dataclass(frozen=True, kw_only=True)
class WeightsLoaded(Event):
    """The rank received all named tensors; `digest` is over what it received."""

    rank: int
    epoch: int
    version: int
    digest: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class KVReady(Event):
    """KV memory is there and empty; `canary_gap` is max |log-prob − expected| over the canary prompt (R19)."""

    rank: int
    epoch: int
    canary_gap: float


@dataclass(frozen=True, kw_only=True)
class SubmitAcked(Event):
    """The engine has taken the request."""

    attempt: AttemptId


@dataclass(frozen=True, kw_only=True)
class Progress(Event):
    """`total` tokens of this attempt are in the sample store: a sum, so that a report that is lost or comes twice does
    no harm."""

    attempt: AttemptId
    total: int


@dataclass(frozen=True, kw_only=True)
class Finished(Event):
    """The attempt ended by itself after `total` tokens. `reason` is "stop" or "length"; `cached` are the tokens of its
    prefix that the engine found in its cache, where it says so."""

    attempt: AttemptId
    total: int
    reason: str
    cached: int | None = None


@dataclass(frozen=True, kw_only=True)
class Aborted(Event):
    """The attempt was stopped; its `total` tokens were saved first (R8)."""

    attempt: AttemptId
    total: int


@dataclass(frozen=True, kw_only=True)
class Failed(Event):
    """The engine refused or broke this one attempt."""

    attempt: AttemptId
    error: str


@dataclass(frozen=True, kw_only=True)
class EnvironmentReplied(Event):
    """The environment took the turn (turn 0: was reset). `context_tokens` is the length of the next prompt.

    `reward` is the trajectory's total so far; it and `success` count once `done` is true.
    """

    trajectory: int
    turn: int
    context_tokens: int
    done: bool
    reward: float
    success: bool


@dataclass(frozen=True, kw_only=True)
class EnvironmentFailed(Event):
    """The environment broke: an infrastructure failure, never the policy's (R13)."""

    trajectory: int
    turn: int
    error: str


@dataclass(frozen=True, kw_only=True)
class Command:
    """Something the driver must do. `lane` keeps control from queueing behind data (R25)."""

    id: int
    lane: str = "control"
    due: float | None = None
    awaits: str | None = None


@dataclass(frozen=True, kw_only=True)
class StepEnvironment(Command):
    """Turn 0: make and reset the environment with `seed`. Later: act with the turn's text. → EnvironmentReplied."""

    trajectory: int
    turn: int
    seed: int
    kind: str
    group: int
    member: int


@dataclass(frozen=True, kw_only=True)
class Dispatch(Command):
    """Generate on `rank` from the trajectory's context plus `carried` tokens of this turn. → SubmitAcked, then
    Progress…, then exactly one of Finished, Aborted, Failed (or RankDied)."""

    attempt: AttemptId
    rank: int
    context_tokens: int
    carried: int
    max_new_tokens: int
    greedy: bool
    version: int


@dataclass(frozen=True, kw_only=True)
class Abort(Command):
    """Stop the attempt on its holder. → Aborted (or its own end, if that came first)."""

    attempt: AttemptId
    rank: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Cancel(Command):
    """Close the trajectory's environment; nothing is owed."""

    trajectory: int


@dataclass(frozen=True, kw_only=True)
class Drain(Command):
    """Stop every request on the rank, saving partials. → one terminal event each, then RankStats with zero counts."""

    rank: int
    epoch: int


@dataclass(frozen=True, kw_only=True)
class Release(Command):
    """Discard weights and KV and give the memory back. `recover_from` says where the version is (R21).
    → MemoryReleased(holder="rank:<id>")."""

    rank: int
    epoch: int
    recover_from: str


@dataclass(frozen=True, kw_only=True)
class LoadWeights(Command):
    """Receive `version` through the epoch's weight group. → WeightsLoaded."""

    rank: int
    epoch: int
    version: int


@dataclass(frozen=True, kw_only=True)
class WakeKV(Command):
    """Allocate KV, then run the canary. → KVReady."""

    rank: int
    epoch: int
    version: int


@dataclass(frozen=True, kw_only=True)
class ResetCache(Command):
    """Empty the prefix cache (KV memory stays), then run the canary. → KVReady."""

    rank: int
    epoch: int
    version: int


@dataclass(frozen=True, kw_only=True)
class Fence(Command):
    """Kill this process of the rank so that nothing of it can be heard again. → RankDied, once its end is certain."""

    rank: int
    incarnation: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Restart(Command):
    """Start a process for the rank, the first or a fresh one. → RankBooted or RankDied."""

    rank: int
    incarnation: int


@dataclass(frozen=True, kw_only=True)
class StartTrainer(Command):
    """Start the trainer's processes, the first or fresh ones, from the checkpoint `resume_from`; None: as the run was
    configured. → TrainerReady or TrainerDied."""

    incarnation: int
    resume_from: str | None


@dataclass(frozen=True, kw_only=True)
class FenceTrainer(Command):
    """Kill these processes of the trainer. → TrainerDied, once their end is certain."""

    incarnation: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Train(Command):
    """One optimizer step on these whole groups, from `version` to `version` + 1. → TrainingFinished."""

    epoch: int
    version: int
    batch: tuple[Assignment, ...]


@dataclass(frozen=True, kw_only=True)
class ReleaseTrainer(Command):
    """Give back trainer memory on its devices: `parts` is "state" (optimizer, gradients, activations; parameters
    stay) or "all" (a published copy of the version stays on the host). → MemoryReleased(holder="trainer")."""

    epoch: int
    parts: str


@dataclass(frozen=True, kw_only=True)
class FormGroup(Command):
    """Connect trainer and members for one weight transfer. → GroupFormed."""

    epoch: int
    version: int
    members: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Sync(Command):
    """The trainer sends `version` to the group's members. → WeightsSent."""

    epoch: int
    version: int
    members: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Checkpoint(Command):
    """Save `version` to disk. → CheckpointSaved."""

    version: int


@dataclass(frozen=True, kw_only=True)
class SetTimer(Command):
    """Send TimerFired at `at`; replaces the timer set before."""

    at: float


@dataclass(frozen=True, kw_only=True)
class Finish(Command):
    """The run is over."""

    ok: bool
    reason: str


@dataclass(frozen=True, kw_only=True)
class RankMoved(Command):
    """A rank changed state in the table (R1)."""

    rank: int
    old: str
    new: str
    epoch: int


@dataclass(frozen=True, kw_only=True)
class Settled(Command):
    """The one outcome of a trajectory (R13). `staleness` = trainer version − oldest segment's version, at this time."""

    trajectory: int
    kind: str
    group: int
    member: int
    outcome: str
    reason: str
    reward: float
    success: bool
    turns: int
    tokens: int
    oldest_version: int
    staleness: int


@dataclass(frozen=True, kw_only=True)
class GroupDropped(Command):
    """A group leaves untrained, whole (R15). `reason`: "stale", "void", "rolled back" or "shutdown"."""

    group: int
    reason: str
    trajectories: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Decided(Command):
    """A policy decision with the figures that justified it (R29)."""

    policy: str
    decision: str
    figures: dict[str, float]


def _subclasses(base: type[Any]) -> dict[str, type[Any]]:
    return {cls.__name__: cls for cls in base.__subclasses__()}


EVENTS: dict[str, type[Event]] = _subclasses(Event)
COMMANDS: dict[str, type[Command]] = _subclasses(Command)


def encode(message: Event | Command) -> dict[str, Any]:
    """The message as a JSON-ready dict with its type under "type"; default-valued echo fields are left out."""
    fields = {f.name: getattr(message, f.name) for f in dataclasses.fields(message)}
    if fields.get("command", 0) is None:
        del fields["command"]
    return {"type": type(message).__name__} | fields


def decode(record: dict[str, Any]) -> Event | Command:
    """The inverse of `encode` after a pass through JSON. Raises KeyError for an unknown type."""
    fields = dict(record)
    name = fields.pop("type")
    cls: type[Event] | type[Command] = EVENTS[name] if name in EVENTS else COMMANDS[name]
    if "attempt" in fields:
        fields["attempt"] = AttemptId(*fields["attempt"])
    for name_of_tuple in ("members", "trajectories", "culprits"):
        if name_of_tuple in fields:
            fields[name_of_tuple] = tuple(fields[name_of_tuple])
    if "batch" in fields:
        fields["batch"] = tuple(Assignment(*item) for item in fields["batch"])
    return cls(**fields)
