"""Two real processes, tensor and data parallel, against one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.distributed import HashStore

from roll_ts.trainers.protocol import TrainerConfig
from roll_ts.trainers.scratch import make_model
from tests.roll_ts.trainers.helpers import TINY

pytestmark = [pytest.mark.engines, pytest.mark.slow]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what two processes and one process made of the same samples."""
    from roll_ts.trainers.megatron import MegatronTrainer
    from tests.roll_ts.trainers.parallel_worker import SETTINGS, run

    out = tmp_path_factory.mktemp("parallel")
    model = make_model(out / "model", 0, TINY)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_COMPILE_DISABLE": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-W", "ignore", "-m", "tests.roll_ts.trainers.parallel_worker"]
    root = Path(__file__).parents[3]
    ranks = [
        subprocess.Popen([*command, str(rank), str(model), str(out)], env=environment, cwd=root) for rank in range(2)
    ]
    try:
        codes = [rank.wait(timeout=150) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert codes == [0, 0]
    trainer = MegatronTrainer(TrainerConfig(model=str(model), **SETTINGS), 0, 1, HashStore())  # type: ignore[arg-type]
    (out / "alone.json").write_text(json.dumps(run(trainer)))
    torch.save(trainer.export(), out / "alone.pt")
    trainer.close()
    return out


@pytest.mark.parametrize("layout", ["tp2", "dp2", "dp2-distributed"])
def test_two_ranks_train_as_one(outcome: Path, layout: str) -> None:
    ours, alone = (json.loads((outcome / f"{n}.json").read_text()) for n in (layout, "alone"))
    assert ours == pytest.approx(alone, rel=1e-3, abs=1e-5)
    weights, expected = (torch.load(outcome / f"{n}.pt", weights_only=True) for n in (layout, "alone"))
    assert set(weights) == set(expected)
    for name, tensor in expected.items():
        # Adam's early steps are about lr * sign(gradient): where a gradient is all but zero, rounding decides the sign
        assert ((weights[name] - tensor).abs() > 1e-5).float().mean() < 0.01, name


@pytest.mark.parametrize("layout", ["tp2", "dp2", "dp2-distributed"])
def test_each_rank_saves_its_own_optimizer_state(outcome: Path, layout: str) -> None:
    files = {p.name for p in (outcome / f"checkpoint-{layout}").iterdir()}
    assert {"optimizer-0.pt", "optimizer-1.pt", "model.safetensors", "trainer.json"} <= files
