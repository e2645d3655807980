import random
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.engines.protocol import (
    Aborted,
    BusyError,
    EngineDeadError,
    EngineState,
    Failed,
    Finished,
    NotServableError,
    Request,
    Sampling,
)
from roll_ts.engines.stepped import SteppedEngine
from tests.roll_ts.engines.fake_core import FakeCore, continuation, logprob
from tests.roll_ts.engines.transcript import Transcript


def make(core: FakeCore | None = None, timeout_s: float = 5.0) -> SteppedEngine:
    made = core or FakeCore()
    return SteppedEngine(lambda: made, tick_s=0.001, call_timeout_s=timeout_s, name="fake engine")


@pytest.fixture
def engine():
    made = make()
    yield made
    made.close()


def request(request_id: str, count: int = 5, prompt: list[int] | None = None) -> Request:
    return Request(request_id, prompt or [1, 2, 3], Sampling.greedy(count))


def endless(request_id: str) -> Request:
    return request(request_id, 10_000)


def test_a_finished_request_has_all_its_tokens_with_their_logprobs(engine):
    engine.submit([request("a", 5)])
    transcript = Transcript()
    transcript.read_until_ended(engine, ["a"])
    story = transcript.stories["a"]
    assert story.tokens == continuation([1, 2, 3], 5)
    assert story.logprobs == [logprob(t) for t in story.tokens]
    assert isinstance(story.end, Finished) and story.end.reason == "length"


def test_abort_returns_the_ids_it_aborted_and_the_engine_holds_none_of_them(engine):
    engine.submit([endless("a"), endless("b"), request("c", 1)])
    transcript = Transcript()
    transcript.read_until_ended(engine, ["c"])
    assert engine.abort(["b", "c", "stranger"]) == ["b"]
    assert engine.stats().in_flight == 1
    assert engine.abort() == ["a"]
    assert engine.stats().in_flight == 0
    transcript.read_until_ended(engine, ["a", "b"])
    assert isinstance(transcript.stories["a"].end, Aborted)


def test_an_aborted_generation_resumed_elsewhere_is_the_whole_generation(engine):
    other = make()
    transcript = Transcript()
    engine.submit([endless("a")])
    transcript.read_until_tokens(engine, "a", 3)
    engine.abort(["a"])
    transcript.read_until_ended(engine, ["a"])
    partial = transcript.stories["a"].tokens
    other.submit([request("a again", 20, [1, 2, 3, *partial])])
    transcript.read_until_ended(other, ["a again"])
    other.close()
    assert partial + transcript.stories["a again"].tokens == continuation([1, 2, 3], len(partial) + 20)


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, derandomize=True, max_examples=30)
def test_every_id_ends_exactly_once_whatever_the_interleaving(seed):
    draw = random.Random(seed)
    engine = make()
    transcript = Transcript()
    wanted: dict[str, Request] = {}
    for turn in range(draw.randrange(1, 25)):
        action = draw.choice(["submit", "submit", "abort some", "abort all", "pause", "resume", "read", "canary"])
        if action == "submit":
            new = [request(f"{turn}.{i}", draw.randrange(1, 60), [draw.randrange(900)]) for i in range(3)]
            wanted |= {r.id: r for r in new}
            engine.submit(new)
        elif action == "abort some" and wanted:
            engine.abort(draw.sample(sorted(wanted), min(2, len(wanted))))
        elif action == "abort all":
            engine.abort()
        elif action == "pause":
            engine.pause()
        elif action == "resume":
            engine.resume()
        elif action == "read":
            transcript.add(engine.next_events(draw.choice([0.0, 0.002])))
        elif action == "canary" and not engine.stats().paused:
            assert engine.canary([4, 5], 3).tokens == continuation([4, 5], 3)
    engine.resume()
    transcript.read_until_ended(engine, list(wanted), 10)
    assert engine.wait_drained(5) == 0
    engine.close()
    assert set(transcript.stories) == set(wanted)
    for request_id, story in transcript.stories.items():
        whole = continuation(wanted[request_id].prompt, wanted[request_id].sampling.max_tokens)
        assert story.tokens == whole[: len(story.tokens)]
        assert isinstance(story.end, Aborted) or story.tokens == whole


def test_a_request_the_engine_cannot_serve_fails_and_the_others_go_on(engine):
    engine.submit([request("bad", prompt=[-1]), request("good")])
    transcript = Transcript()
    transcript.read_until_ended(engine, ["bad", "good"])
    assert isinstance(transcript.stories["bad"].end, Failed)
    assert "negative token" in transcript.stories["bad"].end.error
    assert isinstance(transcript.stories["good"].end, Finished)


def test_submitting_a_known_id_accepts_nothing_of_the_call(engine):
    engine.submit([request("a")])
    with pytest.raises(ValueError, match=r"got \['a'\] - request ids are never reused"):
        engine.submit([request("b"), request("a")])
    engine.submit([request("b")])


def test_a_paused_engine_keeps_its_requests_and_makes_no_token(engine):
    transcript = Transcript()
    engine.submit([endless("a")])
    transcript.read_until_tokens(engine, "a", 3)
    engine.pause()
    transcript.add(engine.next_events(0))
    frozen = len(transcript.stories["a"].tokens)
    engine.submit([endless("b")])
    assert engine.next_events(0.05) == []
    assert engine.stats().in_flight == 2 and engine.stats().paused
    with pytest.raises(BusyError, match=r"got \['a', 'b'\] .*a paused engine is resumed before a canary"):
        engine.canary([1])
    engine.resume()
    transcript.read_until_tokens(engine, "a", frozen + 1)


def test_wait_drained_returns_when_the_last_request_ends_and_else_tells_how_many_are_left(engine):
    engine.submit([endless("a")])
    assert engine.wait_drained(0.02) == 1
    threading.Timer(0.05, engine.abort).start()
    begin = time.monotonic()
    assert engine.wait_drained(10.0) == 0
    assert time.monotonic() - begin < 5.0


def test_memory_and_weights_are_not_touched_under_running_requests(engine):
    engine.submit([endless("a")])
    for call in (engine.release, engine.reset_cache, lambda: engine.load_weights([("w", 0)])):
        with pytest.raises(BusyError, match=r"running=1, now\.waiting=0 .*'drain or abort them first"):
            call()
    assert engine.load_weights([("w", 0)], keep_kv=True) == "w"
    assert engine.stats().in_flight == 1


def test_an_engine_that_cannot_serve_refuses_with_its_state_and_the_way_on(engine):
    assert engine.release().freed_bytes == 100
    assert engine.release().freed_bytes == 0
    for call in (lambda: engine.submit([request("a")]), lambda: engine.canary([1]), engine.wake_kv, engine.digest):
        with pytest.raises(NotServableError, match="state 'released': call load_weights, then wake_kv"):
            call()
    assert engine.load_weights([("w", 0)]) == "w"
    with pytest.raises(NotServableError, match="KV cache asleep': call wake_kv"):
        engine.submit([request("a")])
    assert engine.wake_kv().freed_bytes == -50
    assert engine.wake_kv().freed_bytes == 0
    engine.submit([request("a")])
    assert engine.stats().state is EngineState.SERVING


def test_a_load_that_fails_leaves_nothing_servable_and_aborts_what_ran(engine):
    def broken():
        yield "w", 0
        raise OSError("the sender is gone")

    engine.submit([endless("a")])
    with pytest.raises(OSError, match="the sender is gone"):
        engine.load_weights(broken(), keep_kv=True)
    transcript = Transcript()
    transcript.read_until_ended(engine, ["a"])
    assert isinstance(transcript.stories["a"].end, Aborted)
    with pytest.raises(NotServableError, match="no valid weights"):
        engine.submit([request("b")])
    engine.load_weights([("w", 0)])
    engine.submit([request("b")])


def test_a_failing_step_fails_every_request_and_every_later_call_with_the_traceback():
    core = FakeCore(break_at_step=3)
    engine = make(core)
    engine.submit([endless("a"), endless("b")])
    transcript = Transcript()
    transcript.read_until_ended(engine, ["a", "b"])
    for request_id in "ab":
        story = transcript.stories[request_id]
        assert isinstance(story.end, Failed) and "fell off the bus" in story.end.error
        assert story.tokens == continuation([1, 2, 3], 2)
    for call in (lambda: engine.next_events(1.0), lambda: engine.submit([request("c")]), engine.stats, engine.abort):
        with pytest.raises(EngineDeadError, match=r"(?s)Traceback.*fell off the bus"):
            call()
    engine.close()
    assert core.closed


def test_a_core_that_cannot_start_raises_its_own_error():
    def no_core() -> FakeCore:
        raise OSError("no such model")

    with pytest.raises(OSError, match="no such model"):
        SteppedEngine(no_core, 0.01, 5.0, "fake engine")


def test_a_call_the_engine_does_not_answer_names_the_engine_and_never_runs_later():
    stepping, go_on = threading.Event(), threading.Event()

    class StuckCore(FakeCore):
        def step(self):
            stepping.set()
            go_on.wait(30)
            yield from super().step()

    engine = make(StuckCore(), timeout_s=1.0)
    engine.submit([request("a", 2)])
    stepping.wait(10)
    with pytest.raises(TimeoutError, match=r"fake engine did not answer 'submit' within 1 s; .* in 'step'"):
        engine.submit([request("late")])
    go_on.set()
    transcript = Transcript()
    transcript.read_until_ended(engine, ["a"])
    assert engine.wait_drained(10.0) == 0
    assert "late" not in transcript.stories
    engine.close()


def test_close_aborts_what_runs_and_later_calls_say_so():
    core = FakeCore()
    engine = make(core)
    engine.submit([endless("a")])
    engine.close()
    engine.close()
    transcript = Transcript()
    transcript.read_until_ended(engine, ["a"])
    assert isinstance(transcript.stories["a"].end, Aborted)
    assert core.closed
    with pytest.raises(NotServableError, match="closed: start a new engine"):
        engine.submit([request("b")])
    with pytest.raises(NotServableError, match="closed"):
        engine.next_events(0)


def test_a_canary_has_no_events(engine):
    assert engine.canary([9], 4).logprobs == [logprob(t) for t in continuation([9], 4)]
    assert engine.next_events(0.02) == []
