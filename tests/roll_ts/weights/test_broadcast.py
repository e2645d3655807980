"""Broadcast groups over gloo. Members are threads where that is enough, and processes where one has to die."""

import multiprocessing
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from roll_ts.weights import broadcast  # noqa: E402
from roll_ts.weights.broadcast import WeightGroup  # noqa: E402
from roll_ts.weights.digest import digest  # noqa: E402
from roll_ts.weights.rendezvous import GroupSpec, SyncError, open_store  # noqa: E402

HOST = "127.0.0.1"
MEMBERS = ("trainer", "engine-0", "engine-1")


@pytest.fixture(autouse=True)
def loopback(monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")


@pytest.fixture
def store():
    return open_store(HOST)


def spec(store, epoch=1, timeout_s=20.0, members=MEMBERS):
    return GroupSpec(epoch, HOST, store.port, members, timeout_s=timeout_s)


def weights(seed=0):
    torch.manual_seed(seed)
    named = {f"layer.{i}": torch.randn(64, 33) for i in range(12)}
    return named | {"head": torch.randn(300, 64).to(torch.bfloat16), "scale": torch.tensor(2.0)}


def send(group_spec, store, named, bucket_bytes=20_000):
    group = WeightGroup(group_spec, "trainer", store)
    try:
        return group.send(named, bucket_bytes)
    finally:
        group.close()


def receive(group_spec, member):
    group = WeightGroup(group_spec, member)
    try:
        return digest(group.receive())
    finally:
        group.close()


def die_after_the_first_bucket(group_spec, member):
    next(WeightGroup(group_spec, member).receive())
    os._exit(0)


def report(group_spec, member, queue):
    queue.put((member, receive(group_spec, member)))


@pytest.mark.slow
def test_two_receivers_in_processes_of_their_own_get_what_was_sent(store):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    group = spec(store, timeout_s=60.0)
    receivers = [context.Process(target=report, args=(group, member, queue)) for member in MEMBERS[1:]]
    for process in receivers:
        process.start()
    sent = send(group, store, weights().items())
    got = dict(queue.get(timeout=30) for _ in receivers)
    for process in receivers:
        process.join(30)
    assert sent == digest(weights().items())
    assert got == {"engine-0": sent, "engine-1": sent}


def test_epochs_follow_each_other_over_one_store_with_changing_members(store):
    with ThreadPoolExecutor(2) as pool:
        for epoch, members in enumerate([MEMBERS, ("trainer", "engine-1"), ("trainer", "engine-1", "engine-2")]):
            group = spec(store, epoch, members=members)
            got = [pool.submit(receive, group, member) for member in members[1:]]
            sent = send(group, store, weights(epoch).items())
            assert [answer.result(20) for answer in got] == [sent] * (len(members) - 1)
            assert sent == digest(weights(epoch).items())


def test_the_sender_may_make_its_tensors_one_by_one(store):
    group = spec(store, members=MEMBERS[:2])
    with ThreadPoolExecutor(1) as pool:
        got = pool.submit(receive, group, "engine-0")
        sent = send(group, store, ((f"w{i}", torch.full((1000,), float(i))) for i in range(20)))
        assert got.result(20) == sent


def test_one_group_serves_several_transfers_and_waits_for_each(store):
    group = spec(store, members=MEMBERS[:2])
    slow = threading.Event()

    def receive_twice():
        receiver = WeightGroup(group, "engine-0")
        first = digest(receiver.receive())
        slow.wait(20)
        return first, digest(receiver.receive())

    with ThreadPoolExecutor(2) as pool:
        got = pool.submit(receive_twice)
        sender = WeightGroup(group, "trainer", store)
        first = sender.send(weights(0).items())
        second = pool.submit(sender.send, weights(1).items())
        time.sleep(0.2)
        assert not second.done()
        slow.set()
        assert got.result(20) == (first, second.result(20))
        assert first != second.result()


@pytest.mark.parametrize("absent", ["engine-1", "trainer"])
def test_a_member_that_never_comes_is_named_within_the_deadline(store, absent):
    group = spec(store, epoch=7, timeout_s=0.5)
    begin = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        calls = {"trainer": lambda: send(group, store, []), "engine-0": lambda: receive(group, "engine-0")}
        calls["engine-1"] = lambda: receive(group, "engine-1")
        answers = {member: pool.submit(call) for member, call in calls.items() if member != absent}
        for member, answer in answers.items():
            with pytest.raises(SyncError) as failure:
                answer.result(10)
            assert failure.value.missing == (absent,)
            assert failure.value.epoch == 7 and failure.value.rank == MEMBERS.index(member)
            assert f"epoch 7, rank {MEMBERS.index(member)} ({member})" in str(failure.value)
    assert time.monotonic() - begin < 10


def test_a_member_that_comes_after_the_epoch_failed_is_told_so_at_once(store):
    group = spec(store, timeout_s=0.3)
    with pytest.raises(SyncError, match=r"no sign of engine-0, engine-1 within 0\.3 s"):
        send(group, store, [])
    patient = replace(group, timeout_s=60.0)
    begin = time.monotonic()
    with pytest.raises(SyncError, match=r"this epoch has failed before: .*no sign of engine-0"):
        receive(patient, "engine-0")
    assert time.monotonic() - begin < patient.timeout_s / 2


def test_a_trainer_whose_store_is_not_there_is_named(store):
    group = GroupSpec(3, HOST, 1, MEMBERS, timeout_s=0.5)
    with pytest.raises(SyncError, match=r"epoch 3, rank 1 \(engine-0\): trainer does not answer at 127.0.0.1:1"):
        receive(group, "engine-0")


@pytest.mark.slow
def test_a_receiver_that_dies_in_the_middle_fails_the_others_in_time_and_by_name(store, monkeypatch):
    context = multiprocessing.get_context("spawn")
    group = spec(store, epoch=4, timeout_s=15.0)
    monkeypatch.setattr(broadcast, "ROLL_CALL_S", 0.5)
    doomed = context.Process(target=die_after_the_first_bucket, args=(group, "engine-1"))
    doomed.start()
    with ThreadPoolExecutor(2) as pool:
        survivor = pool.submit(receive, group, "engine-0")
        sender = pool.submit(send, group, store, ((f"w{i}", torch.ones(100_000)) for i in range(50)))
        doomed.join(30)
        begin = time.monotonic()
        for rank, answer in enumerate([sender, survivor]):
            with pytest.raises(SyncError, match=rf"epoch 4, rank {rank} .* failed in .*; no sign of eng") as failure:
                answer.result(40)
            assert failure.value.missing == ("engine-1",)
        assert time.monotonic() - begin < group.timeout_s / 2


def test_a_receiver_that_gives_up_fails_the_others_at_once_though_it_lives(store, monkeypatch):
    group = spec(store, timeout_s=20.0)
    monkeypatch.setattr(broadcast, "ROLL_CALL_S", 0.5)

    def give_up():
        receiver = WeightGroup(group, "engine-1")
        next(receiver.receive())
        receiver.close()

    with ThreadPoolExecutor(3) as pool:
        quitter = pool.submit(give_up)
        survivor = pool.submit(receive, group, "engine-0")
        sender = pool.submit(send, group, store, ((f"w{i}", torch.ones(100_000)) for i in range(50)))
        quitter.result(10)
        begin = time.monotonic()
        for answer in (sender, survivor):
            with pytest.raises(SyncError, match="epoch 1"):
                answer.result(30)
        assert time.monotonic() - begin < group.timeout_s / 2


def test_a_stranger_and_a_lonely_group_are_refused(store):
    with pytest.raises(ValueError, match=r"member must be one of .*, got 'engine-9'"):
        WeightGroup(spec(store), "engine-9")
    with pytest.raises(ValueError, match="a sync group has a sender and receivers"):
        GroupSpec(1, HOST, 1, ("trainer",))


def test_a_receiver_that_waits_does_not_stop_the_other_threads_of_its_process(store):
    group = spec(store, timeout_s=1.0, members=MEMBERS[:2])

    def wait_in_vain():
        with pytest.raises(SyncError):
            receive(group, "engine-0")

    thread = threading.Thread(target=wait_in_vain)
    thread.start()
    ticks = 0
    while thread.is_alive():
        time.sleep(0.01)
        ticks += 1
    assert ticks > 20
