"""The token account is computed, not assumed."""

from __future__ import annotations

import pytest

from roll_ts.core import alphabet as a
from roll_ts.observe.intervals import read_history
from roll_ts.observe.tokens import AccountError, token_account
from tests.roll_ts.observe.handmade import Script, finished_run, tick


def turn(*attempts: tuple[int, int, int]) -> Script:
    """One turn whose attempts are (rank, carried, tokens), each aborted but the last."""
    script = Script()
    for number, (rank, carried, tokens) in enumerate(attempts, start=1):
        script.at(2.0 * number, tick(), script.dispatch(0, number, rank, carried))
        end = a.Aborted if number < len(attempts) else a.Finished
        extra = {} if end is a.Aborted else {"reason": "stop"}
        script.at(2.0 * number + 1, end(attempt=a.AttemptId(0, 1, number), total=tokens, **extra))
    return script


def test_the_hand_made_run_migrates_one_turn_and_regenerates_nothing() -> None:
    account = token_account(read_history(finished_run()))
    assert (account.migrations, account.moves, account.boundary_moves) == (1, 1, 0)
    assert (account.generated, account.regenerated, account.lost) == (140, 0, 0)
    assert account.reprefilled == 20 + 15


def test_tokens_that_are_not_carried_are_regenerated() -> None:
    account = token_account(read_history(turn((0, 0, 30), (1, 12, 40)).journal()))
    assert account.regenerated == 18


def test_a_turn_that_restarts_from_nothing_regenerates_all_of_it() -> None:
    account = token_account(read_history(turn((0, 0, 30), (1, 0, 50), (0, 50, 1)).journal()))
    assert account.regenerated == 30
    assert account.migrations == 1 and account.moves == 2


def test_a_move_without_a_token_before_it_is_no_migration() -> None:
    account = token_account(read_history(turn((0, 0, 0), (1, 0, 40)).journal()))
    assert (account.migrations, account.moves) == (0, 1)


def test_resuming_on_the_same_rank_and_weights_needs_no_new_prefill() -> None:
    account = token_account(read_history(turn((0, 0, 30), (0, 30, 40)).journal()))
    assert account.reprefilled == 0


def test_carrying_tokens_that_were_never_reported_is_a_contradiction() -> None:
    with pytest.raises(AccountError, match=r"carried must lie in \[0, 30\], got 31 \(attempt\.id=.*0, turn=1"):
        token_account(read_history(turn((0, 0, 30), (1, 31, 40)).journal()))


def test_lost_tokens_are_what_dead_ranks_had_not_reported() -> None:
    script = turn((0, 0, 30))
    script.at(9.0, a.RankDied(rank=0, incarnation=1, reason="gone", lost_tokens=11))
    assert token_account(read_history(script.journal())).lost == 11


def test_a_next_turn_on_another_rank_is_a_boundary_move() -> None:
    script = turn((0, 0, 30))
    script.at(9.0, tick(), script.dispatch(0, 1, rank=1, turn=2))
    account = token_account(read_history(script.journal()))
    assert (account.boundary_moves, account.moves) == (1, 0)
