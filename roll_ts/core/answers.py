"""Whether an event fits what was asked: checked before anything changes (R3, R33, R38).

What comes from outside is never asserted. An event that names somebody who was never there is refused with an error;
an answer that nobody waits for, the word of a dead incarnation and an answer that does not fit its command are counted.
"""

from __future__ import annotations

import dataclasses
import math  # VAL import

from roll_ts.core import alphabet as a
from roll_ts.core.parties import TRAINER, party
from roll_ts.core.ranks import RankTable
from roll_ts.core.trajectories import TrajectoryTable

ANSWERS: dict[type[a.Event], tuple[type[a.Command], ...]] = {
    a.RankBooted: (a.Restart,),
    a.RankStats: (a.Drain,),
    a.WeightsLoaded: (a.LoadWeights,),
    a.KVReady: (a.WakeKV, a.ResetCache),
    a.MemoryReleased: (a.Release, a.ReleaseTrainer),
    a.TrainerReady: (a.StartTrainer,),
    a.TrainingFinished: (a.Train,),
    a.WeightsSent: (a.Sync,),
    a.GroupFormed: (a.FormGroup,),
    a.CheckpointSaved: (a.Checkpoint,),
    a.EnvironmentReplied: (a.StepEnvironment,),
    a.EnvironmentFailed: (a.StepEnvironment,),
}
"""The commands that each event may answer. `CommandFailed` may answer any."""

_ECHOED = {"rank", "incarnation", "epoch", "trajectory", "turn"}
_KINDS: dict[str, type[a.Event] | type[a.Command]] = {**a.EVENTS, **a.COMMANDS}
_FIELDS = {name: frozenset(field.name for field in dataclasses.fields(kind)) & _ECHOED for name, kind in _KINDS.items()}
"""By kind of message, what of it an answer repeats of its command."""


def fits(event: a.Event, command: a.Command) -> bool:
    """Whether the event can be the answer to the command: by its kind, and by all that it repeats of it."""
    if not isinstance(event, a.CommandFailed) and not isinstance(command, ANSWERS[type(event)]):
        return False
    if isinstance(event, a.MemoryReleased):
        holder = party(command.rank) if isinstance(command, a.Release) else TRAINER
        if event.holder != holder:
            return False
    if isinstance(event, a.CheckpointSaved) and event.version != getattr(command, "version", None):
        return False
    both = _FIELDS[type(event).__name__] & _FIELDS[type(command).__name__]
    return all(getattr(event, name) == getattr(command, name) for name in both)


def refuse_impossible(event: a.Event, ranks: RankTable, trajectories: TrajectoryTable) -> None:
    """Raise for an event that cannot have happened, naming what is wrong: UnknownId for a rank or trajectory that was
    never there, ValueError for a number that counts nothing."""
    match event:
        case a.Progress() | a.Finished() | a.Aborted():
            # VAL: VAL_NON_NEGATIVE(event.total)
            if not event.total >= 0:
                raise ValueError(f"refuse_impossible: event.total must not be negative, got {event.total!r}")
            # END VAL 157b0b
            trajectories.get(event.attempt.trajectory)
        case a.SubmitAcked() | a.Failed():
            trajectories.get(event.attempt.trajectory)
        case a.EnvironmentReplied():
            trajectories.get(event.trajectory)
            # VAL: VAL_NON_NEGATIVE(event.context_tokens)
            if not event.context_tokens >= 0:
                raise ValueError(
                    f"refuse_impossible: event.context_tokens must not be negative, got {event.context_tokens!r}"
                )
            # END VAL 42becc
            # VAL: VAL_FINITE(event.reward)
            if not -math.inf < event.reward < math.inf:
                raise ValueError(f"refuse_impossible: event.reward must be finite, got {event.reward!r}")
            # END VAL fe1be0
        case a.EnvironmentFailed():
            trajectories.get(event.trajectory)
        case a.RankBooted() | a.RankDied() | a.RankStats() | a.WeightsLoaded() | a.KVReady():
            ranks.get(event.rank)
        case a.TrajectoriesWanted():
            # VAL: VAL_POSITIVE(event.until)
            if not event.until > 0:
                raise ValueError(f"refuse_impossible: event.until must be positive, got {event.until!r}")
            # END VAL 3b6730
            pass
        case a.EvaluationWanted():
            # VAL: VAL_POSITIVE(event.episodes)
            if not event.episodes > 0:
                raise ValueError(f"refuse_impossible: event.episodes must be positive, got {event.episodes!r}")
            # END VAL 550213
            pass


def check_time(now: float, before: float) -> None:
    """Raise ValueError when time would stand still for ever or go back."""
    # VAL: VAL_FLOAT_RANGE(now, min=before)
    if not now >= before:
        raise ValueError(f"check_time: now must lie in [{before!r:.200}, inf), got {now!r}")
    # END VAL ef574f
    # VAL: VAL_FINITE(now)
    if not -math.inf < now < math.inf:
        raise ValueError(f"check_time: now must be finite, got {now!r}")
    # END VAL a1df6c
