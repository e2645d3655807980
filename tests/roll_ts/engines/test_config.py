import os
import subprocess
import sys

import pytest

from roll_ts.engines.config import EngineConfig, prepare_process, process_env
from roll_ts.engines.protocol import Sampling


@pytest.fixture
def model(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    return str(tmp_path)


def test_all_mistakes_are_found_in_one_report(tmp_path):
    with pytest.raises(ValueError) as found:
        EngineConfig(model=str(tmp_path), device="tpu", dtype="float8", max_num_seqs=0, tick_s=0.0, tensor_parallel=-1)
    for key in ("model", "device", "dtype", "max_num_seqs", "tick_s", "tensor_parallel"):
        assert f"{key}: " in str(found.value)


def test_cores_that_do_not_exist_are_named(model, monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(ValueError, match=r"config\.cores must lie in \[0, \d+\], got 4096"):
        prepare_process(EngineConfig(model=model, cores=(4096,)))


def test_a_cuda_engine_gets_no_cpu_settings(model):
    cuda = process_env(EngineConfig(model=model, device="cuda"))
    cpu = process_env(EngineConfig(model=model, cores=(0,)))
    assert set(cpu) - set(cuda) == {
        "OMP_NUM_THREADS",
        "VLLM_CPU_OMP_THREADS_BIND",
        "TORCH_COMPILE_DISABLE",
        "GLOO_SOCKET_IFNAME",
    }
    assert cuda["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"


def run_in_a_fresh_process(code: str, model: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "VLLM_", "TORCH"))}
    start = f"import os, sys, types\nfrom roll_ts.engines.config import *\nmodel = {model!r}\n"
    return subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, env=env)


def test_prepare_process_pins_and_sets_the_environment_without_importing_torch(model):
    core = min(os.sched_getaffinity(0))
    code = f"""
prepare_process(EngineConfig(model=model, cores=({core},)))
import roll_ts.engines.vllm
print(os.sched_getaffinity(0), os.environ['OMP_NUM_THREADS'], 'torch' in sys.modules, 'vllm' in sys.modules)
"""
    assert run_in_a_fresh_process(code, model).stdout.split("\n")[0] == f"{{{core}}} 1 False False"


def test_prepare_process_refuses_to_come_after_torch(model):
    code = """
sys.modules['torch'] = types.ModuleType('torch')
prepare_process(EngineConfig(model=model))
"""
    done = run_in_a_fresh_process(code, model)
    assert done.returncode == 1
    assert "too_late must be empty" in done.stderr and "OMP_NUM_THREADS" in done.stderr


@pytest.mark.parametrize(
    "bad", [{"max_tokens": 0}, {"temperature": -0.1}, {"top_p": 0.0}, {"temperature": float("nan")}]
)
def test_sampling_out_of_range_is_refused_by_name(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        Sampling(**{"max_tokens": 1, **bad})
