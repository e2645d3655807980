"""The example a newcomer runs first: three schemes, one table, one picture."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from roll_ts.observe.journal import read_journal
from roll_ts.sim.comparison import BadConfiguration, Comparison, simulate_config, simulate_file
from tests.roll_ts.sim.test_config import FOUR_GPUS


@pytest.fixture(scope="module")
def example() -> tuple[Comparison, list[str]]:
    told: list[str] = []
    comparison = simulate_file(FOUR_GPUS, told.append)
    comparison.text()
    return comparison, told


def test_each_scheme_is_named_as_it_begins(example: tuple[Comparison, list[str]]) -> None:
    assert example[1] == ["simulating co-located", "simulating best static split", "simulating time-sharing"]


def test_every_scheme_finishes_the_same_number_of_steps_and_regenerates_nothing(
    example: tuple[Comparison, list[str]],
) -> None:
    comparison = example[0]
    assert comparison.ok
    for run in comparison.runs:
        assert len(run.report.steps) == comparison.config.steps
        assert run.report.tokens.regenerated == run.report.tokens.lost == 0


def test_time_sharing_idles_least_and_co_location_most_but_one(
    example: tuple[Comparison, list[str]],
) -> None:
    idle = {run.scheme.policy: sum(s["idle"] for s in run.report.devices.values()) / 4 for run in example[0].runs}
    assert idle["time_sharing"] < idle["colocated"] and idle["time_sharing"] < idle["disaggregated"]
    steps = {run.scheme.policy: run.report.step_seconds for run in example[0].runs}
    assert steps["time_sharing"] < steps["disaggregated"] < steps["colocated"]
    migrations = {run.scheme.policy: run.report.tokens.migrations for run in example[0].runs}
    assert migrations["colocated"] == 0 < migrations["time_sharing"]


def test_the_folder_holds_picture_report_journals_and_timelines(
    example: tuple[Comparison, list[str]], tmp_path: Path
) -> None:
    comparison = example[0]
    files = comparison.write(tmp_path / "out")
    assert sorted(files) == sorted((tmp_path / "out").iterdir()) and len(files) == 9
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert list(report["schemes"]) == ["co-located", "best static split", "time-sharing"]
    assert read_journal(tmp_path / "out" / "time-sharing.journal.jsonl") == comparison.runs[2].journal
    assert "Three ways to share four GPUs" in (tmp_path / "out" / "picture.html").read_text()


def test_the_picture_in_the_documentation_is_the_one_that_the_example_gives(
    example: tuple[Comparison, list[str]], tmp_path: Path
) -> None:
    """`roll-ts simulate examples/four_gpus.yaml --out X`, then X/picture.svg."""
    example[0].write(tmp_path / "out")
    shown = FOUR_GPUS.parents[1] / "docs" / "pictures" / "three_schemes.svg"
    assert shown.read_text(encoding="utf-8") == (tmp_path / "out" / "picture.svg").read_text(encoding="utf-8")


def test_no_static_split_of_the_example_is_faster_than_the_one_that_is_called_the_best(
    example: tuple[Comparison, list[str]],
) -> None:
    config = example[0].config
    splits = [
        dataclasses.replace(
            config.schemes[1],
            name=f"{count} train",
            ranks=tuple((device,) for device in range(count, 4)),
            train_devices=tuple(range(count)),
        )
        for count in (1, 3)
    ]
    others = simulate_config(dataclasses.replace(config, schemes=tuple(splits))).runs
    best = example[0].runs[1].report.step_seconds
    assert all(run.report.step_seconds > best for run in others)


def test_a_bad_file_is_refused_with_all_its_problems(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("name: x\nsteps: 0\n")
    with pytest.raises(BadConfiguration, match="rollout = ") as caught:
        simulate_file(path)
    assert {problem.key for problem in caught.value.problems} == {"rollout", "schemes", "steps"}
