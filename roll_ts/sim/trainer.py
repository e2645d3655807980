"""The simulated trainer: optimizer steps, releases, checkpoints, and the check that every sample is trained
once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from roll_ts.core import alphabet as a
from roll_ts.core.settings import Settings
from roll_ts.sim.cost import CostModel
from roll_ts.sim.episodes import Episodes
from roll_ts.sim.errors import ContractBroken

Held = Literal["nothing", "parameters", "all"]
_TRAINABLE = ("scored", "policy-failed")


def digest_of(version: int) -> str:
    """The digest that everybody with the weights of `version` reports."""
    return f"weights-{version}"


class Trainer:
    """State: the version it has, what lies in device memory, whether it is in the middle of a step."""

    def __init__(self, settings: Settings, cost: CostModel, episodes: Episodes) -> None:
        self.settings, self.cost, self.episodes = settings, cost, episodes
        self.version = self.first_version = 0
        self.incarnation: int | None = None
        self.held: Held = "nothing"
        self.busy = False
        self._outcomes: dict[int, str] = {}
        self._trained: set[int] = set()
        self._step: list[int] = []
        self._saved: dict[str, int] = {}

    def start(self, command: a.StartTrainer) -> int:
        """A process starts, at its checkpoint or as configured. Returns its incarnation. Raises ContractBroken when one
        lives."""
        # AST: AST_PRECONDITION(self.incarnation is None, error=ContractBroken) - one trainer at a time
        if self.incarnation is not None:
            raise ContractBroken(
                f"Pre-condition: self.incarnation is None, got self.incarnation={self.incarnation!r:.200} "
                "- one trainer at a time"
            )
        # END AST 3df45f
        path = command.resume_from
        self.version = self.first_version if path is None else self._saved[path]
        self.incarnation, self.held = command.incarnation, "parameters"
        return command.incarnation

    def ready(self, command: int) -> a.TrainerReady:
        """What a trainer says when it is up."""
        life = self.incarnation
        # VAL: VAL_NOT_NONE(life, error=ContractBroken)
        if life is None:
            raise ContractBroken(f"Trainer.ready: life must not be None, got {life}")
        # END VAL 2f3729
        return a.TrainerReady(command=command, incarnation=life, version=self.version, digest=digest_of(self.version))

    def die(self) -> None:
        """The process is gone; a step that it was doing has trained nobody."""
        self._trained.difference_update(self._step)
        self.incarnation, self.held, self.busy, self._step = None, "nothing", False, []

    def settle(self, settled: a.Settled) -> None:
        """Note an outcome. Raises ContractBroken for a second one."""
        # VAL: VAL_KEY_ABSENT(
        #     settled.trajectory, mapping=self._outcomes, error=ContractBroken, about=settled.outcome
        # ) - a trajectory has one outcome
        if settled.trajectory in self._outcomes:
            raise ContractBroken(
                "Trainer.settle: settled.trajectory must not yet be a key of self._outcomes, got "
                f"{settled.trajectory!r:.200} (settled.outcome={settled.outcome!r:.200}) - a trajectory "
                "has one outcome"
            )
        # END VAL 53d8e7
        self._outcomes[settled.trajectory] = settled.outcome

    def carry_out(self, command: a.Train | a.Checkpoint | a.ReleaseTrainer) -> tuple[float, Callable[[], a.Event]]:
        """Seconds, and the maker of the answer. Raises ContractBroken when the trainer is busy or cannot."""
        # AST: AST_PRECONDITION(not self.busy, error=ContractBroken, about=command) - one step at a time
        if self.busy:
            raise ContractBroken(
                f"Pre-condition: not self.busy, got self.busy={self.busy!r:.200} "
                f"(command={command!r:.200}) - one step at a time"
            )
        # END AST 54a81d
        match command:
            case a.Train():
                return self._train(command)
            case a.ReleaseTrainer():
                return self.cost.release_trainer_seconds, lambda: self._released(command)
            case _:
                where = f"checkpoints/{command.version}"
                saved = a.CheckpointSaved(command=command.id, version=command.version, path=where)

                def written() -> a.Event:
                    self._saved[where] = command.version
                    return saved

                return self.cost.checkpoint_seconds, written

    def _train(self, command: a.Train) -> tuple[float, Callable[[], a.Event]]:
        players = [item.trajectory for item in command.batch]
        untrainable = [p for p in players if self._outcomes.get(p) not in _TRAINABLE or p in self._trained]
        # VAL: VAL_EQUAL(command.version, self.version, error=ContractBroken)
        if command.version != self.version:
            raise ContractBroken(
                f"Trainer._train: command.version must equal self.version ({self.version!r:.200}), got "
                f"{command.version!r:.200}"
            )
        # END VAL a23139
        # VAL: VAL_NON_EMPTY(players, error=ContractBroken), VAL_NO_DUPLICATES(players, error=ContractBroken)
        if len(players) == 0:
            raise ContractBroken(f"Trainer._train: players must not be empty, got {players!r:.200}")
        if len(set(players)) != len(players):
            raise ContractBroken(f"Trainer._train: players must not contain duplicates, got {players!r:.200}")
        # END VAL ab9b2c
        # VAL: VAL_EMPTY(untrainable, error=ContractBroken) - a sample has a score and is trained once
        if len(untrainable) != 0:
            raise ContractBroken(
                f"Trainer._train: untrainable must be empty, got {untrainable!r:.200} - a sample has a "
                "score and is trained once"
            )
        # END VAL 971a07
        self._trained.update(players)
        self._step = players
        self.held, self.busy = "all", True
        tokens = sum(self.episodes.tokens(player) for player in players)
        seconds = self.cost.train_time(tokens, len(self.settings.layout.train_devices))
        return seconds, lambda: self._trained_one(command, seconds, tokens, len(players))

    def _trained_one(self, command: a.Train, seconds: float, tokens: int, samples: int) -> a.Event:
        self.version, self.busy, self._step = self.version + 1, False, []
        return a.TrainingFinished(
            command=command.id,
            epoch=command.epoch,
            version=self.version,
            digest=digest_of(self.version),
            seconds=seconds,
            figures={"tokens": float(tokens), "samples": float(samples)},
        )

    def _released(self, command: a.ReleaseTrainer) -> a.Event:
        self.held = "nothing" if command.parts == "all" else "parameters"
        return a.MemoryReleased(
            command=command.id, holder="trainer", epoch=command.epoch, bytes=self.cost.trainer_bytes
        )
