"""A simulation's file: everything that is wrong, at once, with the way to mend it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from roll_ts.core.settings import Problem
from roll_ts.sim.config import SimulationConfig, load_simulation
from roll_ts.sim.cost import DENSE_8B

FOUR_GPUS = Path(__file__).parents[3] / "examples" / "four_gpus.yaml"


def load(tmp_path: Path, change: dict[str, Any]) -> SimulationConfig | list[Problem]:
    """The example with dotted keys set; None removes."""
    data = yaml.safe_load(FOUR_GPUS.read_text())
    for key, value in change.items():
        at = data
        *parents, last = [int(part) if part.isdigit() else part for part in key.split(".")]
        for part in parents:
            at = at[part]
        if value is None:
            del at[last]
        else:
            at[last] = value
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump(data))
    return load_simulation(path)


def problems(tmp_path: Path, change: dict[str, Any]) -> dict[str, Problem]:
    found = load(tmp_path, change)
    assert isinstance(found, list), "the file was taken"
    return {problem.key: problem for problem in found}


def test_the_example_is_sound() -> None:
    config = load_simulation(FOUR_GPUS)
    assert isinstance(config, SimulationConfig)
    assert [scheme.title for scheme in config.schemes] == ["co-located", "best static split", "time-sharing"]
    assert [config.settings(scheme).async_ratio for scheme in config.schemes] == [0.0, 1.0, 1.0]
    assert config.cost_model() == DENSE_8B, "the example shows what the preset's own costs give"


def test_the_example_of_scarce_devices_differs_in_its_costs_and_says_which() -> None:
    config = load_simulation(FOUR_GPUS.with_name("scarce_gpus.yaml"))
    assert isinstance(config, SimulationConfig)
    assert config.cost_model().sequence_seconds == 0.002


def test_six_mistakes_give_six_findings_in_one_report(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        {
            "stpes": 3,
            "rollout.group_size": "many",
            "schemes.0.policy": "colocatd",
            "workload.preset": "sweet",
            "cost.step_secnds": 0.1,
            "deadlines": {"drain": "soon"},
        },
    )
    assert set(found) == {
        "stpes", "rollout.group_size", "schemes[0].policy", "workload.preset", "cost.step_secnds", "deadlines.drain",
    }  # fmt: skip
    assert "'steps'" in found["stpes"].fix and "'colocated'" in found["schemes[0].policy"].fix
    assert "'step_seconds'" in found["cost.step_secnds"].fix


@pytest.mark.parametrize(
    ("change", "key", "said"),
    [
        ({"steps": 0}, "steps", "at least 1"),
        ({"schemes": []}, "schemes", "nothing to simulate"),
        ({"rollout.async_ratio": 1, "schemes.0.async_ratio": None}, "rollout.async_ratio", "synchronous"),
        ({"schemes.0.async_ratio": 2}, "schemes[0].async_ratio", "synchronous"),
        ({"schemes.1.name": "co-located"}, "schemes[1].name", "used twice"),
        ({"schemes.2.train_devices": [0, 1, 2, 3]}, "schemes[2].train_devices", "every rank would be lent"),
        ({"schemes.2.ranks": [[0, 0], [1], [2]]}, "schemes[2].ranks[0]", "named twice"),
        ({"rollout.group_size": 1}, "rollout.group_size", "at least 2"),
        ({"cost.kv_capacity": 0}, "cost.kv_capacity", "must be positive"),
        ({"cost.preset": "abacus"}, "cost.preset", "no cost model"),
        ({"cost.release_seconds": -1}, "cost.release_seconds", "must not be negative"),
        ({"workload.times_turns": 0}, "workload.times_turns", "must be positive"),
        ({"workload.success_end": 1.5}, "workload.success_end", "no probability"),
        ({"workload.tables": {"turns": {0: 5, 1: 2}}}, "workload.turns", "must not fall"),
        ({"workload.tables": {"turn": {0: 1, 1: 2}}}, "workload.tables.turn", "no distribution"),
        ({"workload.tables": {"turns": {"half": 1, 1: 2}}}, "workload.tables.turns", "no probability"),
        ({"deadlines": {"drain": 0}}, "deadlines.drain", "must be positive"),
        ({"rollout": None}, "rollout", "missing"),
    ],
)
def test_a_mistake_is_named_by_its_key(tmp_path: Path, change: dict[str, Any], key: str, said: str) -> None:
    found = problems(tmp_path, change)
    assert key in found, f"{key} is not among {list(found)}"
    assert said in found[key].wrong and found[key].fix


def test_a_shared_mistake_is_told_once_for_all_schemes(tmp_path: Path) -> None:
    found = load(tmp_path, {"rollout.max_turns": 0})
    assert isinstance(found, list) and [problem.key for problem in found] == ["rollout.max_turns"]


def test_a_missing_file_and_bad_yaml_are_problems_too(tmp_path: Path) -> None:
    (missing,) = load_simulation(tmp_path / "none.yaml")  # type: ignore[misc]
    assert missing.key == "(file)"
    path = tmp_path / "bad.yaml"
    path.write_text("steps: [1\n")
    (bad,) = load_simulation(path)  # type: ignore[misc]
    assert "is not YAML" in bad.wrong


@pytest.mark.parametrize("preset", ["h100", [], {}, 5, None])
def test_a_preset_of_costs_that_is_none_is_told(tmp_path: Path, preset: object) -> None:
    found = load(tmp_path, {"cost": {"preset": preset}})
    assert isinstance(found, list) and [problem.key for problem in found] == ["cost.preset"]


def test_tables_replace_a_distribution_and_factors_scale_the_rest(tmp_path: Path) -> None:
    change = {"workload": {"preset": "swe", "times_turns": 0.5, "tables": {"reset_seconds": {0: 1, 1: 3}}, "seed": 4}}
    config = load(tmp_path, change)
    assert isinstance(config, SimulationConfig)
    work = config.work()
    assert (work.seed, work.turns.at(0.5), work.reset_seconds.at(0.5)) == (4, 18.0, 2.0)
