"""The control side. Theory of operation:

Every rank and the trainer goes its own way, and each way is an operation with a module of its own:

    lending    a rank gives its devices back: drain, release, lent; called back, it serves again
    joining    ranks come to hold the trainer's version: group, load, digest, KV, canary
    repairing  a rank's process is started, killed, quarantined, started again
    training   a batch is taken, the devices are awaited, the trainer trains
    trainer    the trainer's process: what it holds, what it has saved, its own death and return

No operation knows another's state. What ties them together are the leases: the trainer trains when nobody else holds
its devices, a joiner takes its KV when the trainer has left them, a process is started where nobody is. So a rank
can be lent early, in part, called back or restarted while the trainer trains, and no case of these is special.

Events record facts and are checked before they do; `advance` alone acts on them, until nothing more follows. So the
order in which facts arrive does not matter, and a step is taken because it can be, not because of what happened before.
A stage is a word for the report, derived from the operations.

Two rules hold everything else up. Whoever does not answer is killed, and what was half done ends in a state of the
table (D-7). A run ends in one way only: `end` closes the data side, what was trained is saved, then `Finish` (R36).
"""

from __future__ import annotations

from roll_ts.core.alphabet import (
    Checkpoint,
    CheckpointSaved,
    Command,
    Fence,
    FenceTrainer,
    Finish,
    FormGroup,
    LoadWeights,
    MemoryReleased,
    RankBooted,
    RankStats,
    Release,
    ReleaseTrainer,
    StartTrainer,
    Sync,
    Train,
    TrainerReady,
    TrainingFinished,
)
from roll_ts.core.joining import Joining
from roll_ts.core.leases import TRAINING, Leases
from roll_ts.core.lending import Lending
from roll_ts.core.outbox import Outbox
from roll_ts.core.policies.base import Policy
from roll_ts.core.ranks import Rank, RankState, RankTable
from roll_ts.core.repairing import Repairing
from roll_ts.core.rollouts import Rollouts
from roll_ts.core.settings import Settings
from roll_ts.core.trainer import Holds, Trainer, TrainerState
from roll_ts.core.training import Training

S = RankState
T = TrainerState
SAVE_TRIES = 2


class Control:
    """`until`: the run ends at this version; `stopping`: the end has begun; `finished`: `Finish` was said."""

    def __init__(
        self, settings: Settings, policy: Policy, ranks: RankTable, leases: Leases, rollouts: Rollouts, out: Outbox
    ) -> None:
        self.settings = settings
        self.ranks = ranks
        self.leases = leases
        self.rollouts = rollouts
        self.out = out
        self.trainer = Trainer(settings, leases, out)
        self.repairing = Repairing(settings, ranks, leases, rollouts, out)
        self.lending = Lending(settings, ranks, leases, rollouts, out)
        self.training = Training(settings, policy, ranks, rollouts, self.trainer, self.lending, out)
        self.joining = Joining(
            settings,
            ranks,
            leases,
            rollouts,
            self.trainer,
            self.lending,
            out,
            self.fence,
            self.charge_trainer,
        )
        self.shared = settings.layout.shared_ranks
        self.until: int | None = None
        self.stopping = False
        self.finished = False
        self._ok = True
        self._reason = ""
        self._wound_up = False
        self._save_tries = 0

    @property
    def version(self) -> int:
        """The trainer's version; −1 until it is ready."""
        return self.trainer.version

    @property
    def stage(self) -> str:
        """A word for what the control side is doing, for people."""
        trainer, transfer = self.trainer, self.joining.transfer
        if self.finished:
            return "FINISHED"
        if trainer.state is T.TRAINING:
            return "TRAINING"
        if self.stopping:
            return "SAVING"
        if self.training.batch:
            return "SHRINKING"
        if transfer is not None:
            return str(transfer.stage)
        if trainer.asked:
            return "FREEING" if trainer.asked == "state" else "CLEARING"
        if self.ranks.in_state(S.LOADING, S.SYNCING):
            return "WAKING"
        return "IDLE" if trainer.up else "STARTING"

    def advance(self) -> None:
        """Go on as far as the known facts allow."""
        while not self.finished and self._step():
            pass

    def rank_moved(self, row: Rank) -> None:
        """A rank has changed its state in the table."""
        self.lending.moved(row)
        self.joining.moved(row)

    def trainer_ready(self, event: TrainerReady) -> None:
        """The trainer is there, the first time or again; it may have fallen back to an older version (R27)."""
        if event.version < 0:
            self.trainer.fence(f"it says that it holds version {event.version}")
            return
        before = self.trainer.version
        self.trainer.ready(event)
        if event.version < before:
            self.rollouts.roll_back(event.version)
        else:
            self.rollouts.drop_stale(event.version)
        self.lending.let_go()
        self.joining.new_version()

    def trainer_died(self, reason: str) -> None:
        """The trainer's processes are gone: a step that it was doing has not been done; its devices are free."""
        self.trainer.died(reason)
        self.training.failed()
        self.joining.stop()
        self.joining.window_shut()

    def training_finished(self, event: TrainingFinished) -> None:
        """A new version exists. It is saved, if that is due, while the trainer still holds it on its devices."""
        if event.version != self.version + 1:
            self._trainer_lost_its_step(f"trained version {event.version} instead of {self.version + 1}")
            return
        self.training.finished(event.version, event.digest)
        every = self.settings.checkpoint_every
        last = self.until is not None and self.version >= self.until
        if (every and self.version % every == 0) or last or self.stopping:
            self.trainer.save()
        if self.trainer.shares:
            self.trainer.release("state")
        self.joining.new_version()

    def memory_released(self, command: Command, event: MemoryReleased) -> None:
        """A lease comes back (R2). Who gives nothing back has not released anything."""
        if isinstance(command, Release):
            if event.bytes > 0:
                self.lending.released(command.rank)
            else:
                self.fence(command.rank, f"released {event.bytes} bytes")
        elif event.bytes <= 0:
            self.trainer.asked = ""
            self.charge_trainer(f"released {event.bytes} bytes")
        else:
            if self.trainer.released(event) == "all":
                self.joining.window_shut()
            self.joining.look()

    def rank_booted(self, event: RankBooted) -> None:
        """The engine is up and holds nothing proven."""
        if event.kv_capacity <= 0:
            self.fence(event.rank, f"booted with room for {event.kv_capacity} tokens of KV")
            return
        self.ranks.get(event.rank).kv_capacity = event.kv_capacity
        self.ranks.move(event.rank, S.EMPTY)

    def rank_drained(self, event: RankStats) -> None:
        """The answer to `Drain`: of a rank that is lent, or of a kept one that is about to load."""
        if self.ranks.get(event.rank).state is S.DRAINING:
            lie = self.lending.drained(event)
            if lie:
                self.fence(event.rank, lie)
        elif event.running + event.waiting > 0:
            self.fence(event.rank, f"drained but still running {event.running}, waiting {event.waiting}")
        else:
            self.joining.quiet(event.rank)

    def checkpoint_saved(self, event: CheckpointSaved) -> None:
        """A version is on disk."""
        self.trainer.was_saved(event.version, event.path)

    def broken(self, command: Command, why: str, silent: bool, culprits: tuple[str, ...] = ()) -> None:
        """A control command will not be answered as hoped (R24, R26)."""
        transfer = self.joining.transfer
        match command:
            case FormGroup() if transfer is not None:
                transfer.form_failed(why, silent, culprits)
            case Sync() if transfer is not None:
                transfer.send_failed(why, silent, culprits)
            case LoadWeights() if transfer is not None:
                transfer.load_failed(command.rank, why, silent, culprits)
            case Fence():
                self.repairing.quarantine(command.rank)
            case FenceTrainer():
                self.trainer.state = T.QUARANTINED
                self.end(False, f"the trainer's end could not be confirmed: {why}")
            case StartTrainer():
                self.trainer.fence(why)
            case Train():
                self._trainer_lost_its_step(why)
            case ReleaseTrainer():
                self.trainer.asked = ""
                self.charge_trainer(why)
            case Checkpoint():
                self.trainer.save_failed(why)
            case _:
                self.fence(command.rank, why)  # type: ignore[attr-defined]

    def fence(self, rank: int, reason: str) -> None:
        """Kill the rank so that nothing of it can be heard again; the run goes on without it (D-7)."""
        self.repairing.fence(rank, reason)

    def charge_trainer(self, reason: str) -> None:
        """The trainer is at fault: its version is saved as far as it still answers, then it is replaced (R36)."""
        if self.trainer.up and not self.trainer.condemned:
            self.trainer.condemned = reason
            self.joining.stop()

    def quarantine_lasts(self, rank: int) -> None:
        """A rank on the trainer's devices is still not known to be dead: the run cannot train any more."""
        if self.ranks.get(rank).state is S.QUARANTINED:
            self.end(False, f"rank {rank} uses the trainer's devices and its end could not be confirmed")

    def stop(self) -> None:
        """A person wants the end."""
        ready = "" if self.version >= 0 else " before the trainer was ready"
        self.end(True, f"stopped by the user{ready}")

    def end(self, ok: bool, reason: str) -> None:
        """Begin the end of the run: no more work; what is trained is saved; then `Finish`. Only once."""
        # VAL: VAL_NON_EMPTY(reason)
        if len(reason) == 0:
            raise ValueError(f"Control.end: reason must not be empty, got {reason!r:.200}")
        # END VAL 749d51
        if self.stopping:
            return
        self.stopping, self._ok, self._reason = True, ok, reason
        self.rollouts.close_training("shutdown")
        self.rollouts.close_evaluation()
        self.joining.stop()

    def _step(self) -> bool:
        """One step of any operation. False when none can be taken."""
        if self.stopping:
            return self._end_step()
        if self.rollouts.doom is not None:
            self.end(False, self.rollouts.doom)
            return True
        if self.until is None:
            return False
        return (
            self.repairing.advance(devices_wanted=self._trainer_wants_devices())
            or self._tend_trainer()
            or self.lending.advance(self.version)
            or self.joining.advance()
            or self.joining.clear_when_done()
            or self.training.advance()
            or self._next_task()
        )

    def _trainer_wants_devices(self) -> bool:
        """Whether ranks that are not there must wait: a step, or the trainer's return, needs their devices first."""
        trainer = self.trainer
        returning = trainer.incarnation > 0 and trainer.state in (T.ABSENT, T.FENCED)
        return bool(self.training.batch or trainer.condemned) or returning

    def _tend_trainer(self) -> bool:
        """Start the trainer where it is not, though not beside a process that may still live (R34); replace the one at
        fault, once its version is saved (R36)."""
        trainer = self.trainer
        if trainer.condemned and trainer.up:
            if trainer.saving is not None or trainer.state is T.TRAINING:
                return False
            if trainer.unsaved and not trainer.save_error:
                return self._save() or self._lend_all()
            trainer.fence(trainer.condemned)
            return True
        if trainer.state is not T.ABSENT:
            return False
        if trainer.incarnation and not trainer.budget.left(self.out.now):
            self.end(False, trainer.died_of)
            return True
        confirmed = not any(self.ranks.get(rank).state is S.QUARANTINED for rank in self.shared)
        if not (confirmed and self._devices_left()):
            return self._lend_all()
        trainer.start()
        return True

    def _next_task(self) -> bool:
        """What is left to do when every operation rests: end, wind up, or train."""
        if self.repairing.hopeless and self.trainer.state is not T.TRAINING:
            self.end(False, "no rollout rank is left")
            return True
        trainer = self.trainer
        ready = trainer.state is T.READY and not trainer.condemned and not trainer.asked and not self.training.batch
        if not ready or (trainer.shares and trainer.holds is not Holds.NOTHING) or self.joining.publishing:
            return False
        if self.until is not None and self.version >= self.until:
            return self._wind_up()
        return self.training.consider()

    def _wind_up(self) -> bool:
        """The last version is on every rank: close training, evaluate, end."""
        if not self._wound_up:
            if not self.joining.idle:
                return False
            self._wound_up = True
            self.rollouts.close_training("shutdown")
            if self.settings.evaluation_episodes:
                self.rollouts.begin_evaluation(self.settings.evaluation_episodes, self.settings.evaluation_seed)
        if self.rollouts.evaluating:
            return False
        self.end(True, f"reached version {self.version}")
        return True

    def _end_step(self) -> bool:
        """Wait for the step that is being trained, save what is not saved, finish."""
        trainer = self.trainer
        if trainer.state is T.TRAINING or trainer.saving is not None:
            return False
        if trainer.unsaved and self._save_tries < SAVE_TRIES:
            if not self._save():
                return self._lend_all() or self.lending.advance(self.version)
            self._save_tries += 1
            return True
        self._finish()
        return True

    def _save(self) -> bool:
        """Save, on devices that the trainer has to itself (R2); False while a rank serves there. One that nobody can
        confirm dead does not keep the work from being saved."""
        trainer = self.trainer
        if trainer.shares and trainer.holds is Holds.NOTHING:
            if not self._devices_left():
                return False
            if not self.leases.taken:
                self.leases.grant(TRAINING, self.settings.layout.train_devices)
        trainer.save()
        return True

    def _devices_left(self) -> bool:
        """Whether no rank serves, or is killed, on the trainer's devices. Ranks without KV may be there (R22)."""
        on = (S.ACTIVE, S.DRAINING, S.RELEASING, S.SYNCING, S.FENCED)
        states = [self.ranks.get(rank).state for rank in self.shared]
        return not any(state in on for state in states) and not self.joining.waking_shared

    def _lend_all(self) -> bool:
        """Have every rank on the trainer's devices leave them: it cannot come back while they are used."""
        active = tuple(rank for rank in self.shared if self.ranks.get(rank).state is S.ACTIVE)
        if active:
            self.ranks.new_epoch()
            self.lending.lend(active, may_empty=True)
        return bool(active)

    def _trainer_lost_its_step(self, why: str) -> None:
        """The step failed: whether the trainer's state is whole is not known, but its version is published."""
        self.trainer.state = T.READY
        self.training.failed()
        self.charge_trainer(why)

    def _finish(self) -> None:
        trainer = self.trainer
        if trainer.unsaved:
            self._ok = False
            self._reason += f"; version {trainer.version} could not be saved: {trainer.save_error}"
        elif trainer.lost_work:
            self._ok = False
            self._reason += f"; version {trainer.version} is lost with the trainer"
        if not self._ok:
            self._reason += trainer.where_saved()
        self.finished = True
        self.out.say(Finish, ok=self._ok, reason=self._reason)
