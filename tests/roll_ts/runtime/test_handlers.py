"""Commands to events: what a party answers or raises, and what is this code's own fault."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import ActorDiedError, RayTaskError

from roll_ts.config import Deadlines
from roll_ts.config_file import load_config
from roll_ts.core import alphabet as a
from roll_ts.engines import protocol
from roll_ts.engines.protocol import Canary, EngineStats
from roll_ts.runtime import _handlers as handlers
from roll_ts.runtime._parties import EngineParty, TrainerParty, why
from roll_ts.runtime.engine_actor import Loaded
from roll_ts.weights.rendezvous import SyncError


class Actor:
    """Stands for a Ray actor's handle: every method gives or raises what `answers` says."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[Any, ...]] = []

    def __getattr__(self, method: str) -> Any:
        async def remote(*args: Any) -> Any:
            self.asked.append((method, *args))
            answer = self.answers[method]
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=remote), remote=remote)


class Store:
    """Only what a party needs of the sample store."""

    eos_id = 0

    def __init__(self) -> None:
        self.lost: list[a.AttemptId] = []
        self.got: list[tuple[Any, ...]] = []

    def lose(self, attempts: list[a.AttemptId]) -> None:
        self.lost += attempts

    def extend(self, *got: Any) -> None:
        self.got.append(got)


class Run:
    """Stands for the controller."""

    def __init__(self, **answers: Any) -> None:
        self.said: list[a.Event] = []
        self.store = Store()
        self.actor = Actor(**answers)
        self.engines = {0: EngineParty(0, 1, self.store, self.post, self.actor)}  # type: ignore[arg-type]
        self.config = SimpleNamespace(deadlines=Deadlines(), weights=SimpleNamespace(canary_tokens=2))
        self.trainer = SimpleNamespace(canary_gap=lambda said, version: 0.25, ask_first=self.actor.send.remote)

    def post(self, event: a.Event) -> None:
        self.said.append(event)


@pytest.fixture(autouse=True)
def no_kill(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    killed: list[Any] = []
    monkeypatch.setattr("ray.kill", killed.append)
    return killed


def carry_out(run: Run, command: a.Command) -> list[a.Event]:
    asyncio.run(handlers._answer(command, run))  # type: ignore[arg-type]
    return run.said


def task_error(cause: Exception) -> RayTaskError:
    return RayTaskError("method", "trace", cause).as_instanceof_cause()


EXAMPLE = Path(__file__).parents[3] / "examples" / "two_devices_time_sharing.yaml"
STATS = EngineStats(running=0, waiting=0, kv_tokens=0, kv_capacity=64)
CONTROL = [
    (a.Drain(id=3, rank=0, epoch=2), {"drain": STATS}, a.RankStats),
    (a.Release(id=3, rank=0, epoch=2, recover_from=""), {"release": 9}, a.MemoryReleased),
    (a.LoadWeights(id=3, rank=0, epoch=2, version=1), {"load": Loaded("ab", 0.1)}, a.WeightsLoaded),
    (a.WakeKV(id=3, rank=0, epoch=2, version=1), {"wake": Canary([], [])}, a.KVReady),
    (a.ResetCache(id=3, rank=0, epoch=2, version=1), {"reset_cache": Canary([], [])}, a.KVReady),
    (a.Sync(id=3, epoch=2, version=1, members=(0,)), {"send": 0.1}, a.WeightsSent),
]


@pytest.mark.parametrize(("command", "answers", "event"), CONTROL, ids=lambda value: type(value).__name__)
def test_success_becomes_the_answering_event_with_the_command_echoed(
    command: a.Command, answers: dict[str, Any], event: type[a.Event]
) -> None:
    [said] = carry_out(Run(**answers), command)
    assert type(said) is event and said.command == 3


@pytest.mark.parametrize(("command", "answers", "event"), CONTROL, ids=lambda value: type(value).__name__)
def test_what_a_party_raises_becomes_a_failed_command_with_its_words(
    command: a.Command, answers: dict[str, Any], event: type[a.Event]
) -> None:
    failing = {method: task_error(MemoryError("no room for weights")) for method in answers}
    who = "trainer" if isinstance(command, a.Sync) else "rank:0"
    failed = a.CommandFailed(command=3, error="MemoryError: no room for weights", culprits=(who,))
    assert carry_out(Run(**failing), command) == [failed]


def test_R32_a_broken_transfer_names_whom_it_misses_and_nobody_when_it_cannot_tell() -> None:
    load = a.LoadWeights(id=3, rank=0, epoch=2, version=1)
    for missing, culprits in (((), ()), (("rank 3", "trainer"), ("rank:3", "trainer"))):
        [failed] = carry_out(Run(load=task_error(SyncError("broke", 2, 0, missing))), load)
        assert isinstance(failed, a.CommandFailed) and failed.culprits == culprits


def test_a_dead_process_becomes_a_dead_rank_told_once_and_its_attempts_are_lost(no_kill: list[Any]) -> None:
    run = Run(drain=ActorDiedError(), release=ActorDiedError())
    attempt = a.AttemptId(1, 1, 1)
    run.engines[0].open[attempt] = 0
    carry_out(run, a.Drain(id=3, rank=0, epoch=2))
    carry_out(run, a.Release(id=4, rank=0, epoch=2, recover_from=""))
    [died] = run.said
    assert isinstance(died, a.RankDied) and died.rank == 0
    assert run.store.lost == [attempt] and no_kill


def test_a_fault_of_this_code_is_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        carry_out(Run(drain=ZeroDivisionError()), a.Drain(id=3, rank=0, epoch=2))


def test_a_fence_answers_when_the_process_is_gone(no_kill: list[Any]) -> None:
    run = Run(close=ActorDiedError())
    fence = a.Fence(id=5, rank=0, incarnation=1, reason="silent")
    assert carry_out(run, fence) == [a.RankDied(command=5, rank=0, incarnation=1, reason="silent")]
    assert no_kill == [run.actor] and not run.engines[0].alive


def test_every_command_of_the_alphabet_has_its_function() -> None:
    batched = {a.Dispatch, a.StepEnvironment}
    assert set(a.COMMANDS.values()) == set(handlers._HANDLERS) | set(handlers._AT_ONCE) | batched


def dispatch(attempt: a.AttemptId) -> tuple[a.Dispatch, list[int]]:
    fields = {"context_tokens": 1, "carried": 0, "max_new_tokens": 4, "greedy": False, "version": 0}
    return a.Dispatch(id=6, attempt=attempt, rank=0, **fields), [1]  # type: ignore[arg-type]


def test_a_turn_that_a_drain_has_overtaken_ends_as_aborted_with_no_token() -> None:
    late, timely = a.AttemptId(1, 1, 1), a.AttemptId(2, 1, 1)
    run = Run(submit=[str(late)])
    asyncio.run(run.engines[0].submit([dispatch(late), dispatch(timely)]))
    assert run.said == [a.Aborted(attempt=late, total=0), a.SubmitAcked(command=6, attempt=timely)]
    assert set(run.engines[0].open) == {timely}


def test_a_turn_that_the_engine_refuses_ends_as_failed() -> None:
    attempt = a.AttemptId(1, 1, 1)
    run = Run(submit=task_error(ValueError("too long")))
    asyncio.run(run.engines[0].submit([dispatch(attempt)]))
    assert run.said == [a.Failed(attempt=attempt, error="ValueError: too long")]


def test_tokens_reach_the_store_before_the_scheduler_hears_of_them() -> None:
    run = Run()
    order: list[str] = []
    run.store.extend = lambda *_: order.append("store")  # type: ignore[method-assign]
    party = EngineParty(0, 1, run.store, lambda event: order.append(type(event).__name__))  # type: ignore[arg-type]
    party._hear(protocol.Progress("1.1.1", [4], [-1.0]))
    party._hear(protocol.Failed("1.1.1", "broken", [5], [-1.0]))
    assert order == ["store", "Progress", "store", "Progress", "Failed"]


def test_the_reason_of_a_party_is_its_own_words() -> None:
    assert why(task_error(RuntimeError("the group broke"))) == "RuntimeError: the group broke"


@pytest.fixture
def trainer() -> TrainerParty:
    config = load_config(EXAMPLE)
    party = TrainerParty(config, None, 1, lambda event: None)  # type: ignore[arg-type]
    party.canaries[3] = Canary([5, 6, 7], [-0.1, -0.2, -0.3])
    return party


@pytest.mark.parametrize(
    ("said", "gap"),
    [
        (Canary([5, 6, 7], [-0.1, -0.2, -0.3]), 0.0),
        (Canary([5, 6, 7], [-0.1, -0.25, -0.3]), 0.05),
        # A tie: the other token is as likely, and what follows cannot be compared.
        (Canary([5, 9, 1], [-0.1, -0.2, -4.0]), 0.0),
        (Canary([5, 9, 1], [-0.1, -0.5, -0.3]), 0.3),
        (Canary([5, 6], [-0.1, -0.2]), math.inf),
    ],
)
def test_the_canary_gap_is_the_largest_difference_up_to_the_first_other_token(
    trainer: TrainerParty, said: Canary, gap: float
) -> None:
    assert trainer.canary_gap(said, 3) == pytest.approx(gap)
