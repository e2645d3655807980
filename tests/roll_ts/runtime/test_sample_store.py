"""The sample store: one append-only stream per trajectory, on file before it is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roll_ts.core.alphabet import Assignment, AttemptId, Dispatch, Settled
from roll_ts.envs.tokenizer import CharTokenizer
from roll_ts.runtime.sample_store import SampleStore, read_turns


def dispatch(attempt: AttemptId, context: int, carried: int, rank: int = 0, version: int = 0, greedy: bool = False):  # type: ignore[no-untyped-def]
    return Dispatch(
        id=1,
        attempt=attempt,
        rank=rank,
        context_tokens=context,
        carried=carried,
        max_new_tokens=8,
        greedy=greedy,
        version=version,
    )


def settled(trajectory: int, outcome: str = "scored", kind: str = "train") -> Settled:
    return Settled(
        id=2,
        trajectory=trajectory,
        kind=kind,
        group=0,
        member=0,
        outcome=outcome,
        reason="done",
        reward=1.5,
        success=True,
        turns=1,
        tokens=3,
        oldest_version=0,
        staleness=0,
    )


@pytest.fixture
def store(tmp_path: Path) -> SampleStore:
    return SampleStore(CharTokenizer.eos_id, tmp_path / "samples.jsonl")


def tokens_of(text: str) -> list[int]:
    return CharTokenizer().encode(text)


def play_turn(store: SampleStore, trajectory: int, turn: int, context: int) -> None:
    attempt = AttemptId(trajectory, turn, 1)
    store.begin(dispatch(attempt, context, 0))
    store.extend(attempt, [5], [-0.5], last=True)


def play_moved_turn(store: SampleStore, greedy: bool = False) -> None:
    """One turn that generates two tokens on rank 1 under version 0, moves, and one more on rank 0 under version 1."""
    assert store.observe(7, 0, tokens_of("AF>")) == 3
    first, second = AttemptId(7, 1, 1), AttemptId(7, 1, 2)
    store.begin(dispatch(first, 3, 0, rank=1, greedy=greedy))
    store.extend(first, [5], [-0.5], last=False)
    store.extend(first, [6], [-0.25], last=True)
    assert store.begin(dispatch(second, 3, 2, rank=0, version=1, greedy=greedy))[3:] == [5, 6]
    store.extend(second, [0], [-0.125], last=True)


def test_a_moved_turn_is_one_stream_with_the_version_of_each_token(store: SampleStore) -> None:
    play_moved_turn(store)
    store.settle(settled(7))
    [sample] = store.samples([Assignment(0, 0, 7)])
    assert sample.loss_mask.tolist() == [False] * 3 + [True] * 3
    assert sample.versions.tolist() == [-1, -1, -1, 0, 0, 1]
    assert np.array_equal(sample.logprobs, np.array([0, 0, 0, -0.5, -0.25, -0.125], np.float32))
    assert (sample.reward, sample.success, sample.truncated, sample.group) == (1.5, True, False, "0")


def test_an_observation_after_a_reply_is_given_not_trained_on(store: SampleStore) -> None:
    play_moved_turn(store)
    assert store.observe(7, 1, tokens_of("FA>")) == 9
    play_turn(store, 7, 2, context=9)
    store.settle(settled(7))
    [sample] = store.samples([Assignment(0, 0, 7)])
    assert sample.loss_mask.tolist() == [False] * 3 + [True] * 3 + [False] * 3 + [True]


def test_an_observation_that_nothing_was_generated_after_is_left_out_of_the_sample(store: SampleStore) -> None:
    """It may overflow the context, and a sample longer than the model's positions would be refused by the trainer."""
    play_moved_turn(store)
    store.observe(7, 1, tokens_of("FA>" * 400))
    store.settle(settled(7, "policy-failed"))
    [sample] = store.samples([Assignment(0, 0, 7)])
    assert sample.loss_mask.tolist() == [False] * 3 + [True] * 3
    assert sample.truncated


def test_the_reply_is_the_tokens_of_all_pieces_of_the_turn(store: SampleStore) -> None:
    store.observe(1, 0, tokens_of("A>"))
    tokenizer = CharTokenizer()
    for number, text in enumerate(("R", "L"), start=1):
        attempt = AttemptId(1, 1, number)
        store.begin(dispatch(attempt, 2, number - 1))
        store.extend(attempt, tokenizer.encode(text), [-1.0], last=True)
    assert store.reply(1) == tokens_of("RL")


def test_a_dispatch_that_miscounts_what_the_store_holds_is_refused(store: SampleStore) -> None:
    store.observe(1, 0, tokens_of("A>"))
    with pytest.raises(AssertionError, match="the scheduler counts what the store holds"):
        store.begin(dispatch(AttemptId(1, 1, 1), 2, carried=1))


def test_tokens_of_an_attempt_that_has_ended_are_refused(store: SampleStore) -> None:
    store.observe(1, 0, tokens_of("A>"))
    attempt = AttemptId(1, 1, 1)
    store.begin(dispatch(attempt, 2, 0))
    store.extend(attempt, [3], [-1.0], last=True)
    with pytest.raises(KeyError, match=r"1\.1\.1"):
        store.extend(attempt, [3], [-1.0], last=False)


def test_what_a_lost_rank_had_reported_is_kept_and_nothing_more_is_taken(store: SampleStore) -> None:
    store.observe(1, 0, tokens_of("A>"))
    attempt = AttemptId(1, 1, 1)
    store.begin(dispatch(attempt, 2, 0))
    store.extend(attempt, [3, 4], [-1.0, -1.0], last=False)
    store.lose([attempt])
    with pytest.raises(KeyError):
        store.extend(attempt, [5], [-1.0], last=True)
    assert store.begin(dispatch(AttemptId(1, 1, 2), 2, 2))[2:] == [3, 4]


@pytest.mark.parametrize(("outcome", "kind"), [("cancelled", "train"), ("infra-void", "train"), ("scored", "eval")])
def test_a_trajectory_that_is_not_trained_on_is_forgotten_and_late_tokens_of_it_are_dropped(
    store: SampleStore, outcome: str, kind: str
) -> None:
    store.observe(1, 0, tokens_of("A>"))
    attempt = AttemptId(1, 1, 1)
    store.begin(dispatch(attempt, 2, 0))
    store.settle(settled(1, outcome, kind))
    store.extend(attempt, [3], [-1.0], last=True)
    with pytest.raises(KeyError):
        store.samples([Assignment(0, 0, 1)])


def test_a_batch_member_without_an_outcome_is_refused(store: SampleStore) -> None:
    play_moved_turn(store)
    with pytest.raises(ValueError, match="notice"):
        store.samples([Assignment(0, 0, 7)])


def test_the_file_gives_back_the_turns_with_their_pieces(store: SampleStore, tmp_path: Path) -> None:
    play_moved_turn(store, greedy=True)
    store.observe(7, 1, tokens_of("FA>"))
    third = AttemptId(7, 2, 1)
    store.begin(dispatch(third, 9, 0, version=1, greedy=True))
    store.extend(third, [4], [-1.0], last=True)
    store.close()
    moved, stayed = read_turns(tmp_path / "samples.jsonl")
    assert (moved.moved, stayed.moved) == (True, False)
    assert moved.reply == [5, 6, 0] and moved.greedy and len(moved.context) == 3
    assert [(piece.rank, piece.version, piece.carried) for piece in moved.pieces] == [(1, 0, 0), (0, 1, 2)]
    assert stayed.context == moved.context + moved.reply + CharTokenizer().encode("FA>")


def test_a_line_cut_off_by_a_crash_ends_the_reading(store: SampleStore, tmp_path: Path) -> None:
    play_moved_turn(store)
    store.close()
    path = tmp_path / "samples.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    [turn] = read_turns(path)
    assert turn.reply == [5, 6]
