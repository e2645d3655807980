"""The control side: shrink → train → sync → expand, and the repair of ranks that fail (R2, R7, R22–R24).

Events record facts; `advance` alone moves from stage to stage, so the order in which facts arrive does not matter.
Invariant: every operation ends in a state of the rank table; whoever does not answer is fenced (D-7).
"""

from __future__ import annotations

from enum import StrEnum

from roll_ts.core.alphabet import (
    Assignment,
    Checkpoint,
    Command,
    Drain,
    Fence,
    Finish,
    MemoryReleased,
    RankBooted,
    RankStats,
    Release,
    ReleaseTrainer,
    Restart,
    Resume,
    Train,
    TrainerReady,
    TrainingFinished,
)
from roll_ts.core.deciding import Desk
from roll_ts.core.leases import TRAINING, Leases, rollout
from roll_ts.core.outbox import Outbox
from roll_ts.core.policies.base import Policy
from roll_ts.core.ranks import RankState, RankTable
from roll_ts.core.rollouts import Rollouts
from roll_ts.core.settings import Settings
from roll_ts.core.sync import SyncStage, WeightSync

S = RankState


class Stage(StrEnum):
    """What the control side is doing; SYNCING covers forming, loading and waking."""

    IDLE = "IDLE"
    SHRINKING = "SHRINKING"
    TRAINING = "TRAINING"
    FREEING = "FREEING"
    SYNCING = "SYNCING"
    SAVING = "SAVING"
    FINISHED = "FINISHED"


class Cycle:
    """State of the control side. `version` and `digest` are the trainer's; −1 until it is ready."""

    def __init__(
        self, settings: Settings, policy: Policy, ranks: RankTable, leases: Leases, rollouts: Rollouts, out: Outbox
    ) -> None:
        self.settings = settings
        self.policy = policy
        self.ranks = ranks
        self.leases = leases
        self.rollouts = rollouts
        self.out = out
        self.stage = Stage.IDLE
        self.version = -1
        self.digest = ""
        self.until: int | None = None
        self.stopping = False
        self.sync: WeightSync | None = None
        self._batch: tuple[Assignment, ...] = ()
        self._lent: tuple[int, ...] = ()
        self._quiet: set[int] = set()
        self._wound_up = False
        self._last_checkpoint: int | None = None
        self.desk = Desk(settings, policy, ranks, rollouts, out)
        self._shares = bool(settings.layout.shared_ranks)

    def advance(self) -> None:
        """Go on as far as the known facts allow."""
        while self.stage is not Stage.FINISHED and self._step():
            pass

    def trainer_ready(self, event: TrainerReady) -> None:
        """The trainer can publish its version; its parameters lie in the sync window until the first sync is over."""
        self.version, self.digest = event.version, event.digest
        self.rollouts.drop_stale(event.version)
        if self._shares:
            self.leases.open_window(self.ranks.epoch, 0)
        else:
            self.leases.grant(TRAINING, self.settings.layout.train_devices)

    def rank_booted(self, event: RankBooted) -> None:
        """The engine is up and holds nothing proven."""
        row = self.ranks.get(event.rank)
        # VAL: VAL_POSITIVE(event.kv_capacity)
        if not event.kv_capacity > 0:
            raise ValueError(f"rank_booted: event.kv_capacity must be positive, got {event.kv_capacity!r}")
        # END VAL bd6575
        row.kv_capacity = event.kv_capacity
        self.ranks.move(event.rank, S.EMPTY)

    def rank_quiet(self, command: Command, event: RankStats) -> None:
        """The answer to Drain, Pause or Resume. A drain that left requests behind is a broken rank (R7)."""
        if isinstance(command, Drain) and event.running + event.waiting > 0:
            self.fence(event.rank, f"drained but still running {event.running}, waiting {event.waiting}")
        elif self.ranks.get(event.rank).state is S.DRAINING:
            self._quiet.add(event.rank)
        elif self.sync is not None and isinstance(command, Resume):
            self.sync.resumed(event.rank)
        elif self.sync is not None:
            self.sync.quiet(event.rank)

    def memory_released(self, command: Command, event: MemoryReleased) -> None:
        """A lease comes back (R2)."""
        if isinstance(command, Release):
            self.leases.give_back(rollout(command.rank))
            self.ranks.move(command.rank, S.LENT)
        elif isinstance(command, ReleaseTrainer) and command.parts == "all" and self.sync is not None:
            self.sync.trainer_released(event)
        elif self.stage is Stage.FREEING:
            self.leases.open_window(self.ranks.epoch, 0)
            self._begin_sync()

    def training_finished(self, event: TrainingFinished) -> None:
        """A new version exists: count it, end what is now too old, and start giving it to the ranks."""
        # AST: AST_INVARIANT(event.version == self.version + 1)
        assert event.version == self.version + 1, (
            f"Invariant: event.version == self.version + 1, got event.version={event.version!r:.200}, "
            f"self.version={self.version!r:.200}"
        )
        # END AST eb3faa
        self.version, self.digest = event.version, event.digest
        self.rollouts.ledger.trained += len(self.rollouts.groups.trained())
        self.rollouts.drop_stale(self.version)
        every = self.settings.checkpoint_every
        if every and self.version % every == 0 and not self.stopping:
            self._save()
        if not self._shares:
            self._begin_sync()
            return
        self.stage = Stage.FREEING
        self.out.say(
            ReleaseTrainer,
            within=self.settings.deadlines.release_trainer,
            awaits="trainer",
            epoch=self.ranks.epoch,
            parts="state",
        )

    def rank_died(self, rank: int) -> None:
        """The process is gone: its devices are free, its attempts end, whatever it owed is called off (R23, R24)."""
        if self.ranks.get(rank).state is S.FAILED:
            return
        self._call_off(rank)
        self.rollouts.rank_lost(rank)
        self.leases.give_back(rollout(rank))
        self.ranks.move(rank, S.FAILED)
        if self.sync is not None:
            self.sync.lost(rank)

    def fence(self, rank: int, reason: str) -> None:
        """Kill the rank so that nothing of it can be heard again; the run goes on without it (D-7)."""
        # VAL: VAL_NON_EMPTY(reason)
        if len(reason) == 0:
            raise ValueError(f"fence: reason must not be empty, got {reason!r:.200}")
        # END VAL 75acf8
        if self.ranks.get(rank).state in (S.FENCED, S.FAILED):
            return
        self._call_off(rank)
        self.ranks.move(rank, S.FENCED)
        if self.sync is not None:
            self.sync.lost(rank)
        self.out.say(
            Fence, within=self.settings.deadlines.fence, awaits=f"process of rank {rank}", rank=rank, reason=reason
        )

    def stop(self) -> None:
        """A person wants the end."""
        self.stopping = True
        self.rollouts.close_training("shutdown")
        self.rollouts.close_evaluation()

    def checkpoint_saved(self, command: int) -> None:
        """After the last checkpoint the run is over."""
        if command == self._last_checkpoint:
            good = "stopped by the user" if self.stopping else f"reached version {self.version}"
            self.finish(self.rollouts.doom is None, self.rollouts.doom or good)

    def finish(self, ok: bool, reason: str) -> None:
        """End the run; what is open is cancelled so that every trajectory has its outcome."""
        # VAL: VAL_NON_EMPTY(reason)
        if len(reason) == 0:
            raise ValueError(f"finish: reason must not be empty, got {reason!r:.200}")
        # END VAL 3e4551
        self.rollouts.close_training("shutdown")
        self.rollouts.close_evaluation()
        self.stage = Stage.FINISHED
        self.out.say(Finish, ok=ok, reason=reason)

    def _step(self) -> bool:
        if self.rollouts.doom is not None and not self.stopping:
            self.stop()
        if self.stopping and self.stage not in (Stage.TRAINING, Stage.SAVING):
            return self._save_and_finish()
        if self.stage is Stage.IDLE:
            return self._start_something()
        if self.stage is Stage.SHRINKING:
            return self._shrink()
        if self.stage is Stage.SYNCING:
            # AST: AST_INVARIANT(self.sync is not None) - the stage SYNCING has a sync
            assert self.sync is not None, (
                f"Invariant: self.sync is not None, got self.sync={self.sync!r:.200} - the stage SYNCING has a sync"
            )
            # END AST 3c12c3
            if self.sync.stage is SyncStage.DONE:
                self.sync, self.stage = None, Stage.IDLE
                return True
            return self.sync.advance()
        return False

    def _start_something(self) -> bool:
        if self._boot_what_failed():
            return True
        if self.version < 0 or self.until is None:
            return False
        empty, active, booting = (self.ranks.in_state(state) for state in (S.EMPTY, S.ACTIVE, S.BOOTING))
        if empty and (active or not booting):
            self._begin_sync()
            return True
        if not (empty or active or booting or self.ranks.in_state(S.FENCED)):
            self.finish(False, "no rollout rank is left")
            return True
        if self.version >= self.until:
            return self._wind_up()
        return self._start_training()

    def _boot_what_failed(self) -> bool:
        """Start the processes that are not there, while nobody else uses their devices."""
        if self.until is None:
            return False
        todo = [
            row
            for row in map(self.ranks.get, self.ranks.in_state(S.FAILED))
            if row.boots <= self.settings.max_restarts_per_rank
            and all(self.leases.held_by(device) is None for device in row.devices)
        ]
        for row in todo:
            row.boots += 1
            self.leases.grant(rollout(row.id), row.devices)
            self.ranks.move(row.id, S.BOOTING)
            self.out.say(Restart, within=self.settings.deadlines.boot, awaits=f"rank {row.id}", rank=row.id)
        return bool(todo)

    def _start_training(self) -> bool:
        layout = self.settings.layout
        between = self.ranks.in_state(S.BOOTING, S.EMPTY, S.FENCED)
        if any(rank in layout.shared_ranks for rank in between):
            return False
        decision = self.desk.ask(self.version, trainer_free=True)
        if decision is None or not decision.train:
            return False
        self.desk.forget()
        self.ranks.new_epoch()
        self._batch = self.rollouts.groups.take(decision.train)
        self._lent, self._quiet = decision.lend, set()
        self.stage = Stage.SHRINKING
        if self._lent:
            devices = tuple(device for rank in self._lent for device in layout.ranks[rank])
            self.ranks.begin_shrink(devices, may_empty=not self.rollouts.unsettled)
            for rank in self._lent:
                self.out.say(
                    Drain,
                    within=self.settings.deadlines.drain,
                    awaits=f"rank {rank}",
                    rank=rank,
                    epoch=self.ranks.epoch,
                )
        return True

    def _shrink(self) -> bool:
        moved = False
        for rank in self._lent:
            row = self.ranks.get(rank)
            if row.state is S.DRAINING and rank in self._quiet and not self.rollouts.trajectories.by_rank[rank]:
                self.ranks.move(rank, S.RELEASING)
                self.out.say(
                    Release,
                    within=self.settings.deadlines.release,
                    awaits=f"rank {rank}",
                    rank=rank,
                    epoch=self.ranks.epoch,
                    recover_from=f"trainer's published version {self.version}",
                )
                moved = True
        if any(self.ranks.get(rank).state not in (S.LENT, S.FAILED) for rank in self._lent):
            return moved
        self.leases.grant(TRAINING, self.settings.layout.train_devices)
        self.stage = Stage.TRAINING
        self.out.say(
            Train,
            within=self.settings.deadlines.train,
            awaits="trainer",
            epoch=self.ranks.epoch,
            version=self.version,
            batch=self._batch,
        )
        return True

    def _begin_sync(self) -> None:
        self.stage = Stage.SYNCING
        self.sync = WeightSync(
            self.settings,
            self.ranks,
            self.leases,
            self.rollouts,
            self.out,
            self.fence,
            self.version,
            self.digest,
        )
        self.sync.begin()

    def _wind_up(self) -> bool:
        """The last version is on every rank: close training, evaluate, save."""
        if not self._wound_up:
            self._wound_up = True
            self.rollouts.close_training("shutdown")
            if self.settings.evaluation_episodes:
                self.rollouts.begin_evaluation(self.settings.evaluation_episodes, self.settings.evaluation_seed)
        if self.rollouts.evaluating:
            return False
        return self._save_and_finish()

    def _save_and_finish(self) -> bool:
        self.stage, self.sync = Stage.SAVING, None
        if self.version < 0:
            self.finish(True, "stopped by the user before the trainer was ready")
        else:
            self._last_checkpoint = self._save()
        return True

    def _save(self) -> int:
        command = self.out.say(
            Checkpoint, within=self.settings.deadlines.checkpoint, awaits="trainer", version=self.version
        )
        return command.id

    def _call_off(self, rank: int) -> None:
        """Wait no longer for what the rank owes as a party; attempts end by themselves."""
        for command in list(self.out.waiting.values()):
            if command.lane == "control" and getattr(command, "rank", None) == rank and not isinstance(command, Fence):
                self.out.call_off(command.id)
