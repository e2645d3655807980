"""The record of one run: what was asked, what each round did and what was found. The one source of `codegen report`.

A run's folder is `runs/<document>/step_NN/<time>/`; git does not see it. It holds `run.json`, for each round the prompt
(`round_1.prompt.md`), all the agent said (`round_1.txt`) and what the tests printed (`round_1.tests.txt`), and the last
state of the work (`work.patch`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from codegen.diagnostics import Finding, UsageError
from codegen.document.store import replace_file

FOLDER = "runs"
Outcome = Literal["running", "review", "committed", "held", "failed", "stopped"]


@dataclass
class Round:
    """One call of the agent. `seconds` is the agent's own time, `check_seconds` that of the checks after it."""

    number: int
    seconds: float
    status: int | None
    output_bytes: int
    stopped: str
    check_seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    tests: list[dict[str, Any]] = field(default_factory=list)
    reverted: list[str] = field(default_factory=list)

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "error"]


@dataclass
class Run:
    """A run of an agent on a step. Times are UTC in ISO 8601; `changed` maps paths to (lines added, lines removed)."""

    document: str
    step: int
    title: str
    agent: list[str]
    base: str
    started: str
    ended: str = ""
    outcome: Outcome = "running"
    commit: str = ""
    rounds: list[Round] = field(default_factory=list)
    changed: dict[str, tuple[int, int]] = field(default_factory=dict)
    warnings: list[Finding] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def now() -> str:
    """The time now, as 2026-01-31T12:00:00+00:00."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def step_folder(root: Path, document: str, step: int) -> Path:
    """Where the runs of a step are kept."""
    return root / FOLDER / document / f"step_{step:02d}"


def new_folder(root: Path, document: str, step: int) -> Path:
    """Make the folder of a new run, in a part of `runs/` that git ignores."""
    parent = step_folder(root, document, step)
    parent.mkdir(parents=True, exist_ok=True)
    ignore = root / FOLDER / document / ".gitignore"
    if not ignore.exists():
        replace_file(ignore, b"*\n")
    stem = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    for suffix in ("", *(f"-{number}" for number in range(2, 100))):
        folder = parent / f"{stem}{suffix}"
        if not folder.exists():
            folder.mkdir()
            return folder
    raise UsageError(f"{parent}: 99 runs began within one second; remove some")


def write_run(folder: Path, run: Run) -> None:
    """Put the record into its folder."""
    text = json.dumps(run.as_json(), indent=2, ensure_ascii=False) + "\n"
    replace_file(folder / "run.json", text.encode("utf-8", "backslashreplace"))


def close_abandoned(root: Path, document: str, step: int) -> None:
    """Records of runs whose process was killed say "stopped" from now on. The caller holds the step."""
    for path in step_folder(root, document, step).glob("*/run.json"):
        run = _read(path)
        if run.outcome == "running":
            run.outcome = "stopped"
            write_run(path.parent, run)


def read_runs(root: Path, document: str) -> Iterator[Run]:
    """The runs of a document, by step and time. UsageError: a record cannot be read."""
    for path in sorted((root / FOLDER / document).glob("step_*/*/run.json")):
        yield _read(path)


def _read(path: Path) -> Run:
    try:
        return _run(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{path}: is no record of a run ({error}); remove it") from error


def _run(data: dict[str, Any]) -> Run:
    rounds = [
        Round(**{**each, "findings": [Finding(**found) for found in each["findings"]]}) for each in data["rounds"]
    ]
    changed = {path: (added, removed) for path, (added, removed) in data["changed"].items()}
    warnings = [Finding(**found) for found in data["warnings"]]
    return Run(**{**data, "rounds": rounds, "changed": changed, "warnings": warnings})
