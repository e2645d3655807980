"""What a process is told about its devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from roll_ts.config import RunConfig
from roll_ts.config_file import load_config
from roll_ts.runtime._devices import engine_config, engine_environment, pin_process, trainer_environment

EXAMPLE = Path(__file__).parents[3] / "examples" / "two_devices_time_sharing.yaml"


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    config = load_config(EXAMPLE)
    assert isinstance(config, RunConfig)
    return config


def test_on_cpu_a_rank_gets_its_core_and_no_gpu(config: RunConfig, tmp_path: Path) -> None:
    engine = engine_config(config, 1, str(tmp_path))
    assert (engine.device, engine.cores, engine.tensor_parallel) == ("cpu", (1,), 1)
    variables = engine_environment(engine, config.layout.ranks[1])
    assert variables["CUDA_VISIBLE_DEVICES"] == "" and variables["OMP_NUM_THREADS"] == "1"
    assert trainer_environment("cpu", 1)["CUDA_VISIBLE_DEVICES"] == ""


def test_on_cuda_a_rank_sees_its_gpus_only_and_is_not_pinned(
    tmp_path: Path, config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for gpu in range(6):
        (tmp_path / "gpus" / str(gpu)).mkdir(parents=True)
    monkeypatch.setattr("roll_ts.config_check._GPUS", tmp_path / "gpus")
    changed = load_config(EXAMPLE, ["layout.device=cuda", "layout.ranks=[[2, 3], [5]]", "layout.train_devices=[5]"])
    assert isinstance(changed, RunConfig)
    engine = engine_config(changed, 0, str(tmp_path))
    assert (engine.device, engine.cores, engine.tensor_parallel) == ("cuda", (), 2)
    assert engine_environment(engine, changed.layout.ranks[0])["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert trainer_environment("cuda", 5)["CUDA_VISIBLE_DEVICES"] == "5"


def test_an_engine_starts_without_proven_weights(config: RunConfig, tmp_path: Path) -> None:
    assert not engine_config(config, 0, str(tmp_path)).initial_weights


def test_pinning_binds_every_thread_of_the_process_and_those_to_come() -> None:
    code = """
import os, threading
from roll_ts.runtime._devices import pin_process
gate, seen = threading.Event(), []
def look():
    gate.wait()
    seen.append(os.sched_getaffinity(0))
before = threading.Thread(target=look)
before.start()
pin_process((0,))
gate.set()
after = threading.Thread(target=look)
after.start()
before.join(), after.join()
assert seen == [{0}, {0}] and os.sched_getaffinity(0) == {0}, seen
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_core_that_the_machine_lacks_is_refused_and_nothing_is_pinned() -> None:
    before = os.sched_getaffinity(0)
    with pytest.raises(ValueError, match="9999"):
        pin_process((0, 9999))
    assert os.sched_getaffinity(0) == before
