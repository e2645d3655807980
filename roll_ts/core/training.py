"""The operation of one optimizer step: a batch is taken, the devices are awaited, the trainer trains.

The policy says which groups and which ranks; the step is committed once every rank on the trainer's devices is lent,
gone or on its way, so that a policy may lend early and in parts. A step that the trainer does not survive gives its
groups back: they are trained when it has returned.
"""

from __future__ import annotations

from roll_ts.core.alphabet import Assignment
from roll_ts.core.deciding import Desk
from roll_ts.core.errors import IllegalTransition
from roll_ts.core.lending import Lending
from roll_ts.core.outbox import Outbox
from roll_ts.core.policies.base import Decision, Policy
from roll_ts.core.ranks import RankState, RankTable
from roll_ts.core.rollouts import Rollouts
from roll_ts.core.settings import Settings
from roll_ts.core.trainer import Trainer, TrainerState

S = RankState


class Training:
    """`batch` is what is being trained, or waits for the devices; empty between two steps."""

    def __init__(
        self,
        settings: Settings,
        policy: Policy,
        ranks: RankTable,
        rollouts: Rollouts,
        trainer: Trainer,
        lending: Lending,
        out: Outbox,
    ) -> None:
        self.settings = settings
        self.desk = Desk(settings, policy, ranks, rollouts, out)
        self.ranks = ranks
        self.rollouts = rollouts
        self.trainer = trainer
        self.lending = lending
        self.out = out
        self.shared = settings.layout.shared_ranks
        self._shared = frozenset(self.shared)
        self.batch: tuple[Assignment, ...] = ()
        self._epoch = 0

    @property
    def waiting(self) -> bool:
        """Whether a batch waits for the trainer's devices."""
        return bool(self.batch) and self.trainer.state is TrainerState.READY

    def consider(self) -> bool:
        """Ask the policy, and do what it says. Not while a rank on the trainer's devices is between two states: it
        would be lent a moment later, or its death would free them anyway. True when something changed."""
        between = self.ranks.in_state(S.BOOTING, S.EMPTY, S.FENCED, S.QUARANTINED, S.LOADING, S.SYNCING)
        if any(rank in self._shared for rank in between):
            return False
        self.desk.ended("sync")
        decision = self.desk.ask(self.trainer.version, trainer_free=True)
        if decision is None or not self.carry_out(decision):
            return False
        self.desk.forget()
        return True

    def carry_out(self, decision: Decision) -> bool:
        """Lend and call back what is to be; take the batch once that frees all of the trainer's devices. True when
        something was done. Raises IllegalTransition for ranks that are not its own to lend, or not ACTIVE (R4)."""
        foreign = sorted(set(decision.lend) - self._shared)
        # VAL: VAL_EMPTY(foreign, error=IllegalTransition) - only ranks on the trainer's devices are lent to it
        if len(foreign) != 0:
            raise IllegalTransition(
                f"Training.carry_out: foreign must be empty, got {foreign!r:.200} - only ranks on the "
                "trainer's devices are lent to it"
            )
        # END VAL 65ffca
        if decision.lend:
            self.ranks.new_epoch()
            self.lending.lend(tuple(decision.lend), may_empty=not self.rollouts.unsettled)
            self.desk.began("drain")
        if decision.recall:
            self.lending.recall(tuple(decision.recall))
        staying = any(rank in self._shared for rank in self.ranks.in_state(S.ACTIVE))
        if not decision.train or staying:
            return bool(decision.lend or decision.recall)
        if not decision.lend:
            self.ranks.new_epoch()
        self._epoch = self.ranks.epoch
        self.batch = self.rollouts.groups.take(decision.train)
        return True

    def advance(self) -> bool:
        """Start the step when its devices are free. True when it was started."""
        if not self.waiting or self.trainer.leases.taken or self.trainer.condemned:
            return False
        self.desk.ended("drain")
        self.desk.began("train")
        self.trainer.train(self._epoch, self.batch)
        return True

    def finished(self, version: int, digest: str) -> None:
        """A new version exists: count it, and end what is now too old."""
        self.batch = ()
        self.desk.ended("train")
        self.desk.began("sync")
        self.trainer.trained(version, digest)
        self.rollouts.ledger.trained += len(self.rollouts.groups.trained())
        self.rollouts.drop_stale(version)
        self.lending.let_go()

    def failed(self) -> None:
        """The step was not done: its groups are complete again, and nobody is lent for it."""
        if self.batch:
            self.batch = ()
            self.rollouts.groups.untrain()
        self.lending.let_go()
