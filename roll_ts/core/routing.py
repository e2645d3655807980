"""Where a turn goes: the rank with the least cost of live load, KV and missing prefix (R10, R12). Pure functions."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class RankLoad:
    """Live load of one ACTIVE rank: open attempts, KV tokens reserved for them, and KV capacity in tokens."""

    rank: int
    running: int
    kv_tokens: int
    kv_capacity: int


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


def placement_cost(load: RankLoad, need_tokens: int, missing_prefix: int, prefix_worth_tokens: int) -> float:
    """Cost of one more attempt on the rank, in units of one running request.

    running + (KV after the move ÷ capacity) + (prefix tokens to prefill ÷ `prefix_worth_tokens`). The last term is what
    a move must pay for (R10).
    """
    # VAL: VAL_POSITIVE(prefix_worth_tokens)
    if not prefix_worth_tokens > 0:
        raise ValueError(f"placement_cost: prefix_worth_tokens must be positive, got {prefix_worth_tokens!r}")
    # END VAL 7bf9da
    filled = (load.kv_tokens + need_tokens) / max(load.kv_capacity, 1)
    return load.running + filled + missing_prefix / prefix_worth_tokens


def choose_rank(
    loads: list[RankLoad],
    need_tokens: int,
    resident: int | None,
    prefix_tokens: int,
    max_running: int,
    prefix_worth_tokens: int,
) -> int | None:
    """The cheapest rank with a free slot and KV for `need_tokens`, or None when all are full.

    `resident` is the rank whose prefix cache holds the first `prefix_tokens` tokens. Ties go to the lower rank. A rank
    that runs nothing always fits: the engine then has all its KV for this one.
    """
    # VAL: VAL_POSITIVE(need_tokens)
    if not need_tokens > 0:
        raise ValueError(f"choose_rank: need_tokens must be positive, got {need_tokens!r}")
    # END VAL 3b180a
    # VAL: VAL_POSITIVE(max_running)
    if not max_running > 0:
        raise ValueError(f"choose_rank: max_running must be positive, got {max_running!r}")
    # END VAL 7b3624
    best: tuple[float, int] | None = None
    for load in loads:
        fits = load.running == 0 or load.kv_tokens + need_tokens <= load.kv_capacity
        if load.running >= max_running or not fits:
            continue
        missing = 0 if load.rank == resident else prefix_tokens
        cost = placement_cost(load, need_tokens, missing, prefix_worth_tokens)
        if best is None or (cost, load.rank) < best:
            best = (cost, load.rank)
    return None if best is None else best[1]
