"""One try to give one version to one group of ranks: form the group, quiet the kept ranks, load (R19, R23).

It records what each party said and decides nothing: `joining` judges it when `over`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from roll_ts.core.alphabet import Command, Drain, FormGroup, LoadWeights, Sync
from roll_ts.core.outbox import Outbox
from roll_ts.core.parties import TRAINER, party
from roll_ts.core.ranks import RankState, RankTable
from roll_ts.core.rollouts import Rollouts
from roll_ts.core.settings import Settings

S = RankState


class TransferStage(StrEnum):
    """How far the try is."""

    FORMING = "FORMING"
    QUIESCING = "QUIESCING"
    LOADING = "LOADING"
    OVER = "OVER"


class Transfer:
    """State of one try of `version` with `digest` for `members`.

    `loaded`, `failed` and `silent` are members by how they ended; `lost`: one died or was fenced on the way. `accused`:
    by accuser, whom its reply named. `trainer`: "" until its side ended, then "sent", "failed" or "silent".
    """

    def __init__(
        self,
        settings: Settings,
        ranks: RankTable,
        rollouts: Rollouts,
        out: Outbox,
        version: int,
        digest: str,
        members: tuple[int, ...],
    ) -> None:
        self.settings = settings
        self.ranks = ranks
        self.rollouts = rollouts
        self.out = out
        self.version = version
        self.digest = digest
        self.members = members
        self.epoch = ranks.new_epoch()
        self.stage = TransferStage.FORMING
        self.loaded: set[int] = set()
        self.failed: set[int] = set()
        self.silent: set[int] = set()
        self.accused: dict[str, tuple[str, ...]] = {}
        self.trainer = ""
        self.lost = False
        self.why = ""
        self._unquiet: set[int] = set()
        self._unanswered: set[int] = set()
        self._asked: list[int] = []
        group = out.say(
            FormGroup,
            within=settings.deadlines.form_group,
            awaits=f"trainer and ranks {list(members)}",
            epoch=self.epoch,
            version=version,
            members=members,
        )
        self._asked.append(group.id)

    def formed(self) -> None:
        """All members can be reached: stop the kept ranks, each for as long as its own load takes (R9)."""
        self.stage = TransferStage.QUIESCING
        for rank in self.members:
            state = self.ranks.get(rank).state
            if state is S.ACTIVE:
                self.ranks.move(rank, S.SYNCING)
                self._say_to(Drain, rank, self.settings.deadlines.drain)
            if state is not S.LOADING:
                self._unquiet.add(rank)

    def send_when_quiet(self, quiet: Iterable[int]) -> bool:
        """Move the weights once every kept member has reported zero and its last attempt has ended (R7). Joiners run
        nothing. True when the weights are on their way."""
        by_rank = self.rollouts.trajectories.by_rank
        self._unquiet -= {rank for rank in quiet if rank in self._unquiet and not by_rank[rank]}
        if self._unquiet:
            return False
        limit = self.settings.deadlines.load_weights
        self.stage = TransferStage.LOADING
        self._unanswered = set(self.members)
        sync = self.out.say(
            Sync, within=limit, awaits=TRAINER, epoch=self.epoch, version=self.version, members=self.members
        )
        self._asked.append(sync.id)
        for rank in self.members:
            self._asked.append(self._say_to(LoadWeights, rank, limit, version=self.version).id)
        return True

    def form_failed(self, why: str, silent: bool, culprits: tuple[str, ...]) -> None:
        """The group could not be formed."""
        self.stage, self.why = TransferStage.OVER, why
        self.trainer = "silent" if silent else "failed"
        if culprits and not silent:
            self.accused[TRAINER] = culprits

    def sent(self) -> None:
        """The trainer's side is complete: what counts is what the members received."""
        self.trainer = "sent"
        self._end_when_all_have()

    def send_failed(self, why: str, silent: bool, culprits: tuple[str, ...]) -> None:
        """The trainer's side ended badly, or without a word."""
        self.trainer = "silent" if silent else "failed"
        self._note(TRAINER, why, culprits)
        self._end_when_all_have()

    def has_loaded(self, rank: int) -> None:
        """A member has the tensors and their digest is right."""
        self.loaded.add(rank)
        self._leave(rank)

    def load_failed(self, rank: int, why: str, silent: bool, culprits: tuple[str, ...]) -> None:
        """A member has not got them, or says nothing."""
        (self.silent if silent else self.failed).add(rank)
        self._note(party(rank), why, culprits)
        self._leave(rank)

    def lose(self, rank: int) -> None:
        """A member died or was fenced: a group that is not loading yet is of no use any more (R23)."""
        if rank in self.members:
            self.lost = True
            self.why = self.why or f"rank {rank} was lost"
            self.loaded.discard(rank)
            self._leave(rank)

    def call_off(self) -> None:
        """Wait for nobody any more. Kept ranks that are being quieted for it stay so for the next one."""
        for command in self._asked:
            self.out.call_off(command)

    def _note(self, accuser: str, why: str, culprits: tuple[str, ...]) -> None:
        self.why = self.why or why
        if culprits:
            self.accused[accuser] = culprits

    def _leave(self, rank: int) -> None:
        self._unanswered.discard(rank)
        self._end_when_all_have()

    def _end_when_all_have(self) -> None:
        if self.stage is TransferStage.LOADING and self.trainer and not self._unanswered:
            self.stage = TransferStage.OVER

    def _say_to(self, command: type[Command], rank: int, within: float, **fields: int) -> Command:
        return self.out.say(command, within=within, awaits=f"rank {rank}", rank=rank, epoch=self.epoch, **fields)
