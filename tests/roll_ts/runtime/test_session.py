"""A session removes what it started and nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from roll_ts.config import RayOptions
from roll_ts.runtime.session import ray_session


@pytest.mark.engines
def test_a_process_that_was_there_before_the_session_outlives_it():
    ray = pytest.importorskip("ray")
    if ray.is_initialized():
        pytest.skip("the Ray that other tests share is left alone by a session")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        with ray_session(RayOptions()) as left:
            pass
        assert bystander.poll() is None
        assert bystander.pid not in left.processes
        bystander.communicate(b"\n", timeout=10)
    assert bystander.returncode == 0
