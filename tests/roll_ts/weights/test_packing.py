"""Buckets and the object-store form: whatever goes in comes out, name by name and bit by bit."""

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from roll_ts.weights.buckets import ALIGN, parse_header, split, views  # noqa: E402
from roll_ts.weights.digest import digest  # noqa: E402
from roll_ts.weights.object_store import pack, unpack  # noqa: E402

CPU = torch.device("cpu")
SHAPES = st.lists(st.integers(0, 5), max_size=3).map(tuple)
DTYPES = st.sampled_from([torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.uint8])
WEIGHTS = st.lists(st.tuples(SHAPES, DTYPES), max_size=8).map(
    lambda specs: [
        (f"w{i}", torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype) + 1)
        for i, (shape, dtype) in enumerate(specs)
    ]
)


@given(WEIGHTS, st.integers(1, 600))
@settings(deadline=None, derandomize=True)
def test_buckets_carry_every_tensor_unchanged(named, bucket_bytes):
    arrived = []
    for bucket in split(iter(named), bucket_bytes):
        assert bucket.nbytes <= bucket_bytes or len(bucket.tensors) == 1
        assert all(entry.offset % ALIGN == 0 for entry in bucket.entries)
        entries, nbytes = parse_header(bucket.header())
        assert (entries, nbytes) == (bucket.entries, bucket.nbytes)
        arrived += views(entries, bucket.flat(CPU))
    assert [(n, t.dtype, t.shape) for n, t in arrived] == [(n, t.dtype, t.shape) for n, t in named]
    assert digest(arrived) == digest(named)


@given(WEIGHTS)
@settings(deadline=None, derandomize=True)
def test_packed_tensors_unpack_unchanged(named):
    assert digest(unpack(pack(named))) == digest(named)


def test_a_lone_contiguous_tensor_is_not_copied_into_its_bucket():
    tensor = torch.ones(100)
    (bucket,) = split([("w", tensor)], 16)
    assert bucket.flat(CPU).data_ptr() == tensor.data_ptr()


def test_packing_shares_memory_and_tied_names_stay_two_names():
    tied = torch.ones(3)
    packed = pack([("embed", tied), ("head", tied)])
    assert [t.data_ptr() for _, t in unpack(packed)] == [tied.data_ptr()] * 2


def test_read_only_buffers_unpack_without_a_warning(recwarn):
    packed = pack([("w", torch.ones(3))])
    packed["w"].data.flags.writeable = False
    assert dict(unpack(packed))["w"].tolist() == [1, 1, 1]
    assert not recwarn.list


def test_packing_a_name_twice_is_refused():
    with pytest.raises(ValueError, match="got 'w' - a tensor comes once"):
        pack([("w", torch.ones(1)), ("w", torch.ones(1))])
