"""The one table of rank states (R1). Router, policy, view and report ask it; nobody keeps a copy.

Invariant: a rank changes state only along `TRANSITIONS`; a refused change leaves the whole table as it was (R4).
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from roll_ts.core.errors import IllegalTransition, UnknownId
from roll_ts.core.settings import Layout


class RankState(StrEnum):
    """What a rollout rank is doing. EMPTY holds no proven weights; LENT has given its devices back; QUARANTINED was
    killed, but nobody can confirm its end, so that it keeps its devices (R34)."""

    BOOTING = "BOOTING"
    EMPTY = "EMPTY"
    LOADING = "LOADING"
    ACTIVE = "ACTIVE"
    DRAINING = "DRAINING"
    RELEASING = "RELEASING"
    LENT = "LENT"
    SYNCING = "SYNCING"
    FENCED = "FENCED"
    QUARANTINED = "QUARANTINED"
    FAILED = "FAILED"


S = RankState

TRANSITIONS: dict[RankState, frozenset[RankState]] = {
    S.BOOTING: frozenset({S.EMPTY, S.FENCED, S.FAILED}),
    S.EMPTY: frozenset({S.LOADING, S.FENCED, S.FAILED}),
    S.LOADING: frozenset({S.ACTIVE, S.FENCED, S.FAILED}),
    S.ACTIVE: frozenset({S.DRAINING, S.SYNCING, S.FENCED, S.FAILED}),
    S.DRAINING: frozenset({S.RELEASING, S.ACTIVE, S.FENCED, S.FAILED}),
    S.RELEASING: frozenset({S.LENT, S.FENCED, S.FAILED}),
    S.LENT: frozenset({S.LOADING, S.FENCED, S.FAILED}),
    S.SYNCING: frozenset({S.ACTIVE, S.FENCED, S.FAILED}),
    S.FENCED: frozenset({S.QUARANTINED, S.FAILED}),
    S.QUARANTINED: frozenset({S.FAILED}),
    S.FAILED: frozenset({S.BOOTING}),
}


@dataclass
class Rank:
    """One row of the table. `version`: of the weights it is proven to hold, −1 for none; `kv_version`: the oldest
    weights that its KV was computed with; `kv_capacity` in tokens, 0 until it has booted; `incarnation`: the number of
    its process, 0 before the first (R33)."""

    id: int
    devices: tuple[int, ...]
    state: RankState = RankState.FAILED
    epoch: int = 0
    version: int = -1
    kv_version: int = -1
    kv_capacity: int = 0
    incarnation: int = 0


class RankTable:
    """All ranks of a layout, and the number of the latest epoch. `on_move(rank, old state)` is told of every change."""

    def __init__(self, layout: Layout, on_move: Callable[[Rank, RankState], None]) -> None:
        self.layout = layout
        self.on_move = on_move
        self.epoch = 0
        self.rows = [Rank(rank, devices) for rank, devices in enumerate(layout.ranks)]
        # sorted ids by state, kept by `move` alone: who asks for a state does not look at every rank (R37)
        self.moves = 0
        self._by_state: dict[RankState, list[int]] = {state: [] for state in RankState}
        self._by_state[S.FAILED] = list(range(len(self.rows)))

    def get(self, rank: int) -> Rank:
        """The row of `rank`. Raises UnknownId."""
        # VAL: VAL_INT_RANGE(rank, min=0, max=len(self.rows) - 1, error=UnknownId)
        if not 0 <= rank <= len(self.rows) - 1:
            raise UnknownId(f"RankTable.get: rank must lie in [0, {len(self.rows) - 1!r:.200}], got {rank!r}")
        # END VAL 40426f
        return self.rows[rank]

    def in_state(self, *states: RankState) -> tuple[int, ...]:
        """Ids of the ranks in any of `states`, in order."""
        # VAL: VAL_NON_EMPTY(states)
        if len(states) == 0:
            raise ValueError(f"RankTable.in_state: states must not be empty, got {states!r:.200}")
        # END VAL 06c884
        if len(states) == 1:
            return tuple(self._by_state[states[0]])
        return tuple(heapq.merge(*(self._by_state[state] for state in set(states))))

    def count(self, *states: RankState) -> int:
        """How many ranks are in any of `states`."""
        return sum(len(self._by_state[state]) for state in states)

    def new_epoch(self) -> int:
        """The number of the shrink, expand or sync that begins now (R3)."""
        self.epoch += 1
        return self.epoch

    def move(self, rank: int, state: RankState) -> None:
        """Change one rank's state in the latest epoch. Raises IllegalTransition naming both states."""
        row = self.get(rank)
        # VAL: VAL_TRANSITION(row.state, to=state, table=TRANSITIONS, error=IllegalTransition)
        _allowed = TRANSITIONS.get(row.state, ())
        if state not in _allowed:
            raise IllegalTransition(
                f"RankTable.move: row.state must not change from {row.state!r:.200} to {state!r:.200}; "
                f"TRANSITIONS allows {_allowed!r:.200}"
            )
        # END VAL cfdae7
        old, row.state, row.epoch = row.state, state, self.epoch
        self.moves += 1
        leaving = self._by_state[old]
        del leaving[bisect.bisect_left(leaving, rank)]
        bisect.insort(self._by_state[state], rank)
        if state in (S.LENT, S.FAILED, S.BOOTING):
            row.version = row.kv_version = -1
        self.on_move(row, old)

    def begin_shrink(self, devices: tuple[int, ...], may_empty: bool) -> tuple[int, ...]:
        """Close admission on the ranks that hold `devices`: ACTIVE → DRAINING, all or none (R4, R5, R7).

        Returns the ranks. Raises ValueError for empty, doubled, unknown devices or a cut rank; IllegalTransition when
        a rank is not ACTIVE or when none would stay active and `may_empty` is false.
        """
        # VAL: VAL_NON_EMPTY(devices)
        if len(devices) == 0:
            raise ValueError(f"RankTable.begin_shrink: devices must not be empty, got {devices!r:.200}")
        # END VAL 06bd58
        # VAL: VAL_NO_DUPLICATES(devices)
        if len(set(devices)) != len(devices):
            raise ValueError(f"RankTable.begin_shrink: devices must not contain duplicates, got {devices!r:.200}")
        # END VAL c20271
        known = {device for own in self.layout.ranks for device in own}
        # VAL: VAL_SUBSET(devices, of=known)
        _extra = sorted(set(devices) - set(known), key=repr)
        if _extra:
            raise ValueError(
                f"RankTable.begin_shrink: devices must be a subset of known, but has {_extra!r:.200} "
                f"outside {known!r:.200}"
            )
        # END VAL 26b791
        ranks = self.layout.ranks_on(devices)
        whole = {device for rank in ranks for device in self.layout.ranks[rank]}
        # VAL: VAL_SUBSET(whole, of=devices) - a rank is lent with all its devices or not at all
        _extra = sorted(set(whole) - set(devices), key=repr)
        if _extra:
            raise ValueError(
                f"RankTable.begin_shrink: whole must be a subset of devices, but has {_extra!r:.200} "
                f"outside {devices!r:.200} - a rank is lent with all its devices or not at all"
            )
        # END VAL e61767
        for rank in ranks:
            state = self.rows[rank].state
            # VAL: VAL_STATE_IN(state, (S.ACTIVE,), error=IllegalTransition)
            if state not in (S.ACTIVE,):
                raise IllegalTransition(
                    f"RankTable.begin_shrink: state must be in one of the states {((S.ACTIVE,))!r:.200}, got "
                    f"{state!r:.200}"
                )
            # END VAL 35f5ff
        staying = sum(rank not in ranks for rank in self.in_state(S.ACTIVE))
        # VAL: VAL_INT_RANGE(staying, min=0 if may_empty else 1, error=IllegalTransition)
        if not staying >= (0 if may_empty else 1):
            raise IllegalTransition(
                f"RankTable.begin_shrink: staying must be at least {(0 if may_empty else 1)!r:.200}, got {staying!r}"
            )
        # END VAL 87a854
        for rank in ranks:
            self.move(rank, S.DRAINING)
        # AST: AST_POSTCONDITION(len(ranks) > 0)
        assert len(ranks) > 0, f"Post-condition: ranks not empty, got {ranks}"
        # END AST 293cdc
        return ranks

    def begin_expand(self, ranks: tuple[int, ...]) -> None:
        """Start giving weights to ranks that hold none: LENT or EMPTY → LOADING, all or none (R4).

        Raises ValueError for doubled ranks, UnknownId, IllegalTransition when a rank is neither LENT nor EMPTY.
        """
        # VAL: VAL_NO_DUPLICATES(ranks)
        if len(set(ranks)) != len(ranks):
            raise ValueError(f"RankTable.begin_expand: ranks must not contain duplicates, got {ranks!r:.200}")
        # END VAL 96f707
        for rank in ranks:
            state = self.get(rank).state
            # VAL: VAL_STATE_IN(state, (S.LENT, S.EMPTY), error=IllegalTransition)
            if state not in (S.LENT, S.EMPTY):
                raise IllegalTransition(
                    f"RankTable.begin_expand: state must be in one of the states {((S.LENT, S.EMPTY))!r:.200}, "
                    f"got {state!r:.200}"
                )
            # END VAL a0277b
        for rank in ranks:
            self.move(rank, S.LOADING)

    def prove(self, rank: int, version: int) -> None:
        """Record that the rank holds `version`: its digest was equal (R19)."""
        row = self.get(rank)
        # VAL: VAL_STATE_IN(row.state, (S.LOADING, S.SYNCING), error=IllegalTransition)
        if row.state not in (S.LOADING, S.SYNCING):
            raise IllegalTransition(
                "RankTable.prove: row.state must be in one of the states "
                f"{((S.LOADING, S.SYNCING))!r:.200}, got {row.state!r:.200}"
            )
        # END VAL 1dace8
        # VAL: VAL_INT_RANGE(version, min=0)
        if not version >= 0:
            raise ValueError(f"RankTable.prove: version must be at least 0, got {version!r}")
        # END VAL 4358c2
        row.version = version
