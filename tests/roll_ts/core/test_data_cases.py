"""Histories of the data side, event by event: who is placed where, who waits, who is out (C10–C13, C21, C22)."""

from __future__ import annotations

import pytest

from roll_ts.core import alphabet as a
from roll_ts.core.admission import Sessions
from roll_ts.core.dispatching import Dispatcher
from roll_ts.core.outbox import Outbox
from roll_ts.core.ranks import RankState, RankTable
from roll_ts.core.settings import Layout, Settings
from roll_ts.core.trajectories import Trajectory, TrajectoryTable


class Bench:
    """A dispatcher on ranks that the test moves by hand; it plays engines and environments."""

    def __init__(self, ranks: int, kv: int = 100_000, lendable: int = 0, **changes: object) -> None:
        fields: dict = dict(
            layout=Layout(tuple((i,) for i in range(ranks)), tuple(range(lendable)) or (ranks,)),
            groups_per_batch=4,
            group_size=2,
            async_ratio=1.0,
            max_turns=50,
            max_reply_tokens=4_000,
            max_context_tokens=64_000,
            max_running_per_rank=64,
        )
        self.settings = Settings(**{**fields, **changes})
        self.out = Outbox()
        self.table = TrajectoryTable(ranks)
        self.ranks = RankTable(self.settings.layout, lambda row, old: self.turns.rank_moved(row))
        self.turns = Dispatcher(self.settings, self.ranks, self.table, self.out)
        for row in self.ranks.rows:
            row.kv_capacity = kv

    def bring(self, rank: int, *states: RankState, version: int = 0) -> None:
        for state in states:
            if state is RankState.ACTIVE:
                self.ranks.rows[rank].version = version
            self.ranks.move(rank, state)

    def activate(self, *ranks: int) -> None:
        for rank in ranks:
            self.bring(rank, RankState.BOOTING, RankState.EMPTY, RankState.LOADING, RankState.ACTIVE)

    def turn(self, context: int, tokens: int = 1) -> Trajectory:
        """A trajectory that has `tokens` already and wants its next turn."""
        trajectory = self.table.start("train", 0, 0, 0, self.out.now)
        trajectory.turn, trajectory.context_tokens, trajectory.tokens = 1, context, tokens
        self.turns.enqueue(trajectory)
        return trajectory

    def dispatch(self) -> list[a.Dispatch]:
        assert not self.turns.dispatch(0)
        return [command for command in self.out.take() if isinstance(command, a.Dispatch)]

    def finish(self, trajectory: Trajectory, tokens: int) -> None:
        attempt = self.table.attempt_of(trajectory)
        assert attempt is not None
        self.turns.close(attempt.id, tokens)
        self.turns.finished(trajectory, attempt)
        trajectory.carried = 0

    def teach(self, tokens: int, times: int = 32) -> None:
        """Let the dispatcher see replies of this length."""
        for _ in range(times):
            self.turns.replies["train"].see(tokens)


def test_C11_R9_survivors_keep_all_their_slots_for_the_tail_while_others_join():
    bench = Bench(160, kv=2_000_000, lendable=128)
    bench.activate(*range(128, 160))
    for rank in range(128):
        bench.bring(rank, RankState.BOOTING, RankState.EMPTY, RankState.LOADING)
    for _ in range(1_568):
        bench.turn(1_000)
    assert len(bench.dispatch()) == 1_568
    for _ in range(480):
        bench.turn(1_000)
    assert len(bench.dispatch()) == 480, "2,048 slots on 32 ranks: the tail runs"
    bench.turn(1_000)
    assert not bench.dispatch(), "and no slot more than there are"


def test_R9_first_turns_leave_room_for_the_ranks_that_are_about_to_open():
    bench = Bench(4, kv=2_000_000)
    bench.activate(0)
    for rank in (1, 2, 3):
        bench.bring(rank, RankState.BOOTING, RankState.EMPTY, RankState.LOADING)
    for _ in range(40):
        bench.turn(100, tokens=0)
    assert len(bench.dispatch()) == 10, "a quarter for each of the four"


def test_C12_R11_a_turn_too_large_for_every_rank_lets_small_ones_pass_and_is_not_starved():
    bench = Bench(16, kv=4_000)
    bench.activate(*range(16))
    bench.teach(100)
    busy = [bench.turn(3_700) for _ in range(16)]
    assert len(bench.dispatch()) == 16, "every rank has some three per cent of its KV left"
    large = bench.turn(3_780)
    small = [bench.turn(40) for _ in range(200)]
    sent = bench.dispatch()
    assert len(sent) >= 16 and large.id not in {c.attempt.trajectory for c in sent}
    running = [t for t in small if t.id in {c.attempt.trajectory for c in sent}]
    for _ in range(400):
        if bench.table.attempt_of(large) is not None:
            break
        # small ones end and new small ones come, without end; the long ones end late
        done, running = running[:4], running[4:]
        for trajectory in done:
            bench.finish(trajectory, 100)
            small.append(bench.turn(40))
        if len(small) > 600 and busy:
            bench.finish(busy.pop(), 100)
        sent = bench.dispatch()
        running += [t for t in small if t.id in {c.attempt.trajectory for c in sent}]
    assert bench.table.attempt_of(large) is not None, "a rank was kept for it"


def test_C13_R10_kv_is_reserved_for_what_a_turn_will_probably_need():
    bench = Bench(1, kv=100_000, max_reply_tokens=32_768)
    bench.activate(0)
    for _ in range(16):
        trajectory = bench.turn(1_000)
        bench.dispatch()
        bench.finish(trajectory, 50)
    for _ in range(100):
        bench.turn(1_000)
    sent = len(bench.dispatch())
    assert sent == 64, "as many as there are slots: 1,050 tokens each, not 33,768"
    assert bench.turns.loads.loads[0].kv_tokens <= 64 * (1_000 + 64)


def test_R10_while_nothing_is_known_of_replies_a_whole_one_is_reserved():
    bench = Bench(1, kv=100_000, max_reply_tokens=32_768)
    bench.activate(0)
    for _ in range(100):
        bench.turn(1_000)
    assert len(bench.dispatch()) == 2


def test_R10_a_reply_that_outgrows_its_booking_is_booked_for_more_and_all_of_it_is_given_back():
    bench = Bench(1, kv=100_000)
    bench.activate(0)
    bench.teach(50)
    trajectory = bench.turn(1_000)
    bench.dispatch()
    load, attempt = bench.turns.loads.loads[0], bench.table.attempt_of(trajectory)
    booked = load.kv_tokens
    bench.turns.progress(attempt.id, 900)
    assert load.kv_tokens > booked and load.kv_tokens >= 1_000 + 900
    bench.turns.close(attempt.id, 1_000)
    assert (load.running, load.kv_tokens) == (0, 0)


@pytest.mark.parametrize("doubled", [a.Progress, a.Finished])
def test_C22_R3_a_report_that_comes_twice_is_counted_once(doubled):
    bench = Bench(1)
    bench.activate(0)
    trajectory = bench.turn(100)
    bench.dispatch()
    attempt = bench.table.attempt_of(trajectory)
    for _ in range(2):
        bench.turns.progress(attempt.id, 10)
    assert attempt.tokens == 10
    bench.turns.progress(attempt.id, 25)
    bench.turns.progress(attempt.id, 10)
    assert attempt.tokens == 25, "an older sum is no news"
    if doubled is a.Finished:
        assert bench.turns.close(attempt.id, 30) is trajectory
        assert bench.turns.close(attempt.id, 30) is None
        assert (trajectory.carried, bench.table.late_data) == (30, 1)


def fail(bench: Bench, trajectory: Trajectory) -> bool:
    """Its rank fails the turn at once; it goes back to the queue."""
    attempt = bench.table.attempt_of(trajectory)
    bench.turns.close(attempt.id, 0)
    blamed = bench.turns.failed(trajectory, attempt.rank)
    bench.turns.enqueue(trajectory)
    return blamed


def test_C10_R35_a_rank_that_fails_fast_is_out_after_a_few_though_it_is_the_idlest():
    bench = Bench(16, kv=2_000_000)
    bench.activate(*range(16))
    running: list[Trajectory] = [bench.turn(1_000) for _ in range(160)]
    counts = dict.fromkeys(range(16), 0)
    out = False
    for _ in range(300):
        for command in bench.dispatch():
            counts[command.rank] += 1
        if not out:
            for trajectory in running:
                attempt = bench.table.attempt_of(trajectory)
                if attempt is not None and attempt.rank == 7 and fail(bench, trajectory):
                    out = True
                    bench.bring(7, RankState.FENCED)
                    break
        done = next(t for t in running if (x := bench.table.attempt_of(t)) is not None and x.rank != 7)
        running.remove(done)
        bench.finish(done, 60)
        running.append(bench.turn(1_000))
    fair = sum(counts.values()) / 16
    assert out and counts[7] <= 2 * fair
    assert sum(t.failures > 1 for t in running) == 0


def test_R32_ranks_are_not_blamed_for_what_fails_on_most_of_them():
    bench = Bench(4, kv=2_000_000)
    bench.activate(*range(4))
    turns = [bench.turn(1_000) for _ in range(40)]
    blamed = 0
    for _ in range(10):
        bench.dispatch()
        blamed += sum(fail(bench, t) for t in turns if bench.table.attempt_of(t) is not None)
    assert blamed <= 2, "more than half of the ranks fail alike: it is the work"


def test_R35_a_turn_that_failed_on_a_rank_tries_another_one_next():
    bench = Bench(2, kv=2_000_000)
    bench.activate(0, 1)
    bench.turns.loads.add(1, 0)
    trajectory = bench.turn(1_000)
    assert [c.rank for c in bench.dispatch()] == [0]
    fail(bench, trajectory)
    assert [c.rank for c in bench.dispatch()] == [1]


def test_R10_turns_of_episodes_that_outlast_the_batch_go_where_they_will_not_have_to_move():
    bench = Bench(4, kv=2_000_000, lendable=2)
    bench.activate(*range(4))
    bench.turns.stays = lambda trajectory: 8.0 if trajectory.context_tokens > 500 else 0.0
    for _ in range(8):
        bench.turn(1_000)
    assert {c.rank for c in bench.dispatch()} == {2, 3}
    for _ in range(4):
        bench.turn(100)
    assert {c.rank for c in bench.dispatch()} == {0, 1}


class Door:
    """Session admission on ranks of 1,000 tokens of KV; groups of two."""

    def __init__(self, ranks: int) -> None:
        self.table = TrajectoryTable(ranks)
        self.missing: dict[int, int] = {}
        self.sessions = Sessions(True, lambda t: (self.missing.get(t.group, 2), t.group, t.id))
        self.sessions.share = 1.0
        self.ranks = RankTable(
            Layout(tuple((i,) for i in range(ranks)), (ranks,)), lambda row, old: self.sessions.rank_moved(row)
        )
        for row in self.ranks.rows:
            row.kv_capacity = 1_000
            for state in (RankState.BOOTING, RankState.EMPTY, RankState.LOADING, RankState.ACTIVE):
                self.ranks.move(row.id, state)

    def session(self, group: int) -> Trajectory:
        return self.table.start("train", group, 0, 0, 0.0)

    def let_in(self, need: int) -> list[int]:
        return [trajectory.group for trajectory in self.sessions.admitted(9.0, lambda t: need)]


def test_R11_as_many_sessions_are_in_as_have_kv_for_their_prefixes_and_the_rest_follows_as_they_end():
    door = Door(2)
    sessions = [door.session(group) for group in range(6)]
    assert [door.sessions.let_in(t, 600, 1.0) for t in sessions] == [True, True, True, False, False, False]
    assert door.let_in(600) == []
    door.sessions.leave(sessions[0])
    assert door.let_in(600) == [3]
    assert sessions[3].waited == 8.0, "the time outside is no part of its deadline"


def test_R14_groups_nearest_to_completion_come_in_first():
    door = Door(1)
    first = door.session(0)
    assert door.sessions.let_in(first, 900, 0.0)
    waiting = [door.session(group) for group in (1, 2, 3)]
    for trajectory in waiting:
        door.sessions.let_in(trajectory, 900, 0.0)
    door.missing[3] = 1
    door.sessions.reconsider(waiting[2])
    door.sessions.leave(first)
    assert door.let_in(900) == [3]


def test_R12_sessions_that_outgrow_the_kv_leave_at_their_next_turn_the_furthest_from_completion_first():
    door = Door(1)
    near, far = door.session(0), door.session(1)
    door.missing[0] = 1
    assert door.sessions.let_in(near, 400, 0.0) and door.sessions.let_in(far, 400, 0.0)
    door.sessions.resize(near, 700)
    door.sessions.resize(far, 700)
    assert door.sessions.let_in(near, 700, 1.0)
    assert not door.sessions.let_in(far, 700, 1.0)
    assert door.sessions.booked == 700


def test_R12_ranks_that_are_lent_take_their_kv_along():
    door = Door(4)
    sessions = [door.session(group) for group in range(4)]
    assert all(door.sessions.let_in(t, 900, 0.0) for t in sessions)
    for rank in range(3):
        door.ranks.move(rank, RankState.DRAINING)
    assert door.sessions.budget == 1_000
    assert [door.sessions.let_in(t, 900, 1.0) for t in sessions] == [True, False, False, False]


def test_R10_what_engines_find_cached_moves_the_share_of_kv_that_is_booked():
    door = Door(1)
    for _ in range(64):
        door.sessions.heard(100, 50)
    assert door.sessions.share == pytest.approx(0.9)
    assert door.sessions.hits == 0.5
    for _ in range(64 * 100):
        door.sessions.heard(100, 0)
    assert door.sessions.share == 0.25


def test_R11_one_session_is_always_let_in_however_large():
    door = Door(1)
    assert door.sessions.let_in(door.session(0), 5_000, 0.0)
