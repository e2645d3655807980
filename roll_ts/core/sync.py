"""One weight transfer from the trainer to all ranks that lack the version (R19–R23).

Joiners hold no proven weights (EMPTY or LENT); kept ranks are ACTIVE with an older version. Stages: FORMING the group →
QUIESCING the kept ranks → LOADING → CLEARING the trainer's parameters → WAKING the joiners' KV.
Invariant: a rank becomes ACTIVE only after an equal digest and a canary within tolerance (R19).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from roll_ts.core.alphabet import (
    Command,
    Drain,
    FormGroup,
    KVReady,
    LoadWeights,
    MemoryReleased,
    Pause,
    ReleaseTrainer,
    ResetCache,
    Resume,
    Sync,
    WakeKV,
    WeightsLoaded,
)
from roll_ts.core.errors import IllegalTransition
from roll_ts.core.leases import TRAINING, Leases, rollout
from roll_ts.core.outbox import Outbox
from roll_ts.core.ranks import RankState, RankTable
from roll_ts.core.rollouts import Rollouts
from roll_ts.core.settings import Settings

S = RankState


class SyncStage(StrEnum):
    """How far the transfer is."""

    FORMING = "FORMING"
    QUIESCING = "QUIESCING"
    LOADING = "LOADING"
    CLEARING = "CLEARING"
    WAKING = "WAKING"
    DONE = "DONE"


class WeightSync:
    """State of one transfer of `version` with `digest`. `fence(rank, reason)` is how a member that fails is removed."""

    def __init__(
        self,
        settings: Settings,
        ranks: RankTable,
        leases: Leases,
        rollouts: Rollouts,
        out: Outbox,
        fence: Callable[[int, str], None],
        version: int,
        digest: str,
    ) -> None:
        self.settings = settings
        self.ranks = ranks
        self.leases = leases
        self.rollouts = rollouts
        self.out = out
        self.fence = fence
        self.version = version
        self.digest = digest
        self.epoch = ranks.new_epoch()
        self.stage = SyncStage.FORMING
        self.joiners = ranks.in_state(S.EMPTY, S.LENT)
        self.kept = tuple(rank for rank in ranks.in_state(S.ACTIVE) if ranks.get(rank).version != version)
        self.tries = 0
        self.members: tuple[int, ...] = ()
        self._quiet: set[int] = set()
        self._loaded: set[int] = set()
        self._unanswered: set[int] = set()
        self._sending = False
        self._trainer_shares = bool(settings.layout.shared_ranks)

    def begin(self) -> None:
        """Start with every member: joiners go to LOADING, kept ranks stay ACTIVE until the group is formed."""
        self.ranks.begin_expand(self.joiners)
        self._form(tuple(sorted(self.joiners + self.kept)))

    def advance(self) -> bool:
        """Go on if what the stage waits for is there. True when something changed."""
        if self.stage is SyncStage.QUIESCING:
            return self._send_when_quiet()
        if self.stage is SyncStage.LOADING and not self._unanswered and not self._sending:
            return self._retry_or_clear()
        if self.stage is SyncStage.WAKING and not self.ranks.in_state(S.LOADING, S.SYNCING):
            self.stage = SyncStage.DONE
            return True
        return False

    def group_formed(self) -> None:
        """All members can be reached: stop the kept ranks, each for as long as its own load takes (R9)."""
        self.stage = SyncStage.QUIESCING
        quiet: type[Pause] | type[Drain] = Pause if self.settings.keep_kv else Drain
        for rank in self._live(self.members):
            if self.ranks.get(rank).state is S.ACTIVE:
                self.ranks.move(rank, S.SYNCING)
                self._say_to(quiet, rank, self.settings.deadlines.drain)

    def quiet(self, rank: int) -> None:
        """The kept rank reported that it runs nothing (or, with `keep_kv`, that it is paused)."""
        self._quiet.add(rank)

    def group_broken(self, reason: str) -> None:
        """The group could not be formed or used: form it anew without the dead, a bounded number of times (R23)."""
        self.tries += 1
        self.epoch = self.ranks.new_epoch()
        left = tuple(rank for rank in self._live(self.members) if rank not in self._loaded)
        if self.tries > self.settings.sync_retries:
            for rank in left:
                self.fence(rank, f"sync of version {self.version}: {reason}")
            left = ()
        self._form(left)

    def weights_sent(self) -> None:
        """The trainer's side is complete, well or not: what counts is what the members received."""
        self._sending = False

    def weights_loaded(self, event: WeightsLoaded) -> None:
        """A member has the tensors. A wrong digest is a wrong rank: it is fenced (R19)."""
        self._unanswered.discard(event.rank)
        if (event.version, event.digest) != (self.version, self.digest):
            self.fence(event.rank, f"digest of version {event.version} is {event.digest}, not {self.digest}")
            return
        self._loaded.add(event.rank)
        self.ranks.prove(event.rank, self.version)
        if self.ranks.get(event.rank).state is not S.SYNCING:
            return
        if self.settings.keep_kv:
            self.rollouts.new_weight_version(event.rank, self.version)
            self._say_to(Resume, event.rank, self.settings.deadlines.drain)
        else:
            self._say_to(ResetCache, event.rank, self.settings.deadlines.kv_ready, version=self.version)

    def resumed(self, rank: int) -> None:
        """A paused rank steps again with the new weights and the old KV (`keep_kv`, R20)."""
        self.ranks.move(rank, S.ACTIVE)

    def load_failed(self, rank: int) -> None:
        """The member could not load; if it lives it takes part in the next group."""
        self._unanswered.discard(rank)

    def kv_ready(self, event: KVReady) -> None:
        """The last proof: the canary. Then the rank is servable."""
        row = self.ranks.get(event.rank)
        # VAL: VAL_STATE_IN(row.state, (S.LOADING, S.SYNCING), error=IllegalTransition)
        if row.state not in (S.LOADING, S.SYNCING):
            raise IllegalTransition(
                f"kv_ready: row.state must be in one of the states {((S.LOADING, S.SYNCING))!r:.200}, got "
                f"{row.state!r:.200}"
            )
        # END VAL 123676
        if not event.canary_gap <= self.settings.canary_tolerance:
            self.fence(event.rank, f"canary gap {event.canary_gap} over {self.settings.canary_tolerance}")
            return
        row.kv_version = self.version
        self.ranks.move(event.rank, S.ACTIVE)

    def trainer_released(self, event: MemoryReleased) -> None:
        """Parameters and buffers are gone from the devices: now the joiners may take their KV (R22)."""
        # AST: AST_INVARIANT(event.holder == "trainer")
        assert event.holder == "trainer", (
            f'Invariant: event.holder == "trainer", got event.holder={event.holder!r:.200}'
        )
        # END AST 9fee1d
        self.leases.give_back(TRAINING)
        self.leases.close_window()
        self._wake()

    def lost(self, rank: int) -> None:
        """A member died or was fenced."""
        self._unanswered.discard(rank)

    def _live(self, ranks: tuple[int, ...]) -> tuple[int, ...]:
        alive = (S.ACTIVE, S.SYNCING, S.LOADING)
        return tuple(rank for rank in ranks if self.ranks.get(rank).state in alive)

    def _form(self, members: tuple[int, ...]) -> None:
        self.members = members
        self.stage = SyncStage.FORMING
        self._unanswered, self._sending = set(), False
        if not members:
            self._clear()
            return
        self.out.say(
            FormGroup,
            within=self.settings.deadlines.form_group,
            awaits=f"trainer and ranks {list(members)}",
            epoch=self.epoch,
            version=self.version,
            members=members,
        )

    def _send_when_quiet(self) -> bool:
        live = self._live(self.members)
        if live != self.members:
            self.group_broken("a member died before the transfer")
            return True
        by_rank = self.rollouts.trajectories.by_rank
        for rank in live:
            stopped = self.ranks.get(rank).state is S.LOADING or rank in self._quiet
            if not stopped or (by_rank[rank] and not self.settings.keep_kv):
                return False
        limit = self.settings.deadlines.load_weights
        self.stage = SyncStage.LOADING
        self._sending = True
        self._unanswered = set(live)
        self.out.say(Sync, within=limit, awaits="trainer", epoch=self.epoch, version=self.version, members=live)
        for rank in live:
            self._say_to(LoadWeights, rank, limit, version=self.version)
        return True

    def _retry_or_clear(self) -> bool:
        if any(rank not in self._loaded for rank in self._live(self.members)):
            self.group_broken("a member could not load")
        else:
            self._clear()
        return True

    def _clear(self) -> None:
        self.stage = SyncStage.CLEARING
        if not self._trainer_shares:
            self._wake()
            return
        self.out.say(
            ReleaseTrainer,
            within=self.settings.deadlines.release_trainer,
            awaits="trainer",
            epoch=self.epoch,
            parts="all",
        )

    def _wake(self) -> None:
        self.stage = SyncStage.WAKING
        for rank in self.ranks.in_state(S.LOADING):
            self.leases.grant(rollout(rank), self.ranks.get(rank).devices)
            self._say_to(WakeKV, rank, self.settings.deadlines.kv_ready, version=self.version)

    def _say_to(self, command: type[Command], rank: int, within: float, **fields: int) -> None:
        self.out.say(command, within=within, awaits=f"rank {rank}", rank=rank, epoch=self.epoch, **fields)
