"""The rules of the scheduler, each by its name, on a virtual clock. `World` answers commands late and in any order."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from roll_ts.core import alphabet as a
from roll_ts.core.errors import InvariantBroken
from roll_ts.core.invariants import check_invariants
from roll_ts.core.leases import rollout
from roll_ts.core.policies import make_policy
from roll_ts.core.ranks import TRANSITIONS, RankState
from roll_ts.core.scheduler import Scheduler
from roll_ts.core.settings import Deadlines
from roll_ts.core.trajectories import Outcome
from tests.roll_ts.core.layouts import LAYOUTS, settings_for
from tests.roll_ts.core.world import World

POLICIES = sorted(LAYOUTS)
TERMINAL = (a.Finished, a.Aborted, a.Failed)


def watch(world: World) -> None:
    check_invariants(world.scheduler)


def some_faults(command, rng):
    """One command in thirty is dropped, failed, or kills its rank; the trainer is spared (its failure ends a run)."""
    if isinstance(command, a.Train | a.ReleaseTrainer | a.Checkpoint | a.SetTimer | a.Cancel):
        return None
    return rng.choices((None, "drop", "fail", "die"), (87, 1, 1, 1))[0]


def moves(world: World, rank: int | None = None) -> list[tuple[float, a.RankMoved]]:
    return [
        (t, c)
        for t, _, commands in world.journal
        for c in commands
        if isinstance(c, a.RankMoved) and rank in (None, c.rank)
    ]


@pytest.fixture(scope="module")
def shared_run() -> World:
    return World("time_sharing", seed=7, until=5, after=watch).run()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(6))
def test_R1_every_move_is_in_the_transition_table_and_the_table_is_the_sum_of_its_moves(policy, seed):
    world = World(policy, seed, changes={"max_restarts_per_rank": 50}, faults=some_faults, after=watch).run()
    state = dict.fromkeys(range(len(world.settings.layout.ranks)), RankState.FAILED)
    for _, move in moves(world):
        assert state[move.rank] == move.old
        assert RankState(move.new) in TRANSITIONS[RankState(move.old)]
        state[move.rank] = RankState(move.new)
    assert state == {row.id: row.state for row in world.scheduler.ranks.rows}


def test_R2_training_starts_only_after_every_lent_rank_reported_its_memory_released(shared_run):
    lent_now: set[int] = set()
    for _, event, commands in shared_run.journal:
        if isinstance(event, a.MemoryReleased) and event.holder.startswith("rank:"):
            lent_now.add(int(event.holder[5:]))
        for command in commands:
            if isinstance(command, a.Train):
                assert lent_now == {0, 1}
            if isinstance(command, a.LoadWeights):
                lent_now.discard(command.rank)


def test_R2_the_invariant_check_sees_a_device_with_the_wrong_holder(shared_run):
    world = World("time_sharing", seed=1)

    def steal(world: World) -> None:
        if world.scheduler.control.stage == "TRAINING":
            world.scheduler.leases.holders[0] = rollout(0)
        check_invariants(world.scheduler)

    world.after = steal
    with pytest.raises(InvariantBroken, match="R2"):
        world.run()


def test_R3_an_answer_that_nobody_waits_for_is_ignored_and_counted(shared_run):
    world = World("time_sharing", seed=2)
    seen: list[a.Event] = []

    def repeat(world: World) -> None:
        event = world.journal[-1][1]
        if isinstance(event, a.MemoryReleased | a.WeightsLoaded | a.KVReady | a.TrainingFinished) and event not in seen:
            seen.append(event)
            world.post(0.3, event)
        check_invariants(world.scheduler)

    world.after = repeat
    world.run()
    assert world.finish.ok
    heard = [event for _, event, _ in world.journal if type(event) in {type(once) for once in seen}]
    assert len(seen) > 20
    assert world.scheduler.snapshot().late_answers >= len(heard) - len(seen)


def test_R3_a_late_partial_of_a_closed_attempt_is_dropped_and_counted():
    world = World("disaggregated", seed=2).run()
    attempt = world.said(a.Dispatch)[0].attempt
    before = world.scheduler.snapshot().late_data
    scheduler = Scheduler(world.settings, make_policy("disaggregated"))
    for now, event, _ in world.journal[:-1]:
        scheduler.handle(event, now)
    scheduler.handle(a.Progress(attempt=attempt, total=5), world.now)
    assert scheduler.snapshot().late_data == before + 1


@pytest.mark.parametrize("policy", POLICIES)
def test_R6_every_attempt_id_is_new_and_no_trajectory_has_two_open_attempts(policy):
    world = World(policy, 5, changes={"max_restarts_per_rank": 50}, faults=some_faults, after=watch).run()
    ids = [command.attempt for command in world.said(a.Dispatch)]
    assert len(ids) == len(set(ids))
    open_now: dict[int, a.AttemptId] = {}
    for _, event, commands in world.journal:
        if isinstance(event, TERMINAL):
            open_now.pop(event.attempt.trajectory, None)
        if isinstance(event, a.RankDied):
            dead = {c.attempt for c in world.said(a.Dispatch) if c.rank == event.rank}
            open_now = {key: value for key, value in open_now.items() if value not in dead}
        for command in commands:
            if isinstance(command, a.Dispatch):
                assert command.attempt.trajectory not in open_now
                open_now[command.attempt.trajectory] = command.attempt


def test_R6_a_timed_out_attempt_is_sent_again_only_after_its_abort_is_acknowledged():
    slow = lambda command, rng: "drop" if isinstance(command, a.Dispatch) and command.id % 7 == 0 else None  # noqa: E731
    world = World("disaggregated", 4, changes={"deadlines": Deadlines(generate=3.0)}, faults=slow, after=watch)
    world.run()
    asked = [command.attempt for command in world.said(a.Abort) if command.reason == "deadline"]
    assert asked, "the world dropped nothing"
    for attempt in asked:
        acknowledged = next(
            i
            for i, (_, event, commands) in enumerate(world.journal)
            if (getattr(event, "attempt", None) == attempt and isinstance(event, a.Aborted))
            or any(isinstance(c, a.Fence) for c in commands)
        )
        for _, _, commands in world.journal[:acknowledged]:
            again = [c.attempt for c in commands if isinstance(c, a.Dispatch)]
            assert (attempt.trajectory, attempt.turn, attempt.attempt + 1) not in again


def test_R7_nothing_is_sent_to_a_rank_that_is_not_active(shared_run):
    state = dict.fromkeys(range(4), "FAILED")
    for _, _, commands in shared_run.journal:
        for command in commands:
            if isinstance(command, a.RankMoved):
                state[command.rank] = command.new
            if isinstance(command, a.Dispatch):
                assert state[command.rank] == "ACTIVE"


def lie_of(command: a.Drain) -> a.RankStats:
    return a.RankStats(rank=command.rank, incarnation=1, running=3, waiting=0, kv_tokens=9, command=command.id)


def test_R7_a_drain_that_leaves_requests_behind_is_not_believed():
    world = World("time_sharing", seed=0, until=2)
    honest = world.do_Drain
    lied: list[int] = []

    def lie(command: a.Drain, delay: float) -> None:
        if lied:
            return honest(command, delay)
        lied.append(command.rank)
        world.post(0.1, lie_of(command))

    world.do_Drain = lie
    world.run()
    fences = world.said(a.Fence)
    assert [fence.rank for fence in fences] == lied
    assert "running 3" in fences[0].reason


def test_R7_memory_is_released_only_after_the_engine_s_zero_and_the_last_terminal_event(shared_run):
    open_on: Counter[int] = Counter()
    holder: dict[a.AttemptId, int] = {}
    for _, event, commands in shared_run.journal:
        if isinstance(event, TERMINAL) and event.attempt in holder:
            open_on[holder.pop(event.attempt)] -= 1
        for command in commands:
            if isinstance(command, a.Dispatch):
                holder[command.attempt] = command.rank
                open_on[command.rank] += 1
            if isinstance(command, a.Release):
                assert open_on[command.rank] == 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("faults", [None, some_faults])
def test_R8_an_attempt_goes_on_from_every_token_that_was_reported(policy, faults):
    kwargs = {"faults": faults} if faults else {}
    worlds = [World(policy, seed, changes={"max_restarts_per_rank": 50}, after=watch, **kwargs) for seed in (7, 8, 9)]
    assert sum(resumed_turns(world.run()) for world in worlds) or policy == "colocated"


def resumed_turns(world: World) -> int:
    """Count the attempts that carry tokens, checking each against all that was reported before it."""
    have: Counter[tuple[int, int]] = Counter()
    of_attempt: Counter[a.AttemptId] = Counter()
    resumed = 0
    closed: set[a.AttemptId] = set()
    rank_of: dict[a.AttemptId, int] = {}
    for _, event, commands in world.journal:
        if isinstance(event, a.Progress | a.Finished | a.Aborted) and event.attempt not in closed:
            have[event.attempt.trajectory, event.attempt.turn] += event.total - of_attempt[event.attempt]
            of_attempt[event.attempt] = event.total
        if isinstance(event, TERMINAL):
            closed.add(event.attempt)
        if isinstance(event, a.RankDied):
            closed |= {key for key, rank in rank_of.items() if rank == event.rank}
        for command in commands:
            if isinstance(command, a.Dispatch):
                rank_of[command.attempt] = command.rank
                assert command.carried == have[command.attempt.trajectory, command.attempt.turn]
                resumed += command.carried > 0
    return resumed


def test_R9_kept_ranks_are_neither_stopped_nor_starved_by_a_shrink(shared_run):
    shrinking = False
    sent = 0
    for _, _, commands in shared_run.journal:
        for command in commands:
            if isinstance(command, a.Decided) and command.decision.startswith("train"):
                shrinking = True
            if isinstance(command, a.FormGroup):
                shrinking = False
            if getattr(command, "reason", None) == "stale":
                continue
            if shrinking and isinstance(command, a.Drain | a.Abort | a.ResetCache):
                assert command.rank in (0, 1)
            sent += shrinking and isinstance(command, a.Dispatch)
    assert sent, "nothing was sent while training"


def test_R12_a_trajectory_that_waits_for_its_environment_is_never_aborted_by_a_shrink(shared_run):
    holding: set[a.AttemptId] = set()
    for _, event, commands in shared_run.journal:
        if isinstance(event, a.Aborted):
            assert event.attempt in holding
        if isinstance(event, TERMINAL):
            holding.discard(event.attempt)
        holding |= {c.attempt for c in commands if isinstance(c, a.Dispatch)}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(4))
def test_R13_every_started_trajectory_has_exactly_one_outcome(policy, seed):
    world = World(policy, seed, changes={"max_restarts_per_rank": 50}, faults=some_faults, after=watch).run()
    started = {c.trajectory for c in world.said(a.StepEnvironment)}
    settled = Counter(c.trajectory for c in world.said(a.Settled))
    assert set(settled) == started
    assert set(settled.values()) == {1}


def test_R13_an_infrastructure_failure_is_replaced_and_never_trained_on():
    broken = lambda c, rng: "fail" if isinstance(c, a.StepEnvironment) and c.trajectory in (1, 5) else None  # noqa: E731
    world = World("time_sharing", 1, faults=broken, after=watch).run()
    outcome = {c.trajectory: c.outcome for c in world.said(a.Settled)}
    assert outcome[1] == outcome[5] == Outcome.INFRA_VOID
    trained = {item.trajectory for c in world.said(a.Train) for item in c.batch}
    assert not trained & {1, 5}
    assert all(outcome[trajectory] in (Outcome.SCORED, Outcome.POLICY_FAILED) for trajectory in trained)


def test_R13_evaluation_is_scored_and_never_trained_on():
    world = World("time_sharing", 2, changes={"evaluation_episodes": 6}, after=watch).run()
    evaluated = {c.trajectory for c in world.said(a.Settled) if c.kind == "eval"}
    assert len(evaluated) == 12
    assert not evaluated & {item.trajectory for c in world.said(a.Train) for item in c.batch}
    assert all(c.greedy == (c.attempt.trajectory in evaluated) for c in world.said(a.Dispatch))


def test_R14_a_batch_does_not_wait_for_a_hung_member():
    hung = lambda c, rng: "drop" if isinstance(c, a.StepEnvironment) and c.trajectory == 0 and c.turn else None  # noqa: E731
    world = World("time_sharing", 3, until=1, faults=hung, after=watch).run()
    started_training = next(t for t, _, commands in world.journal if any(isinstance(c, a.Train) for c in commands))
    assert started_training < world.settings.deadlines.environment
    assert 0 not in {item.trajectory for c in world.said(a.Train) for item in c.batch}


def test_R14_a_group_whose_member_keeps_failing_is_voided_and_replaced_by_a_fresh_one():
    cursed = lambda c, rng: "fail" if isinstance(c, a.StepEnvironment) and (c.group, c.member) == (0, 0) else None  # noqa: E731
    world = World("disaggregated", 3, until=2, faults=cursed, after=watch).run()
    assert world.finish.ok
    assert [c.group for c in world.said(a.GroupDropped) if c.reason == "void"] == [0]


@pytest.mark.parametrize("policy", POLICIES)
def test_R15_a_batch_is_whole_groups_with_unique_members(policy):
    world = World(policy, 2, faults=some_faults, changes={"max_restarts_per_rank": 50}, after=watch).run()
    for train in world.said(a.Train):
        members = [(item.group, item.member) for item in train.batch]
        assert len(members) == len(set(members)) == 8
        assert set(Counter(item.group for item in train.batch).values()) == {2}


def test_R16_every_token_lies_in_a_segment_with_the_version_it_was_generated_under():
    mixed = 0
    for seed in range(6):
        world = World("time_sharing", seed, until=5).run()
        scheduler = Scheduler(world.settings, make_policy("time_sharing"))
        for now, event, _ in world.journal:
            watched = list(scheduler.rollouts.trajectories.open.values())
            scheduler.handle(event, now)
            for trajectory in watched:
                versions = [span.version for span in trajectory.spans]
                assert versions == sorted(versions)
                mixed += len(set(versions)) > 1
    assert mixed, "no trajectory lived through a sync"


@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0, 1.75])
def test_R17_started_minus_trained_stays_within_the_real_valued_bound(ratio):
    def bounded(world: World) -> None:
        ledger = world.scheduler.rollouts.ledger
        assert ledger.started - ledger.trained - ledger.dropped <= (1 + ratio) * ledger.batch
        check_invariants(world.scheduler)

    world = World("disaggregated", 1, changes={"async_ratio": ratio}, after=bounded).run()
    outcome = {c.trajectory: c for c in world.said(a.Settled)}
    for train in world.said(a.Train):
        ages = [train.version - outcome[item.trajectory].oldest_version for item in train.batch]
        assert max(ages) <= -(-ratio // 1)


@pytest.mark.parametrize("policy", POLICIES)
def test_R17_no_trajectory_is_born_with_an_old_version(policy):
    world = World(policy, 1, until=6, after=watch).run()
    version, begun = 0, set()
    for _, event, commands in world.journal:
        if isinstance(event, a.TrainingFinished):
            version = event.version
        for command in commands:
            if isinstance(command, a.Dispatch) and command.attempt.trajectory not in begun:
                begun.add(command.attempt.trajectory)
                assert command.version == version


def test_R17_a_sample_that_can_no_longer_be_trained_is_cancelled_where_it_runs():
    slow = lambda c, rng: "drop" if isinstance(c, a.StepEnvironment) and c.trajectory == 0 and c.turn else None  # noqa: E731
    world = World("disaggregated", 2, until=5, faults=slow, after=watch).run()
    settled = next(c for c in world.said(a.Settled) if c.trajectory == 0)
    assert (settled.outcome, settled.reason) == (Outcome.CANCELLED, "stale")
    assert settled.staleness == 2
    assert 0 in {c.trajectory for c in world.said(a.Cancel)}


@pytest.mark.parametrize("policy", POLICIES)
def test_R18_no_trajectory_is_trained_twice(policy):
    world = World(policy, 2, after=watch).run()
    trained = [item.trajectory for c in world.said(a.Train) for item in c.batch]
    assert len(trained) == len(set(trained)) == 4 * 8


@pytest.mark.parametrize("lie", ["digest", "version", "canary"])
def test_R19_a_rank_with_unproven_weights_is_fenced_before_it_serves(lie):
    world = World("time_sharing", 0, until=2, after=watch)
    load, wake = world.do_LoadWeights, world.do_WakeKV
    lied: list[int] = []

    def bad_load(command: a.LoadWeights, delay: float) -> None:
        if lied or command.rank != 1:
            return load(command, delay)
        lied.append(command.rank)
        version = command.version + (lie == "version")
        digest = "rotten" if lie == "digest" else f"v{command.version}"
        world.post(
            delay,
            a.WeightsLoaded(
                rank=1, epoch=command.epoch, version=version, digest=digest, seconds=0.1, command=command.id
            ),
        )

    def bad_wake(command: a.WakeKV, delay: float) -> None:
        if lied or command.rank != 1:
            return wake(command, delay)
        lied.append(command.rank)
        world.post(delay, a.KVReady(rank=1, epoch=command.epoch, canary_gap=float("nan"), command=command.id))

    if lie == "canary":
        world.do_WakeKV = bad_wake
    else:
        world.do_LoadWeights = bad_load
    world.run()
    assert world.finish.ok
    states = [move.new for _, move in moves(world, 1)]
    assert states[: states.index("FENCED") + 1] == ["BOOTING", "EMPTY", "LOADING", "FENCED"]
    assert "ACTIVE" in states[states.index("FENCED") :]


def test_R20_the_prefix_cache_is_reset_before_a_synced_rank_serves_again(shared_run):
    waiting: set[int] = set()
    for _, event, commands in shared_run.journal:
        if isinstance(event, a.WeightsLoaded):
            waiting.add(event.rank)
        if isinstance(event, a.KVReady):
            waiting.discard(event.rank)
        assert not any(isinstance(c, a.Dispatch) and c.rank in waiting for c in commands)


def test_R21_a_release_names_where_the_version_can_be_had(shared_run):
    releases = shared_run.said(a.Release)
    assert releases
    assert all("version" in release.recover_from for release in releases)


def test_R22_an_expand_follows_the_memory_order(shared_run):
    order: list[str] = []
    for _, event, commands in shared_run.journal:
        names = [type(event).__name__, *(type(c).__name__ for c in commands)]
        for name, message in zip(names, [event, *commands], strict=True):
            if isinstance(message, a.ReleaseTrainer):
                order.append(f"ReleaseTrainer({message.parts})")
            elif name in ("TrainingFinished", "FormGroup", "Sync", "WakeKV") and (not order or order[-1] != name):
                order.append(name)
    start = order.index("TrainingFinished")
    cycle = ["TrainingFinished", "ReleaseTrainer(state)", "FormGroup", "Sync", "ReleaseTrainer(all)", "WakeKV"]
    assert order[start : start + 6] == cycle


def test_R23_a_member_that_dies_in_a_sync_does_not_hold_the_others():
    killed: list[int] = []

    def kill(command, rng):
        if isinstance(command, a.LoadWeights) and command.rank == 3 and command.version == 1 and not killed:
            killed.append(3)
            return "die"
        return None

    world = World("time_sharing", 0, until=3, faults=kill, after=watch).run()
    assert killed and world.finish.ok
    loaded = {event.rank for _, event, _ in world.journal if isinstance(event, a.WeightsLoaded) and event.version == 1}
    assert {0, 1, 2} <= loaded


def test_R23_a_group_that_cannot_be_formed_is_formed_anew_under_another_epoch():
    failed: list[int] = []

    def fail(command, rng):
        if isinstance(command, a.FormGroup) and command.version == 1 and not failed:
            failed.append(command.epoch)
            return "fail"
        return None

    world = World("time_sharing", 0, until=2, faults=fail, after=watch).run()
    epochs = [c.epoch for c in world.said(a.FormGroup) if c.version == 1]
    assert epochs[0] == failed[0] < epochs[1]
    assert world.finish.ok


BREAKABLE = [
    a.Drain,
    a.Release,
    a.LoadWeights,
    a.WakeKV,
    a.ResetCache,
    a.FormGroup,
    a.Sync,
    a.Restart,
    a.Dispatch,
    a.Abort,
    a.StepEnvironment,
]


@pytest.mark.parametrize("fault", ["drop", "fail", "die"])
@pytest.mark.parametrize("kind", BREAKABLE)
def test_R24_a_step_that_fails_half_way_is_completed_or_undone(kind, fault):
    seen: list[a.Command] = []

    def twice(command, rng):
        if isinstance(command, kind):
            seen.append(command)
            return fault if len(seen) in (2 + seed, 3 + seed) else None
        return None

    for seed in range(3):
        seen.clear()
        world = World("time_sharing", seed, until=3, faults=twice, after=watch).run()
        assert len(seen) > seed + 1 or kind is a.Abort
        assert world.finish.ok, world.finish.reason
        assert len(world.said(a.Train)) == 3


@pytest.mark.parametrize("kind", [a.Train, a.ReleaseTrainer, a.Checkpoint])
def test_R24_a_run_whose_trainer_fails_ends_saying_so(kind):
    world = World("time_sharing", 0, faults=lambda c, rng: "fail" if isinstance(c, kind) else None, after=watch).run()
    assert not world.finish.ok
    assert "injected" in world.finish.reason


def test_R26_a_silent_party_is_named():
    world = World("time_sharing", 0, faults=lambda c, rng: "drop" if isinstance(c, a.Train) else None).run()
    assert not world.finish.ok
    assert "trainer did not answer Train" in world.finish.reason


@pytest.mark.parametrize("policy", POLICIES)
def test_R26_every_command_that_expects_an_answer_says_from_whom_and_until_when(policy):
    world = World(policy, 0).run()
    asks_nothing = (a.SetTimer, a.Finish, a.Cancel, a.RankMoved, a.Settled, a.Decided, a.GroupDropped)
    for now, _, commands in world.journal:
        for command in commands:
            assert (command.due is None) == (command.awaits is None) == isinstance(command, asks_nothing)
            assert command.due is None or command.due > now


@pytest.mark.parametrize("policy", POLICIES)
def test_R26_a_scheduler_is_finished_when_it_has_said_so_and_says_nothing_more(policy):
    world = World(policy, 0)
    assert world.scheduler.finished is False
    world.run()
    assert world.scheduler.finished is True
    assert world.scheduler.handle(a.TrajectoriesWanted(until=99), world.now + 1.0) == []


def test_R28_resuming_at_a_version_is_an_ordinary_start():
    world = World("time_sharing", 0, until=6, first_version=4, after=watch).run()
    assert [c.version for c in world.said(a.Train)] == [4, 5]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(3))
def test_R29_a_journal_fed_to_a_fresh_core_gives_the_same_commands(policy, seed):
    world = World(policy, seed, changes={"max_restarts_per_rank": 50}, faults=some_faults).run()
    fresh = Scheduler(world.settings, make_policy(policy))
    for now, event, commands in world.journal:
        event = a.decode(json.loads(json.dumps(a.encode(event))))
        again = fresh.handle(event, now)
        assert again == commands
        assert [a.decode(json.loads(json.dumps(a.encode(c)))) for c in again] == commands


def test_R29_a_decision_carries_the_figures_behind_it(shared_run):
    decisions = [decided for decided in shared_run.said(a.Decided) if decided.decision.startswith("train")]
    assert len(decisions) == len(shared_run.said(a.Train))
    assert all(decision.figures["complete_groups"] >= 4 for decision in decisions)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("when", [5, 60, 150, 300])
def test_a_user_stop_settles_saves_and_finishes(policy, when):
    world = World(policy, 1, until=50)

    def stop(world: World) -> None:
        if len(world.journal) == when:
            world.post(0.0, a.UserStop())
        check_invariants(world.scheduler)

    world.after = stop
    world.run()
    assert world.finish.ok and "stopped by the user" in world.finish.reason
    assert not world.scheduler.rollouts.trajectories.open


def test_a_run_without_a_single_working_rank_ends_saying_so():
    world = World("time_sharing", 0, faults=lambda c, rng: "die" if isinstance(c, a.Restart) else None).run()
    assert not world.finish.ok
    assert "no rollout rank" in world.finish.reason


def test_an_event_outside_the_alphabet_is_a_type_error():
    scheduler = Scheduler(settings_for("time_sharing"), make_policy("time_sharing"))
    with pytest.raises(TypeError, match="Event"):
        scheduler.handle(a.Event(), 0.0)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("limit", [45, 60, 75, 110])
@pytest.mark.parametrize("seed", range(4))
def test_R6_a_context_without_room_ends_its_episode_and_leaves_no_count_behind(policy, limit, seed):
    changes = {"max_context_tokens": limit, "max_restarts_per_rank": 50}
    world = World(policy, seed, changes=changes, faults=some_faults, after=watch).run()
    full = [c for c in world.said(a.Settled) if c.reason == "context"]
    assert full and all(c.outcome == Outcome.POLICY_FAILED for c in full)
    assert world.scheduler.snapshot().queued == 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("limit", [15, 20])
def test_R13_a_prompt_without_room_is_void_and_a_run_of_nothing_else_ends_saying_so(policy, limit):
    world = World(policy, changes={"max_context_tokens": limit}, after=watch).run()
    ends = world.said(a.Settled)
    assert {c.outcome for c in ends if c.reason.startswith("prompt")} == {Outcome.INFRA_VOID}
    assert Outcome.POLICY_FAILED not in {c.outcome for c in ends}
    assert not world.finish.ok
    assert f"prompt: 20 tokens, no room in {limit}" in world.finish.reason
    assert "32 of the last 32 episodes are void, 32 of them" in world.finish.reason


@pytest.mark.parametrize("seed", range(4))
def test_R14_a_batch_that_is_completed_inside_a_dispatch_is_trained_in_the_same_event(seed):
    """Episodes whose context is full end while turns are dispatched, after the control side was asked."""

    def nothing_to_train_is_left(world: World) -> None:
        control = world.scheduler.control
        between = world.scheduler.ranks.in_state(RankState.BOOTING, RankState.EMPTY, RankState.FENCED)
        if control.stage == "IDLE" and 0 <= control.version < world.until and not between:
            assert not world.scheduler.policy.decide(control.training.desk.view(control.version, True)).train

    world = World("time_sharing", seed, changes={"max_context_tokens": 45}, after=nothing_to_train_is_left).run()
    assert len(world.said(a.Train)) == world.until
