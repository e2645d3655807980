import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.engines.outbox import Outbox
from roll_ts.engines.protocol import Aborted, Failed, Finished, Progress
from tests.roll_ts.engines.transcript import Transcript


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_progress_is_reported_once_a_tick_and_not_more_often():
    clock = Clock()
    outbox = Outbox(0.03, clock)
    outbox.begin("a")
    outbox.add("a", [1], [-1.0])
    outbox.tick()
    assert outbox.take(0) == []
    clock.now = 0.031
    outbox.add("a", [2], [-2.0])
    outbox.tick()
    assert outbox.take(0) == [Progress("a", [1, 2], [-1.0, -2.0])]
    clock.now = 0.05
    outbox.tick()
    assert outbox.take(0) == []


def test_the_terminal_event_carries_what_was_not_yet_reported():
    outbox = Outbox(0.03, Clock())
    for request_id in "abc":
        outbox.begin(request_id)
        outbox.add(request_id, [7], [-0.5])
    outbox.finish("a", "stop")
    outbox.abort(["b"])
    outbox.fail(["c"], "why")
    assert outbox.take(0) == [
        Finished("a", [7], [-0.5], "stop"),
        Aborted("b", [7], [-0.5]),
        Failed("c", "why", [7], [-0.5]),
    ]
    assert len(outbox) == 0


def test_an_id_is_never_taken_twice():
    outbox = Outbox(0.03)
    outbox.begin("a")
    outbox.finish("a", "length")
    outbox.reserve("b")
    with pytest.raises(
        ValueError, match=r"repeated must be empty, got \['a', 'b', 'c'\] - request ids are never reused"
    ):
        outbox.check_new(["c", "a", "b", "c", "d"])


def test_a_waiting_reader_wakes_when_an_event_comes():
    outbox = Outbox(0.0)
    outbox.begin("a")
    threading.Timer(0.05, lambda: outbox.abort(["a"])).start()
    begin = time.monotonic()
    assert outbox.take(10.0) == [Aborted("a", [], [])]
    assert time.monotonic() - begin < 5.0


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["begin", "add", "finish", "abort", "fail", "tick", "flush", "take"]), st.integers(0, 3))
)


@given(ACTIONS)
@settings(deadline=None, derandomize=True)
def test_events_of_an_id_join_to_what_was_added_and_end_once(actions):
    clock = Clock()
    outbox = Outbox(1.0, clock)
    transcript = Transcript()
    added: dict[str, list[int]] = {}
    for step, (action, which) in enumerate(actions):
        clock.now += 0.4
        open_ids = outbox.open_ids()
        chosen = open_ids[which % len(open_ids)] if open_ids else None
        if action == "begin":
            outbox.begin(f"r{step}")
            added[f"r{step}"] = []
        elif action == "add" and chosen:
            outbox.add(chosen, [step], [-float(step)])
            added[chosen].append(step)
        elif action == "finish" and chosen:
            outbox.finish(chosen, "stop")
        elif action == "abort" and chosen:
            outbox.abort([chosen])
        elif action == "fail" and chosen:
            outbox.fail([chosen], "x")
        elif action == "tick":
            outbox.tick()
        elif action == "flush":
            outbox.flush()
        elif action == "take":
            transcript.add(outbox.take(0))
    outbox.abort(outbox.open_ids())
    transcript.add(outbox.take(0))
    assert {i: story.tokens for i, story in transcript.stories.items()} == added
    assert all(story.end is not None for story in transcript.stories.values())
