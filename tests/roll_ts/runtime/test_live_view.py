"""The live view: a line per step without a terminal, a drawing with one."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from roll_ts.config import RunConfig
from roll_ts.config_file import load_config
from roll_ts.core import alphabet as a
from roll_ts.core.policies import make_policy
from roll_ts.core.scheduler import Scheduler
from roll_ts.runtime._live_view import LiveView, sparkline

EXAMPLE = Path(__file__).parents[3] / "examples" / "two_devices_time_sharing.yaml"


def trained(version: int, success: float) -> a.TrainingFinished:
    figures = {"success_rate": success, "mean_reward": 2 * success, "logprob_max": 1e-7, "logprob_share": 0.5}
    return a.TrainingFinished(epoch=1, version=version, digest="", seconds=1.0, figures=figures)


def view_on(terminal: bool) -> tuple[LiveView, io.StringIO]:
    config = load_config(EXAMPLE)
    assert isinstance(config, RunConfig)
    scheduler = Scheduler(config.settings(), make_policy(config.policy))
    scheduler.handle(a.TrajectoriesWanted(until=3), 0.0)
    out = io.StringIO()
    run = SimpleNamespace(config=config, scheduler=scheduler, now=lambda: 12.0)
    return LiveView(run, Console(file=out, force_terminal=terminal, width=100)), out  # type: ignore[arg-type]


def test_without_a_terminal_each_step_is_one_line() -> None:
    view, out = view_on(terminal=False)
    with view.shown():
        view.watch(1.0, trained(1, 0.25), [])
        view.watch(2.0, a.Progress(attempt=a.AttemptId(1, 1, 1), total=1), [])
        view.watch(3.0, trained(2, 0.5), [])
    first, second = out.getvalue().splitlines()
    assert "step 1/3" in first and "success 0.250" in first
    assert "step 2/3" in second and "reward 1.000" in second


def test_with_a_terminal_ranks_states_and_curves_are_drawn() -> None:
    view, out = view_on(terminal=True)
    with view.shown():
        view.watch(1.0, trained(1, 0.25), [])
        view.watch(2.0, trained(2, 0.5), [])
        view._console.print(view._draw())
    drawn = out.getvalue()
    assert drawn.count("BOOTING") >= 2 and "▁█ 0.500" in drawn and "two-devices" in drawn


@pytest.mark.parametrize(
    ("values", "drawn"),
    [([], "-"), ([0.5], "▁ 0.500"), ([0.0, 0.5, 1.0], "▁▅█ 1.000"), ([1.0, 1.0], "▁▁ 1.000")],
)
def test_a_curve_goes_from_its_least_to_its_greatest_value(values: list[float], drawn: str) -> None:
    assert sparkline(values) == drawn


def test_a_long_curve_shows_its_latest_values() -> None:
    assert sparkline([float(i) for i in range(100)], width=3).endswith("█ 99.000")
    assert len(sparkline([0.0] * 100, width=3).split()[0]) == 3
