"""A saved state is plain, whole and exact: restored at any event, a run goes on with the same decisions (R27, R28)."""

from __future__ import annotations

import json

import pytest

from roll_ts.core import alphabet as a
from roll_ts.core.errors import UnknownId
from roll_ts.core.invariants import check_invariants
from roll_ts.core.policies import make_policy
from roll_ts.core.policies.time_sharing import TimeSharing
from roll_ts.core.scheduler import Scheduler
from roll_ts.core.snapshots import SnapshotError
from tests.roll_ts.core.layouts import settings_for
from tests.roll_ts.core.scenes import Scene, shared
from tests.roll_ts.core.test_rules import POLICIES, some_faults
from tests.roll_ts.core.world import World

AHEAD = 40


def through_json(scheduler: Scheduler) -> dict:
    return json.loads(json.dumps(scheduler.save(), allow_nan=False))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(3))
def test_R28_restored_at_any_event_a_run_goes_on_with_the_same_decisions(policy, seed):
    changes = {"max_restarts_per_rank": 50, "evaluation_episodes": 2, "checkpoint_every": 1}
    world = World(policy, seed, until=3, changes=changes, faults=some_faults).run()
    scheduler = Scheduler(world.settings, make_policy(policy))
    step = max(1, len(world.journal) // 60)
    for at, (now, event, commands) in enumerate(world.journal):
        assert scheduler.handle(event, now) == commands
        if at % step:
            continue
        again = Scheduler.restore(through_json(scheduler), world.settings, make_policy(policy))
        check_invariants(again)
        assert through_json(again) == through_json(scheduler)
        for later, news, said in world.journal[at + 1 : at + 1 + AHEAD]:
            assert again.handle(news, later) == said


def test_R28_a_restored_run_goes_on_to_its_end_and_its_open_commands_and_attempts_are_answered():
    scene = Scene(shared(4, 2)).begin(until=6)
    restored = 0
    while scene.finish is None:
        scene.play(until=lambda s, enough=60 * (restored + 1): len(s.said) > enough)
        policy = make_policy("time_sharing")
        scene.scheduler = Scheduler.restore(through_json(scene.scheduler), scene.settings, policy)
        restored += 1
    assert restored > 3 and scene.finish.ok
    assert [c.version for c in scene.of(a.Train)] == [0, 1, 2, 3, 4, 5]


def saved() -> tuple[dict, Scene]:
    scene = Scene(shared(4, 2)).begin(until=2)
    scene.play(until=lambda s: len(s.said) > 40)
    return through_json(scene.scheduler), scene


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda state: state | {"format": 99}, "no saved state that this version can read"),
        (lambda state: {}, "no saved state that this version can read"),
        (lambda state: state | {"policy": "colocated"}, "another policy"),
        (lambda state: state | {"objects": state["objects"][:5]}, "damaged"),
        (
            lambda state: state | {"schema": state["schema"] | {"roll_ts.core.budget:Budget": ["size"]}},
            "roll_ts.core.budget:Budget.*another version",
        ),
        (lambda state: state | {"root": {"enum": "os:system", "is": 1}}, "os:system.*no class of the core"),
    ],
    ids=["format", "empty", "policy", "cut", "schema", "foreign class"],
)
def test_a_state_that_does_not_fit_is_refused_with_the_reason(spoil, why):
    state, scene = saved()
    with pytest.raises(SnapshotError, match=why):
        Scheduler.restore(spoil(state), scene.settings, make_policy("time_sharing"))


def test_a_state_is_not_restored_under_other_settings():
    state, _ = saved()
    with pytest.raises(SnapshotError, match="other settings"):
        Scheduler.restore(state, settings_for("time_sharing"), make_policy("time_sharing"))


class Hoarder(TimeSharing):
    """A policy that keeps what no file can hold."""

    name = "hoarder"

    def __init__(self) -> None:
        self.file = object()


def test_a_policy_that_keeps_no_plain_data_is_named_when_the_state_is_saved():
    scheduler = Scheduler(settings_for("time_sharing"), Hoarder())
    with pytest.raises(SnapshotError, match="builtins:object"):
        scheduler.save()


# R38: a refusal changes nothing


REFUSAL = (UnknownId, ValueError)
REFUSED = [
    (a.Event(), TypeError),
    (a.TrajectoriesWanted(until=0), ValueError),
    (a.EvaluationWanted(episodes=0, first_seed=0), ValueError),
    (a.RankDied(rank=99, incarnation=1, reason=""), REFUSAL),
    (a.RankBooted(rank=-1, incarnation=1, kv_capacity=1), REFUSAL),
    (a.RankStats(rank=4, incarnation=1, running=0, waiting=0, kv_tokens=0), REFUSAL),
    (a.WeightsLoaded(rank=77, epoch=1, version=0, digest="", seconds=0.0), REFUSAL),
    (a.KVReady(rank=77, epoch=1, canary_gap=0.0), REFUSAL),
    (a.SubmitAcked(attempt=a.AttemptId(10**9, 1, 1)), REFUSAL),
    (a.Progress(attempt=a.AttemptId(10**9, 1, 1), total=1), REFUSAL),
    (a.Progress(attempt=a.AttemptId(0, 1, 1), total=-1), ValueError),
    (a.Finished(attempt=a.AttemptId(0, 1, 1), total=-1, reason="stop"), ValueError),
    (a.Aborted(attempt=a.AttemptId(-1, 1, 1), total=1), REFUSAL),
    (a.Failed(attempt=a.AttemptId(10**9, 1, 1), error=""), REFUSAL),
    (
        a.EnvironmentReplied(trajectory=10**9, turn=0, context_tokens=1, done=False, reward=0.0, success=False),
        REFUSAL,
    ),
    (
        a.EnvironmentReplied(trajectory=0, turn=0, context_tokens=-1, done=False, reward=0.0, success=False),
        REFUSAL,
    ),
    (a.EnvironmentFailed(trajectory=-1, turn=0, error=""), REFUSAL),
]


@pytest.fixture(scope="module")
def situations() -> list[tuple[dict, float]]:
    """States of a faulty run, a few from each stage of the control side."""
    world = World("time_sharing", 5, until=4, changes={"max_restarts_per_rank": 50}, faults=some_faults).run()
    scheduler, seen, found = Scheduler(world.settings, make_policy("time_sharing")), {}, []
    for now, event, _ in world.journal:
        scheduler.handle(event, now)
        stage = scheduler.control.stage
        seen[stage] = seen.get(stage, 0) + 1
        if seen[stage] in (1, 40) and not scheduler.finished:
            found.append((scheduler.save(), now))
    assert len(found) >= 10
    return found


@pytest.mark.parametrize(("event", "error"), REFUSED, ids=lambda value: str(value)[:40])
def test_R38_an_event_that_is_refused_changes_nothing_in_any_situation(situations, event, error):
    settings = settings_for("time_sharing", max_restarts_per_rank=50)
    for state, now in situations:
        scheduler = Scheduler.restore(state, settings, make_policy("time_sharing"))
        for later in (now, now + 1000.0):
            with pytest.raises(error):
                scheduler.handle(event, later)
            assert scheduler.save() == state


@pytest.mark.parametrize("back", [1.0, float("nan"), float("-inf")])
def test_R38_time_that_goes_back_is_refused_and_changes_nothing(situations, back):
    settings = settings_for("time_sharing", max_restarts_per_rank=50)
    for state, now in situations:
        scheduler = Scheduler.restore(state, settings, make_policy("time_sharing"))
        with pytest.raises(ValueError, match="now"):
            scheduler.handle(a.TimerFired(), now - back)
        assert scheduler.save() == state


@pytest.mark.parametrize("number", [None, 10**9], ids=["without a command", "of no command"])
@pytest.mark.parametrize(
    "event",
    [
        a.RankBooted(rank=1, incarnation=1, kv_capacity=5),
        a.WeightsLoaded(rank=1, epoch=3, version=9, digest="x", seconds=0.0),
        a.KVReady(rank=1, epoch=3, canary_gap=9.0),
        a.GroupFormed(epoch=3),
        a.WeightsSent(epoch=3, version=9),
        a.TrainingFinished(epoch=3, version=9, digest="x", seconds=0.0),
        a.CheckpointSaved(version=9, path="x"),
        a.MemoryReleased(holder="trainer", epoch=3, bytes=5),
        a.TrainerReady(incarnation=1, version=9, digest="x"),
        a.CommandFailed(error="x", culprits=("rank:1", "trainer")),
    ],
    ids=lambda event: type(event).__name__,
)
def test_R3_an_answer_to_nothing_is_counted_and_changes_nothing_else(situations, event, number):
    settings = settings_for("time_sharing", max_restarts_per_rank=50)
    event = a.decode(a.encode(event) | ({} if number is None else {"command": number}))
    for state, now in situations:
        scheduler = Scheduler.restore(state, settings, make_policy("time_sharing"))
        late = scheduler.snapshot().late_answers
        assert not [c for c in scheduler.handle(event, now) if not isinstance(c, a.SetTimer)]
        assert scheduler.snapshot().late_answers == late + 1
        scheduler.out.late_answers -= 1
        assert scheduler.save()["objects"] == state["objects"]
