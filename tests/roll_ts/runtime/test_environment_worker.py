"""The environment worker, in this process: tokens in, tokens out, and what it had to put right."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from roll_ts.envs.hosting.wire import Limits
from roll_ts.envs.tokenizer import CharTokenizer
from roll_ts.runtime.environment_worker import EnvironmentWorker, Reply, Step, WorkerOptions, cut_tokens

ALPHABET = "".join(sorted(set("abcdefghijklmnopqrstuvwxyz 0123456789")))
TOKENS = CharTokenizer(ALPHABET)
Make = Callable[..., EnvironmentWorker]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    TOKENS.save(tmp_path)
    made: list[EnvironmentWorker] = []

    def worker(**changes: object) -> EnvironmentWorker:
        options = {
            "name": "tests.roll_ts.envs.hosting.troubled:SPEC",
            "arguments": {},
            "tokenizer": str(tmp_path),
            "processes": 1,
            "threads": 4,
            "episodes": 0,
            "observation_tokens": 100,
            "keep": "both",
            "limits": Limits(),
        }
        made.append(EnvironmentWorker(WorkerOptions(**{**options, **changes})))  # type: ignore[arg-type]
        return made[-1]

    yield worker
    for each in made:
        each.close()


def play(worker: EnvironmentWorker, *steps: Step) -> list[Reply]:
    worker.submit(steps)
    replies: list[Reply] = []
    until = time.monotonic() + 30
    while len(replies) < len(steps):
        assert time.monotonic() < until, "a reply is missing"
        replies += worker.next_replies(0.1)
    return replies


def act(number: int, trajectory: int, turn: int, action: str) -> Step:
    return Step(number, trajectory, turn, action=TOKENS.encode(action))


def test_an_episode_accumulates_its_reward_and_ends_once(make: Make) -> None:
    worker = make()
    [first] = play(worker, Step(1, 9, 0, seed=4))
    assert TOKENS.decode(first.tokens).startswith("seed 4")
    assert (first.done, first.reward) == (False, 0.0)
    [second] = play(worker, act(2, 9, 1, "go"))
    [third] = play(worker, act(3, 9, 2, "end"))
    assert (second.reward, third.reward, third.done, third.success) == (0.5, 1.0, True, True)


def test_whatever_an_environment_raises_is_a_reply_that_says_so_and_is_noted(make: Make) -> None:
    worker = make()
    play(worker, Step(1, 1, 0))
    [broken] = play(worker, act(2, 1, 1, "raise"))
    assert broken.error == "OSError: sandbox lost"
    assert worker.notes()["void"] == (1, "OSError: sandbox lost")


def test_a_cancelled_episode_never_replies_again(make: Make) -> None:
    worker = make()
    play(worker, Step(1, 1, 0))
    worker.submit([act(2, 1, 1, "hang")])
    worker.cancel([1])
    assert worker.next_replies(0.5) == []


@pytest.mark.parametrize("keep", ["head", "tail", "both"])
def test_a_long_observation_keeps_as_many_tokens_as_are_allowed(make: Make, keep: str) -> None:
    worker = make(observation_tokens=11, keep=keep)
    play(worker, Step(1, 1, 0))
    [reply] = play(worker, act(2, 1, 1, "huge"))
    assert len(reply.tokens) == 11
    assert worker.notes()["observation cut"][0] == 2, "the prompt was cut, too"


def test_a_long_observation_ends_the_episode_where_that_is_wanted_but_a_long_prompt_does_not(make: Make) -> None:
    worker = make(observation_tokens=11, keep="end_episode")
    [first] = play(worker, Step(1, 1, 0, seed=123456))
    assert len(first.tokens) == 11
    assert not first.done
    [reply] = play(worker, act(2, 1, 1, "huge"))
    assert reply.done
    assert reply.error is None


def test_a_text_that_has_no_tokens_voids_the_episode(make: Make, tmp_path: Path) -> None:
    CharTokenizer("abc").save(tmp_path)
    [reply] = play(make(), Step(1, 1, 0))
    assert reply.error is not None
    assert "cannot be expressed in tokens" in reply.error


@pytest.mark.parametrize(
    ("keep", "expected"), [("head", [0, 1, 2]), ("tail", [7, 8, 9]), ("both", [0, 1, 9]), ("end_episode", [0, 1, 9])]
)
def test_what_is_kept_of_ten_tokens_when_three_are_allowed(keep: str, expected: list[int]) -> None:
    assert cut_tokens(list(range(10)), 3, keep) == expected  # type: ignore[arg-type]
    assert cut_tokens([1, 2, 3], 3, keep) == [1, 2, 3]  # type: ignore[arg-type]
    assert len(cut_tokens([1, 2, 3], 1, keep)) == 1  # type: ignore[arg-type]
