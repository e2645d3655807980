"""The heart: `handle(event, now) -> list[Command]`, deterministic, without a clock and without I/O.

Invariant: equal settings, policy and events (with their times) give equal commands, element by element (R29).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from roll_ts.core import alphabet as a
from roll_ts.core.cycle import Cycle, Stage
from roll_ts.core.leases import Leases
from roll_ts.core.outbox import Outbox
from roll_ts.core.policies.base import Policy
from roll_ts.core.ranks import Rank, RankState, RankTable
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
    """The scheduler at one moment, for a live view. Counts of trajectories, attempts and groups."""

    stage: str
    version: int
    ranks: tuple[RankView, ...]
    open_trajectories: int
    running: int
    queued: int
    complete_groups: int
    outcomes: dict[Outcome, int]
    late_answers: int
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
        self.leases = Leases()
        self.rollouts = Rollouts(settings, self.ranks, self.out)
        self.cycle = Cycle(settings, policy, self.ranks, self.leases, self.rollouts, self.out)
        self.rollouts.on_sick = self.cycle.fence
        self._hear: dict[type[a.Event], Callable[[Any], None]] = {
            a.TrajectoriesWanted: self._on_trajectories_wanted,
            a.EvaluationWanted: self._on_evaluation_wanted,
            a.UserStop: self._on_user_stop,
            a.TimerFired: self._on_timer_fired,
            a.TrainerReady: self._on_trainer_ready,
            a.RankDied: self._on_rank_died,
            a.SubmitAcked: self._on_submit_acked,
            a.Progress: self._on_progress,
            a.Finished: self._on_finished,
            a.Aborted: self._on_aborted,
            a.Failed: self._on_failed,
            a.EnvironmentReplied: self._on_environment_replied,
            a.EnvironmentFailed: self._on_environment_failed,
            a.RankStats: self._on_rank_stats,
            a.RankBooted: self._on_rank_booted,
            a.MemoryReleased: self._on_memory_released,
            a.TrainingFinished: self._on_training_finished,
            a.CheckpointSaved: self._on_checkpoint_saved,
            a.GroupFormed: self._on_group_formed,
            a.WeightsSent: self._on_weights_sent,
            a.WeightsLoaded: self._on_weights_loaded,
            a.KVReady: self._on_kv_ready,
            a.CommandFailed: self._on_command_failed,
        }

    @property
    def finished(self) -> bool:
        """Whether `Finish` has been said; later events change nothing."""
        return self.cycle.stage is Stage.FINISHED

    def handle(self, event: a.Event, now: float) -> list[a.Command]:
        """Take one event at time `now` (seconds, never decreasing) and return what must be done.

        Raises UnknownId or IllegalTransition for an event that cannot have happened.
        """
        # VAL: VAL_FLOAT_RANGE(now, min=self.out.now)
        if not now >= self.out.now:
            raise ValueError(f"handle: now must lie in [{self.out.now!r:.200}, inf), got {now!r}")
        # END VAL f71c5b
        self.out.now = now
        if self.finished:
            return []
        kind = type(event)
        # VAL: VAL_KEY_IN(kind, mapping=self._hear, error=TypeError) - an event of the alphabet
        if kind not in self._hear:
            raise TypeError(f"handle: kind must be a key of self._hear, got {kind!r:.200} - an event of the alphabet")
        # END VAL 08cd95
        self._hear[kind](event)
        if kind not in QUIET:
            self.out.stir()
        for command in self.out.overdue():
            self.out.stir()
            self._broken(
                command, f"{command.awaits} did not answer {type(command).__name__} within its deadline", silent=True
            )
        for what, which in self.out.overdue_alarms():
            if what == "policy":
                self.cycle.desk.called()
                self.out.stir()
            elif what == "group":
                self.rollouts.group_overdue(which)
            else:
                self.rollouts.trajectory_overdue(which)
        self._go_on()
        return self.out.take()

    def snapshot(self) -> Snapshot:
        """What a live view shows."""
        trajectories = self.rollouts.trajectories
        sync = self.cycle.sync
        return Snapshot(
            stage=str(self.cycle.stage if sync is None else sync.stage),
            version=self.cycle.version,
            ranks=tuple(
                RankView(row.id, row.state, row.version, len(trajectories.by_rank[row.id])) for row in self.ranks.rows
            ),
            open_trajectories=len(trajectories.open),
            running=len(trajectories.attempts),
            queued=self.rollouts.queued,
            complete_groups=len(self.rollouts.groups.complete),
            outcomes=dict(trajectories.settled),
            late_answers=self.out.late_answers,
            late_data=trajectories.late_data,
        )

    def _go_on(self) -> None:
        """Do all that the known facts allow.

        An episode whose context is full ends inside a dispatch and may complete the batch, so the control side is asked
        again; each round ends at least one episode, which bounds them.
        """
        ended = True
        while ended:
            if self.out.stirred():
                self.cycle.advance()
            if self.finished:
                return
            self._open_admission()
            self.rollouts.admit()
            ended = self.rollouts.dispatch()

    def _rank_moved(self, row: Rank, old: RankState) -> None:
        self.rollouts.rank_moved(row)
        self.out.say(a.RankMoved, rank=row.id, old=str(old), new=str(row.state), epoch=row.epoch)

    def _open_admission(self) -> None:
        """Training groups start once the untrained policy has been evaluated, and until the last version."""
        until = self.cycle.until
        open_now = until is not None and 0 <= self.cycle.version < until and not self.cycle.stopping
        self.rollouts.admitting = open_now and (self.rollouts.admitting or not self.rollouts.evaluating)

    def _on_trajectories_wanted(self, event: a.TrajectoriesWanted) -> None:
        # VAL: VAL_POSITIVE(event.until)
        if not event.until > 0:
            raise ValueError(f"Scheduler._on_trajectories_wanted: event.until must be positive, got {event.until!r}")
        # END VAL 448e10
        self.cycle.until = event.until
        if self.settings.evaluation_episodes:
            self.rollouts.begin_evaluation(self.settings.evaluation_episodes, self.settings.evaluation_seed)

    def _on_evaluation_wanted(self, event: a.EvaluationWanted) -> None:
        self.rollouts.begin_evaluation(event.episodes, event.first_seed)

    def _on_user_stop(self, event: a.UserStop) -> None:
        self.cycle.stop()

    def _on_timer_fired(self, event: a.TimerFired) -> None:
        """Deadlines are looked at after every event; the timer only makes sure that there is one."""

    def _on_trainer_ready(self, event: a.TrainerReady) -> None:
        self.cycle.trainer_ready(event)

    def _on_rank_died(self, event: a.RankDied) -> None:
        if event.command is None or self.out.answered(event.command) is not None:
            self.cycle.rank_died(event.rank)

    def _on_submit_acked(self, event: a.SubmitAcked) -> None:
        """Nothing waits for it alone: the attempt's own deadline covers it."""

    def _on_progress(self, event: a.Progress) -> None:
        self.rollouts.progress(event)

    def _on_finished(self, event: a.Finished) -> None:
        self.rollouts.finished(event)

    def _on_aborted(self, event: a.Aborted) -> None:
        self.rollouts.aborted(event)

    def _on_failed(self, event: a.Failed) -> None:
        self.rollouts.failed(event)

    def _on_environment_replied(self, event: a.EnvironmentReplied) -> None:
        self.rollouts.environment_replied(event)

    def _on_environment_failed(self, event: a.EnvironmentFailed) -> None:
        self.rollouts.environment_failed(event)

    def _on_rank_stats(self, event: a.RankStats) -> None:
        if event.command is None:
            return
        command = self.out.answered(event.command)
        if command is not None:
            self.cycle.rank_quiet(command, event)

    def _on_rank_booted(self, event: a.RankBooted) -> None:
        if self.out.answered(event.command) is not None:
            self.cycle.rank_booted(event)

    def _on_memory_released(self, event: a.MemoryReleased) -> None:
        command = self.out.answered(event.command)
        if command is not None:
            self.cycle.memory_released(command, event)

    def _on_training_finished(self, event: a.TrainingFinished) -> None:
        if self.out.answered(event.command) is not None:
            self.cycle.training_finished(event)

    def _on_checkpoint_saved(self, event: a.CheckpointSaved) -> None:
        command = self.out.answered(event.command)
        if command is not None:
            self.cycle.checkpoint_saved(command.id)

    def _on_group_formed(self, event: a.GroupFormed) -> None:
        if self.out.answered(event.command) is not None and self.cycle.sync is not None:
            self.cycle.sync.group_formed()

    def _on_weights_sent(self, event: a.WeightsSent) -> None:
        if self.out.answered(event.command) is not None and self.cycle.sync is not None:
            self.cycle.sync.weights_sent()

    def _on_weights_loaded(self, event: a.WeightsLoaded) -> None:
        if self.out.answered(event.command) is not None and self.cycle.sync is not None:
            self.cycle.sync.weights_loaded(event)

    def _on_kv_ready(self, event: a.KVReady) -> None:
        if self.out.answered(event.command) is not None and self.cycle.sync is not None:
            self.cycle.sync.kv_ready(event)

    def _on_command_failed(self, event: a.CommandFailed) -> None:
        command = self.out.answered(event.command)
        if command is not None:
            self._broken(command, event.error, silent=False)

    def _broken(self, command: a.Command, why: str, silent: bool) -> None:
        """The command will not be answered as hoped: fence, replace, form anew or finish (R24, R26)."""
        sync = self.cycle.sync
        match command:
            case a.Dispatch() | a.StepEnvironment():
                self.rollouts.overdue(command, why)
            case a.FormGroup() if sync is not None:
                sync.group_broken(why)
            case a.Sync() if sync is not None:
                sync.weights_sent()
            case a.LoadWeights() if sync is not None and not silent:
                sync.load_failed(command.rank)
            case a.Fence():
                self.cycle.finish(False, f"rank {command.rank} could not be fenced: {why}")
            case a.Train() | a.ReleaseTrainer() | a.Checkpoint():
                self.cycle.finish(False, why)
            case _:
                self.cycle.fence(command.rank, why)  # type: ignore[attr-defined]
