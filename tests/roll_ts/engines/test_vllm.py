"""The engine on real vLLM. One pair of engines serves all tests; each test leaves them usable."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path

import pytest

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
from tests.roll_ts.engines.conftest import KV_BYTES
from tests.roll_ts.engines.transcript import Story, Transcript

pytestmark = [pytest.mark.engines, pytest.mark.slow]

PROMPT = [1, *range(10, 90)]
fresh = itertools.count()


def weights_file(model: str) -> str:
    return str(Path(model) / "model.safetensors")


def greedy(prompt: list[int], count: int) -> Request:
    return Request(f"r{next(fresh)}", prompt, Sampling.greedy(count))


def generate(engine, request: Request) -> Story:
    transcript = Transcript()
    engine.submit([request])
    transcript.read_until_ended(engine, [request.id])
    return transcript.stories[request.id]


def assert_same(story: Story, tokens: list[int], logprobs: list[float]) -> None:
    assert story.tokens == tokens
    assert story.logprobs == pytest.approx(logprobs, abs=1e-4)


def reference(model: str, prompt: list[int], count: int) -> tuple[list[int], list[float]]:
    """Greedy continuation and log-probs by transformers."""
    import torch
    from transformers import AutoModelForCausalLM

    net = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    ids, logprobs = list(prompt), []
    with torch.no_grad():
        for _ in range(count):
            last = torch.log_softmax(net(torch.tensor([ids])).logits[0, -1], dim=-1)
            ids.append(int(last.argmax()))
            logprobs.append(float(last[ids[-1]]))
    return ids[len(prompt) :], logprobs


def scored(model: str, prompt: list[int], tokens: list[int]) -> list[float]:
    """Log-probs of given tokens by transformers."""
    import torch
    from transformers import AutoModelForCausalLM

    net = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    with torch.no_grad():
        rows = torch.log_softmax(net(torch.tensor([prompt + tokens])).logits[0], dim=-1)
    return [float(rows[len(prompt) - 1 + i, token]) for i, token in enumerate(tokens)]


def test_tokens_and_logprobs_are_those_of_transformers(engines, checkpoints):
    story = generate(engines[0], greedy(PROMPT, 12))
    assert_same(story, *reference(checkpoints[0], PROMPT, 12))


def test_an_aborted_generation_goes_on_elsewhere_as_if_never_interrupted(engines):
    first, second = engines
    whole = generate(second, greedy(PROMPT, 200))
    second.reset_cache()
    transcript = Transcript()
    background = [greedy([5, i], 200) for i in range(8)]
    moved = greedy(PROMPT, 200)
    first.submit([moved, *background])
    transcript.read_until_tokens(first, moved.id, 40)
    assert set(first.abort()) == {moved.id, *(r.id for r in background)}
    assert first.stats().in_flight == 0
    transcript.read_until_ended(first, [moved.id])
    partial = transcript.stories[moved.id]
    assert isinstance(partial.end, Aborted) and 40 <= len(partial.tokens) < 200
    rest = generate(second, greedy(PROMPT + partial.tokens, 200 - len(partial.tokens)))
    joined = Story(partial.tokens + rest.tokens, partial.logprobs + rest.logprobs)
    assert_same(joined, whole.tokens, whole.logprobs)


@pytest.mark.parametrize("seed", range(4))
def test_every_id_ends_exactly_once_under_abort_races(engines, seed):
    draw, engine, transcript = random.Random(seed), engines[0], Transcript()
    wanted: dict[str, Request] = {}
    for _ in range(25):
        action = draw.choice(["submit", "submit", "abort some", "abort all", "pause", "resume", "read"])
        if action == "submit":
            new = [greedy([draw.randrange(500) for _ in range(draw.randrange(1, 40))], draw.randrange(1, 60))]
            wanted |= {r.id: r for r in new}
            engine.submit(new)
        elif action == "abort some" and wanted:
            engine.abort(draw.sample(sorted(wanted), min(3, len(wanted))))
        elif action == "abort all" and draw.random() < 0.4:
            engine.abort()
            assert engine.stats().in_flight == 0
        elif action in ("pause", "resume"):
            getattr(engine, action)()
        elif action == "read":
            transcript.add(engine.next_events(draw.choice([0.0, 0.03])))
    engine.resume()
    transcript.read_until_ended(engine, list(wanted))
    assert engine.wait_drained(10) == 0
    assert set(transcript.stories) == set(wanted)
    assert engine.stats().kv_tokens == 0
    for request_id, story in transcript.stories.items():
        if isinstance(story.end, Finished):
            assert len(story.tokens) == wanted[request_id].sampling.max_tokens
        else:
            assert isinstance(story.end, Aborted)


def test_a_stop_token_ends_the_generation_and_is_part_of_it(engines):
    whole = generate(engines[0], greedy(PROMPT, 20))
    stop = whole.tokens[7]
    story = generate(engines[0], Request(f"r{next(fresh)}", PROMPT, Sampling.greedy(20, [stop])))
    end = whole.tokens.index(stop) + 1
    assert_same(story, whole.tokens[:end], whole.logprobs[:end])
    assert isinstance(story.end, Finished) and story.end.reason == "stop"


def test_sampled_logprobs_are_the_models_own_whatever_the_temperature(engines, checkpoints):
    sampling = Sampling(12, temperature=2.0, top_p=0.9, seed=3)
    sampled = generate(engines[0], Request(f"r{next(fresh)}", PROMPT, sampling))
    again = generate(engines[1], Request(f"r{next(fresh)}", PROMPT, sampling))
    assert_same(again, sampled.tokens, sampled.logprobs)
    assert sampled.logprobs == pytest.approx(scored(checkpoints[0], PROMPT, sampled.tokens), abs=1e-4)


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ([], "prompt must have 1 to 511 elements, got 0"),
        ([1] * 512, "got 512: .* - a prompt leaves room for a reply within max_model_len"),
        ([1, 512], r"prompt must lie in \[0, 511\], got 512"),
    ],
)
def test_a_request_that_cannot_be_served_fails_with_the_reason(engines, prompt, why):
    bad, good = greedy(prompt, 5), greedy([1, 2], 5)
    transcript = Transcript()
    engines[0].submit([bad, good])
    transcript.read_until_ended(engines[0], [bad.id, good.id])
    end = transcript.stories[bad.id].end
    assert isinstance(end, Failed)
    assert re.search(why, end.error)
    assert isinstance(transcript.stories[good.id].end, Finished)


def test_a_generation_ends_where_the_context_ends(engines):
    story = generate(engines[0], greedy([3] * 500, 100))
    assert len(story.tokens) == 12
    assert isinstance(story.end, Finished) and story.end.reason == "length"


def test_a_paused_engine_goes_on_where_it_stopped(engines):
    engine, transcript = engines[0], Transcript()
    whole = generate(engine, greedy(PROMPT, 100))
    request = greedy(PROMPT, 100)
    engine.submit([request])
    transcript.read_until_tokens(engine, request.id, 10)
    engine.pause()
    transcript.add(engine.next_events(0))
    assert engine.next_events(0.1) == []
    stats = engine.stats()
    assert stats.paused and stats.in_flight == 1 and 0 < stats.kv_tokens <= stats.kv_capacity
    engine.resume()
    transcript.read_until_ended(engine, [request.id])
    assert_same(transcript.stories[request.id], whole.tokens, whole.logprobs)


def test_a_released_engine_gives_its_memory_back_and_serves_again_after_load_and_wake(engines, checkpoints):
    engine = engines[0]
    before = generate(engine, greedy(PROMPT, 50))
    assert engine.parameter_bytes() > 0
    report = engine.release()
    assert report.freed_bytes > 0.9 * KV_BYTES
    assert report.seconds < 5
    assert engine.parameter_bytes() == 0
    assert engine.stats().state is EngineState.RELEASED
    for call in (lambda: engine.submit([greedy([1], 1)]), engine.wake_kv, lambda: engine.canary([1])):
        with pytest.raises(NotServableError, match="'released': call load_weights, then wake_kv"):
            call()
    assert engine.release().freed_bytes == 0
    engine.load_file(weights_file(checkpoints[0]))
    with pytest.raises(NotServableError, match="KV cache asleep': call wake_kv"):
        engine.submit([greedy([1], 1)])
    assert -engine.wake_kv().freed_bytes > 0.9 * KV_BYTES
    after = generate(engine, greedy(PROMPT, 50))
    assert_same(after, before.tokens, before.logprobs)


def test_memory_is_not_released_under_a_running_request(engines):
    engine = engines[0]
    request = greedy(PROMPT, 400)
    engine.submit([request])
    engine.pause()
    with pytest.raises(BusyError, match=r"running=\d, now\.waiting=\d .*'release memory'"):
        engine.release()
    with pytest.raises(BusyError, match="'load weights'"):
        engine.load_weights([])
    engine.resume()
    assert engine.abort() == [request.id]


def test_new_weights_change_digest_canary_and_output_and_no_stale_prefix_survives(engines, checkpoints):
    from safetensors.torch import load_file

    from roll_ts.weights.digest import digest

    first, second = engines
    old = generate(first, greedy(PROMPT, 30))
    canary = first.canary(PROMPT)
    sent = digest(load_file(weights_file(checkpoints[1])).items())
    assert first.digest() != sent
    assert first.load_file(weights_file(checkpoints[1])) == sent == first.digest()
    assert first.canary(PROMPT).logprobs != pytest.approx(canary.logprobs, abs=1e-2)
    new = generate(first, greedy(PROMPT, 30))
    assert new.tokens != old.tokens
    assert_same(new, *reference(checkpoints[1], PROMPT, 30))
    second.load_file(weights_file(checkpoints[1]))
    assert first.canary(PROMPT) == second.canary(PROMPT)


def test_requests_kept_over_a_load_leave_no_prefix_for_later_ones(engines, checkpoints):
    engine, transcript = engines[0], Transcript()
    kept = greedy(PROMPT, 120)
    engine.submit([kept])
    transcript.read_until_tokens(engine, kept.id, 10)
    engine.pause()
    engine.load_file(weights_file(checkpoints[1]), keep_kv=True)
    engine.resume()
    later = generate(engine, greedy(PROMPT, 30))
    assert_same(later, *reference(checkpoints[1], PROMPT, 30))
    transcript.read_until_ended(engine, [kept.id])
    story = transcript.stories.get(kept.id)
    assert story is not None and len(story.tokens) <= 120


def test_an_incomplete_load_is_refused_and_can_be_repaired(engines, checkpoints):
    engine = engines[0]
    before = generate(engine, greedy(PROMPT, 20))
    with pytest.raises(ValueError, match=r"absent must be empty, .* \(len\(absent\)=3, len\(shapes\)=\d+\)"):
        engine.load_file(weights_file(checkpoints[1]), drop=3)
    with pytest.raises(NotServableError, match="no valid weights"):
        engine.submit([greedy([1], 1)])
    engine.load_file(weights_file(checkpoints[0]))
    after = generate(engine, greedy(PROMPT, 20))
    assert_same(after, before.tokens, before.logprobs)


def test_a_broadcast_reaches_both_engines_and_its_digest_is_the_senders(engines, checkpoints, monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    from safetensors.torch import load_file

    from roll_ts.weights.broadcast import WeightGroup
    from roll_ts.weights.rendezvous import GroupSpec, open_store

    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    store = open_store("127.0.0.1")
    spec = GroupSpec(1, "127.0.0.1", store.port, ("trainer", "engine-0", "engine-1"), timeout_s=30)
    with ThreadPoolExecutor(2) as pool:
        got = [pool.submit(engine.load_broadcast, spec, f"engine-{i}") for i, engine in enumerate(engines)]
        group = WeightGroup(spec, "trainer", store)
        sent = group.send(load_file(weights_file(checkpoints[1])).items(), bucket_bytes=100_000)
        assert [answer.result(30) for answer in got] == [sent, sent]
        group.close()
    assert_same(generate(engines[1], greedy(PROMPT, 10)), *reference(checkpoints[1], PROMPT, 10))


def test_a_tied_head_follows_its_embedding(tied_engine, tied_checkpoints):
    engine = tied_engine
    assert_same(generate(engine, greedy(PROMPT, 10)), *reference(tied_checkpoints[0], PROMPT, 10))
    engine.load_file(weights_file(tied_checkpoints[1]))
    assert_same(generate(engine, greedy(PROMPT, 10)), *reference(tied_checkpoints[1], PROMPT, 10))
    engine.release()
    engine.load_file(weights_file(tied_checkpoints[0]))
    engine.wake_kv()
    assert_same(generate(engine, greedy(PROMPT, 10)), *reference(tied_checkpoints[0], PROMPT, 10))


def test_a_failing_step_surfaces_with_its_traceback(tied_engine):
    engine, transcript = tied_engine, Transcript()
    engine.break_next_step()
    request = greedy(PROMPT, 5)
    engine.submit([request])
    transcript.read_until_ended(engine, [request.id])
    end = transcript.stories[request.id].end
    assert isinstance(end, Failed) and "fell off the bus" in end.error
    with pytest.raises(EngineDeadError, match=r"(?s)Traceback.*fell off the bus"):
        engine.next_events(1.0)
