"""Histories in which the control side went wrong, or could, each with what must come of it (C3-C9, C14-C21)."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from roll_ts.core import alphabet as a
from roll_ts.core.policies.base import Decision, View
from roll_ts.core.policies.time_sharing import TimeSharing
from roll_ts.core.settings import Deadlines
from tests.roll_ts.core.scenes import Scene, apart, shared

QUICK = Deadlines(fence=0.02, kv_ready=0.02, release=0.02, quarantine=0.05)
"""For scenes in which an event takes a millisecond."""


def at_version(version: int):
    return lambda scene: scene.scheduler.control.version == version


def idle(scene: Scene) -> bool:
    return scene.scheduler.control.stage == "IDLE"


def stage(name: str):
    return lambda scene: scene.scheduler.control.stage == name


def fenced(scene: Scene) -> list[int]:
    return [command.rank for command in scene.of(a.Fence)]


# C3, C4: a person's stop


@pytest.mark.parametrize("name", ["FORMING", "QUIESCING", "LOADING", "TRAINING", "FREEING", "CLEARING", "WAKING"])
def test_R36_a_stop_in_any_stage_saves_what_was_trained_and_ends_well(name):
    scene = Scene(shared(4, 2), async_ratio=1.0).begin(until=5)
    scene.play(
        until=lambda s: s.scheduler.control.version >= 1 and stage(name)(s) if name != "TRAINING" else stage(name)(s)
    )
    assert scene.scheduler.control.stage == name
    scene.tell(a.UserStop())
    forming = [command for command in scene.asked if isinstance(command, a.FormGroup)]
    for command in forming:
        scene.tell(a.CommandFailed(command=command.id, error="too late"))
    scene.run()
    assert scene.finish.ok and "stopped by the user" in scene.finish.reason
    saved = [command.version for command in scene.of(a.Checkpoint)]
    assert saved and saved[-1] == scene.scheduler.control.version


def test_C4_a_stop_while_the_trainer_trains_forms_no_group():
    scene = Scene(apart(4), "disaggregated").begin(until=5).play(until=stage("TRAINING"))
    groups = len(scene.of(a.FormGroup))
    scene.tell(a.UserStop())
    scene.run()
    assert scene.finish.ok and len(scene.of(a.FormGroup)) == groups
    assert [command.version for command in scene.of(a.Checkpoint)] == [1]


# C5-C7, C17: who is at fault when a weight group fails


def bad_in_groups(scene: Scene, bad: set[int]) -> None:
    """Every group with a bad rank in it fails while it loads, and nobody can say why."""

    def sync(c: a.Sync) -> a.Event:
        if bad & set(c.members):
            return a.CommandFailed(command=c.id, error="the group broke")
        return a.WeightsSent(command=c.id, epoch=c.epoch, version=c.version)

    def load(c: a.LoadWeights) -> a.Event | None:
        members = next(g.members for g in reversed(scene.of(a.FormGroup)) if g.epoch == c.epoch)
        if bad & set(members):
            return a.CommandFailed(command=c.id, error="the group broke")
        return scene.well(c)

    scene.answers |= {a.Sync: sync, a.LoadWeights: load}


@pytest.mark.parametrize("ranks", [2, 3, 8, 160])
@pytest.mark.parametrize("which", ["first", "middle", "last"])
def test_C5_R32_one_rank_that_no_group_survives_is_found_by_halves_and_nobody_else_is_fenced(ranks, which):
    bad = {"first": 0, "middle": ranks // 2, "last": ranks - 1}[which]
    scene = Scene(apart(ranks), "disaggregated", max_restarts_per_rank=0)
    bad_in_groups(scene, {bad})
    scene.begin(until=2).run()
    assert scene.finish.ok, scene.finish.reason
    assert fenced(scene) == [bad]
    assert not scene.of(a.FenceTrainer)
    first = next(i for i, c in enumerate(scene.said) if isinstance(c, a.Fence))
    tries = sum(isinstance(c, a.FormGroup) for c in scene.said[:first]) - 1
    assert tries <= math.ceil(math.log2(ranks)) + 2


@pytest.mark.parametrize("bad", [{1, 2}, {0, 15}, {3, 4, 12}])
def test_R32_several_bad_ranks_are_found_and_no_innocent_is_fenced(bad):
    scene = Scene(apart(16), "disaggregated", max_restarts_per_rank=0)
    bad_in_groups(scene, bad)
    scene.begin(until=2).run()
    assert scene.finish.ok, scene.finish.reason
    assert set(fenced(scene)) == bad


def test_R32_a_group_that_breaks_once_for_no_reason_fences_nobody():
    scene = Scene(apart(16), "disaggregated")
    broken: list[int] = []

    def sync(c: a.Sync) -> a.Event:
        if not broken:
            broken.append(c.epoch)
            return a.CommandFailed(command=c.id, error="a moment's trouble")
        return scene.well(c)

    def load(c: a.LoadWeights) -> a.Event:
        if c.epoch in broken:
            return a.CommandFailed(command=c.id, error="a moment's trouble")
        return scene.well(c)

    scene.answers |= {a.Sync: sync, a.LoadWeights: load}
    scene.begin(until=1).run()
    assert scene.finish.ok and not fenced(scene) and not scene.of(a.FenceTrainer)


def test_C6_R23_three_deaths_in_three_broadcasts_fence_no_healthy_rank():
    scene = Scene(apart(160), "disaggregated", max_restarts_per_rank=0)
    victims = [5, 70, 159]
    done: list[int] = []

    def load(c: a.LoadWeights) -> a.Event | None:
        if len(done) < 3 and c.rank == victims[len(done)]:
            done.append(c.rank)
            dead[c.epoch] = c.rank
            return a.RankDied(rank=c.rank, incarnation=1, reason="out of memory")
        return a.CommandFailed(command=c.id, error="broken") if c.epoch in epochs_of_death(c) else scene.well(c)

    dead: dict[int, int] = {}

    def epochs_of_death(c: a.LoadWeights) -> set[int]:
        members = next(g.members for g in reversed(scene.of(a.FormGroup)) if g.epoch == c.epoch)
        doomed = len(done) < 3 and victims[len(done)] in members
        return {c.epoch} if doomed or c.epoch in dead else set()

    scene.answers |= {
        a.LoadWeights: load,
        a.Sync: lambda c: (
            a.CommandFailed(command=c.id, error="broken") if c.epoch in dead or len(done) < 3 else scene.well(c)
        ),
    }
    scene.begin(until=1).run()
    assert scene.finish.ok and done == victims
    assert fenced(scene) == []


def test_C7_R32_a_trainer_that_hangs_in_sync_is_charged_and_no_rank_is():
    scene = Scene(apart(16), "disaggregated")
    hung = lambda c: None if scene.scheduler.control.trainer.incarnation == 1 else scene.well(c)  # noqa: E731
    scene.answers |= {a.Sync: hung, a.LoadWeights: hung}
    scene.begin(until=2).run()
    assert fenced(scene) == []
    assert len(scene.of(a.FenceTrainer)) == 1
    assert scene.finish.ok, scene.finish.reason


def test_R32_a_trainer_that_never_says_it_has_sent_is_charged_though_all_have_loaded():
    scene = Scene(apart(4), "disaggregated")
    hung = lambda c: None if scene.scheduler.control.trainer.incarnation == 1 else scene.well(c)  # noqa: E731
    scene.answers |= {a.Sync: hung}
    scene.begin(until=2).run()
    assert fenced(scene) == []
    assert len(scene.of(a.FenceTrainer)) == 1
    assert scene.finish.ok, scene.finish.reason


def test_C7_R36_a_trainer_that_hangs_in_every_sync_ends_the_run_with_its_version_saved():
    scene = Scene(apart(4), "disaggregated", max_trainer_restarts=1)
    late = lambda c: None if c.version >= 1 else scene.well(c)  # noqa: E731
    scene.answers |= {a.Sync: late, a.LoadWeights: late}
    scene.begin(until=3).run()
    assert not scene.finish.ok
    assert "version 1 is saved at 1" in scene.finish.reason


def test_R32_whom_a_reply_names_is_fenced_and_the_others_go_on_at_once():
    scene = Scene(apart(8), "disaggregated", max_restarts_per_rank=0)

    def form(c: a.FormGroup) -> a.Event:
        if 3 in c.members:
            return a.CommandFailed(command=c.id, error="rank 3 does not come", culprits=("rank:3",))
        return scene.well(c)

    scene.answers |= {a.FormGroup: form}
    scene.begin(until=1).run()
    assert scene.finish.ok and fenced(scene) == [3] and len(scene.of(a.FormGroup)) <= 4


def test_R32_a_member_that_blames_all_the_others_is_not_believed():
    scene = Scene(apart(8), "disaggregated", max_restarts_per_rank=0)
    everybody = tuple(f"rank:{rank}" for rank in range(8) if rank != 2)

    def load(c: a.LoadWeights) -> a.Event:
        if c.rank == 2:
            return a.CommandFailed(command=c.id, error="I see nobody", culprits=everybody)
        return scene.well(c)

    scene.answers |= {a.LoadWeights: load}
    scene.begin(until=1).run()
    assert scene.finish.ok and set(fenced(scene)) <= {2}


def test_C17_R23_a_death_known_while_a_group_forms_ends_the_try_at_once():
    scene = Scene(apart(4), "disaggregated").begin()
    scene.play(until=lambda s: bool(s.of(a.FormGroup)))
    first = scene.take(a.FormGroup)
    said = scene.tell(a.RankDied(rank=2, incarnation=1, reason="gone"))
    again = [command for command in said if isinstance(command, a.FormGroup)]
    assert [command.members for command in again] == [(0, 1, 3)] and again[0].epoch > first.epoch
    before = scene.scheduler.snapshot().late_answers
    scene.tell(a.GroupFormed(command=first.id, epoch=first.epoch))
    assert scene.scheduler.snapshot().late_answers == before + 1


# C8, C9: quarantine and incarnations


def test_C8_R34_a_process_that_cannot_be_confirmed_dead_is_quarantined_and_the_run_goes_on():
    scene = Scene(shared(4, 2), answers={a.Fence: lambda c: None}, deadlines=QUICK).begin(until=9)
    scene.play(until=idle)
    scene.answers[a.ResetCache] = lambda c: None if c.rank == 3 else scene.well(c)
    scene.run()
    assert scene.finish.ok, scene.finish.reason
    assert fenced(scene) == [3] and scene.state(3) == "QUARANTINED"
    assert scene.scheduler.leases.held_by(3) is not None
    assert [c.rank for c in scene.of(a.Restart)].count(3) == 1


def test_R34_a_late_confirmation_frees_the_devices_and_the_rank_comes_back():
    scene = Scene(shared(4, 2), answers={a.Fence: lambda c: None}, deadlines=QUICK).begin(until=50)
    scene.play(until=idle)
    scene.answers[a.ResetCache] = lambda c: None if c.rank == 3 else scene.well(c)
    scene.play(until=lambda s: s.state(3) == "QUARANTINED")
    assert scene.state(3) == "QUARANTINED"
    del scene.answers[a.ResetCache]
    scene.tell(a.RankDied(rank=3, incarnation=1, reason="its node was switched off"))
    assert scene.state(3) == "BOOTING"
    scene.play(until=lambda s: s.state(3) == "ACTIVE")
    assert scene.state(3) == "ACTIVE"


def test_R34_a_run_whose_training_devices_cannot_be_confirmed_free_ends_with_its_version_saved():
    scene = Scene(shared(4, 2), answers={a.Fence: lambda c: None}, deadlines=QUICK).begin(until=9)
    scene.play(until=at_version(2))
    scene.answers[a.Release] = lambda c: None if c.rank == 1 else scene.well(c)
    scene.run()
    assert not scene.finish.ok
    assert "rank 1" in scene.finish.reason and "saved at 2" in scene.finish.reason


def test_R34_the_trainer_is_not_started_beside_a_process_that_may_still_live():
    limits = Deadlines(fence=0.02, release=0.02, quarantine=5.0)
    scene = Scene(shared(4, 2), answers={a.Fence: lambda c: None}, deadlines=limits).begin(until=9)
    scene.play(until=at_version(1))
    scene.answers[a.Release] = lambda c: None if c.rank == 1 else scene.well(c)
    while scene.state(1) != "QUARANTINED":
        scene.play(until=lambda s: s.state(1) == "QUARANTINED")
        scene.wait()
    del scene.answers[a.Release]
    scene.tell(a.TrainerDied(incarnation=1, reason="killed"))
    assert len(scene.of(a.StartTrainer)) == 1
    scene.tell(a.RankDied(rank=1, incarnation=1, reason="its node was switched off"))
    assert len(scene.of(a.StartTrainer)) == 2


def test_C9_R33_the_answer_of_a_fence_to_an_earlier_incarnation_changes_nothing():
    scene = Scene(apart(2), "disaggregated").begin(until=5)
    scene.play(until=idle)
    scene.answers[a.Fence] = lambda c: None
    scene.scheduler.control.fence(1, "it is silent")
    scene.tell(a.RankStats(rank=0, incarnation=1, running=0, waiting=0, kv_tokens=0))
    fence = scene.take(a.Fence)
    scene.tell(a.RankDied(rank=1, incarnation=1, reason="died by itself"))
    assert scene.state(1) == "BOOTING" and scene.lives[1] == 2
    before, late = scene.scheduler.save(), scene.scheduler.snapshot().late_answers
    said = scene.tell(a.RankDied(command=fence.id, rank=1, incarnation=1, reason="it is silent"))
    assert scene.state(1) == "BOOTING" and not [c for c in said if isinstance(c, a.Restart | a.Fence)]
    assert scene.scheduler.snapshot().late_answers == late + 1
    assert before != scene.scheduler.save()


@pytest.mark.parametrize(
    "event",
    [
        a.RankDied(rank=1, incarnation=7, reason="of another life"),
        a.RankStats(rank=1, incarnation=7, running=9, waiting=9, kv_tokens=9),
        a.TrainerDied(incarnation=7, reason="of another life"),
        a.TrainerReady(incarnation=7, version=3, digest="v3"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_R33_the_word_of_another_incarnation_is_counted_and_dropped(event):
    scene = Scene(apart(2), "disaggregated").begin(until=5)
    scene.play(until=idle)
    late = scene.scheduler.snapshot().late_answers
    states = [scene.state(rank) for rank in range(2)]
    scene.tell(event)
    assert scene.scheduler.snapshot().late_answers == late + 1
    assert [scene.state(rank) for rank in range(2)] == states and scene.scheduler.control.version == 0


# C14: deadlines


def test_C14_R26_a_trainer_that_never_comes_is_waited_for_until_a_deadline_that_names_it():
    scene = Scene(shared(4, 2), answers={a.StartTrainer: lambda c: None}, max_trainer_restarts=1).begin()
    start = scene.of(a.StartTrainer)[0]
    assert (start.awaits, start.due) == ("trainer", Deadlines().trainer_boot)
    scene.run()
    assert not scene.finish.ok and "trainer did not answer StartTrainer" in scene.finish.reason
    assert len(scene.of(a.StartTrainer)) == 2


def test_R26_in_every_state_it_waits_in_a_timer_is_set_for_a_deadline_that_names_somebody():
    scene = Scene(shared(4, 2), answers={}).begin(until=2)
    for _ in range(5000):
        if scene.finish is not None or not scene.asked:
            break
        event = scene.answer(scene.asked.pop(0))
        if event is not None:
            scene.tell(event, 0.001)
            if scene.finish is None:
                waiting = scene.scheduler.out.waiting.values()
                assert waiting and all(command.awaits for command in waiting)
                assert scene.of(a.SetTimer)[-1].at <= min(command.due for command in waiting)
    assert scene.finish.ok


@pytest.mark.parametrize("early", [0.0, 0.5, 0.999])
def test_R26_a_timer_that_fires_early_is_set_again(early):
    scene = Scene(shared(4, 2), answers={a.StartTrainer: lambda c: None, a.Restart: lambda c: None}).begin()
    at = scene.of(a.SetTimer)[-1].at
    scene.now = early * at
    again = [command for command in scene.tell(a.TimerFired()) if isinstance(command, a.SetTimer)]
    assert [command.at for command in again] == [at]


# C15, C16: what is believed


@pytest.mark.parametrize(
    "change", [{"holder": "rank:1"}, {"holder": "trainer"}, {"epoch": 99}], ids=["rank", "trainer", "epoch"]
)
def test_C15_R2_a_release_of_another_holder_or_epoch_is_counted_and_the_lease_stays(change):
    scene = Scene(shared(4, 2), answers={a.Release: lambda c: None}).begin(until=2)
    scene.play(until=lambda s: bool(s.of(a.Release)))
    release = scene.take(a.Release, rank=0)
    fields = {"holder": "rank:0", "epoch": release.epoch} | change
    scene.tell(a.MemoryReleased(command=release.id, bytes=1, **fields))
    assert scene.state(0) == "RELEASING" and scene.scheduler.snapshot().misfits == 1
    assert release.id in scene.scheduler.out.waiting
    scene.tell(a.MemoryReleased(command=release.id, holder="rank:0", epoch=release.epoch, bytes=1))
    assert scene.state(0) == "LENT"


@pytest.mark.parametrize("freed", [0, -5])
def test_C15_R2_a_release_that_frees_nothing_is_a_broken_rank(freed):
    scene = Scene(shared(4, 2), answers={a.Release: lambda c: None}).begin(until=2)
    scene.play(until=lambda s: bool(s.of(a.Release)))
    release = scene.take(a.Release, rank=0)
    scene.tell(a.MemoryReleased(command=release.id, holder="rank:0", epoch=release.epoch, bytes=freed))
    assert fenced(scene) == [0] and scene.scheduler.leases.held_by(0) is not None


def test_R2_a_trainer_that_frees_nothing_is_replaced_and_its_version_is_saved():
    scene = Scene(shared(4, 2)).begin(until=2)
    lied: list[int] = []

    def release(c: a.ReleaseTrainer) -> a.Event:
        if c.parts == "state" and not lied:
            lied.append(c.id)
            return a.MemoryReleased(command=c.id, holder="trainer", epoch=c.epoch, bytes=0)
        return scene.well(c)

    scene.answers[a.ReleaseTrainer] = release
    scene.run()
    assert scene.finish.ok and lied
    assert [c.resume_from for c in scene.of(a.StartTrainer)] == [None, "1"]


def test_C16_R38_a_rank_without_room_for_kv_has_failed_its_boot_and_is_started_again():
    scene = Scene(apart(2), "disaggregated").begin(until=1)
    empty = lambda c: a.RankBooted(command=c.id, rank=c.rank, incarnation=c.incarnation, kv_capacity=0)  # noqa: E731
    scene.answers[a.Restart] = lambda c: empty(c) if (c.rank, c.incarnation) == (1, 1) else scene.well(c)
    scene.run()
    assert scene.finish.ok and fenced(scene) == [1]
    assert [c.incarnation for c in scene.of(a.Restart) if c.rank == 1] == [1, 2]


# C19-C21: lent, recalled, restarted while training runs


def test_C19_R24_a_kept_rank_that_dies_while_training_runs_is_restarted_and_serves_before_it_ends():
    scene = Scene(shared(4, 2), answers={a.Train: lambda c: None}).begin(until=2)
    scene.play(until=stage("TRAINING"))
    scene.play()
    said = scene.tell(a.RankDied(rank=3, incarnation=1, reason="gone"))
    assert [c.rank for c in said if isinstance(c, a.Restart)] == [3]
    scene.play()
    assert scene.scheduler.control.stage == "TRAINING" and scene.state(3) == "ACTIVE"
    assert scene.scheduler.ranks.get(3).version == 0


def test_C20_R36_all_ranks_lost_after_five_versions_saves_the_fifth():
    scene = Scene(shared(4, 2), max_restarts_per_rank=0).begin(until=9)
    scene.play(until=lambda s: s.scheduler.control.version == 5 and stage("FORMING")(s))
    for rank in range(4):
        scene.tell(a.RankDied(rank=rank, incarnation=1, reason="power"))
    scene.run()
    assert not scene.finish.ok and "no rollout rank is left" in scene.finish.reason
    assert [c.version for c in scene.of(a.Checkpoint)] == [5] and "version 5 is saved" in scene.finish.reason


class Halves(TimeSharing):
    """Lends one rank, a second later the other, then trains."""

    name = "halves"
    sees = frozenset({"groups", "trajectories", "ranks"})

    def decide(self, view: View) -> Decision:
        if view.complete_groups < view.groups_needed:
            return Decision(reason="groups")
        if len(view.lent) == 1 and view.now < view.asked_since + 1.0:
            return Decision(again_at=view.asked_since + 1.0, reason="a second")
        return Decision(train=view.batch, lend=view.lendable[:1])


def test_C21_R4_a_policy_may_lend_half_of_the_shared_ranks_and_the_rest_later():
    scene = Scene(shared(4, 2), Halves()).begin(until=2)
    scene.play(until=lambda s: bool(s.of(a.Drain)))
    assert scene.state(0) == "DRAINING" and scene.state(1) == "ACTIVE"
    scene.play(until=lambda s: s.state(0) == "LENT")
    assert scene.state(0) == "LENT" and scene.state(1) == "ACTIVE" and not scene.of(a.Train)
    scene.run()
    assert scene.finish.ok and len(scene.of(a.Train)) == 2


def lent_early(state: str) -> Scene:
    scene = Scene(shared(4, 2), answers={}).begin(until=3)
    scene.play(until=idle)
    if state == "DRAINING":
        scene.answers[a.Drain] = lambda c: None
    if state == "RELEASING":
        scene.answers[a.Release] = lambda c: None
    control = scene.scheduler.control
    scene.scheduler.ranks.new_epoch()
    control.lending.lend((0,), may_empty=False)
    scene.tell(a.TimerFired())
    scene.play(until=lambda s: s.state(0) == state)
    assert scene.state(0) == state
    return scene


@pytest.mark.parametrize("state", ["DRAINING", "RELEASING", "LENT"])
def test_R4_a_rank_that_was_lent_can_be_called_back_on_every_part_of_its_way(state):
    scene = lent_early(state)
    scene.scheduler.control.lending.recall((0,))
    scene.scheduler.control.joining.look()
    owed = [c for c in scene.said if isinstance(c, a.Drain | a.Release) and c.rank == 0][-1]
    scene.answers.clear()
    if state == "LENT":
        scene.tell(a.TimerFired())
    else:
        scene.tell(scene.well(owed))
    scene.play(until=lambda s: s.state(0) == "ACTIVE")
    assert scene.state(0) == "ACTIVE"
    assert len([c for c in scene.of(a.Drain) if c.rank == 0]) == 1


def test_R2_nobody_else_s_release_starts_the_training():
    """The step waits for the leases alone: a rank that dies on its way frees its devices as one that releases does."""
    scene = Scene(shared(4, 2), answers={a.Release: lambda c: None}, max_restarts_per_rank=0).begin(until=1)
    scene.play(until=lambda s: len(s.of(a.Release)) == 2)
    scene.tell(scene.well(scene.take(a.Release, rank=0)))
    assert not scene.of(a.Train)
    scene.tell(a.RankDied(rank=1, incarnation=1, reason="gone"))
    assert len(scene.of(a.Train)) == 1


# The trainer's death and return


@pytest.mark.parametrize(
    "when", ["STARTING", "IDLE", "SHRINKING", "TRAINING", "FREEING", "FORMING", "LOADING", "CLEARING"]
)
@pytest.mark.parametrize("policy", ["time_sharing", "colocated"])
def test_R27_the_trainer_may_die_at_any_moment_and_the_run_goes_on(when, policy):
    layout = shared(4, 4) if policy == "colocated" else shared(4, 2)
    ratio = 0.0 if policy == "colocated" else 1.0
    scene = Scene(layout, policy, async_ratio=ratio, checkpoint_every=1).begin(until=4)
    reached = lambda s: stage(when)(s) and (when in ("STARTING", "IDLE") or s.scheduler.control.version >= 1)  # noqa: E731
    scene.play(until=reached)
    assert scene.scheduler.control.stage == when
    life = scene.scheduler.control.trainer.incarnation
    owed = [c for c in scene.asked if c.awaits == "trainer"]
    scene.asked = [c for c in scene.asked if c not in owed]
    scene.tell(a.TrainerDied(incarnation=life, reason="killed"))
    scene.run()
    assert scene.finish.ok, scene.finish.reason
    trained = [c.version for c in scene.of(a.Train)]
    assert trained[-1] == 3 and len(scene.of(a.StartTrainer)) == 2
    players = Counter(item.trajectory for c in scene.of(a.Train) for item in c.batch)
    assert max(players.values()) <= 2  # the step it died in may be done again


def test_R27_a_trainer_that_falls_back_takes_its_version_and_what_newer_ones_made_is_dropped():
    scene = Scene(apart(2), "disaggregated").begin(until=4)
    scene.play(until=at_version(2))
    scene.tell(a.TrainerDied(incarnation=1, reason="killed"))
    assert scene.of(a.StartTrainer)[-1].resume_from is None
    scene.play(until=lambda s: s.scheduler.control.version == 0)
    assert scene.scheduler.rollouts.version == 0
    dropped = [c for c in scene.of(a.GroupDropped) if c.reason == "rolled back"]
    assert dropped
    scene.run()
    assert scene.finish.ok and [c.version for c in scene.of(a.Train)][-4:] == [0, 1, 2, 3]
    assert all(c.version <= scene.version for c in scene.of(a.Checkpoint))


def test_R36_a_trainer_that_is_gone_for_good_ends_the_run_and_the_last_checkpoint_is_named():
    scene = Scene(apart(2), "disaggregated", max_trainer_restarts=0, checkpoint_every=2).begin(until=9)
    scene.play(until=at_version(3))
    scene.tell(a.TrainerDied(incarnation=1, reason="killed"))
    assert scene.finish is not None and not scene.finish.ok
    assert "killed" in scene.finish.reason and "version 3 is lost" in scene.finish.reason
    assert "version 2 is saved at 2" in scene.finish.reason


def test_R36_a_save_that_fails_once_is_done_again_before_the_end():
    scene = Scene(shared(4, 2)).begin(until=1)
    failed: list[int] = []

    def save(c: a.Checkpoint) -> a.Event:
        if not failed:
            failed.append(c.id)
            return a.CommandFailed(command=c.id, error="disk full")
        return scene.well(c)

    scene.answers[a.Checkpoint] = save
    scene.run()
    assert scene.finish.ok and scene.scheduler.control.trainer.saved == (1, "1")


# Budgets and probation


def test_R35_restarts_come_back_with_time():
    scene = Scene(apart(2), "disaggregated", max_restarts_per_rank=1, restart_refill_seconds=100.0).begin(until=500)
    scene.play(until=idle)
    for life in (1, 2):
        scene.tell(a.RankDied(rank=1, incarnation=life, reason="gone"))
        scene.play(until=lambda s: s.state(1) in ("ACTIVE", "FAILED"), limit=400)
    assert scene.state(1) == "FAILED" and scene.lives[1] == 2
    scene.now += 100.0
    scene.tell(a.TimerFired())
    assert scene.state(1) == "BOOTING" and scene.lives[1] == 3


def test_R35_a_sick_rank_waits_for_its_probation_twice_as_long_each_time_in_a_row():
    scene = Scene(apart(2), "disaggregated", probation_seconds=50.0, max_restarts_per_rank=5).begin(until=500)
    scene.play(until=idle)
    repairing = scene.scheduler.control.repairing
    for wait in (50.0, 100.0):
        repairing.sick(1, "fails fast")
        scene.tell(a.TimerFired())
        scene.tell(scene.well(scene.take(a.Fence)))
        assert scene.state(1) == "FAILED"
        scene.tell(a.TimerFired(), after=wait - 1.0)
        assert scene.state(1) == "FAILED"
        scene.tell(a.TimerFired(), after=1.0)
        assert scene.state(1) == "BOOTING"
        scene.play(until=lambda s: s.state(1) == "ACTIVE")


def test_R35_an_illness_long_ago_does_not_count():
    scene = Scene(apart(2), "disaggregated", probation_seconds=50.0, restart_refill_seconds=1000.0).begin(until=500)
    scene.play(until=idle)
    repairing, out = scene.scheduler.control.repairing, scene.scheduler.out
    waits = []
    for life, later in enumerate((0.0, 900.0, 1100.0), start=1):
        out.now += later
        repairing.sick(1, "fails fast")
        repairing.died(1)
        waits.append(min(at for at, ticket in out._alarms if out._alarm.get(ticket) == ("restart", 1)) - out.now)
        repairing.alarm(1)
        out._alarms.clear()
        repairing.advance(devices_wanted=False)
        assert scene.scheduler.ranks.get(1).incarnation == life + 1
    assert waits == pytest.approx([50.0, 100.0, 50.0])
