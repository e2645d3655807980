"""`codegen step`: what each verb prints, and its exit status. The whole way is walked in the tour."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codegen.cli import main
from tests.codegen.workflow.conftest import Pantry, complete, implement

Output = pytest.CaptureFixture[str]


@pytest.fixture
def here(pantry: Pantry, monkeypatch: pytest.MonkeyPatch) -> Pantry:
    monkeypatch.chdir(pantry.root)
    return pantry


def test_next_names_the_step_and_its_methods(here: Pantry, capsys: Output) -> None:
    assert main(["step", "next"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "Step 1: Jars (NOT_STARTED, 0/2 methods DONE)"
    assert main(["step", "next", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["next"]["number"] == 1 and found["ready"] == [1]


def test_start_writes_the_brief_and_prints_its_tokens(here: Pantry, capsys: Output) -> None:
    assert main(["step", "start", "1"]) == 2
    assert main(["step", "start", "1", "--unreviewed"]) == 0
    assert capsys.readouterr().out.startswith("steps/pantry/step_01.md: about ")
    assert main(["step", "brief", "--check"]) == 0
    assert main(["step", "start", "1", "--unreviewed"]) == 2


def test_a_brief_over_its_budget_is_exit_1(here: Pantry, capsys: Output) -> None:
    here.write("pyproject.toml", "[tool.codegen.step]\nbrief-tokens = 50\n")
    assert main(["step", "brief", "1"]) == 1
    assert "cut Step 1 in two" in capsys.readouterr().err


def test_a_stale_brief_is_exit_1_and_all_writes_it_again(here: Pantry, capsys: Output) -> None:
    implement(here, 1)
    assert main(["step", "brief", "1"]) == 0
    here.change("design/pantry.md", "Put more into a jar", "Put something into a jar")
    assert main(["step", "brief", "--check"]) == 1
    assert "STEP002" in capsys.readouterr().out
    assert main(["step", "brief", "--all"]) == 0
    assert main(["step", "brief", "--check", "1"]) == 0


def test_done_refuses_what_does_not_verify(here: Pantry, capsys: Output) -> None:
    implement(here, 1)
    here.change("tests/test_jar.py", "== 5", "== 6")
    assert main(["step", "done", "1"]) == 1
    assert "does not verify and stays IN_PROGRESS" in capsys.readouterr().err
    assert here.statuses()[1] == "IN_PROGRESS"


def test_a_review_is_shown_and_recorded_under_the_name_git_knows(here: Pantry, capsys: Output) -> None:
    implement(here, 1)
    assert main(["step", "review", "1"]) == 0
    shown = capsys.readouterr()
    assert "=== 5.1.2 pantry.jar.fill  pantry/jar.py:" in shown.out and "not reviewed" in shown.err
    assert main(["step", "done", "1"]) == 0
    assert main(["step", "review", "1", "--approve"]) == 0
    assert "Step 1: reviewed by Ada" in capsys.readouterr().out
    assert main(["step", "commit", "1"]) == 0


def test_fail_prints_what_to_revise(here: Pantry, capsys: Output) -> None:
    assert main(["step", "fail", "1", "--kind", "design-gap", "--reason", "no lids"]) == 0
    out = capsys.readouterr().out
    assert "revise: D-1, pantry.jar.Jar, pantry.jar.fill" in out and "becomes stale: Step 2, Step 3" in out


def test_log_lists_checks_and_fills_the_column(here: Pantry, capsys: Output) -> None:
    complete(here, 1)
    assert main(["step", "log"]) == 0
    assert "Step 1: Jars  (review: none)" in capsys.readouterr().out
    assert main(["step", "log", "--check"]) == 0
    assert main(["step", "log", "--write"]) == 0
    assert here.document.step_by_number[1].commit == here.git.short("HEAD")
    here.write("notes.txt", "x")
    here.commit_all("Step 2: by hand")
    assert main(["step", "log", "--check"]) == 1


def test_rollback_lists_first_when_asked(here: Pantry, capsys: Output) -> None:
    complete(here, 1, 2)
    assert main(["step", "rollback", "1", "--cascade", "--dry-run"]) == 0
    assert [line[:6] for line in capsys.readouterr().out.splitlines()] == ["Step 2", "Step 1"]
    assert main(["step", "rollback", "1"]) == 2
    assert main(["step", "rollback", "2"]) == 0


@pytest.mark.parametrize("words", [["start", "9"], ["brief"], ["review", "1", "--doc", "nothing"]])
def test_a_wrong_call_is_exit_2(here: Pantry, words: list[str]) -> None:
    assert main(["step", *words]) == 2


def test_outside_of_git_a_commit_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output, pantry: Pantry
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "no-such-repository"))
    monkeypatch.chdir(pantry.root)
    assert main(["step", "commit", "1"]) == 2
    assert "make one with `git init`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("tittle = 'x'", "has no key 'tittle'"),
        ("brief-tokens = 'many'", "brief-tokens must be int"),
        ("title = '{step}'", "may use {number} and {title} only"),
    ],
)
def test_a_wrong_setting_is_named(here: Pantry, capsys: Output, settings: str, message: str) -> None:
    here.write("pyproject.toml", f"[tool.codegen.step]\n{settings}\n")
    assert main(["step", "brief", "1"]) == 2
    assert message in capsys.readouterr().err
