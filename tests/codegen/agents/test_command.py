"""`codegen step run` and the process it runs."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from codegen.agents.message import message
from codegen.agents.process import Limits, command_of, run_agent
from codegen.cli import main
from codegen.diagnostics import Finding, UsageError
from codegen.prompts.agents import AGENTS
from tests.codegen.agents.scripted import STEP_1, Supervised


def agent(supervised: Supervised, script: str) -> str:
    return shlex.join(supervised.command(script))


def test_the_command_stops_for_review_with_section_5_beside_the_code(
    supervised: Supervised, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(supervised.pantry.root)
    assert main(["step", "run", "1", "--agent", agent(supervised, STEP_1), "--unreviewed"]) == 0
    said = capsys.readouterr()
    assert "=== 5.1.2 pantry.jar.fill  pantry/jar.py:" in said.out
    assert "verified after 1 round, not committed" in said.err
    assert main(["step", "review", "1", "--approve", "Grace"]) == 0
    assert main(["step", "commit", "1"]) == 0
    assert main(["step", "log", "--check"]) == 0


def test_the_command_fails_with_findings_and_a_record(
    supervised: Supervised, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(supervised.pantry.root)
    words = ["step", "run", "1", "--agent", agent(supervised, "sys.exit(9)"), "--unreviewed", "--rounds", "1", "--json"]
    assert main(words) == 1
    said = capsys.readouterr()
    data = json.loads(said.out)
    assert (data["outcome"], data["rounds"][0]["status"], data["rounds"][0]["findings"][0]["code"]) == (
        "failed",
        9,
        "RUN001",
    )
    assert (supervised.pantry.root / data["folder"] / "run.json").is_file()
    assert "the project is as it was" in said.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--agent", ""], "--agent is empty"),
        (["--agent", "'open"], "No closing quotation"),
        (["--agent", "/no/such/agent"], "the agent cannot be started: /no/such/agent"),
        (["--agent", "true", "--rounds", "0"], "--rounds 0: give 1 to 20"),
        (["--agent", "true", "--timeout", "0"], "must be above 0"),
    ],
)
def test_what_cannot_be_run_is_refused_and_leaves_nothing(
    supervised: Supervised,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(supervised.pantry.root)
    before = supervised.state()
    assert main(["step", "run", "1", "--unreviewed", *words]) == 2
    assert message in capsys.readouterr().err
    assert supervised.state() == before


def test_a_test_command_that_cannot_run_is_refused_before_the_agent_works(
    supervised: Supervised, monkeypatch: pytest.MonkeyPatch
) -> None:
    pantry = supervised.pantry
    pantry.change("design/pantry.md", "`python tests/test_jar.py`", "`no-such-runner --all`")
    pantry.commit_all("Another runner")
    with pytest.raises(UsageError, match="Step 1 is tested with `no-such-runner --all`, and there is no"):
        supervised.run(1, STEP_1)
    pantry.change("design/pantry.md", "`no-such-runner --all`", "`pytest tests/test_jar.py`")
    pantry.commit_all("Pytest")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="it is not installed beside codegen"):
        supervised.run(1, STEP_1)
    assert not (pantry.root / "runs").exists()


def test_the_last_words_of_an_agent_that_failed_are_shown(
    supervised: Supervised, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(supervised.pantry.root)
    script = "print('\\x1b[31mno key\\x1b[0m, log in first\\n')\nsys.exit(1)"
    words = ["step", "run", "1", "--agent", agent(supervised, script), "--unreviewed", "--rounds", "1"]
    assert main(words) == 1
    said = capsys.readouterr()
    assert "RUN001 the agent ended with status 1; its last words: " in said.out and "log in first" in said.out
    assert "\x1b" not in said.out + said.err


@pytest.mark.parametrize("key", sorted(AGENTS))
def test_an_agent_is_known_by_its_name(key: str) -> None:
    assert command_of(key) == AGENTS[key].headless
    assert command_of(f"{key} --fast") == (key, "--fast")


def run(tmp_path: Path, script: str, prompt: str = "", *words: str, limits: Limits | None = None):  # type: ignore[no-untyped-def]
    command = (sys.executable, "-c", script, *words)
    ended = run_agent(command, prompt, tmp_path, tmp_path / "said", limits or Limits(60), os.environ, str(tmp_path))
    return ended, (tmp_path / "said").read_text()


def test_a_long_prompt_goes_through_standard_input(tmp_path: Path) -> None:
    prompt = "é" * 400_000
    ended, said = run(tmp_path, "import sys; print(len(sys.stdin.read()))", prompt)
    assert (ended.status, said) == (0, "400000\n")


def test_a_prompt_takes_the_place_of_its_word(tmp_path: Path) -> None:
    _, said = run(tmp_path, "import sys; print(sys.argv[1:])", "do it", "-p", "{prompt}")
    assert said == "['-p', 'do it']\n"


def test_a_prompt_too_long_for_a_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a command that reads standard input takes longer prompts"):
        run(tmp_path, "", "x" * 3_000_000, "{prompt}")


def test_a_program_that_reads_nothing_is_fine(tmp_path: Path) -> None:
    ended, said = run(tmp_path, "import sys; sys.stdin.close(); print('done')", "x" * 1_000_000)
    assert (ended.status, said) == (0, "done\n")


def test_a_child_that_holds_the_pipe_does_not_hold_the_run(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)']); print('x')"
    )
    ended, said = run(tmp_path, script)
    assert (ended.stopped, said) == ("", "x\n") and ended.seconds < 30


def test_a_program_that_ignores_the_signal_is_killed(tmp_path: Path) -> None:
    script = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(300)"
    )
    ended, _ = run(tmp_path, script, limits=Limits(2.0))
    assert (ended.stopped, ended.status) == ("time", -9)


def test_findings_come_before_the_brief_errors_first() -> None:
    findings = [
        Finding("a.py", 0, 0, "W", "a warning", "warning"),
        Finding("b.py", 3, 1, "E", "an error", fix="Mend it."),
        Finding("c.py", 1, 1, "N", "a note", "note"),
    ]
    text = message(2, 3, "# Step 1\n", ["a.py"], ["pytest a"], findings, "```\nbroken", False)
    assert text.index("b.py:3: E an error (Mend it.)") < text.index("a.py: W a warning") < text.index("# Step 1")
    assert "a note" not in text
    assert "````\n```\nbroken\n````" in text


def test_only_the_end_of_a_long_output_is_sent() -> None:
    text = message(2, 3, "", [], [], [], "\n".join(f"line {n}" for n in range(10_000)), False)
    assert "line 9999" in text and "line 9000\n" not in text and len(text) < 12_000


def test_control_characters_of_an_output_do_not_reach_the_agent() -> None:
    text = message(2, 3, "", [], [], [], "a\x00b\x1b[31mred\x1b[0m\tc\r\nd", False)
    assert "abred\tc\nd" in text


def test_a_prompt_that_no_argument_can_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the agent cannot be started: .*: embedded null byte"):
        run(tmp_path, "", "a\0b", "{prompt}")
