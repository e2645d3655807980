"""The heart: `handle(event, now) -> list[Command]`, deterministic, without a clock and without I/O.

Invariant: equal settings, policy and events (with their times) give equal commands, element by element (R29).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from roll_ts.core import alphabet as a
from roll_ts.core import snapshots
from roll_ts.core.answers import check_time, fits, refuse_impossible
from roll_ts.core.control import Control
from roll_ts.core.leases import Leases
from roll_ts.core.outbox import Outbox
from roll_ts.core.policies.base import Policy
from roll_ts.core.ranks import Rank, RankState, RankTable
from roll_ts.core.repairing import QUARANTINE, RESTART
from roll_ts.core.rollouts import Rollouts
from roll_ts.core.settings import Settings
from roll_ts.core.trajectories import Outcome

QUIET = frozenset(
    {a.SubmitAcked, a.Progress, a.Finished, a.Aborted, a.Failed, a.EnvironmentReplied, a.EnvironmentFailed}
)
"""Events that are the control side's business only when the data side says so, by `Outbox.stir`."""


@dataclass(frozen=True)
class RankView:
    """One rank as a person would look at it."""

    rank: int
    state: RankState
    version: int
    running: int


@dataclass(frozen=True)
class Snapshot:
    """The scheduler at one moment, for a live view. Counts of trajectories, attempts, groups and messages."""

    stage: str
    version: int
    ranks: tuple[RankView, ...]
    open_trajectories: int
    running: int
    queued: int
    complete_groups: int
    outcomes: dict[Outcome, int]
    late_answers: int
    misfits: int
    late_data: int


class Scheduler:
    """One run under one policy. Raises ValueError when `settings` do not fit the policy (see `check_settings`)."""

    def __init__(self, settings: Settings, policy: Policy) -> None:
        problems = policy.check(settings)
        # VAL: VAL_LENGTH(problems, max=0)
        if len(problems) != 0:
            raise ValueError(
                f"Scheduler.__init__: problems must have no elements, got {len(problems)!r}: {problems!r:.200}"
            )
        # END VAL 5d2bb5
        self.settings = settings
        self.policy = policy
        self.out = Outbox()
        self.ranks = RankTable(settings.layout, self._rank_moved)
        self.leases = Leases(settings.layout.train_devices)
        self.rollouts = Rollouts(settings, self.ranks, self.out)
        self.control = Control(settings, policy, self.ranks, self.leases, self.rollouts, self.out)
        self.rollouts.on_sick = self.control.repairing.sick

    @property
    def finished(self) -> bool:
        """Whether `Finish` has been said; later events change nothing."""
        return self.control.finished

    def handle(self, event: a.Event, now: float) -> list[a.Command]:
        """Take one event at time `now` (seconds, never decreasing) and return what must be done.

        Raises TypeError for what is no event, UnknownId or ValueError for an event that cannot have happened; the state
        is then as before (R38).
        """
        check_time(now, self.out.now)
        kind = type(event)
        # VAL: VAL_KEY_IN(kind, mapping=_TAKE, error=TypeError) - not an event of the alphabet
        if kind not in _TAKE:
            raise TypeError(
                f"Scheduler.handle: kind must be a key of _TAKE, got {kind!r:.200} - not an event of the alphabet"
            )
        # END VAL 775900
        refuse_impossible(event, self.ranks, self.rollouts.trajectories)
        self.out.now = now
        if self.finished:
            return []
        _TAKE[kind](self, event)
        if kind not in QUIET:
            self.out.stir()
        self._look_at_the_clock()
        self._go_on()
        return self.out.take(timer=not self.finished)

    def snapshot(self) -> Snapshot:
        """What a live view shows."""
        trajectories = self.rollouts.trajectories
        return Snapshot(
            stage=self.control.stage,
            version=self.control.version,
            ranks=tuple(
                RankView(row.id, row.state, row.version, len(trajectories.by_rank[row.id])) for row in self.ranks.rows
            ),
            open_trajectories=len(trajectories.open),
            running=len(trajectories.attempts),
            queued=self.rollouts.queued,
            complete_groups=len(self.rollouts.groups.complete),
            outcomes=dict(trajectories.settled),
            late_answers=self.out.late_answers,
            misfits=self.out.misfits,
            late_data=trajectories.late_data,
        )

    def save(self) -> dict[str, Any]:
        """The whole state as plain data that JSON can hold. Raises SnapshotError when the policy keeps what is none."""
        return snapshots.save(self, type(self.policy)) | {"policy": self.policy.name}

    @classmethod
    def restore(cls, saved: dict[str, Any], settings: Settings, policy: Policy) -> Scheduler:
        """The scheduler that was saved; it goes on with the same decisions. What its parties have said since then is
        handed to it as ever: commands that wait still wait, and attempts and processes are known by their numbers.

        Raises SnapshotError when it was saved under other settings or another policy, or by another version.
        """
        fresh = cls(settings, policy)
        schema: dict[str, list[str]] = fresh.save()["schema"]
        restored = snapshots.restore(saved, type(policy), schema)
        # VAL: VAL_TYPE_CHECK(restored, cls, error=snapshots.SnapshotError)
        if not isinstance(restored, cls):
            raise snapshots.SnapshotError(
                f"Scheduler.restore: restored must be cls, got {type(restored).__name__} {restored!r:.200}"
            )
        # END VAL 9c7f7b
        same = restored.settings == settings and saved.get("policy") == policy.name
        # AST: AST_PRECONDITION(same, error=snapshots.SnapshotError) - saved under other settings or another policy
        if not same:
            raise snapshots.SnapshotError(
                f"Pre-condition: same, got {same!r:.200} - saved under other settings or another policy"
            )
        # END AST 5c05ab
        return restored

    def _look_at_the_clock(self) -> None:
        for command in self.out.overdue():
            self.out.stir()
            why = f"{command.awaits} did not answer {type(command).__name__} within its deadline"
            self._broken(command, why, silent=True)
        for what, which in self.out.overdue_alarms():
            self.out.stir()
            if what == RESTART:
                self.control.repairing.alarm(which)
            elif what == "policy":
                self.control.training.desk.called()
            elif what == "group":
                self.rollouts.group_overdue(which)
            elif what == QUARANTINE:
                self.control.quarantine_lasts(which)
            else:
                self.rollouts.trajectory_overdue(which)

    def _go_on(self) -> None:
        """Do all that the known facts allow.

        An episode whose context is full ends inside a dispatch and may complete the batch, so the control side is asked
        again; each round ends at least one episode, which bounds them.
        """
        ended = True
        while ended:
            if self.out.stirred():
                self.control.advance()
            if self.finished:
                return
            self._open_admission()
            self.rollouts.admit()
            ended = self.rollouts.dispatch()

    def _rank_moved(self, row: Rank, old: RankState) -> None:
        self.rollouts.rank_moved(row)
        self.out.say(a.RankMoved, rank=row.id, old=str(old), new=str(row.state), epoch=row.epoch)
        self.control.rank_moved(row)

    def _open_admission(self) -> None:
        """Training groups start once the untrained policy has been evaluated, and until the last version."""
        control = self.control
        open_now = control.until is not None and 0 <= control.version < control.until and not control.stopping
        self.rollouts.admitting = open_now and (self.rollouts.admitting or not self.rollouts.evaluating)

    def _broken(self, command: a.Command, why: str, silent: bool, culprits: tuple[str, ...] = ()) -> None:
        """The command will not be answered as hoped (R24, R26)."""
        if isinstance(command, a.Dispatch | a.StepEnvironment):
            self.rollouts.overdue(command, why)
        else:
            self.control.broken(command, why, silent, culprits)

    def _answer(self, event: a.Event) -> a.Command | None:
        """The command that the event answers, which is waited for no longer; None, counted, when nobody waits for it
        or when it does not fit: then the command still waits."""
        command = None if event.command is None else self.out.waiting.get(event.command)
        if command is not None and not fits(event, command):
            self.out.misfits += 1
            return None
        return self.out.answered(event.command)

    def _started(self, event: a.TrajectoriesWanted) -> None:
        self.control.until = event.until
        if self.settings.evaluation_episodes and not self.control.stopping:
            self.rollouts.begin_evaluation(self.settings.evaluation_episodes, self.settings.evaluation_seed)

    def _evaluation_wanted(self, event: a.EvaluationWanted) -> None:
        if not self.control.stopping:
            self.rollouts.begin_evaluation(event.episodes, event.first_seed)

    def _user_stop(self, event: a.UserStop) -> None:
        self.control.stop()

    def _timer_fired(self, event: a.TimerFired) -> None:
        """Deadlines are looked at after every event; the timer only makes sure that there is one."""
        self.out.timer_fired()

    def _trainer_died(self, event: a.TrainerDied) -> None:
        if self.control.trainer.lives(event.incarnation):
            self.control.trainer_died(event.reason)
        else:
            self.out.late_answers += 1

    def _rank_died(self, event: a.RankDied) -> None:
        row = self.ranks.get(event.rank)
        if event.incarnation == row.incarnation and row.state is not RankState.FAILED:
            self.control.repairing.died(event.rank)
        else:
            self.out.late_answers += 1

    def _rank_stats(self, event: a.RankStats) -> None:
        if event.incarnation != self.ranks.get(event.rank).incarnation:
            self.out.late_answers += 1
        elif event.command is not None and self._answer(event) is not None:
            self.control.rank_drained(event)

    def _submit_acked(self, event: a.SubmitAcked) -> None:
        """Nothing waits for it alone: the attempt's own deadline covers it."""

    def _progress(self, event: a.Progress) -> None:
        self.rollouts.progress(event)

    def _finished(self, event: a.Finished) -> None:
        self.rollouts.finished(event)

    def _aborted(self, event: a.Aborted) -> None:
        self.rollouts.aborted(event)

    def _failed(self, event: a.Failed) -> None:
        self.rollouts.failed(event)

    def _environment_replied(self, event: a.EnvironmentReplied) -> None:
        if self._answer(event) is not None:
            self.rollouts.environment_replied(event)

    def _environment_failed(self, event: a.EnvironmentFailed) -> None:
        if self._answer(event) is not None:
            self.rollouts.environment_failed(event)

    def _trainer_ready(self, event: a.TrainerReady) -> None:
        if self._answer(event) is not None:
            self.control.trainer_ready(event)

    def _rank_booted(self, event: a.RankBooted) -> None:
        if self._answer(event) is not None:
            self.control.rank_booted(event)

    def _memory_released(self, event: a.MemoryReleased) -> None:
        command = self._answer(event)
        if command is not None:
            self.control.memory_released(command, event)

    def _training_finished(self, event: a.TrainingFinished) -> None:
        if self._answer(event) is not None:
            self.control.training_finished(event)

    def _checkpoint_saved(self, event: a.CheckpointSaved) -> None:
        if self._answer(event) is not None:
            self.control.checkpoint_saved(event)

    def _group_formed(self, event: a.GroupFormed) -> None:
        if self._answer(event) is not None and self.control.joining.transfer is not None:
            self.control.joining.transfer.formed()

    def _weights_sent(self, event: a.WeightsSent) -> None:
        if self._answer(event) is not None and self.control.joining.transfer is not None:
            self.control.joining.transfer.sent()

    def _weights_loaded(self, event: a.WeightsLoaded) -> None:
        if self._answer(event) is not None:
            self.control.joining.loaded(event)

    def _kv_ready(self, event: a.KVReady) -> None:
        if self._answer(event) is not None:
            self.control.joining.kv_ready(event)

    def _command_failed(self, event: a.CommandFailed) -> None:
        command = self._answer(event)
        if command is not None:
            self._broken(command, event.error, silent=False, culprits=event.culprits)


_TAKE: dict[type[a.Event], Callable[[Scheduler, Any], None]] = {
    a.TrajectoriesWanted: Scheduler._started,
    a.EvaluationWanted: Scheduler._evaluation_wanted,
    a.UserStop: Scheduler._user_stop,
    a.TimerFired: Scheduler._timer_fired,
    a.TrainerReady: Scheduler._trainer_ready,
    a.TrainerDied: Scheduler._trainer_died,
    a.TrainingFinished: Scheduler._training_finished,
    a.WeightsSent: Scheduler._weights_sent,
    a.GroupFormed: Scheduler._group_formed,
    a.CheckpointSaved: Scheduler._checkpoint_saved,
    a.MemoryReleased: Scheduler._memory_released,
    a.CommandFailed: Scheduler._command_failed,
    a.RankBooted: Scheduler._rank_booted,
    a.RankDied: Scheduler._rank_died,
    a.RankStats: Scheduler._rank_stats,
    a.WeightsLoaded: Scheduler._weights_loaded,
    a.KVReady: Scheduler._kv_ready,
    a.SubmitAcked: Scheduler._submit_acked,
    a.Progress: Scheduler._progress,
    a.Finished: Scheduler._finished,
    a.Aborted: Scheduler._aborted,
    a.Failed: Scheduler._failed,
    a.EnvironmentReplied: Scheduler._environment_replied,
    a.EnvironmentFailed: Scheduler._environment_failed,
}
"""What takes each event of the alphabet."""
