"""Agents that reach further than files: git, links, processes, what is no text. The project stays as it was."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from codegen.agents.record import read_runs
from codegen.diagnostics import UsageError
from tests.codegen.agents.scripted import STEP_1, Supervised

GIT = "import shutil, stat\ndef git(*words): subprocess.run(['git', *words], check=True, stdout=subprocess.DEVNULL)\n"


def test_git_settings_hooks_and_refs_of_the_agent_stay_in_its_tree(supervised: Supervised) -> None:
    script = GIT + STEP_1 + (
        "git('config', 'user.email', 'agent@example.org')\n"
        "git('config', 'core.hooksPath', '/nowhere')\n"
        "write('.git/hooks/pre-commit', '#!/bin/sh\\nexit 1\\n'); os.chmod('.git/hooks/pre-commit', 0o755)\n"
        "write('.git/info/exclude', '*\\n')\n"
        "git('tag', 'v9'); git('branch', 'mine'); git('add', '--all'); git('stash')\n"
        "git('stash', 'apply'); git('update-index', '--assume-unchanged', 'pyproject.toml')\n"
        "write('pyproject.toml', '')\n"
        "assert subprocess.run(['git', 'push', 'origin', 'HEAD:main'], stderr=subprocess.DEVNULL).returncode\n"
    )  # fmt: skip
    before = supervised.state()
    run, _ = supervised.run(1, script, commit=True)
    assert (run.outcome, supervised.codes(run), run.warnings) == ("committed", [["RUN003"]], [])
    after = supervised.state()
    assert (after["config"], after["hooks"]) == (before["config"], before["hooks"])
    assert supervised.pantry.git.run("for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]


def test_the_persons_hooks_judge_the_commit_and_leave_nothing_when_they_refuse(supervised: Supervised) -> None:
    hook = supervised.pantry.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'not today' >&2\nexit 1\n")
    hook.chmod(0o755)
    before = supervised.state()
    with pytest.raises(UsageError, match="not today"):
        supervised.run(1, STEP_1, commit=True)
    assert supervised.state() == before


@pytest.mark.parametrize("how", ["shutil.rmtree('.git')", "shutil.rmtree('.git'); git('init', '--quiet')"])
def test_a_repository_that_the_agent_destroys_is_made_anew(supervised: Supervised, how: str) -> None:
    run, _ = supervised.run(1, f"{GIT}{STEP_1}{how}\n", commit=True)
    assert (run.outcome, supervised.codes(run)) == ("committed", [["RUN005"]])


def test_an_agent_that_deletes_everything_fails_and_can_go_on(supervised: Supervised) -> None:
    before = supervised.state()
    destroy = "import shutil\nif number == 1:\n    shutil.rmtree(os.getcwd())\n    sys.exit()\n"
    run, _ = supervised.run(1, destroy, rounds=1)
    assert run.outcome == "failed"
    assert {"RUN003", "RUN004", "RUN005", "STEP010"} <= set(supervised.codes(run)[0])
    assert supervised.state() == before
    run, _ = supervised.run(1, destroy + STEP_1, scaffold=False, rounds=2)
    assert "pantry/jar.py does not exist" in str(run.rounds[1].findings)


def test_a_folder_that_became_a_link_is_undone_and_nothing_is_written_through_it(supervised: Supervised) -> None:
    outside = supervised.scripts / "outside"
    script = "import shutil\n" + STEP_1 + (
        f"shutil.move('design', {str(outside)!r}); os.symlink({str(outside)!r}, 'design')\n"
        "write('design/pantry.md', 'mine'); write('design/more.md', 'mine')\n"
    )  # fmt: skip
    run, _ = supervised.run(1, script)
    assert (run.outcome, supervised.codes(run)) == ("review", [["RUN003", "RUN004"]])
    assert sorted(path.name for path in outside.iterdir()) == ["more.md", "pantry.md"]
    assert (outside / "pantry.md").read_text() == "mine"
    assert supervised.pantry.statuses() == {1: "DONE", 2: "NOT_STARTED", 3: "NOT_STARTED"}


def test_a_write_through_a_link_leaves_the_step_without_the_file(supervised: Supervised) -> None:
    outside = supervised.scripts / "elsewhere"
    script = f"import shutil\nshutil.move('pantry', {str(outside)!r}); os.symlink({str(outside)!r}, 'pantry')\n{STEP_1}"
    before = supervised.state()
    run, _ = supervised.run(1, script, rounds=1)
    assert run.outcome == "failed" and "STEP010" in supervised.codes(run)[0]
    assert (outside / "__init__.py").exists()
    assert supervised.state() == before


@pytest.mark.parametrize("how", ["pathlib.Path('design/pantry.md').unlink()", "shutil.rmtree('steps')"])
def test_what_the_tool_wrote_comes_back(supervised: Supervised, how: str) -> None:
    run, _ = supervised.run(1, f"{GIT}{STEP_1}{how}\n")
    assert (run.outcome, supervised.codes(run)) == ("review", [["RUN004"]])


def test_processes_that_left_the_group_are_ended(supervised: Supervised) -> None:
    pid = supervised.scripts / "pid"
    script = STEP_1 + (
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True,\n"
        "                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        f"write({str(pid)!r}, str(child.pid))\n"
    )
    run, _ = supervised.run(1, script)
    assert run.outcome == "review"
    state = Path(f"/proc/{pid.read_text()}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_tool_that_is_told_to_end_takes_the_agent_with_it(supervised: Supervised, number: signal.Signals) -> None:
    before = supervised.state()
    pid = supervised.scripts / "pid"
    agent = shlex.join(supervised.command(f"write({str(pid)!r}, str(os.getpid()))\ntime.sleep(600)\n"))
    words = ["-m", "codegen", "step", "run", "1", "--unreviewed", "--agent", agent]
    environment = {**os.environ, "TMPDIR": tempfile.gettempdir(), "PYTHONPATH": os.getcwd()}
    with subprocess.Popen(
        [sys.executable, *words], cwd=supervised.pantry.root, env=environment, stderr=subprocess.PIPE, text=True
    ) as tool:
        deadline = time.monotonic() + 60
        while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        tool.send_signal(number)
        _, said = tool.communicate(timeout=60)
    assert (tool.returncode, said.splitlines()[-1]) == (130, "codegen: interrupted")
    state = Path(f"/proc/{pid.read_text()}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"
    assert supervised.state() == before
    [run] = read_runs(supervised.pantry.root, "pantry")
    assert run.outcome == "stopped" and run.ended


def test_what_a_test_leaves_running_does_not_hold_the_run(supervised: Supervised) -> None:
    pid = supervised.scripts / "pid"
    server = (
        "import subprocess, sys\\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\\n"
        f"open({str(pid)!r}, 'w').write(str(child.pid))\\n"
    )
    script = (
        STEP_1
        + f"""
write("tests/test_jar.py", pathlib.Path("tests/test_jar.py").read_text() + "{server}")
"""
    )
    run, _ = supervised.run(1, script)
    assert run.outcome == "review" and run.rounds[0].check_seconds < 60
    state = Path(f"/proc/{pid.read_text()}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("pathlib.Path('tests/test_jar.py').write_bytes(b'x = \"\\xe9\"')", "AUD008 is not text in UTF-8"),
        ("pathlib.Path('tests/test_jar.py').write_bytes(bytes(range(256)))", "AUD008 is not text in UTF-8"),
        ("write('tests/test_jar.py', 'x = ' + '(' * 5000 + ')' * 5000)", "AUD008 "),
        ("write('tests/test_jar.py', 'x = ' + ' + '.join(['1'] * 3000))", "AUD008 cannot be read as Python"),
        ("write('tests/test_jar.py', 'x = 1\\0')", "AUD008 "),
        ("write('tests/test_jar.py', '#' * 10_000_001)", "RUN009 has 10000001 bytes"),
        ("os.unlink('pantry/jar.py'); os.mkfifo('pantry/jar.py')", "RUN007 is no regular file"),
        ("os.unlink('pantry/jar.py'); write('pantry/jar.py/__init__.py', '')", "DRF001 "),
    ],
    ids=["latin-1", "binary", "brackets", "terms", "null", "huge", "pipe", "folder"],
)  # fmt: skip
def test_what_is_no_source_is_a_finding(supervised: Supervised, script: str, found: str) -> None:
    before = supervised.state()
    run, folder = supervised.run(1, f"{STEP_1}{script}\n", rounds=1)
    said = [f"{each.code} {each.message}" for each in run.rounds[0].findings]
    assert run.outcome == "failed" and any(text.startswith(found) for text in said), said
    assert supervised.state() == before
    assert (folder / "work.patch").is_file()


def test_names_that_are_no_text_are_undone_and_can_be_shown(supervised: Supervised) -> None:
    script = STEP_1 + "open(b'caf\\xe9', 'w'); open('two\\nlines', 'w'); open('审查', 'w'); os.symlink('/', 'root')\n"
    run, _ = supervised.run(1, script, commit=True)
    assert run.outcome == "committed"
    assert sorted(run.rounds[0].reverted) == ["'caf\\udce9'", "'two\\nlines'", "root", "审查"]


def test_a_repository_inside_does_not_hide_its_files(supervised: Supervised) -> None:
    script = STEP_1 + (
        "for path in ('pantry', 'tests', 'other/deep'):\n    os.makedirs(path, exist_ok=True)\n"
        "    subprocess.run(['git', 'init', '--quiet', path], check=True)\nwrite('other/deep/x', 'y')\n"
    )
    run, _ = supervised.run(1, script, commit=True)
    assert (run.outcome, run.rounds[0].reverted) == ("committed", ["other/deep/x"])
    assert not (supervised.pantry.root / "pantry/.git").exists()


def test_folders_that_may_not_be_written_to_go_too(supervised: Supervised) -> None:
    script = "write('cache/mod/file', 'x'); os.chmod('cache/mod', 0o500); os.chmod('cache', 0o500)\n"
    before = supervised.state()
    run, _ = supervised.run(1, script, rounds=1)
    assert run.outcome == "failed"
    assert supervised.state() == before


def test_a_file_that_git_ignores_is_a_finding(supervised: Supervised) -> None:
    supervised.pantry.write(".gitignore", "__pycache__/\n.codegen_cache/\ntests/\n")
    supervised.pantry.commit_all("Ignore the tests")
    run, _ = supervised.run(1, STEP_1, rounds=1)
    assert (run.outcome, supervised.codes(run)) == ("failed", [["RUN010"]])


def test_a_block_that_was_changed_with_its_seal_is_a_finding(supervised: Supervised) -> None:
    script = STEP_1 + (
        "from codegen.cli import main\n"
        "change('pantry/jar.py', 'max=5000', 'max=9000')\nassert main(['expand', 'pantry/jar.py']) == 0\n"
        "change('pantry/jar.py', 'max=9000', 'max=5000')\n"
    )
    run, _ = supervised.run(1, script, rounds=1)
    assert run.outcome == "failed"
    assert supervised.codes(run) == [["stale"]]


def test_git_variables_that_lead_astray_are_refused(supervised: Supervised, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("GIT_INDEX_FILE", "/nowhere")
        with pytest.raises(UsageError, match="GIT_INDEX_FILE is set"):
            supervised.run(1, STEP_1)
