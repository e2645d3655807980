"""The virtual-time driver carries commands out as the alphabet says, and catches a core that asks the impossible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from roll_ts.core import alphabet as a
from roll_ts.core.policies import make_policy
from roll_ts.core.scheduler import Scheduler
from roll_ts.observe.journal import Journal
from roll_ts.observe.report import make_report
from roll_ts.sim.driver import Driver
from roll_ts.sim.errors import ContractBroken, Stalled
from roll_ts.sim.faults import Fault, Faults, Kill
from roll_ts.sim.workload import Workload
from tests.roll_ts.sim.small import COST, POLICIES, WORK, run, settings_for


def said(journal: Journal, kind: type[a.Command]) -> list[a.Command]:
    return [command for _, command in journal.commands() if isinstance(command, kind)]


def heard(journal: Journal, kind: type[a.Event]) -> list[a.Event]:
    return [entry.event for entry in journal.entries if isinstance(entry.event, kind)]


def end_of(journal: Journal) -> a.Finish:
    (finish,) = said(journal, a.Finish)
    assert isinstance(finish, a.Finish)
    return finish


def states_entered(journal: Journal, state: str) -> Counter[int]:
    moves = [command for _, command in journal.commands() if isinstance(command, a.RankMoved)]
    return Counter(move.rank for move in moves if move.new == state)


@pytest.mark.parametrize("policy", POLICIES)
def test_each_policy_reaches_the_last_version_without_generating_a_token_twice(policy: str) -> None:
    report = make_report(run(policy))
    assert (report.ok, len(report.steps)) == (True, 3)
    assert (report.tokens.regenerated, report.tokens.lost, report.late_tokens, report.open) == (0, 0, 0, 0)
    assert report.cycles == (0 if policy == "disaggregated" else 3)


def test_equal_arguments_give_the_equal_journal() -> None:
    assert run() == run()


@pytest.mark.parametrize("policy", POLICIES)
def test_the_events_of_a_journal_give_a_fresh_core_the_same_commands(policy: str) -> None:
    journal = run(policy, faults=Faults(kills=(Kill(30.0, 1),), environment_failure_rate=0.05))
    core = Scheduler(journal.header.settings, make_policy(policy))
    for entry in journal.entries:
        assert tuple(core.handle(entry.event, entry.t)) == entry.commands


def contents(journal: Journal) -> dict[tuple[int, int], list[int]]:
    """Reply lengths by turn of every scored training member."""
    who = {
        item.trajectory: (item.group, item.member)
        for _, item in journal.commands()
        if isinstance(item, a.Settled) and (item.kind, item.outcome) == ("train", "scored")
    }
    turns: Counter[tuple[int, int]] = Counter()
    attempts: Counter[a.AttemptId] = Counter()
    for event in (entry.event for entry in journal.entries):
        if isinstance(event, a.Progress | a.Finished | a.Aborted):
            turns[event.attempt.trajectory, event.attempt.turn] += event.total - attempts[event.attempt]
            attempts[event.attempt] = event.total
    found: dict[tuple[int, int], list[int]] = {}
    for (trajectory, _), tokens in sorted(turns.items()):
        if trajectory in who:
            found.setdefault(who[trajectory], []).append(tokens)
    return found


def test_every_policy_plays_the_same_episodes() -> None:
    plays = [contents(run(policy)) for policy in POLICIES]
    shared = plays[0].keys() & plays[1].keys() & plays[2].keys()
    assert len(shared) >= 9
    for who in shared:
        assert plays[0][who] == plays[1][who] == plays[2][who]


def test_slower_decoding_makes_a_longer_run() -> None:
    slow = replace(COST, step_seconds=COST.step_seconds * 4)
    assert run(cost=slow).end > 1.5 * run().end


def test_evaluation_plays_the_same_greedy_episodes_before_and_after() -> None:
    journal = run(evaluation_episodes=6)
    report = make_report(journal)
    assert [(e.version, e.episodes) for e in report.evaluations] == [(0, 6), (3, 6)]
    assert report.evaluations[0].success <= report.evaluations[1].success
    greedy = [d for d in said(journal, a.Dispatch) if isinstance(d, a.Dispatch) and d.greedy]
    assert greedy


def test_a_killed_rank_loses_only_what_it_had_not_reported_and_comes_back() -> None:
    journal = run(faults=Faults(kills=(Kill(25.0, 3),)))
    report = make_report(journal)
    (death,) = heard(journal, a.RankDied)
    assert isinstance(death, a.RankDied) and death.rank == 3
    assert report.ok and report.tokens.lost == death.lost_tokens > 0 and report.tokens.regenerated == 0
    assert states_entered(journal, "BOOTING")[3] == 2 and states_entered(journal, "ACTIVE")[3] >= 2


@pytest.mark.parametrize(
    ("fault", "rank"),
    [
        (Fault("drop", "Drain", rank=0), 0),
        (Fault("drop", "Release", rank=1), 1),
        (Fault("error", "Release", rank=1), 1),
        (Fault("kill", "Drain", rank=0), 0),
        (Fault("drop", "LoadWeights", rank=2), 2),
        (Fault("kill", "LoadWeights", nth=1, rank=0), 0),
        (Fault("wrong_digest", "LoadWeights", nth=1, rank=3), 3),
        (Fault("bad_canary", "WakeKV", nth=1, rank=0), 0),
        (Fault("bad_canary", "ResetCache", rank=2), 2),
        (Fault("drop", "ResetCache", rank=2), 2),
        (Fault("drop", "Restart", rank=1), 1),
    ],
)
def test_a_rank_that_fails_a_control_command_is_replaced_and_the_run_goes_on(fault: Fault, rank: int) -> None:
    report = make_report(journal := run(faults=Faults((fault,)), until=4))
    assert report.ok and len(report.steps) == 4 and report.tokens.regenerated == 0
    assert {death.rank for death in heard(journal, a.RankDied) if isinstance(death, a.RankDied)} == {rank}


@pytest.mark.parametrize("command", ["FormGroup", "Sync"])
def test_a_weight_group_that_breaks_is_formed_anew(command: str) -> None:
    journal = run(faults=Faults((Fault("error", command, nth=1),)))
    assert end_of(journal).ok
    assert len(said(journal, a.FormGroup)) > len(said(journal, a.Train)) + 1


def test_a_late_answer_within_its_deadline_costs_time_only() -> None:
    plain = run()
    late = run(faults=Faults((Fault("delay", "Release", rank=0, seconds=20.0),)))
    assert end_of(late).ok and not heard(late, a.RankDied)
    assert make_report(late).phases["shrink"] == pytest.approx(make_report(plain).phases["shrink"] + 20.0)


def test_broken_and_hanging_environments_are_void_and_played_anew() -> None:
    report = make_report(run(faults=Faults(environment_failure_rate=0.1, environment_hang_rate=0.02)))
    assert report.ok and report.outcomes["infra-void"] > 0
    assert all(step.samples == 9 for step in report.steps)


def test_a_lost_request_is_aborted_at_its_deadline_and_its_rank_fenced() -> None:
    journal = run(faults=Faults((Fault("drop", "Dispatch", nth=5), Fault("drop", "Abort"))))
    assert end_of(journal).ok and make_report(journal).tokens.regenerated == 0
    assert len(heard(journal, a.RankDied)) == 1


def test_R27_a_failed_training_step_replaces_the_trainer_and_its_version_is_not_lost() -> None:
    journal = run(faults=Faults((Fault("error", "Train", nth=1),)))
    assert end_of(journal).ok
    starts = [c for _, c in journal.commands() if isinstance(c, a.StartTrainer)]
    assert [c.resume_from for c in starts] == [None, "checkpoints/1"]
    assert [step.version for step in make_report(journal).steps] == [0, 1, 2]


def test_R36_a_trainer_that_always_fails_ends_the_run_and_its_version_is_saved() -> None:
    faults = Faults(tuple(Fault("error", "Train", nth=nth) for nth in range(1, 9)))
    journal = run(faults=faults)
    assert not end_of(journal).ok
    assert "injected" in end_of(journal).reason and "version 1 is saved at checkpoints/1" in end_of(journal).reason


def test_R27_a_trainer_that_dies_in_a_step_comes_back_and_the_step_is_done_again() -> None:
    journal = run(faults=Faults((Fault("kill", "Train", nth=1),)))
    assert end_of(journal).ok
    assert len(heard(journal, a.TrainerDied)) == 1
    assert make_report(journal).open == 0


def test_a_person_can_stop_the_run() -> None:
    journal = run(script=((20.0, a.UserStop()),))
    assert end_of(journal).ok and "stopped" in end_of(journal).reason
    assert make_report(journal).open == 0


def test_a_resumed_trainer_starts_from_its_version() -> None:
    report = make_report(run(start_version=5, until=7))
    assert [step.version for step in report.steps] == [5, 6]


def test_the_watcher_sees_every_entry_with_the_scheduler_behind_it() -> None:
    seen: list[tuple[float, str]] = []
    journal = run(after=lambda scheduler, entry: seen.append((entry.t, scheduler.snapshot().stage)))
    assert [t for t, _ in seen] == [entry.t for entry in journal.entries]
    assert {"IDLE", "SHRINKING", "TRAINING"} <= {stage for _, stage in seen}


def test_a_run_over_its_limit_of_time_says_what_it_waits_for() -> None:
    with pytest.raises(Stalled, match=r"now must be at most 100\.0, got .*unanswered.*Train \(awaits trainer"):
        run(faults=Faults((Fault("drop", "Train"),)), max_seconds=100.0)


class Scripted:
    """In the scheduler's place: says the next line of its script whenever something happens."""

    def __init__(self, *lines: list[a.Command]) -> None:
        self.lines = list(lines)

    def handle(self, event: a.Event, now: float) -> list[a.Command]:
        """Whatever comes next."""
        return self.lines.pop(0) if self.lines else []


def drive(
    *lines: list[a.Command], prepare: Callable[[Driver], None] = lambda driver: None, work: Workload = WORK
) -> Driver:
    driver = Driver(Scripted(*lines), settings_for("time_sharing"), COST, work)
    for engine in driver.fleet.engines:
        engine.alive, engine.weights, engine.kv_awake = True, 0, True
    driver.trainer.incarnation, driver.trainer.held = 1, "parameters"
    prepare(driver)
    driver.deliver(a.TrajectoriesWanted(until=1))
    while driver.clock.step():
        pass
    return driver


def reset(ident: int, trajectory: int = 0) -> a.StepEnvironment:
    return a.StepEnvironment(id=ident, trajectory=trajectory, turn=0, seed=0, kind="train", group=0, member=trajectory)


def dispatch(ident: int, carried: int = 0, rank: int = 0, context: int | None = None) -> a.Dispatch:
    prompt = WORK.episode("train", 0, 0).prompt_tokens
    return a.Dispatch(
        id=ident, attempt=a.AttemptId(0, 1, ident), rank=rank, context_tokens=context or prompt, carried=carried,
        max_new_tokens=2048, greedy=False, version=0,
    )  # fmt: skip


def settled(ident: int, trajectory: int) -> a.Settled:
    return a.Settled(
        id=ident, trajectory=trajectory, kind="train", group=0, member=0, outcome="scored", reason="done", reward=1.0,
        success=True, turns=1, tokens=1, oldest_version=0, staleness=0,
    )  # fmt: skip


def release(ident: int) -> a.Release:
    return a.Release(id=ident, rank=0, epoch=1, recover_from="trainer")


def train(ident: int, *trajectories: int) -> a.Train:
    batch = tuple(a.Assignment(0, member, player) for member, player in enumerate(trajectories))
    return a.Train(id=ident, epoch=1, version=0, batch=batch)


def sleep_lent(driver: Driver) -> None:
    for engine in driver.fleet.engines[:2]:
        engine.discard()


def test_a_dispatch_is_acknowledged_and_ends_once_with_the_tokens_of_its_turn() -> None:
    driver = drive([reset(0)], [dispatch(1)])
    kinds = [type(entry.event).__name__ for entry in driver.entries[2:]]
    assert kinds[0] == "SubmitAcked" and kinds[-1] == "Finished" and set(kinds[1:-1]) <= {"Progress"}
    assert driver.episodes.play(0).saved == WORK.episode("train", 0, 0).replies[0]


def test_a_reply_over_the_limit_ends_for_its_length() -> None:
    driver = drive([reset(0)], [replace(dispatch(1), max_new_tokens=3)])
    assert driver.entries[-1].event == a.Finished(attempt=a.AttemptId(0, 1, 1), total=3, reason="length", cached=0)


def test_a_drain_reports_every_end_and_then_zero() -> None:
    drain = a.Drain(id=2, rank=0, epoch=1)
    driver = drive([reset(0)], [dispatch(1)], [drain])
    aborted, stats = driver.entries[-2].event, driver.entries[-1].event
    assert isinstance(aborted, a.Aborted)
    assert stats == a.RankStats(command=2, rank=0, incarnation=0, running=0, waiting=0, kv_tokens=0)


def test_a_timer_replaces_the_one_before() -> None:
    driver = drive([a.SetTimer(id=0, at=5.0), a.SetTimer(id=1, at=7.0)])
    assert [entry.t for entry in driver.entries[1:]] == [7.0]


def test_a_cancelled_environment_says_nothing_more() -> None:
    driver = drive([reset(0), a.Cancel(id=1, trajectory=0)])
    assert len(driver.entries) == 1


@pytest.mark.parametrize(
    ("lines", "prepare", "reason"),
    [
        ([[reset(0)], [dispatch(1)]], sleep_lent, r"servable, got False .*turn=1.*kv_awake=False"),
        ([[reset(0)], [dispatch(1, carried=4)]], lambda d: None, r"carried must lie in \[0, 0\], got 4"),
        ([[reset(0)], [dispatch(1, context=7)]], lambda d: None, "got command.context_tokens=7"),
        ([[settled(0, 0), settled(1, 0)]], lambda d: None, "got 0 .*a trajectory has one outcome"),
        ([[settled(0, 0), train(1, 0)]], lambda d: None, r"holders must be empty, got \[0, 1\]"),
        ([[train(0, 0)]], sleep_lent, r"untrainable must be empty, got \[0\]"),
        ([[reset(0)], [settled(1, 0), train(2, 0), train(3, 0)]], sleep_lent, "one step at a time"),
        ([[reset(0)], [dispatch(1)], [release(2)]], lambda d: None, "running=1, waiting=0"),
        ([[a.WakeKV(id=0, rank=0, epoch=1, version=0)]], lambda d: None, "got 'parameters' .*R22"),
        (
            [[a.WakeKV(id=0, rank=2, epoch=1, version=3)]],
            lambda d: None,
            r"command.version \(3\), got 0 .*rank=2",
        ),
        (
            [[a.LoadWeights(id=0, rank=2, epoch=1, version=0)]],
            lambda d: None,
            r"epoch must be a key .* 1 \(who=2\)",
        ),
        ([[a.Restart(id=0, rank=2, incarnation=1)]], lambda d: None, "a restart needs a dead process"),
        (
            [[a.Sync(id=0, epoch=1, version=4, members=(2,))]],
            lambda d: None,
            r"trainer.version \(0\), got 4",
        ),
    ],
)
def test_the_impossible_is_refused(
    lines: list[list[a.Command]], prepare: Callable[[Driver], None], reason: str
) -> None:
    with pytest.raises(ContractBroken, match=reason):
        drive(*lines, prepare=prepare)


def test_tokens_that_are_not_carried_are_counted_as_generated_again() -> None:
    abort = a.Abort(id=2, attempt=a.AttemptId(0, 1, 1), rank=0, reason="x")
    long = replace(WORK, reply_tokens=WORK.reply_tokens.scaled(20))
    driver = drive([reset(0)], [dispatch(1)], [], [abort], [dispatch(3, carried=0)], work=long)
    events = [entry.event for entry in driver.entries]
    first = [e for e in events if isinstance(e, a.Progress | a.Aborted) and e.attempt == abort.attempt]
    saved = max(event.total for event in first)
    assert driver.episodes.regenerated == saved > 0


def test_an_idle_world_is_a_stall() -> None:
    driver = Driver(Scripted(), settings_for("time_sharing"), COST, WORK)
    driver.deliver(a.TrajectoriesWanted(until=1))
    with pytest.raises(Stalled, match="nothing more will happen"):
        driver.run(max_seconds=10.0, max_events=10)
