"""The figures are those of the records, and of nothing else."""

from __future__ import annotations

import json

import pytest

from codegen.agents.record import read_runs
from codegen.cli import main
from codegen.report.figures import Report, report
from codegen.report.text import report_text
from codegen.workflow.rollback import roll_back, rollback_plan
from codegen.workflow.trail import step_commits
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
    assert (totals.delivered, totals.first_time_right, totals.rounds_per_delivery) == (1, 0.0, 2.0)


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
