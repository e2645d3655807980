"""Several schemes on the same work, from one file: run them, show them side by side, write what they leave."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roll_ts.core.policies import make_policy
from roll_ts.core.settings import Problem
from roll_ts.observe.journal import Journal, write_journal
from roll_ts.observe.picture import write_picture
from roll_ts.observe.report import Report, make_report
from roll_ts.observe.still import make_still
from roll_ts.observe.table import comparison_text, report_text
from roll_ts.observe.timeline import write_timeline
from roll_ts.sim.config import Scheme, SimulationConfig, load_simulation
from roll_ts.sim.driver import simulate


class BadConfiguration(ValueError):
    """The file cannot be simulated; `problems` are all the reasons."""

    def __init__(self, path: str, problems: list[Problem]) -> None:
        self.problems = problems
        lines = [f"  {p.key} = {p.value or '(nothing)'}: {p.wrong}; {p.fix}" for p in problems]
        super().__init__(f"{path} has {len(problems)} problem(s):\n" + "\n".join(lines))


@dataclass(frozen=True)
class SchemeRun:
    """One scheme, its journal and what the journal says."""

    scheme: Scheme
    journal: Journal
    report: Report


@dataclass(frozen=True)
class Comparison:
    """All schemes of one file, in its order."""

    config: SimulationConfig
    runs: tuple[SchemeRun, ...]

    @property
    def ok(self) -> bool:
        """Whether every scheme reached the last step."""
        return all(run.report.ok for run in self.runs)

    def text(self, width: int = 118, color: bool = False) -> str:
        """The schemes side by side; a single one with all its figures."""
        reports = [run.report for run in self.runs]
        if len(reports) == 1:
            return report_text(reports[0], width, color)
        return comparison_text(reports, width, color)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready reports by scheme."""
        return {"name": self.config.name, "schemes": {run.scheme.title: run.report.to_json() for run in self.runs}}

    def write_picture(self, path: Path | str) -> None:
        """The schemes one under the other on one time axis, as one HTML file."""
        journals = [run.journal for run in self.runs]
        write_picture(journals, path, self.config.title or self.config.name, self._lead())

    def write(self, folder: Path | str) -> list[Path]:
        """Write picture.html, picture.svg, report.json, and a journal and a timeline per scheme into `folder`; returns
        the files."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / "picture.html", folder / "picture.svg", folder / "report.json"]
        self.write_picture(files[0])
        still = make_still([run.journal for run in self.runs], self.config.title or self.config.name)
        _replace(files[1], still)
        _replace(files[2], json.dumps(self.to_json(), indent=2) + "\n")
        for run in self.runs:
            stem = "".join(c if c.isalnum() else "-" for c in run.scheme.title.lower())
            files += [folder / f"{stem}.journal.jsonl", folder / f"{stem}.timeline.json"]
            write_journal(run.journal, files[-2])
            write_timeline(run.journal, files[-1])
        return files

    def _lead(self) -> str:
        roll, work = self.config.rollout, self.config.workload
        return (
            f"Simulated: {self.config.steps} training steps of {roll.groups_per_batch} × {roll.group_size} samples, "
            f"workload “{work.preset}”, episodes of up to {roll.max_turns} turns; every scheme plays the same episodes."
        )


def _replace(path: Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def simulate_config(config: SimulationConfig, tell: Callable[[str], None] = lambda text: None) -> Comparison:
    """Run all schemes of a checked configuration. `tell` hears which one begins. Raises SimulationError when
    one of them cannot go on."""
    runs = []
    cost, work = config.cost_model(), config.work()
    for scheme in config.schemes:
        tell(f"simulating {scheme.title}")
        policy = make_policy(scheme.policy)
        journal = simulate(config.settings(scheme), policy, cost, work, config.steps, config.seed)
        notes = {"name": scheme.title, "device": config.device}
        journal = dataclasses.replace(
            journal, header=dataclasses.replace(journal.header, policy=scheme.policy, notes=notes)
        )
        report = dataclasses.replace(make_report(journal), policy=scheme.title)
        runs.append(SchemeRun(scheme, journal, report))
    return Comparison(config, tuple(runs))


def simulate_file(path: Path | str, tell: Callable[[str], None] = lambda text: None) -> Comparison:
    """Run the comparison that a YAML file describes. Raises BadConfiguration with all problems of the file, and
    SimulationError as `simulate_config`."""
    match load_simulation(path):
        case SimulationConfig() as config:
            return simulate_config(config, tell)
        case problems:
            raise BadConfiguration(str(path), problems)
