"""The faults that a world knows: what can go wrong with each command, and events that cannot have happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roll_ts.core import alphabet as a
from roll_ts.core.settings import Layout
from tests.roll_ts.outside.dice import Dice

if TYPE_CHECKING:
    from tests.roll_ts.outside.oracle import Oracle

_WAYS = ("fail", "late", "twice", "lost", "unheard")
_PROCESS = (*_WAYS, "die", "hang")

FAULTS: dict[str, tuple[str, ...]] = {
    "StepEnvironment": _WAYS,
    "Dispatch": _PROCESS,
    "Abort": _PROCESS,
    "Drain": (*_PROCESS, "lie"),
    "Release": (*_PROCESS, "lie"),
    "LoadWeights": (*_PROCESS, "lie"),
    "WakeKV": (*_PROCESS, "lie"),
    "ResetCache": (*_PROCESS, "lie"),
    "Restart": (*_PROCESS, "lie"),
    "Fence": _PROCESS,
    "StartTrainer": (*_WAYS, "hang"),
    "FenceTrainer": (*_WAYS, "hang"),
    "Train": _PROCESS,
    "ReleaseTrainer": (*_PROCESS, "lie"),
    "Checkpoint": _PROCESS,
    "FormGroup": (*_PROCESS, "named"),
    "Sync": (*_PROCESS, "named"),
}
"""By command: "fail" (answered with an error), "named" (an error that names a culprit), "late" (after the deadline),
"twice", "lost" (never arrives), "unheard" (done, its answer is lost), "die" and "hang" (the party, on the way), "lie"
(a wrong digest, a canary that is off, requests that are left, no bytes, another holder or epoch)."""

RARE = {
    "Abort": 3.0, "Drain": 1.5, "Fence": 3.0, "Release": 3.0, "Restart": 2.0, "ResetCache": 3.0, "WakeKV": 2.0,
    "Sync": 2.0, "FormGroup": 1.5, "Train": 6.0, "ReleaseTrainer": 5.0, "Checkpoint": 6.0, "StartTrainer": 6.0,
    "FenceTrainer": 20.0,
}  # fmt: skip
"""How much oftener than the rate a fault comes up at a command that is said seldom."""

OFTEN = (a.SubmitAcked, a.Progress, a.Finished, a.EnvironmentReplied, a.TimerFired)
"""Events of which there are many; the others are echoed more often."""


def guilty_of(command: a.Command, oracle: Oracle) -> set[int]:
    """The ranks that a fault at this command speaks against. A group that fails speaks against a rank only alone."""
    if isinstance(command, a.FormGroup | a.Sync):
        return set(command.members) if len(command.members) == 1 else set()
    rank = getattr(command, "rank", None)
    return set() if rank is None else {rank}


def bad_event(dice: Dice, layout: Layout) -> tuple[a.Event, bool]:
    """An event that nobody can have sent, and whether it also comes from the past."""
    nobody, never = len(layout.ranks) + dice.below(3), a.AttemptId(10**9, 1, 1)
    attempt = a.AttemptId(0, 10**6, 1)
    options: tuple[a.Event, ...] = (
        a.RankDied(rank=nobody, incarnation=1, reason="?"),
        a.RankDied(rank=0, incarnation=10**6, reason="?"),
        a.RankStats(rank=nobody, incarnation=1, running=0, waiting=0, kv_tokens=0),
        a.RankBooted(rank=0, incarnation=10**6, kv_capacity=100, command=10**9),
        a.TrainerDied(incarnation=10**6, reason="?"),
        a.Progress(attempt=never, total=3),
        a.Finished(attempt=attempt, total=3, reason="stop"),
        a.Finished(attempt=attempt, total=-3, reason="stop"),
        a.Aborted(attempt=never, total=0),
        a.Failed(attempt=never, error="?"),
        a.EnvironmentReplied(
            trajectory=10**9, turn=1, context_tokens=5, done=True, reward=1.0, success=True, command=10**9
        ),
        a.EnvironmentFailed(trajectory=10**9, turn=1, error="?", command=10**9),
        a.TrainingFinished(epoch=1, version=99, digest="?", seconds=0.0, command=10**9),
        a.MemoryReleased(holder="trainer", epoch=1, bytes=5, command=10**9),
        a.MemoryReleased(holder="rank:0", epoch=1, bytes=5),
        a.CommandFailed(error="?", command=10**9),
        a.WeightsLoaded(rank=0, epoch=1, version=1, digest="?", seconds=0.0, command=10**9),
        a.KVReady(rank=0, epoch=1, canary_gap=0.0, command=10**9),
        a.TrajectoriesWanted(until=0),
        a.EvaluationWanted(episodes=0, first_seed=0),
        a.Event(),
    )
    return dice.choose(options), dice.chance(0.2)
