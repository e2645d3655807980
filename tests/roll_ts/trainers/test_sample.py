from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.trainers.sample import Sample, SampleBuilder, from_json, pack, to_json, unpack


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    builder = SampleBuilder()
    builder.give(draw(st.lists(st.integers(0, 60), min_size=1, max_size=5)))
    for version in draw(st.lists(st.integers(0, 9), max_size=4)):
        logprobs = draw(st.lists(st.floats(-30, 0, width=32), max_size=6))
        builder.generate(list(range(len(logprobs))), logprobs, version)
        builder.give(draw(st.lists(st.integers(0, 60), max_size=3)))
    return builder.finish(
        group=draw(st.text(max_size=5)),
        trajectory=draw(st.text(max_size=5)),
        reward=draw(st.floats(-5, 5)),
        success=draw(st.booleans()),
        truncated=draw(st.booleans()),
        turns=draw(st.integers(0, 9)),
        extra=draw(st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)),
    )


def same(a: Sample, b: Sample) -> bool:
    arrays = ("tokens", "loss_mask", "logprobs", "versions")
    scalars = ("group", "trajectory", "reward", "success", "truncated", "turns", "extra")
    return all(
        getattr(a, n).dtype == getattr(b, n).dtype and np.array_equal(getattr(a, n), getattr(b, n)) for n in arrays
    ) and all(getattr(a, n) == getattr(b, n) for n in scalars)


@settings(deadline=None, derandomize=True)
@given(samples())
def test_a_json_line_reads_back_bit_for_bit(sample: Sample) -> None:
    line = to_json(sample)
    assert "\n" not in line
    assert same(from_json(line), sample)


@settings(deadline=None, derandomize=True)
@given(st.lists(samples(), max_size=4))
def test_a_packed_batch_reads_back_bit_for_bit(batch: list[Sample]) -> None:
    back = unpack(pack(batch))
    assert len(back) == len(batch)
    assert all(same(a, b) for a, b in zip(back, batch, strict=True))


def test_the_builder_marks_what_was_generated_and_with_which_weights() -> None:
    builder = SampleBuilder()
    builder.give([1, 2])
    builder.generate([3], [-0.5], version=4)
    builder.generate([5], [-0.25], version=6)
    builder.give([7])
    sample = builder.finish(group="g", trajectory="t", reward=1.0)
    assert sample.tokens.tolist() == [1, 2, 3, 5], "what follows the last generated token is left out"
    assert sample.loss_mask.tolist() == [False, False, True, True]
    assert sample.logprobs.tolist() == [0, 0, -0.5, -0.25]
    assert sample.versions.tolist() == [-1, -1, 4, 6]
    assert (len(sample), sample.generated, sample.oldest_version) == (4, 2, 4)


def test_a_logprob_rounded_above_zero_counts_as_zero_but_a_positive_one_is_a_fault() -> None:
    builder = SampleBuilder()
    builder.give([1])
    builder.generate([2], [1e-7], version=0)
    assert builder.finish(group="g", trajectory="t", reward=0.0).logprobs[1] == 0
    builder.generate([3], [0.1], version=0)
    with pytest.raises(ValueError, match=r"got \{2: 0\.1\d*\} .* a generated token has a finite log-prob <= 0"):
        builder.finish(group="g", trajectory="t", reward=0.0)


def test_a_segment_needs_a_logprob_for_each_token() -> None:
    with pytest.raises(ValueError, match="got 2 and 1"):
        SampleBuilder().generate([1, 2], [-0.1], version=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"logprobs": [0, -1]}, r"got \(2,\) and \(3,\) \(.*name='logprobs'"),
        ({"tokens": [[1, 2, 3]]}, r"must have shape \(\*\), got \(1, 3\)"),
        ({"loss_mask": [True, True, False]}, r"got \{0: 1\} .*nothing precedes it"),
        ({"logprobs": [0, float("nan"), 0]}, r"got \{1: nan\} .*finite log-prob <= 0"),
        ({"logprobs": [0, -1, -1]}, r"got \{2: -1\.0\} .*a given token has log-prob 0"),
        ({"versions": [-1, -1, -1]}, r"got \{1: -1\} .*a weight version >= 0"),
        ({"versions": [0, 0, -1]}, r"\(versions=\{0: 0\}.*a given token has log-prob 0 and version -1"),
        ({"reward": float("inf")}, "reward must be finite, got inf"),
    ],
)
def test_a_broken_invariant_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "tokens": [1, 2, 3],
        "loss_mask": [False, True, False],
        "logprobs": [0, -1, 0],
        "versions": [-1, 0, -1],
        "reward": 0.0,
    }
    Sample(**good, group="g", trajectory="t7")
    with pytest.raises(ValueError, match=message) as caught:
        Sample(**{**good, **change}, group="g", trajectory="t7")
    assert "self.trajectory='t7'" in str(caught.value)


def test_a_record_that_lacks_a_field_names_it() -> None:
    with pytest.raises(ValueError, match=r"lacks \['loss_mask', 'logprobs', 'group'"):
        from_json('{"tokens": [], "versions": []}')


def test_an_inconsistent_packed_batch_is_refused() -> None:
    packed = pack([])
    packed["lengths"] = np.array([3])
    with pytest.raises(ValueError, match="got 0 and 1 - the packed batch is inconsistent"):
        unpack(packed)
    packed = pack([Sample([1], [False], [0], [-1], group="g", trajectory="t", reward=0.0)])  # type: ignore[arg-type]
    packed["lengths"] = np.array([3])
    with pytest.raises(ValueError, match=r"equal tokens \(1\), got 3 - the packed batch is inconsistent"):
        unpack(packed)
