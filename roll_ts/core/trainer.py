"""The trainer as a process: its incarnation, what it holds on its devices, the version it can publish, its saves.

Invariants: one incarnation lives at a time; `version` and `digest` are of the weights that can be published, and they
change by `TrainingFinished` and `TrainerReady` alone; a memory report is believed for the command that asked for it.
"""

from __future__ import annotations

from enum import StrEnum

from roll_ts.core.alphabet import (
    Assignment,
    Checkpoint,
    FenceTrainer,
    MemoryReleased,
    ReleaseTrainer,
    StartTrainer,
    Train,
    TrainerReady,
)
from roll_ts.core.budget import Budget
from roll_ts.core.leases import TRAINING, Leases
from roll_ts.core.outbox import Outbox
from roll_ts.core.parties import TRAINER
from roll_ts.core.settings import Settings


class TrainerState(StrEnum):
    """ABSENT: no process. FENCED: killed, its end not yet confirmed; QUARANTINED: nobody can confirm it."""

    ABSENT = "ABSENT"
    STARTING = "STARTING"
    READY = "READY"
    TRAINING = "TRAINING"
    FENCED = "FENCED"
    QUARANTINED = "QUARANTINED"


class Holds(StrEnum):
    """What lies on the trainer's devices: nothing, the parameters, or also optimizer, gradients and activations."""

    NOTHING = "nothing"
    PARAMETERS = "parameters"
    ALL = "all"


T = TrainerState


class Trainer:
    """`version` −1 until it was ready once; `saved` is the (version, path) of the last checkpoint; `asked` are the
    parts that it was asked to release and has not yet; `condemned`: why it is to be replaced once its version is saved;
    `died_of`: what the last incarnation died of; `shares`: ranks use its devices too."""

    def __init__(self, settings: Settings, leases: Leases, out: Outbox) -> None:
        self.settings = settings
        self.leases = leases
        self.out = out
        self.shares = bool(settings.layout.shared_ranks)
        self.state = T.ABSENT
        self.incarnation = 0
        self.version = -1
        self.digest = ""
        self.holds = Holds.NOTHING
        self.asked = ""
        self.condemned = ""
        self.died_of = ""
        self.first_version = -1
        self.saved: tuple[int, str] | None = None
        self.saving: int | None = None
        self.save_error = ""
        self.epoch = 0
        self.budget = Budget(settings.max_trainer_restarts, settings.restart_refill_seconds)

    @property
    def up(self) -> bool:
        """Whether the process is there and can be asked."""
        return self.state in (T.READY, T.TRAINING)

    @property
    def unsaved(self) -> bool:
        """Whether the trainer has a version that was trained and is not on disk."""
        return self.up and (self.saved is None or self.saved[0] != self.version)

    def lives(self, incarnation: int) -> bool:
        """Whether this process is the present one and not known to be gone."""
        return self.state is not T.ABSENT and incarnation == self.incarnation

    def start(self) -> None:
        """Start its processes, from the last checkpoint if there is one. Its parameters come to lie in the window."""
        if self.incarnation:
            self.budget.spend(self.out.now)
        self.incarnation += 1
        self.state = T.STARTING
        self.out.say(
            StartTrainer,
            within=self.settings.deadlines.trainer_boot,
            awaits=TRAINER,
            incarnation=self.incarnation,
            resume_from=self.saved[1] if self.saved is not None else None,
        )

    def ready(self, event: TrainerReady) -> None:
        """It can publish `event.version`."""
        self.state = T.READY
        self.version, self.digest = event.version, event.digest
        self.save_error = ""
        if self.first_version < 0:
            self.first_version = event.version
        self.holds = Holds.PARAMETERS
        if self.shares:
            self.leases.window_open = True
        else:
            self.leases.grant(TRAINING, self.settings.layout.train_devices)

    def train(self, epoch: int, batch: tuple[Assignment, ...]) -> None:
        """One optimizer step on `batch`, on devices that are its own."""
        self.leases.grant(TRAINING, self.settings.layout.train_devices)
        self.leases.window_open = False
        self.epoch, self.state, self.holds = epoch, T.TRAINING, Holds.ALL
        self.out.say(
            Train,
            within=self.settings.deadlines.train,
            awaits=TRAINER,
            epoch=epoch,
            version=self.version,
            batch=batch,
        )

    def trained(self, version: int, digest: str) -> None:
        """The step is done; `version` can be published."""
        self.state = T.READY
        self.version, self.digest = version, digest

    def release(self, parts: str) -> None:
        """Ask it to give back "state" or "all". Nothing is asked of a trainer with devices of its own."""
        self.asked = parts
        self.out.say(
            ReleaseTrainer,
            within=self.settings.deadlines.release_trainer,
            awaits=TRAINER,
            epoch=self.epoch,
            parts=parts,
        )

    def released(self, event: MemoryReleased) -> str:
        """The memory is back; returns the parts. After "all" its devices are free and the window is shut (R22)."""
        parts, self.asked = self.asked, ""
        if parts == "all":
            self._leave_devices()
        else:
            self.holds = Holds.PARAMETERS
            self.leases.window_open = True
        return parts

    def save(self) -> None:
        """Have the present version written to disk, once at a time."""
        if self.saving is None:
            self.saving = self.out.say(
                Checkpoint, within=self.settings.deadlines.checkpoint, awaits=TRAINER, version=self.version
            ).id

    def was_saved(self, version: int, path: str) -> None:
        """`version` is on disk."""
        self.saving, self.saved, self.save_error = None, (version, path), ""

    def save_failed(self, why: str) -> None:
        """It is not; the next version, or the end of the run, tries again."""
        self.saving, self.save_error = None, why

    def fence(self, reason: str) -> None:
        """Kill its processes so that nothing of them can be heard again."""
        # VAL: VAL_NON_EMPTY(reason)
        if len(reason) == 0:
            raise ValueError(f"Trainer.fence: reason must not be empty, got {reason!r:.200}")
        # END VAL 21b91c
        if self.state in (T.ABSENT, T.FENCED, T.QUARANTINED):
            return
        self._forget_what_it_owes()
        self.state, self.died_of = T.FENCED, f"the trainer: {reason}"
        self.out.say(
            FenceTrainer,
            within=self.settings.deadlines.fence,
            awaits="processes of the trainer",
            incarnation=self.incarnation,
            reason=reason,
        )

    def died(self, reason: str) -> None:
        """The processes are gone: its devices are free, whatever it owed is called off."""
        if self.state is not T.FENCED:
            self.died_of = f"the trainer: {reason}"
        self._forget_what_it_owes()
        self.out.call_off_all("processes of the trainer")
        self.state = T.ABSENT
        self._leave_devices()

    @property
    def lost_work(self) -> bool:
        """Whether it is gone with a version that it had trained and that is not on disk."""
        on_disk = self.first_version if self.saved is None else self.saved[0]
        return not self.up and self.version > on_disk

    def where_saved(self) -> str:
        """For the last word of a run: which version is on disk."""
        if self.saved is None:
            return "; no version was saved" if self.version >= 0 else ""
        return f"; version {self.saved[0]} is saved at {self.saved[1]}"

    def _forget_what_it_owes(self) -> None:
        self.out.call_off_all(TRAINER)
        self.asked, self.condemned, self.saving = "", "", None

    def _leave_devices(self) -> None:
        self.holds = Holds.NOTHING
        self.leases.give_back(TRAINING)
        self.leases.window_open = False
