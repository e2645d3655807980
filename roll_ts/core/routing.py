"""Where a turn goes: the rank with the least cost of live load, KV and missing prefix (R10, R12), without a scan (R37).

The cost of a rank is `running + KV held ÷ KV capacity`, in units of one running request, and for a turn whose prefix
lies on another rank its prefix ÷ what one request is worth in prefix tokens: a move must pay for the prefill.
Invariant: a rank is listed exactly while it is open, has a free slot and is not kept for somebody; its place in the
lists is where its load says.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

LOOKED_AT = 16
"""Ranks that are tried in the order of their cost before the one with the most room is taken."""

AVOIDED = 1e6
"""What it costs to go back to a rank that has just failed: more than any load."""


def fair_share(waiting: int, running: int, open_ranks: int, opening_ranks: int) -> int:
    """Attempts per rank if all were spread over open and opening ranks: the first to open is not flooded (D-11)."""
    # VAL: VAL_POSITIVE(open_ranks)
    if not open_ranks > 0:
        raise ValueError(f"fair_share: open_ranks must be positive, got {open_ranks!r}")
    # END VAL 778ca8
    # VAL: VAL_NON_NEGATIVE(opening_ranks)
    if not opening_ranks >= 0:
        raise ValueError(f"fair_share: opening_ranks must not be negative, got {opening_ranks!r}")
    # END VAL f271cb
    return math.ceil((waiting + running) / (open_ranks + opening_ranks))


@dataclass(slots=True)
class RankLoad:
    """Live load of one rank: open attempts, KV tokens booked for them and KV capacity in tokens."""

    rank: int
    running: int = 0
    kv_tokens: int = 0
    kv_capacity: int = 0
    version: int = -1
    lendable: bool = False
    is_open: bool = False
    kept_for: int | None = None
    entry: tuple[float, int] | None = None
    room: tuple[int, int] | None = None

    @property
    def cost(self) -> float:
        """Cost of one more attempt that has no prefix anywhere."""
        return self.running + self.kv_tokens / max(self.kv_capacity, 1)

    def fits(self, need_tokens: int) -> bool:
        """Whether the KV for a turn is there. A rank that runs nothing always fits: its engine has all KV for it."""
        return not self.running or self.kv_tokens + need_tokens <= self.kv_capacity


@dataclass(slots=True)
class _Listed:
    """The listed ranks of one weight version that can, or can not, be lent; by cost and by free KV."""

    version: int
    lendable: bool
    by_cost: list[tuple[float, int]] = field(default_factory=list)
    by_room: list[tuple[int, int]] = field(default_factory=list)


class Placement:
    """The loads of all ranks. `max_running`: attempts that one rank may run; `lendable`: ranks that can be lent."""

    def __init__(self, ranks: int, max_running: int, lendable: Collection[int] = ()) -> None:
        self.max_running = max_running
        self.loads = [RankLoad(rank, lendable=rank in set(lendable)) for rank in range(ranks)]
        self.open_ranks = 0
        self.running = 0
        self._listed: dict[tuple[int, bool], _Listed] = {}

    def open(self, rank: int, version: int, capacity: int) -> None:
        """The rank takes turns; it holds the weights of `version` and `capacity` KV tokens."""
        load = self.loads[rank]
        # VAL: VAL_NON_NEGATIVE(capacity)
        if not capacity >= 0:
            raise ValueError(f"Placement.open: capacity must not be negative, got {capacity!r}")
        # END VAL a04645
        self._unlist(load)
        self.open_ranks += not load.is_open
        load.is_open, load.version, load.kv_capacity = True, version, capacity
        self._list(load)

    def shut(self, rank: int) -> None:
        """The rank takes no more turns; what runs there goes on being counted."""
        load = self.loads[rank]
        self.open_ranks -= load.is_open
        self._unlist(load)
        load.is_open, load.kept_for = False, None

    def add(self, rank: int, tokens: int) -> None:
        """One more attempt runs there, with `tokens` of KV booked."""
        load = self.loads[rank]
        load.running += 1
        load.kv_tokens += tokens
        self.running += 1
        self._list(load)

    def remove(self, rank: int, tokens: int) -> None:
        """An attempt and its booking are gone."""
        load = self.loads[rank]
        # AST: AST_PRECONDITION(load.running > 0 and load.kv_tokens >= tokens, about=rank) - only what was booked
        assert load.running > 0 and load.kv_tokens >= tokens, (
            "Pre-condition: load.running > 0 and load.kv_tokens >= tokens, got "
            f"load.running={load.running!r:.200}, load={load!r:.200}, tokens={tokens!r:.200} "
            f"(rank={rank!r:.200}) - only what was booked"
        )
        # END AST 4bed34
        load.running -= 1
        load.kv_tokens -= tokens
        self.running -= 1
        self._list(load)

    def grow(self, rank: int, tokens: int) -> None:
        """An attempt there needs `tokens` more than was booked for it."""
        load = self.loads[rank]
        load.kv_tokens += tokens
        self._list(load)

    def keep(self, rank: int, trajectory: int) -> None:
        """Send nothing more to the rank but this trajectory's turn."""
        load = self.loads[rank]
        load.kept_for = trajectory
        self._list(load)

    def let_go(self, rank: int) -> None:
        """Keep the rank for nobody any more."""
        load = self.loads[rank]
        load.kept_for = None
        self._list(load)

    def has_slot(self, version: int | None, limit: int) -> bool:
        """Whether a listed rank with the weights of `version` (None: any) runs fewer than `limit` attempts."""
        return any([listed.by_cost[0][0] < limit for listed in self._lists(version)])

    def most_room(self, version: int | None = None) -> float:
        """The largest turn in KV tokens for which `choose` would find a rank; 0 for none."""
        room = 0.0
        for listed in self._lists(version):
            if not self.loads[listed.by_cost[0][1]].running:
                return math.inf
            room = max(room, listed.by_room[-1][0])
        return room

    def roomiest(self, version: int | None) -> int | None:
        """The listed rank with the most free KV, of those with the weights of `version` if given."""
        best = max((listed.by_room[-1] for listed in self._lists(version)), default=None)
        return None if best is None else best[1]

    def choose(
        self,
        need_tokens: int,
        resident: int | None,
        prefix_tokens: int,
        prefix_worth_tokens: int,
        version: int | None = None,
        limit: int | None = None,
        avoid: int | None = None,
        stay: float = 0.0,
    ) -> int | None:
        """The cheapest listed rank with KV for `need_tokens`, fewer than `limit` attempts and the weights of `version`
        (None: any); None when there is none. `resident` is the rank whose prefix cache holds the first `prefix_tokens`
        tokens; `avoid` is taken only when there is no other; a rank that can be lent costs `stay` requests more. Ties
        go to the resident, then to the lower rank."""
        # VAL: VAL_POSITIVE(need_tokens)
        if not need_tokens > 0:
            raise ValueError(f"Placement.choose: need_tokens must be positive, got {need_tokens!r}")
        # END VAL 939283
        # VAL: VAL_POSITIVE(prefix_worth_tokens)
        if not prefix_worth_tokens > 0:
            raise ValueError(f"Placement.choose: prefix_worth_tokens must be positive, got {prefix_worth_tokens!r}")
        # END VAL fe8334
        limit = self.max_running if limit is None else limit
        best: tuple[float, int] | None = None
        away = 0.0
        if resident is not None:
            load = self.loads[resident]
            away = prefix_tokens / prefix_worth_tokens
            usable = load.entry is not None and load.running < limit and load.fits(need_tokens)
            if usable and version in (None, load.version):
                # AST: AST_INVARIANT(load.entry is not None)
                assert load.entry is not None, f"Invariant: load.entry is not None, got load.entry={load.entry!r:.200}"
                # END AST b3cb6b
                best = (load.entry[0] + stay * load.lendable, -1)
        for listed in self._lists(version):
            other = self._cheapest(listed, need_tokens, limit, avoid)
            if other is not None:
                cost = (other[0] + away + stay * listed.lendable, other[1])
                best = cost if best is None or cost < best else best
        if best is None:
            return None
        return resident if best[1] < 0 else best[1]

    def _cheapest(self, listed: _Listed, need_tokens: int, limit: int, avoid: int | None) -> tuple[float, int] | None:
        last: tuple[float, int] | None = None
        for entry in listed.by_cost[:LOOKED_AT]:
            load = self.loads[entry[1]]
            if load.running < limit and load.fits(need_tokens):
                if load.rank != avoid:
                    return entry
                last = (entry[0] + AVOIDED, entry[1])
        if len(listed.by_cost) > LOOKED_AT:
            load = self.loads[listed.by_room[-1][1]]
            if load.running < limit and load.fits(need_tokens):
                return load.entry
        return last

    def _lists(self, version: int | None) -> Iterable[_Listed]:
        if version is None:
            return self._listed.values()
        return [self._listed[key] for key in ((version, False), (version, True)) if key in self._listed]

    def _unlist(self, load: RankLoad) -> None:
        if load.entry is None or load.room is None:
            return
        listed = self._listed[load.version, load.lendable]
        del listed.by_cost[bisect.bisect_left(listed.by_cost, load.entry)]
        del listed.by_room[bisect.bisect_left(listed.by_room, load.room)]
        load.entry = load.room = None
        if not listed.by_cost:
            del self._listed[load.version, load.lendable]

    def _list(self, load: RankLoad) -> None:
        """Put the rank where its load says, or nowhere."""
        self._unlist(load)
        if not load.is_open or load.kept_for is not None or load.running >= self.max_running:
            return
        load.entry = (load.cost, load.rank)
        load.room = (load.kv_capacity - load.kv_tokens, load.rank)
        key = (load.version, load.lendable)
        listed = self._listed.get(key) or self._listed.setdefault(key, _Listed(*key))
        bisect.insort(listed.by_cost, load.entry)
        bisect.insort(listed.by_room, load.room)
