import pytest
import torch

pytestmark = [pytest.mark.engines, pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU needs no stand-ins")]


def test_the_stand_ins_answer_for_cuda_and_go_away_again() -> None:
    from roll_ts.trainers.megatron_cpu import install

    before = torch.cuda.current_device
    undo = install()
    assert torch.cuda.current_device() == torch.device("cpu")
    undo()
    assert torch.cuda.current_device is before


def test_inside_the_mode_cuda_means_the_cpu() -> None:
    from roll_ts.trainers.megatron_cpu import cuda_as_cpu

    with cuda_as_cpu():
        made = torch.zeros(2, device="cuda")
        assert made.cuda() is made
        assert made.type() == "torch.cuda.FloatTensor"
        assert torch.ones(1, device="cpu").device.type == "cpu"
    assert made.device.type == "cpu"
    assert made.type() == "torch.FloatTensor"
