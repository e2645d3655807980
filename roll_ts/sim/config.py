"""The configuration of a simulation: one YAML file with the shared work and costs, and the schemes to compare on them.

`load_simulation` gives the configuration or every problem it has, each with key, value, what is wrong and how
to fix it (R31).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from roll_ts.config import RolloutOptions
from roll_ts.core.policies import policy_problems
from roll_ts.core.settings import Deadlines, Layout, Problem, Settings, check_settings
from roll_ts.sim import cost as costs
from roll_ts.sim import workload as workloads
from roll_ts.sim.cost import CostModel
from roll_ts.sim.workload import Quantiles, Workload
from roll_ts.typed_yaml import parse_yaml, read_checked

TABLES = (
    "turns", "prompt_tokens", "reply_tokens", "observation_tokens", "wait_seconds", "reset_seconds",
)  # fmt: skip
"""The distributions of a workload that a file may replace."""


@dataclass(frozen=True)
class WorkloadOptions:
    """A named workload, changed: turns, tokens per turn and waits multiplied by the `times_…` factors, and
    `tables` of {probability: value} in place of the preset's. `seed` chooses the episodes."""

    preset: Literal["swe", "long_tail", "frozen_lake"] = "long_tail"
    times_turns: float = 1.0
    times_tokens: float = 1.0
    times_waits: float = 1.0
    seed: int = 0
    success_start: float | None = None
    success_end: float | None = None
    success_versions: float | None = None
    tables: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Scheme:
    """One column of the comparison: a policy on a layout. `async_ratio` in place of the shared one."""

    policy: str
    ranks: tuple[tuple[int, ...], ...]
    train_devices: tuple[int, ...]
    name: str | None = None
    async_ratio: float | None = None

    @property
    def title(self) -> str:
        """What the scheme is called in tables and pictures."""
        return self.name or self.policy.replace("_", "-")


@dataclass(frozen=True)
class SimulationConfig:
    """One comparison. `steps` optimizer steps; `device` is the word for a device in the picture; `cost` holds
    fields of `CostModel` over those of its `preset`."""

    name: str
    steps: int
    rollout: RolloutOptions
    schemes: tuple[Scheme, ...]
    title: str = ""
    device: str = "GPU"
    seed: int = 0
    evaluation_episodes: int = 0
    cost: Mapping[str, Any] = field(default_factory=dict)
    workload: WorkloadOptions = field(default_factory=WorkloadOptions)
    deadlines: Deadlines = field(default_factory=Deadlines)

    def settings(self, scheme: Scheme) -> Settings:
        """The settings of the scheduler core under `scheme`."""
        roll = dataclasses.asdict(self.rollout)
        if scheme.async_ratio is not None:
            roll["async_ratio"] = scheme.async_ratio
        return Settings(
            layout=Layout(scheme.ranks, scheme.train_devices),
            seed=self.seed,
            evaluation_episodes=self.evaluation_episodes,
            deadlines=self.deadlines,
            **roll,
        )

    def cost_model(self) -> CostModel:
        """The costs. Raises TypeError for a key that is none of `CostModel` (checked on loading)."""
        given = dict(self.cost)
        return dataclasses.replace(costs.PRESETS[given.pop("preset", "dense_8b")], **given)

    def work(self) -> Workload:
        """The workload."""
        options = self.workload
        base = workloads.PRESETS[options.preset].scaled(options.times_turns, options.times_tokens, options.times_waits)
        changed: dict[str, Any] = {
            name: getattr(options, name)
            for name in ("success_start", "success_end", "success_versions")
            if getattr(options, name) is not None
        }
        for name, points in options.tables.items():
            changed[name] = Quantiles(tuple((float(p), float(v)) for p, v in points.items()))
        return dataclasses.replace(base, seed=options.seed, **changed)


def load_simulation(path: str | Path) -> SimulationConfig | list[Problem]:
    """The comparison that the file describes, or all its problems."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return [Problem("(file)", str(path), f"cannot be read: {error}", "name an existing YAML file in UTF-8")]
    data, problems = parse_yaml(text, str(path))
    if problems and data is None:
        return problems
    config, found = read_checked(SimulationConfig, data, check_simulation)
    return problems + found or config


def check_simulation(config: SimulationConfig) -> list[Problem]:
    """All problems that well-typed values have with each other."""
    parts = _check_cost(config.cost) + _check_tables(config.workload)
    found = list(parts)
    if config.steps < 1:
        found.append(Problem("steps", str(config.steps), "must be at least 1", "set steps to 1 or more"))
    if not config.schemes:
        found.append(Problem("schemes", "[]", "there is nothing to simulate", "add a scheme with its policy"))
    titles = [scheme.title for scheme in config.schemes]
    for index, title in enumerate(titles):
        if title in titles[:index]:
            found.append(Problem(f"schemes[{index}].name", title, "is used twice", "give each scheme its own name"))
    for name in ("times_turns", "times_tokens", "times_waits"):
        factor = getattr(config.workload, name)
        if not factor > 0:
            found.append(Problem(f"workload.{name}", repr(factor), "must be positive", "use 1 for no change"))
    if not parts:  # neither can be built from parts that are wrong
        found += config.cost_model().problems() + config.work().problems()
    for index, scheme in enumerate(config.schemes):
        settings = config.settings(scheme)
        own = check_settings(settings) + policy_problems(scheme.policy, settings)
        for problem in own:
            key = f"schemes[{index}].{problem.key.removeprefix('layout.')}"
            if problem.key in _SHARED and not (problem.key == "async_ratio" and scheme.async_ratio is not None):
                key = f"rollout.{problem.key}"
            if problem.key.startswith("deadlines.") or problem.key == "evaluation_episodes":
                key = problem.key
            found.append(problem._replace(key=key))
    return list(dict.fromkeys(found))


_SHARED = {spec.name for spec in dataclasses.fields(RolloutOptions)}


def _check_cost(given: Mapping[str, Any]) -> list[Problem]:
    rest = dict(given)
    preset = rest.pop("preset", "dense_8b")
    if not isinstance(preset, str) or preset not in costs.PRESETS:
        return [Problem("cost.preset", repr(preset), "is no cost model", f"use one of {', '.join(costs.PRESETS)}")]
    _, found = read_checked(CostModel, dataclasses.asdict(costs.PRESETS[preset]) | rest, lambda cost: [])
    return [problem._replace(key=f"cost.{problem.key}") for problem in found]


def _check_tables(options: WorkloadOptions) -> list[Problem]:
    found: list[Problem] = []
    for name, points in options.tables.items():
        if name not in TABLES:
            found.append(
                Problem(f"workload.tables.{name}", "", "is no distribution", f"use one of {', '.join(TABLES)}")
            )
        for probability in points:
            try:
                float(probability)
            except ValueError:
                found.append(
                    Problem(f"workload.tables.{name}", probability, "is no probability", "use a number from 0 to 1")
                )
    return found
