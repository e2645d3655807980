from __future__ import annotations

import runpy
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[3] / "bench" / "documents.py"


@pytest.mark.slow
def test_five_hundred_methods_take_under_a_second_and_time_grows_linearly() -> None:
    measure = runpy.run_path(str(BENCH))["measure"]
    measure(50)
    small = min(sum(measure(250)[1].values()) for _ in range(3))
    lines, seconds = min((measure(500) for _ in range(3)), key=lambda result: sum(result[1].values()))
    large = min(sum(measure(1000)[1].values()) for _ in range(2))
    assert lines > 10_000
    assert sum(seconds.values()) < 1.0
    assert large / small < 4 * 1.6
