"""The figures are those of the records, and of nothing else."""

from __future__ import annotations

import json

import pytest

from codegen.agents.record import Outcome, Round, Run, read_runs, write_run
from codegen.cli import main
from codegen.diagnostics import Finding
from codegen.report.figures import Report, report
from codegen.report.text import report_text
from codegen.workflow.rollback import roll_back, rollback_plan
from codegen.workflow.trail import StepCommit, step_commits
from tests.codegen.agents.scripted import STEP_1, Supervised
from tests.codegen.workflow.conftest import Pantry, complete


def reported(pantry: Pantry) -> Report:
    runs = read_runs(pantry.root, "pantry")
    return report(pantry.document, runs, step_commits(pantry.git, "design/pantry.md"), pantry.git)


def test_a_new_document_has_zeros_and_no_shares(pantry: Pantry) -> None:
    found = reported(pantry)
    assert [step.status for step in found.steps] == ["NOT_STARTED"] * 3
    assert (found.totals.runs, found.totals.first_time_right, found.totals.done) == (0, None, 0)


def test_validation_is_counted_in_section_5(pantry: Pantry) -> None:
    first, second, _ = reported(pantry).steps
    assert (first.functions, first.validated, first.validations) == (1, 1, 2)
    assert (second.functions, second.validated) == (2, 0)
    assert reported(pantry).totals.validation_coverage == 0.25


def test_runs_rounds_and_findings_are_those_of_the_records(supervised: Supervised) -> None:
    supervised.run(1, STEP_1.replace("== 5", "== 6"), rounds=1)
    supervised.run(1, "if number == 1: sys.exit(4)" + STEP_1, commit=True)
    step = reported(supervised.pantry).steps[0]
    assert (step.runs, step.rounds, step.outcome, step.first_time_right) == (2, 3, "committed", False)
    assert step.findings == {"RUN001": 1, "STEP011": 1}
    assert step.agent_seconds > 0
    assert (step.status, step.commits, step.reviewed) == ("DONE", 1, False)
    totals = reported(supervised.pantry).totals
    assert (totals.delivered, totals.first_time_right, totals.rounds_per_delivery) == (1, 0.0, 3.0)


def record(pantry: Pantry, step: int, at: int, outcome: Outcome, *rounds: Round) -> None:
    """Put a record of a run where runs are kept."""
    folder = pantry.root / f"runs/pantry/step_{step:02d}/2026010{at}T120000"
    folder.mkdir(parents=True)
    write_run(folder, Run("pantry", step, "t", ["a"], "c", "s", "e", outcome, "", [*rounds], {"a.py": (step, at)}))


def one(number: int, seconds: float, checks: float, *codes: str) -> Round:
    findings = [Finding("a.py", 0, 0, code[:6], "m", "note" if code.endswith("?") else "error") for code in codes]
    return Round(number, seconds, 0, 10, "", checks, findings)


def test_the_figures_of_a_history_are_those_that_a_person_adds_up(pantry: Pantry) -> None:
    complete(pantry, 1)
    record(pantry, 1, 1, "failed", one(1, 60.0, 1.5, "AUD001", "AUD001", "AUD002?"), one(2, 30.0, 2.5, "STEP011"))
    record(pantry, 1, 2, "committed", one(1, 90.0, 3.0, "RUN003"))
    record(pantry, 2, 3, "stopped", one(1, 12.0, 0.0))
    record(pantry, 3, 4, "review", one(1, 48.0, 5.0))
    found = reported(pantry)
    one_, two, three = found.steps
    assert (one_.runs, one_.rounds, one_.agent_seconds, one_.check_seconds) == (2, 3, 180.0, 7.0)
    assert one_.findings == {"AUD001": 2, "RUN003": 1, "STEP01": 1}
    assert (one_.first_time_right, two.first_time_right, three.first_time_right) == (False, False, True)
    assert (two.lines_added, two.lines_removed) == (2, 3), "without a commit, what the last run changed"
    totals = found.totals
    assert (totals.runs, totals.delivered, totals.first_time_right, totals.rounds_per_delivery) == (4, 2, 0.333, 2.5)
    assert (totals.agent_seconds, totals.check_seconds) == (240.0, 12.0)
    assert (totals.steps, totals.done, totals.reviewed, totals.validation_coverage) == (3, 1, 0, 0.25)
    lines = sum(len((pantry.root / path).read_text().splitlines()) for path in ("pantry/jar.py", "tests/test_jar.py"))
    text = report_text(found).splitlines()
    assert text[2].split()[:7] == ["1", "Jars", "DONE", "2", "3", "3.0", f"+{lines}"]
    assert text[6:] == [
        "1 of 3 steps done, 0 of them reviewed by a person, 0 taken back, 0 corrected later",
        "4 runs of agents, 2 delivered; steps right at once: 33 %; rounds a delivery: 2.5",
        "agents worked 4.0 min, checks took 0.2 min",
        f"validated functions: 25 %; lines +{lines + 2 + 3} -{3 + 4}",
        "findings: 2 AUD001, 1 RUN003, 1 STEP01",
    ]


def test_lines_are_those_of_the_commit_without_document_and_brief(pantry: Pantry) -> None:
    complete(pantry, 1)
    step = reported(pantry).steps[0]
    lines = sum(len((pantry.root / path).read_text().splitlines()) for path in ("pantry/jar.py", "tests/test_jar.py"))
    assert (step.lines_added, step.lines_removed) == (lines, 0)


def test_a_step_taken_back_is_counted(pantry: Pantry) -> None:
    complete(pantry, 1)
    [item] = rollback_plan(pantry.target(1), pantry.git, cascade=False)
    roll_back(pantry.target(1), pantry.git, item)
    step = reported(pantry).steps[0]
    assert (step.commits, step.taken_back, step.status, step.lines_added) == (1, 1, "NOT_STARTED", 0)


def test_a_correction_of_several_steps_counts_for_each_and_is_no_commit_of_theirs(pantry: Pantry) -> None:
    def commit(name: str, *numbers: int, **trailers: str) -> StepCommit:
        return StepCommit(name, name, (), "2026-01-01", "", numbers[0], "", False, trailers, numbers)

    commits = [commit("a", 1), commit("b", 2, **{"Step-Review": "Ada"}), commit("c", 1, 2, **{"Step-Fix": "yes"})]
    found = report(pantry.document, [], commits, None)
    first, second, third = found.steps
    assert [(step.commits, step.corrected) for step in (first, second, third)] == [(1, 1), (1, 1), (0, 0)]
    assert (first.reviewed, second.reviewed, found.totals.corrected) == (False, True, 2)


def test_the_command_prints_text_and_json(
    pantry: Pantry, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(pantry.root)
    assert main(["report"]) == 0
    text = capsys.readouterr().out
    assert text == report_text(reported(pantry))
    assert text.splitlines()[2].split() == ["1", "Jars", "NOT_STARTED", "-", "-", "-", "-", "1/1", "-"]
    assert main(["report", "pantry", "--json"]) == 0
    [data] = json.loads(capsys.readouterr().out)
    assert data["totals"]["steps"] == 3 and data["steps"][0]["validations"] == 2
