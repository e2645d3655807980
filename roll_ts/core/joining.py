"""The operation by which ranks come to hold the trainer's version: boot, expand, sync and repair alike (D-6).

Who lacks the version joins: ranks without weights (EMPTY, LENT) and kept ranks with another version. A try that fails
is judged: whom a reply names, who is silent while others speak, or, when nobody can say, whom a search finds (R32).
Those who have the weights wake their KV as soon as the trainer's parameters have left their devices (R22).
Invariant: a rank becomes ACTIVE only after an equal digest and a canary within tolerance (R19).
"""

from __future__ import annotations

from collections.abc import Callable

from roll_ts.core.alphabet import KVReady, ResetCache, WakeKV, WeightsLoaded
from roll_ts.core.blame import Search, Verdict
from roll_ts.core.leases import Leases, rollout
from roll_ts.core.lending import Lending
from roll_ts.core.outbox import Outbox
from roll_ts.core.parties import TRAINER, party, rank_of
from roll_ts.core.ranks import Rank, RankState, RankTable
from roll_ts.core.rollouts import Rollouts
from roll_ts.core.settings import Settings
from roll_ts.core.trainer import Holds, Trainer, TrainerState
from roll_ts.core.transfer import Transfer, TransferStage

S = RankState


class Joining:
    """`transfer` is the try on the way, `search` looks for who breaks it. `publishing`: the version is new and has not
    yet been everywhere. `behind`: who lacks it, `waking`: who has it and is taking its KV.
    `fence(rank, reason)` and `charge_trainer(reason)` are how a party at fault is removed."""

    def __init__(
        self,
        settings: Settings,
        ranks: RankTable,
        leases: Leases,
        rollouts: Rollouts,
        trainer: Trainer,
        lending: Lending,
        out: Outbox,
        fence: Callable[[int, str], None],
        charge_trainer: Callable[[str], None],
    ) -> None:
        self.settings = settings
        self.ranks = ranks
        self.leases = leases
        self.rollouts = rollouts
        self.trainer = trainer
        self.lending = lending
        self.out = out
        self.fence = fence
        self.charge_trainer = charge_trainer
        self.shared = frozenset(settings.layout.shared_ranks)
        self.transfer: Transfer | None = None
        self.search: Search | None = None
        self.publishing = False
        self.behind: set[int] = set()
        self._look = False
        self._proven = False
        self._replaced_trainer = False
        self._charged_alone = False
        self._quiet: set[int] = set()
        self._to_wake: set[int] = set()
        self.waking: set[int] = set()

    @property
    def idle(self) -> bool:
        """Whether nobody is on the way to the version."""
        return self.transfer is None and not self._look and not self.ranks.count(S.LOADING, S.SYNCING)

    @property
    def waking_shared(self) -> bool:
        """Whether a rank on the trainer's devices is taking its KV."""
        return not self.shared.isdisjoint(self.waking)

    def look(self) -> None:
        """Something has happened that may let a transfer begin."""
        self._look = True

    def new_version(self) -> None:
        """The trainer can publish another version: everybody else's is old. One pass over the ranks, per version."""
        self.publishing = True
        self._proven = False
        version = self.trainer.version
        holders = self.ranks.in_state(S.EMPTY, S.LENT, S.LOADING, S.ACTIVE, S.SYNCING)
        self.behind = {rank for rank in holders if self.ranks.get(rank).version != version}
        self._to_wake -= self.behind
        self.look()

    def moved(self, row: Rank) -> None:
        """A rank has changed its state: keep the index of those behind."""
        if row.state in (S.EMPTY, S.LENT) or (row.state is S.ACTIVE and row.version != self.trainer.version):
            self.behind.add(row.id)
            self._look = self._look or row.id not in self.lending.held
        elif row.state in (S.FENCED, S.FAILED, S.BOOTING):
            self.behind.discard(row.id)
            self._quiet.discard(row.id)
            self._to_wake.discard(row.id)
            self.waking.discard(row.id)
            self.look()
            if self.transfer is not None:
                self.transfer.lose(row.id)

    def advance(self) -> bool:
        """Go on as far as the known facts allow. True when something changed."""
        if self.transfer is not None:
            return self._go_on(self.transfer)
        if not self._look or not self._may_begin():
            return False
        members = self._members()
        if members:
            self._begin(members)
            return True
        self._look = self.publishing = self._proven = False
        self.search = None
        return True

    def clear_when_done(self) -> bool:
        """Have the trainer's parameters released once nobody loads beside them any more (R22). A search may take long,
        so then those who have loaded are not kept waiting for it."""
        trainer = self.trainer
        done = (self.transfer is None and not self._look) or self.search is not None
        if not trainer.shares or trainer.holds is not Holds.PARAMETERS or trainer.asked or not done:
            return False
        trainer.release("all")
        return True

    def window_shut(self) -> None:
        """The trainer holds nothing on its devices: joiners take their leases, and those who have loaded their KV."""
        for rank in self.ranks.in_state(S.LOADING):
            if rank in self.shared:
                self.leases.grant(rollout(rank), self.ranks.get(rank).devices)
        for rank in sorted(self._to_wake):
            self._wake(rank)
        self._to_wake.clear()

    def stop(self) -> None:
        """No transfer any more: the run ends, or the trainer is gone."""
        if self.transfer is not None:
            self.transfer.call_off()
        self.transfer = self.search = None

    def quiet(self, rank: int) -> None:
        """A kept rank reported that it runs nothing."""
        self._quiet.add(rank)

    def loaded(self, event: WeightsLoaded) -> None:
        """A member has the tensors. A wrong digest is a wrong rank: it is fenced (R19)."""
        transfer = self.transfer
        if transfer is None:
            return
        if (event.version, event.digest) != (transfer.version, transfer.digest):
            self.fence(event.rank, f"digest of version {event.version} is {event.digest}, not {transfer.digest}")
            return
        transfer.has_loaded(event.rank)
        self.ranks.prove(event.rank, transfer.version)
        if transfer.version == self.trainer.version:
            self.behind.discard(event.rank)
        row = self.ranks.get(event.rank)
        if row.state is S.SYNCING:
            self._quiet.discard(event.rank)
            self.waking.add(event.rank)
            self._say_to(ResetCache, row)
        elif event.rank in self.shared and self.leases.window_open:
            self._to_wake.add(event.rank)
        else:
            self._wake(event.rank)

    def kv_ready(self, event: KVReady) -> None:
        """The last proof: the canary. Then the rank is servable."""
        row = self.ranks.get(event.rank)
        if not event.canary_gap <= self.settings.canary_tolerance:
            self.fence(event.rank, f"canary gap {event.canary_gap} over {self.settings.canary_tolerance}")
            return
        self.waking.discard(event.rank)
        row.kv_version = row.version
        self.ranks.move(event.rank, S.ACTIVE)

    def _may_begin(self) -> bool:
        """The first transfer waits for every rank that boots for the first time; later ones take who is there."""
        trainer = self.trainer
        if trainer.version < 0 or not trainer.up or trainer.condemned:
            return False
        if trainer.shares and trainer.state is TrainerState.READY and trainer.holds is Holds.ALL:
            return False
        if self.ranks.count(S.ACTIVE):
            return True
        return not any(self.ranks.get(rank).incarnation == 1 for rank in self.ranks.in_state(S.BOOTING))

    def _members(self) -> tuple[int, ...]:
        busy = self.shared if self.trainer.holds is Holds.ALL and self.trainer.shares else frozenset()
        lacking = [
            rank
            for rank in sorted(self.behind)
            if rank not in busy
            and rank not in self.waking
            and rank not in self.lending.held
            and self.ranks.get(rank).state in (S.EMPTY, S.LENT, S.LOADING, S.SYNCING, S.ACTIVE)
        ]
        if self.search is not None:
            wanted = set(self.search.group)
            if wanted <= set(lacking):
                return tuple(rank for rank in lacking if rank in wanted)
            self.search = None  # one of them has gone for a reason of its own, which may explain the failure
        return tuple(lacking)

    def _begin(self, members: tuple[int, ...]) -> None:
        fresh = tuple(rank for rank in members if self.ranks.get(rank).state in (S.EMPTY, S.LENT))
        self.transfer = Transfer(
            self.settings,
            self.ranks,
            self.rollouts,
            self.out,
            self.trainer.version,
            self.trainer.digest,
            members,
        )
        self.ranks.begin_expand(fresh)
        for rank in fresh:
            if not (rank in self.shared and self.leases.window_open):
                self.leases.grant(rollout(rank), self.ranks.get(rank).devices)

    def _go_on(self, transfer: Transfer) -> bool:
        if transfer.stage in (TransferStage.FORMING, TransferStage.QUIESCING) and transfer.lost:
            self.stop()
            self.look()
            return True
        if transfer.stage is TransferStage.QUIESCING:
            return transfer.send_when_quiet(self._quiet)
        if transfer.stage is TransferStage.OVER:
            self.transfer = None
            self.look()
            self._judge(transfer)
            return True
        return False

    def _judge(self, transfer: Transfer) -> None:
        """Charge who can be named; look for who cannot."""
        missing = tuple(
            rank
            for rank in transfer.members
            if rank not in transfer.loaded and self.ranks.get(rank).state in (S.LOADING, S.SYNCING, S.ACTIVE)
        )
        named = self._named(transfer)
        if named:
            self.search = None
            self._charge(named, transfer)
        elif not missing or transfer.loaded:
            self._worked(missing)
        elif transfer.lost:
            self.search = None
        else:
            self._failed(missing, transfer)

    def _named(self, transfer: Transfer) -> Verdict:
        """Who is charged by replies, or by silence while others have spoken. Nobody: an empty verdict, false."""
        members = {party(rank) for rank in transfer.members} | {TRAINER}
        ranks: set[int] = set()
        trainer = False
        for accuser, culprits in transfer.accused.items():
            known = [name for name in culprits if name in members]
            # Who names itself is believed, and so is the trainer; a trainer that names most of the group, or a rank
            # that names others, may be the one that is cut off.
            if accuser == TRAINER and 2 * len(known) <= max(2, len(transfer.members)):
                believed = known
            else:
                believed = [name for name in known if name == accuser]
            trainer = trainer or TRAINER in believed
            ranks.update(rank for rank in map(rank_of, believed) if rank is not None)
        if ranks or trainer:
            return Verdict(tuple(sorted(ranks)), trainer)
        if transfer.lost or not (transfer.loaded or transfer.failed):
            return Verdict()
        if len(transfer.failed) == 1 and transfer.trainer == "failed":
            # One member may have broken the sender, for which another still waits. Several see a group break together,
            # around the one that says nothing.
            return Verdict()
        # The others have spoken. One who hangs in a broadcast may hold up another, so two are not charged at once.
        if len(transfer.silent) == 1:
            return Verdict(tuple(transfer.silent))
        return Verdict(trainer=transfer.trainer == "silent" and not transfer.silent)

    def _worked(self, missing: tuple[int, ...]) -> None:
        """The trainer can do it: with everybody, or with those whom a broken group has served."""
        self._proven, self._replaced_trainer, self._charged_alone = True, False, False
        if self.search is not None and not missing:
            self._conclude(self.search.tried(True), "every weight group with it fails")
        else:
            self.search = None

    def _failed(self, missing: tuple[int, ...], transfer: Transfer) -> None:
        if transfer.trainer == "silent" and self.trainer.saving is not None:
            return  # it may be busy with the save, so nothing was learned: the same group again, a deadline later
        why = f"weight transfer of version {transfer.version}: {transfer.why}"
        silent = tuple(rank for rank in missing if rank in transfer.silent)
        suspects = silent if len(silent) > 1 else missing
        if self.search is not None:
            self._conclude(self.search.tried(False), why)
        elif len(suspects) > 1:
            self.search = Search(suspects, self._proven, self._replaced_trainer)
        else:
            self._conclude(Verdict(suspects), why)

    def _conclude(self, verdict: Verdict | None, why: str) -> None:
        if verdict is None:
            return
        self.search = None
        if verdict.trainer or (verdict.ranks and self._charged_alone):
            # Ranks that fail alone one after the other, and no group that works between them, speak for each other.
            self._charged_alone, self._replaced_trainer = False, True
            self.charge_trainer(why)
            return
        for rank in verdict.ranks:
            self._charged_alone = True
            self.fence(rank, why)

    def _charge(self, verdict: Verdict, transfer: Transfer) -> None:
        why = transfer.why or f"did not answer in the transfer of version {transfer.version}"
        for rank in verdict.ranks:
            self.fence(rank, f"weight transfer of version {transfer.version}: {why}")
        if verdict.trainer:
            self.charge_trainer(f"weight transfer of version {transfer.version}: {why}")

    def _wake(self, rank: int) -> None:
        row = self.ranks.get(rank)
        self.leases.grant(rollout(rank), row.devices)
        self.waking.add(rank)
        self._say_to(WakeKV, row)

    def _say_to(self, command: type[WakeKV] | type[ResetCache], row: Rank) -> None:
        self.out.say(
            command,
            within=self.settings.deadlines.kv_ready,
            awaits=f"rank {row.id}",
            rank=row.id,
            epoch=row.epoch,
            version=row.version,
        )
