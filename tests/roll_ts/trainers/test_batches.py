import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.trainers.batches import MicroBatch, collate, plan
from roll_ts.trainers.sample import SampleBuilder

LENGTHS = st.lists(st.integers(1, 300), max_size=40)


@settings(deadline=None, derandomize=True)
@given(LENGTHS, st.integers(1, 2000), st.sampled_from([1, 16, 32]), st.integers(1, 4))
def test_r18_every_sample_is_trained_on_exactly_once(
    lengths: list[int], max_tokens: int, bucket: int, ranks: int
) -> None:
    dealt = plan(lengths, max_tokens, bucket, ranks)
    assert len(dealt) == ranks
    assert sorted(row for batches in dealt for b in batches for row in b.rows) == list(range(len(lengths)))


@settings(deadline=None, derandomize=True)
@given(LENGTHS, st.integers(1, 2000), st.sampled_from([1, 16, 32]), st.integers(1, 4))
def test_a_micro_batch_fits_its_rows_and_the_bound(
    lengths: list[int], max_tokens: int, bucket: int, ranks: int
) -> None:
    for batch in (b for batches in plan(lengths, max_tokens, bucket, ranks) for b in batches):
        assert max(lengths[i] for i in batch.rows) <= batch.length < max(lengths[i] for i in batch.rows) + bucket
        assert batch.length % bucket == 0
        assert batch.cost <= max_tokens or len(batch.rows) == 1


def test_work_is_shared_evenly_and_no_rank_idles_while_there_are_samples() -> None:
    dealt = plan([100] * 8, max_tokens=10_000, bucket=1, ranks=2)
    assert [sum(b.cost for b in batches) for batches in dealt] == [400, 400]
    assert [len(batches) for batches in plan([5, 5, 5], 10_000, 1, ranks=3)] == [1, 1, 1]


def test_padding_is_outside_the_mask_and_targets_are_shifted_by_one() -> None:
    builder = SampleBuilder()
    builder.give([7])
    builder.generate([8, 9], [-0.5, -0.25], version=3)
    sample = builder.finish(group="g", trajectory="t", reward=0.0)
    data = collate([sample], MicroBatch((0,), 5))
    assert data.tokens.tolist() == [[7, 8, 9, 0, 0]]
    assert data.mask.tolist() == [[True, True, False, False]]
    assert np.allclose(data.behaviour_logprobs, [[-0.5, -0.25, 0, 0]])
    assert data.versions.tolist() == [[3, 3, -1, -1]]


def test_a_batch_without_rows_is_one_row_of_padding() -> None:
    data = collate([], MicroBatch((), 4))
    assert data.tokens.shape == (1, 4) and not data.mask.any()
