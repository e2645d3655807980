"""What the records say of each step: runs of agents, rounds, findings by kind, time, size, validation, rollbacks.

Sources are three, and nothing is estimated: the records of `codegen step run`, git's trailers, the document.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from codegen.agents.record import Run
from codegen.document.model import Document, Step
from codegen.document.staleness import step_status
from codegen.drift.section import documented_definitions
from codegen.workflow.git import Git
from codegen.workflow.trail import StepCommit, standing_commits

_FAILURE = re.compile(r"Step (\d+) failed \(([\w-]+)\)")


@dataclass(frozen=True)
class StepFigures:
    """One step. Seconds are of agents and of the checks after them; lines are those of its commit, or of the last run
    where there is none; `validated` of `functions` carry `validations` annotations in Section 5; `corrected` counts the
    corrections after it was done.

    `first_time_right` says whether the first round of the first run was the last that the step needed.
    """

    number: int
    title: str
    status: str
    runs: int = 0
    rounds: int = 0
    outcome: str = ""
    first_time_right: bool | None = None
    findings: dict[str, int] = field(default_factory=dict)
    agent_seconds: float = 0.0
    check_seconds: float = 0.0
    lines_added: int = 0
    lines_removed: int = 0
    commits: int = 0
    taken_back: int = 0
    corrected: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    reviewed: bool = False
    functions: int = 0
    validated: int = 0
    validations: int = 0


@dataclass(frozen=True)
class Totals:
    """All steps of a document. Shares are None where there is nothing to divide by.

    `first_time_right` is a share of the steps that an agent was run on; `rounds_per_delivery` counts the rounds of
    failed runs too; `corrected` are the steps that were corrected after they were done.
    """

    steps: int
    done: int
    runs: int
    delivered: int
    first_time_right: float | None
    rounds_per_delivery: float | None
    agent_seconds: float
    check_seconds: float
    findings: dict[str, int]
    lines_added: int
    lines_removed: int
    taken_back: int
    corrected: int
    failures: dict[str, int]
    reviewed: int
    validation_coverage: float | None


@dataclass(frozen=True)
class Report:
    document: str
    steps: tuple[StepFigures, ...]
    totals: Totals


def report(document: Document, runs: Iterable[Run], commits: Sequence[StepCommit], git: Git | None) -> Report:
    """The figures of a document. Without `git` there are none of commits."""
    by_step: dict[int, list[Run]] = {}
    for run in runs:
        by_step.setdefault(run.step, []).append(run)
    steps = tuple(_step(document, step, by_step.get(step.number, []), commits, git) for step in document.steps)
    delivered = [run for each in by_step.values() for run in each if _delivered(run)]
    tried = [step for step in steps if step.runs]
    functions = sum(step.functions for step in steps)
    return Report(
        document.id,
        steps,
        Totals(
            steps=len(steps),
            done=sum(step.status == "DONE" for step in steps),
            runs=sum(step.runs for step in steps),
            delivered=len(delivered),
            first_time_right=_share(sum(step.first_time_right is True for step in steps), len(tried)),
            rounds_per_delivery=_share(sum(step.rounds for step in tried), len(delivered)),
            agent_seconds=round(sum(step.agent_seconds for step in steps), 1),
            check_seconds=round(sum(step.check_seconds for step in steps), 1),
            findings=_summed(step.findings for step in steps),
            lines_added=sum(step.lines_added for step in steps),
            lines_removed=sum(step.lines_removed for step in steps),
            taken_back=sum(step.taken_back for step in steps),
            corrected=sum(step.corrected > 0 for step in steps),
            failures=_summed(step.failures for step in steps),
            reviewed=sum(step.reviewed and step.status == "DONE" for step in steps),
            validation_coverage=_share(sum(step.validated for step in steps), functions),
        ),
    )


def _step(
    document: Document, step: Step, runs: list[Run], commits: Sequence[StepCommit], git: Git | None
) -> StepFigures:
    mine = [commit for commit in commits if step.number in commit.numbers and not commit.is_fix]
    standing = standing_commits(mine).get(step.number)
    corrections = [commit for commit in commits if step.number in commit.numbers and commit.is_fix]
    added, removed = _size(git, standing, document) if git and standing else _last_size(runs)
    rounds = [each for run in runs for each in run.rounds]
    found = Counter(f.code for each in rounds for f in each.findings if f.severity != "note")
    functions, validated, validations = _validation(document, step)
    failed = Counter(
        kind for row in document.log for number, kind in _FAILURE.findall(row.asked) if int(number) == step.number
    )
    review = standing.trailers.get("Step-Review", "none") if standing else "none"
    return StepFigures(
        number=step.number,
        title=step.title,
        status=step_status(document, step),
        runs=len(runs),
        rounds=len(rounds),
        outcome=runs[-1].outcome if runs else "",
        first_time_right=_delivered(runs[0]) and len(runs[0].rounds) == 1 if runs else None,
        findings=dict(sorted(found.items())),
        agent_seconds=round(sum(each.seconds for each in rounds), 1),
        check_seconds=round(sum(each.check_seconds for each in rounds), 1),
        lines_added=added,
        lines_removed=removed,
        commits=sum(not commit.reverts for commit in mine),
        taken_back=sum(commit.reverts for commit in mine),
        corrected=sum(not commit.reverts for commit in corrections),
        failures=dict(sorted(failed.items())),
        reviewed=review != "none",
        functions=functions,
        validated=validated,
        validations=validations,
    )


def _validation(document: Document, step: Step) -> tuple[int, int, int]:
    """Functions and methods of the step in Section 5; how many carry an annotation; how many annotations there are."""
    wanted = {entry.id for method in step.methods if (entry := document.entry_of(method))}
    counts = [
        len(each.promises)
        for each in documented_definitions(document)[0]
        if each.entry.id in wanted and each.definition.kind == "function"
    ]
    return len(counts), sum(count > 0 for count in counts), sum(counts)


def _size(git: Git, commit: StepCommit, document: Document) -> tuple[int, int]:
    """Lines added and removed by a commit, the document and the briefs aside."""
    own = (Path(commit.document).as_posix(), f"steps/{document.id}/")
    text = git.run("show", "--numstat", "--format=", "--no-renames", "--relative", "-z", commit.id)
    added = removed = 0
    for line in filter(None, (piece.strip("\n") for piece in text.split("\0"))):
        plus, minus, path = line.split("\t", 2)
        if plus.isdigit() and not path.startswith(own):
            added, removed = added + int(plus), removed + int(minus)
    return added, removed


def _last_size(runs: list[Run]) -> tuple[int, int]:
    changed = runs[-1].changed.values() if runs else []
    return sum(plus for plus, _ in changed), sum(minus for _, minus in changed)


def _delivered(run: Run) -> bool:
    return run.outcome in ("review", "committed")


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


def _summed(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(sorted(total.items()))
