from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.trainers.memory import Parking


@settings(deadline=None, derandomize=True, max_examples=30)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=5), st.integers(0, 2**31))
def test_what_was_kept_comes_back_bit_for_bit_into_the_same_tensors(sizes: list[int], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    tensors = [torch.randn(n, generator=generator) for n in sizes]
    before, views = [t.clone() for t in tensors], [t[:1] for t in tensors]
    parking = Parking()
    assert parking.give_back(tensors, keep=True) == 4 * sum(sizes) == parking.nbytes
    assert all(t.untyped_storage().nbytes() == 0 for t in tensors)
    assert parking.take_back() == 4 * sum(sizes)
    assert all(torch.equal(a, b) for a, b in zip(tensors, before, strict=True))
    assert all(torch.equal(v, b[:1]) for v, b in zip(views, before, strict=True))
    parking.close()


def test_what_was_not_kept_comes_back_as_zeros() -> None:
    tensor = torch.ones(3)
    parking = Parking()
    parking.give_back([tensor], keep=False)
    parking.take_back()
    assert tensor.tolist() == [0, 0, 0]


def test_a_shared_storage_counts_once_and_a_second_release_frees_nothing() -> None:
    tensor = torch.ones(8)
    parking = Parking()
    assert parking.give_back([tensor, tensor[2:], tensor.view(2, 4)], keep=True) == 32
    assert parking.give_back([tensor], keep=True) == 0
    parking.close()


def test_spilled_files_have_no_name_so_a_killed_process_leaves_none(tmp_path: Path) -> None:
    parking = Parking(folder=tmp_path)
    parking.give_back([torch.ones(4)], keep=True)
    assert not list(tmp_path.iterdir())
    parking.close()
    assert parking.nbytes == 0


def test_a_storage_that_cannot_be_resized_is_refused_and_keeps_its_bits() -> None:
    tensor = torch.from_numpy(np.ones(4, np.float32))
    with pytest.raises(RuntimeError, match=r"\(size=16\) - shared with numpy or a file"):
        Parking().give_back([tensor], keep=True)
    assert tensor.tolist() == [1, 1, 1, 1]


def test_parked_bits_can_be_given_back_and_taken_back_again(tmp_path: Path) -> None:
    tensor = torch.arange(5.0)
    parking = Parking(folder=tmp_path)
    for _ in range(3):
        parking.give_back([tensor], keep=True)
        parking.take_back()
    assert tensor.tolist() == [0, 1, 2, 3, 4]
