"""The oracle is not blind: a scheduler that breaks one rule, once, is caught."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable

import pytest

from roll_ts.core import alphabet as a
from roll_ts.core.scheduler import Scheduler
from tests.roll_ts.outside.scenario import Scenario
from tests.roll_ts.outside.shrink import shrink
from tests.roll_ts.outside.violation import Violation
from tests.roll_ts.outside.world import World

Tamper = Callable[[a.Command], list[a.Command]]


class Tampered:
    """A scheduler whose words of one kind are changed, from the `nth` on or there alone."""

    def __init__(self, inner: Scheduler, kind: type[a.Command], change: Tamper, nth: int, always: bool) -> None:
        self.inner = inner
        self.kind = kind
        self.change = change
        self.nth = nth
        self.always = always
        self.seen = 0

    def handle(self, event: a.Event, now: float) -> list[a.Command]:
        """What the scheduler says, but for the change."""
        said: list[a.Command] = []
        for command in self.inner.handle(event, now):
            hit = False
            if isinstance(command, self.kind):
                self.seen += 1
                hit = self.seen == self.nth or (self.always and self.seen > self.nth)
            said += self.change(command) if hit else [command]
        return said


def put(**fields: object) -> Tamper:
    """Some fields have other values; a function gets the old value."""

    def change(command: a.Command) -> list[a.Command]:
        new = {name: value(getattr(command, name)) if callable(value) else value for name, value in fields.items()}
        return [dataclasses.replace(command, **new)]

    return change


def leave_out(command: a.Command) -> list[a.Command]:
    """It is not said."""
    return []


def say_again(command: a.Command) -> list[a.Command]:
    """It is said twice, the second time under a number of its own."""
    return [command, dataclasses.replace(command, id=command.id + 1_000_000)]


def more(value: int) -> int:
    """One more."""
    return value + 1


def cut(batch: tuple[object, ...]) -> tuple[object, ...]:
    """Without its last."""
    return batch[:-1]


def doubled(batch: tuple[object, ...]) -> tuple[object, ...]:
    """Its first group also at the end, instead of the last group."""
    return (*batch[:-2], *batch[:2])


WORLD = Scenario(seed=5, until=3, checkpoint_every=1, evaluation_episodes=2)
BROKEN: list[tuple[str, str, type[a.Command], Tamper, int, bool]] = [
    ("R1", "a move from another state", a.RankMoved, put(old="LENT"), 4, False),
    ("R1", "a move that the table does not have", a.RankMoved, put(new="LENT"), 4, False),
    ("R2", "training before the memory is back", a.Release, leave_out, 1, False),
    ("R3", "an epoch is used again", a.FormGroup, put(epoch=0), 2, False),
    ("R6", "an attempt's number is used again", a.Dispatch, say_again, 3, False),
    ("R6", "more tokens than there is room", a.Dispatch, put(max_new_tokens=more), 3, False),
    ("R7", "a request for a rank that does not serve", a.Dispatch, put(rank=0), 40, True),
    ("R7", "the drain is left out", a.Drain, leave_out, 1, False),
    ("R8", "a token is forgotten", a.Dispatch, put(carried=lambda n: max(0, n - 1)), 1, True),
    ("R8", "a token is counted twice at the end", a.Settled, put(tokens=more), 2, False),
    ("R8", "another context", a.Dispatch, put(context_tokens=more), 2, False),
    ("R11", "an overdue environment is waited for", a.Settled, leave_out, 2, False),
    ("R13", "an outcome is left out", a.Settled, leave_out, 1, True),
    ("R13", "two outcomes", a.Settled, say_again, 2, False),
    ("R13", "an evaluation that is not greedy", a.Dispatch, put(greedy=False), 1, True),
    ("R13", "another reward", a.Settled, put(reward=17.0), 3, False),
    ("R15", "a batch without one member", a.Train, put(batch=cut), 1, False),
    ("R15", "a group twice in a batch", a.Train, put(batch=doubled), 1, False),
    ("R16", "another oldest version", a.Settled, put(oldest_version=more), 5, False),
    ("R17", "a staleness that is too small", a.Settled, put(staleness=-1), 5, False),
    ("R17", "another version is trained", a.Train, put(version=more), 2, False),
    ("R19", "another version than is proven", a.Dispatch, put(version=more), 2, False),
    ("R19", "the canary is left out", a.WakeKV, leave_out, 1, False),
    ("R19", "a group for another version", a.FormGroup, put(version=more), 2, False),
    ("R22", "the trainer keeps its parameters", a.ReleaseTrainer, put(parts="state"), 1, True),
    ("R23", "a member that is named twice", a.Sync, put(members=lambda ids: (*ids, ids[0])), 1, False),
    ("R26", "no timer is set", a.SetTimer, leave_out, 1, True),
    ("R26", "nobody is waited for", a.Drain, put(due=None), 1, False),
    ("R26", "another party is named", a.Drain, put(awaits="rank 77"), 1, False),
    ("R29", "a number of a command is used again", a.Dispatch, put(id=3), 2, False),
    ("R33", "a process without a new number", a.Restart, put(incarnation=7), 2, False),
    ("R36", "what is trained is not saved", a.Checkpoint, leave_out, 1, True),
]


def tampered_world(scenario: Scenario, kind: type[a.Command], change: Tamper, nth: int, always: bool) -> World:
    """A world whose scheduler breaks a rule."""
    world = World(scenario)
    world.scheduler = Tampered(world.scheduler, kind, change, nth, always)  # type: ignore[assignment]
    return world


@pytest.mark.parametrize(
    ("rule", "how", "kind", "change", "nth", "always"), BROKEN, ids=[f"{b[0]}-{b[1]}" for b in BROKEN]
)
def test_a_broken_rule_is_seen(
    rule: str, how: str, kind: type[a.Command], change: Tamper, nth: int, always: bool
) -> None:
    for seed in range(40):
        world = tampered_world(WORLD.with_(seed=seed, rate=0.02 * (seed > 2)), kind, change, nth, always)
        try:
            world.run()
        except Violation:
            assert world.scheduler.seen >= nth  # type: ignore[attr-defined]
            return
    pytest.fail(f"forty histories were played and nobody saw {how} ({rule})")


def test_the_same_world_without_a_broken_rule_is_clean() -> None:
    world = World(WORLD).run()
    world.replayed()
    assert world.finish is not None and world.finish.ok


def test_an_innocent_rank_that_is_fenced_is_seen() -> None:
    world = World(WORLD)

    class Angry:
        """Fences a rank for nothing."""

        def __init__(self, inner: Scheduler) -> None:
            self.inner = inner

        def handle(self, event: a.Event, now: float) -> list[a.Command]:
            said = self.inner.handle(event, now)
            if isinstance(event, a.TrainingFinished):
                said = [*said, a.Fence(id=10**9, due=now + 1, awaits="rank 1", rank=1, incarnation=1, reason="why not")]
            return said

    world.scheduler = Angry(world.scheduler)  # type: ignore[assignment]
    with pytest.raises(Violation, match="R32"):
        world.run()


def test_a_late_answer_that_is_acted_on_is_seen() -> None:
    world = World(WORLD.with_(noise=0.3))

    class Gullible:
        """Says something to an event that it has heard before."""

        def __init__(self, inner: Scheduler) -> None:
            self.inner = inner
            self.heard: set[int] = set()

        def handle(self, event: a.Event, now: float) -> list[a.Command]:
            said = self.inner.handle(event, now)
            if isinstance(event, a.GroupFormed) and event.command in self.heard:
                said = [*said, a.SetTimer(id=10**9, at=now + 9)]
            if event.command is not None:
                self.heard.add(event.command)
            return said

    world.scheduler = Gullible(world.scheduler)  # type: ignore[assignment]
    with pytest.raises(Violation, match="R33"):
        world.run()


def test_a_failing_history_is_shrunk_to_the_fault_that_breaks_it_and_plays_again_from_its_file(monkeypatch) -> None:
    """A scheduler that replaces nobody whose environment failed is red with that one fault alone."""
    inner = Scheduler.handle

    def forgetful(self: Scheduler, event: a.Event, now: float) -> list[a.Command]:
        said = inner(self, event, now)
        if isinstance(event, a.EnvironmentFailed):
            said = [c for c in said if not isinstance(c, a.StepEnvironment)]
        return said

    monkeypatch.setattr(Scheduler, "handle", forgetful)
    scenario = WORLD.with_(rate=0.05, changes={"max_restarts_per_rank": 60, "max_trainer_restarts": 60})
    with pytest.raises(Violation) as caught:
        World(scenario).run()
    small, violation = shrink(scenario, caught.value)
    assert violation.rule == caught.value.rule
    assert small.faults is not None and set(small.faults.values()) == {"fail"} and len(small.faults) == 1
    again = Scenario.from_json(small.to_json())
    with pytest.raises(Violation, match=violation.rule):
        World(again).run()


def test_a_violation_comes_whole_out_of_another_process() -> None:
    again = pickle.loads(pickle.dumps(Violation("R8", "a token too many")))
    assert (str(again), again.rule, again.seen) == ("R8: a token too many", "R8", "a token too many")
