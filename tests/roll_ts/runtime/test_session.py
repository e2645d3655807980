"""A session removes what it started and nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

# In a process of its own, because the Ray that other tests share would be left alone by a session.
PROGRAM = """
import subprocess, sys
from roll_ts.config import RayOptions
from roll_ts.runtime.session import ray_session

with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
    with ray_session(RayOptions()) as left:
        pass
    assert bystander.poll() is None
    assert bystander.pid not in left.processes
    bystander.communicate(b"\\n", timeout=10)
assert bystander.returncode == 0
"""


@pytest.mark.engines
def test_a_process_that_was_there_before_the_session_outlives_it() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
