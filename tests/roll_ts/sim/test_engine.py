"""The simulated engine keeps an engine's promises."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.core.alphabet import Aborted, AttemptId, Event, Failed, Finished, Progress
from roll_ts.sim.clock import Clock
from roll_ts.sim.cost import CostModel
from roll_ts.sim.engine import Engine

# a step of 10 ms plus 1 ms a sequence; no KV or prefill effects unless a test asks for them
PLAIN = CostModel(
    step_seconds=0.010, sequence_seconds=0.001, kv_token_seconds=0.0, kv_capacity=10_000,
    prefill_tokens_per_second=1e9, prefill_interference=0.0, progress_seconds=1.0,
)  # fmt: skip


class Bench:
    """One engine, everything it said with the time, and the peak of its KV."""

    def __init__(self, cost: CostModel = PLAIN) -> None:
        self.clock = Clock()
        self.heard: list[tuple[float, Event]] = []
        self.engine = Engine(0, cost, self.clock, self._hear)
        self.engine.alive, self.engine.weights, self.engine.kv_awake = True, 0, True
        self.peak = 0

    def _hear(self, event: Event) -> None:
        self.heard.append((self.clock.now, event))
        self.peak = max(self.peak, self.engine.kv_tokens)

    def submit(self, number: int, prompt: int, tokens: int) -> AttemptId:
        attempt = AttemptId(number, 1, 1)
        self.engine.submit(attempt, prompt, tokens, "stop")
        return attempt

    def run(self, until: float = float("inf")) -> None:
        while (time := self.clock.next_time()) is not None and time <= until:
            self.clock.step()

    def ends(self) -> dict[int, tuple[float, Event]]:
        last = [(t, e) for t, e in self.heard if isinstance(e, Finished | Aborted | Failed)]
        return {event.attempt.trajectory: (t, event) for t, event in last}


def tokens_of(heard: list[tuple[float, Event]]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for _, event in heard:
        if isinstance(event, Progress | Finished | Aborted):
            counts[event.attempt.trajectory] = event.total
    return counts


def test_a_lone_sequence_takes_one_step_per_token() -> None:
    bench = Bench()
    bench.submit(0, prompt=100, tokens=200)
    bench.run()
    t, event = bench.ends()[0]
    assert t == pytest.approx(200 * 0.011, rel=1e-6)
    assert isinstance(event, Finished) and event.reason == "stop"
    assert [type(e) for _, e in bench.heard] == [Progress, Progress, Finished]


def test_sequences_share_the_steps() -> None:
    bench = Bench()
    bench.submit(0, 10, 100)
    bench.submit(1, 10, 200)
    bench.run()
    together, alone = 100 * 0.012, 100 * 0.011
    assert bench.ends()[0][0] == pytest.approx(together, rel=1e-6)
    assert bench.ends()[1][0] == pytest.approx(together + alone, rel=1e-6)


def test_prefill_comes_first_and_slows_decoding() -> None:
    bench = Bench(replace(PLAIN, prefill_tokens_per_second=1000.0, prefill_interference=1.0))
    bench.submit(0, 500, 100)
    bench.submit(1, 500, 100)
    bench.run()
    # the second prefill (0.5 s) overlaps the first sequence's decoding at half speed: 0.5 / 0.022 tokens
    slowed = 0.5 / 0.022
    assert bench.ends()[0][0] == pytest.approx(1.0 + (100 - slowed) * 0.012, rel=1e-3)


def test_a_prefix_that_is_still_cached_is_not_computed_again() -> None:
    bench = Bench()
    bench.submit(0, 1000, 50)
    bench.run()
    bench.submit(0, 1100, 50)
    bench.run()
    assert bench.engine.prefilled_tokens == 1000 + (1100 - 1050)
    bench.engine.forget_prefixes()
    bench.submit(0, 1200, 50)
    bench.run()
    assert bench.engine.prefilled_tokens == 1000 + 50 + 1200


def test_the_oldest_cached_prefix_makes_room() -> None:
    bench = Bench(replace(PLAIN, kv_capacity=2500))
    for number in (0, 1):
        bench.submit(number, 1000, 10)
        bench.run()
    bench.submit(2, 1000, 10)
    bench.run()
    before = bench.engine.prefilled_tokens
    bench.submit(1, 1010, 10)
    bench.run()
    # trajectory 1 was kept and 0 evicted; the last token of a prompt is always computed
    assert bench.engine.prefilled_tokens == before + 1


def test_an_abort_gives_back_every_token_so_far_and_the_slot() -> None:
    bench = Bench()
    attempt = bench.submit(0, 10, 1000)
    bench.run(until=3.0)
    bench.clock.at(5.0, lambda: bench.engine.abort(attempt))
    bench.run()
    t, event = bench.ends()[0]
    assert t == 5.0 and isinstance(event, Aborted)
    assert tokens_of(bench.heard)[0] == int(5.0 / 0.011)
    assert bench.engine.running == bench.engine.waiting == bench.engine.kv_tokens == 0
    assert not bench.engine.abort(attempt)


def test_pausing_stops_time_for_the_sequences() -> None:
    bench = Bench()
    bench.submit(0, 10, 100)
    bench.clock.at(0.5, bench.engine.pause)
    bench.clock.at(10.5, bench.engine.resume)
    bench.run()
    assert bench.ends()[0][0] == pytest.approx(10.0 + 100 * 0.011, rel=1e-6)


def test_death_loses_what_was_not_reported() -> None:
    bench = Bench()
    bench.submit(0, 10, 1000)
    bench.run(until=2.0)
    lost: list[int] = []
    bench.clock.at(2.5, lambda: lost.append(bench.engine.die()))
    bench.run()
    assert lost == [int(2.5 / 0.011) - tokens_of(bench.heard)[0]]
    assert not bench.engine.alive and bench.engine.running == 0


def test_a_request_that_can_never_fit_fails_and_says_why() -> None:
    bench = Bench(replace(PLAIN, kv_capacity=100))
    bench.submit(0, 200, 10)
    bench.submit(1, 50, 10)
    bench.submit(2, 50, 100)
    bench.run()
    assert [type(event) for _, event in (bench.ends()[n] for n in range(3))] == [Failed, Finished, Failed]
    assert "200 tokens exceed the KV cache" in bench.ends()[0][1].error  # type: ignore[attr-defined]


jobs = st.lists(st.tuples(st.integers(1, 400), st.integers(1, 300), st.floats(0, 4)), min_size=1, max_size=12)


@given(jobs, st.integers(800, 3000), st.lists(st.tuples(st.integers(0, 11), st.floats(0, 8)), max_size=4))
@settings(deadline=None, derandomize=True, max_examples=120)
def test_every_request_ends_once_with_all_its_tokens_within_the_kv(
    requests: list[tuple[int, int, float]], capacity: int, aborts: list[tuple[int, float]]
) -> None:
    bench = Bench(replace(PLAIN, kv_capacity=capacity, prefill_tokens_per_second=3000.0, prefill_interference=0.5))
    for number, (prompt, tokens, at) in enumerate(requests):
        bench.clock.at(at, lambda n=number, p=prompt, t=tokens: bench.submit(n, p, t))  # type: ignore[misc]
    for number, at in aborts:
        attempt = AttemptId(number, 1, 1)
        bench.clock.at(at, lambda attempt=attempt: bench.engine.abort(attempt))  # type: ignore[misc]
    bench.run()
    counts = Counter(
        event.attempt.trajectory for _, event in bench.heard if isinstance(event, Finished | Aborted | Failed)
    )
    assert counts == Counter(range(len(requests)))
    generated = tokens_of(bench.heard)
    for number, (_, event) in bench.ends().items():
        want = requests[number][1]
        assert generated[number] == want if isinstance(event, Finished) else generated[number] < want
    assert bench.peak <= capacity
    assert bench.engine.kv_tokens == 0
