"""Real agent programs, good and bad, and what is left of their work."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from codegen.agents.process import Limits
from codegen.agents.record import Run, read_runs
from codegen.agents.tree import agent_tree
from codegen.diagnostics import UsageError
from codegen.document.store import document_lock
from codegen.workflow.ledger import NotReady
from tests.codegen.agents.scripted import STEP_1, STEP_2, STEP_3, WEIGHT, Supervised
from tests.codegen.workflow.conftest import complete, implement


def test_a_good_agent_is_done_in_one_round_and_waits_for_review(supervised: Supervised) -> None:
    pantry = supervised.pantry
    head = pantry.git.head()
    run, folder = supervised.run(1, STEP_1)
    assert (run.outcome, len(run.rounds), supervised.codes(run)) == ("review", 1, [[]])
    assert pantry.git.head() == head
    assert pantry.statuses()[1] == "DONE"
    changed = {change.path for change in pantry.git.changes()}
    files = {"pantry/__init__.py", "pantry/jar.py", "tests/test_jar.py"}
    assert changed == {*files, "design/pantry.md", "steps/pantry/step_01.md"}
    assert "# VAL: VAL_INT_RANGE" in (folder / "round_1.prompt.md").read_text()
    assert json.loads((folder / "run.json").read_text())["outcome"] == "review"


def test_whole_plans_are_driven_to_commits_one_a_step(supervised: Supervised) -> None:
    for number, script in ((1, STEP_1), (2, STEP_2), (3, STEP_3)):
        run, _ = supervised.run(number, script, commit=True)
        assert run.outcome == "committed", run
    pantry = supervised.pantry
    assert pantry.git.run("log", "--format=%s").splitlines()[:3] == [
        "Step 3: The report",
        "Step 2: The shelf",
        "Step 1: Jars",
    ]
    assert set(pantry.statuses().values()) == {"DONE"}
    assert pantry.git.changes() == []
    assert [run.outcome for run in read_runs(pantry.root, "pantry")] == ["committed"] * 3


def test_a_committed_run_leaves_what_a_step_commit_leaves(supervised: Supervised) -> None:
    pantry = supervised.pantry
    run, _ = supervised.run(1, STEP_1, commit=True)
    target = pantry.target(1)
    record = (pantry.root / "steps/pantry/step_01.md").read_text()
    assert run.outcome == "committed" and target.step.folded
    assert record == pantry.git.show("HEAD", "steps/pantry/step_01.md") and len(record.splitlines()) <= 20
    assert record.startswith("# Step 1: Jars\n") and "- proof: 1 missed by a test" in record
    assert all(entry.folded for entry in target.entries)
    assert pantry.document.record["pantry.jar.fill"].proof == "exit status of `python tests/test_jar.py`"
    assert pantry.document.record["pantry.jar.fill"].tests.startswith("tests/test_jar.py 0/1/")


def test_findings_go_back_to_the_agent_until_they_are_mended(supervised: Supervised) -> None:
    wrong = STEP_1.replace("5) == 5", "5) == 6")
    run, folder = supervised.run(1, f"if number == 1:{indented(wrong)}\nelse:{indented(STEP_1)}")
    assert (run.outcome, supervised.codes(run)) == ("review", [["STEP011"], []])
    second = (folder / "round_2.prompt.md").read_text()
    assert "STEP011 `python tests/test_jar.py` failed" in second
    assert "AssertionError" in second
    assert "AssertionError" in (folder / "round_1.tests.txt").read_text()
    assert any(text.startswith("round 1: 0 s, 0 undone, 1 error: STEP011 `python") for text in supervised.said)
    assert second.startswith("Round 2 of 3.")


def test_after_the_last_round_nothing_is_left_but_the_record(supervised: Supervised) -> None:
    before = supervised.state()
    run, folder = supervised.run(1, STEP_1.replace("== 5", "== 6"), rounds=2)
    assert (run.outcome, len(run.rounds)) == ("failed", 2)
    assert supervised.state() == before
    assert "+++ b/pantry/jar.py" in (folder / "work.patch").read_text()


def test_an_edit_of_foreign_files_is_undone_and_reported(supervised: Supervised) -> None:
    script = STEP_1 + (
        "write('pyproject.toml', '[project]')\nwrite('notes/mine.txt', 'x')\npathlib.Path('.gitignore').unlink()\n"
    )
    run, _ = supervised.run(1, script, commit=True)
    assert run.outcome == "committed"
    assert supervised.codes(run) == [["RUN003"]]
    assert sorted(run.rounds[0].reverted) == [".gitignore", "notes/mine.txt", "pyproject.toml"]
    pantry = supervised.pantry
    assert pantry.git.changes() == []
    assert not (pantry.root / "notes").exists()
    assert "name = 'pantry'" in (pantry.root / "pyproject.toml").read_text()


def test_statuses_that_the_agent_ticks_are_taken_back(supervised: Supervised) -> None:
    script = "change('design/pantry.md', '| 3 | The report | 2 | NOT_STARTED |', '| 3 | The report | 2 | DONE |')\n"
    before = supervised.state()
    run, _ = supervised.run(1, script, rounds=1)
    assert run.outcome == "failed"
    assert "RUN004" in supervised.codes(run)[0]
    assert supervised.state() == before


def test_only_the_tool_writes_the_statuses_of_a_good_step(supervised: Supervised) -> None:
    script = STEP_1 + "change('design/pantry.md', '| 1 | Jars | - | IN_PROGRESS |', '| 1 | Jars | - | BLOCKED |')\n"
    run, _ = supervised.run(1, script)
    assert (run.outcome, supervised.codes(run)) == ("review", [["RUN004"]])
    assert supervised.pantry.statuses() == {1: "DONE", 2: "NOT_STARTED", 3: "NOT_STARTED"}


def test_an_agent_that_hangs_is_ended_with_its_children(supervised: Supervised, tmp_path: Path) -> None:
    before = supervised.state()
    pid = supervised.scripts / "child"
    script = (
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"write({str(pid)!r}, str(child.pid))\n"
        "time.sleep(600)\n"
    )
    begun = time.monotonic()
    run, _ = supervised.run(1, script, limits=Limits(seconds=3.0))
    assert time.monotonic() - begun < 60
    assert (run.outcome, len(run.rounds), run.rounds[0].stopped) == ("failed", 1, "time")
    assert supervised.codes(run) == [["RUN002"]]
    assert is_gone(int(pid.read_text()))
    assert supervised.state() == before


def test_an_agent_that_floods_is_ended_and_its_transcript_is_capped(supervised: Supervised) -> None:
    before = supervised.state()
    run, folder = supervised.run(1, "while True: print('x' * 1000)", limits=Limits(60.0, 50_000))
    assert (run.outcome, run.rounds[0].stopped, supervised.codes(run)) == ("failed", "output", [["RUN006"]])
    assert (folder / "round_1.txt").stat().st_size == 50_000
    assert supervised.state() == before


def test_a_deleted_validation_is_a_finding(supervised: Supervised) -> None:
    script = STEP_1 + (
        "text = pathlib.Path('pantry/jar.py').read_text()\n"
        "start = text.index('    # VAL:'); end = text.index('\\n', text.index('# END VAL')) + 1\n"
        "write('pantry/jar.py', text[:start] + text[end:])\n"
    )
    before = supervised.state()
    run, _ = supervised.run(1, script, rounds=1)
    assert run.outcome == "failed"
    assert "`VAL: VAL_INT_RANGE(grams, min=1, max=5000)` is promised here" in messages(run)
    assert supervised.state() == before


def test_a_generated_block_that_was_touched_is_a_finding(supervised: Supervised) -> None:
    run, _ = supervised.run(1, STEP_1 + "change('pantry/jar.py', 'raise ValueError', 'raise KeyError')", rounds=1)
    assert (run.outcome, supervised.codes(run)) == ("failed", [["edited"]])


def test_an_agent_that_crashes_goes_on_from_what_it_left(supervised: Supervised) -> None:
    first = "write('pantry/__init__.py', '')\nsys.exit(3)"
    script = f"if number == 1:{indented(first)}\nassert os.path.exists('pantry/__init__.py'){STEP_1}"
    run, _ = supervised.run(1, script)
    assert (run.outcome, supervised.codes(run)) == ("review", [["RUN001"], []])
    assert "the agent ended with status 3; it said nothing" in messages(run)


def test_an_agent_that_always_crashes_leaves_nothing(supervised: Supervised) -> None:
    before = supervised.state()
    run, _ = supervised.run(1, "write('pantry/jar.py', 'broken(')\nos.kill(os.getpid(), 9)", rounds=2)
    assert (run.outcome, len(run.rounds)) == ("failed", 2)
    assert "was killed by signal 9" in messages(run)
    assert supervised.state() == before


def test_a_test_weakened_to_pass_is_a_finding(supervised: Supervised) -> None:
    pantry = supervised.pantry
    complete(pantry, 1)
    pantry.write(
        "tests/test_shelf.py",
        "from pantry.shelf import Shelf\n\nassert Shelf().weight() == 0\nassert Shelf().jars == []\n",
    )
    pantry.commit_all("A test of the shelf")
    before = supervised.state()
    script = (
        "change('pantry/shelf.py', 'raise NotImplementedError(\"5.2.2 Shelf.weight\")', 'return 7')\n"
        "change('tests/test_shelf.py', '.weight() == 0', '.weight() == 7')\n"
    )
    run, _ = supervised.run(2, f"if number == 1:{indented(script)}", rounds=2)
    assert run.outcome == "failed"
    assert supervised.codes(run) == [["AUD006"], ["AUD006"]]
    assert "`assert Shelf().weight() == 0`, there before this step, was removed" in messages(run)
    assert supervised.state() == before
    allowed, _ = supervised.run(2, script, rounds=1, allow=frozenset({"AUD006"}))
    assert allowed.outcome == "review"
    assert [f.severity for f in allowed.rounds[0].findings if f.code == "AUD006"] == ["warning"]


def test_swallowed_errors_are_findings(supervised: Supervised) -> None:
    complete(supervised.pantry, 1)
    body = (
        "try:\n            return sum(jar.grams for jar in self.jars)\n        except Exception:\n            return 0"
    )
    script = STEP_2.replace(repr(WEIGHT[1]), repr(body))
    run, _ = supervised.run(2, script, rounds=1)
    assert (run.outcome, supervised.codes(run)) == ("failed", [["AUD001"]])


def test_a_body_left_open_is_a_finding(supervised: Supervised) -> None:
    complete(supervised.pantry, 1)
    run, _ = supervised.run(2, "write('tests/test_shelf.py', '')", rounds=1)
    assert supervised.codes(run) == [["AUD003"]]
    assert "5.2.2 Shelf.weight is not written yet" in messages(run)


def test_commits_and_branches_of_the_agent_do_not_reach_the_project(supervised: Supervised) -> None:
    script = STEP_1 + (
        "git = ['git', '-c', 'user.name=x', '-c', 'user.email=x@x']\n"
        "subprocess.run([*git, 'add', '--all'], check=True)\n"
        "subprocess.run([*git, 'commit', '-qm', 'mine', '--no-verify'], check=True)\n"
    )
    run, _ = supervised.run(1, script, commit=True)
    assert run.outcome == "committed"
    assert "RUN005" in supervised.codes(run)[0]
    assert supervised.pantry.git.run("log", "--format=%s").splitlines() == ["Step 1: Jars", "Design of the pantry"]


def test_what_the_agent_does_to_the_project_itself_is_reported(supervised: Supervised) -> None:
    root = supervised.pantry.root
    script = (
        f"write({str(root / 'stray.txt')!r}, 'x')\nwrite({str(root / '.git/hooks/post-commit')!r}, 'x')\n"
        f"for words in (['branch', 'mine'], ['config', 'user.name', 'Me']):\n"
        f"    subprocess.run(['git', '-C', {str(root)!r}, *words], check=True)\n"
    )
    run, _ = supervised.run(1, STEP_1 + script)
    assert run.outcome == "review"
    [warning] = run.warnings
    assert warning.code == "RUN008"
    assert warning.message.endswith("git's config, git's hooks/post-commit, ref refs/heads/mine, stray.txt")


@pytest.mark.parametrize("place", ["stray.txt", ".git/hooks/pre-commit", ".git/info/attributes", ".venv/site.py"])
def test_nothing_is_committed_after_a_change_of_the_project_and_a_planted_hook_never_runs(
    supervised: Supervised, place: str
) -> None:
    root = supervised.pantry.root
    (root / ".git/info/exclude").write_text(".venv/\n")
    (root / ".git/hooks").mkdir(exist_ok=True)
    ran = supervised.scripts / "ran"
    hook = f"#!/bin/sh\ntouch {ran}\n"
    script = f"write({str(root / place)!r}, {hook!r})\nos.chmod({str(root / place)!r}, 0o755)\n"
    run, folder = supervised.run(1, STEP_1 + script, commit=True)
    assert run.outcome == "held"
    [warning] = run.warnings
    assert warning.code == "RUN008"
    assert place.removeprefix(".git/") in warning.message
    assert supervised.pantry.git.run("log", "--format=%s").splitlines() == ["Design of the pantry"]
    assert not ran.exists()
    assert "pantry/__init__.py" in (folder / "work.patch").read_text(), "the work is kept"


def test_a_program_that_trusts_its_environment_works_in_the_tree(
    supervised: Supervised, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = supervised.pantry.root
    for name, value in {"PWD": root, "OLDPWD": root / "pantry", "INIT_CWD": root, "SOME_PROJECT_DIR": root}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    script = (
        "for name in ('PWD', 'OLDPWD', 'INIT_CWD', 'SOME_PROJECT_DIR'):\n"
        "    write(os.path.join(os.environ[name], f'stray_{name}.txt'), 'x')\n"
        f"assert {str(root)!r} not in [os.environ[name] for name in os.environ if 'PATH' not in name]\n"
        "assert not [name for name in os.environ if name.startswith('GIT_')]\n"
    )
    before = supervised.state()
    run, _ = supervised.run(1, STEP_1 + script)
    assert run.outcome == "review"
    assert run.warnings == []
    assert not list(root.rglob("stray_*.txt"))
    assert before["head"] == supervised.state()["head"]
    assert {f.path for f in run.rounds[0].findings if f.code == "RUN003"} == {
        "stray_PWD.txt", "stray_OLDPWD.txt", "stray_INIT_CWD.txt", "stray_SOME_PROJECT_DIR.txt"
    }  # fmt: skip


def test_a_link_out_of_the_tree_is_undone(supervised: Supervised) -> None:
    outside = supervised.scripts / "outside.py"
    outside.write_text("secret = 1\n")
    script = (
        STEP_1 + f"pathlib.Path('pantry/jar.py').unlink()\npathlib.Path('pantry/jar.py').symlink_to({str(outside)!r})\n"
    )
    run, _ = supervised.run(1, script, rounds=1)
    assert run.outcome == "failed"
    assert "RUN007" in supervised.codes(run)[0]
    assert outside.read_text() == "secret = 1\n"


def test_a_step_whose_files_have_changes_is_not_run(supervised: Supervised) -> None:
    implement(supervised.pantry, 1)
    with pytest.raises(UsageError, match=r"Step 1: not committed: design/pantry\.md, pantry/__init__\.py"):
        supervised.run(1, STEP_1)


def test_changes_elsewhere_in_the_project_stay_and_do_not_get_in(supervised: Supervised) -> None:
    pantry = supervised.pantry
    pantry.write("pyproject.toml", "[project]\nname = 'other'\n")
    run, _ = supervised.run(1, STEP_1, commit=True)
    assert run.outcome == "committed"
    assert [change.path for change in pantry.git.changes()] == ["pyproject.toml"]


def test_a_step_that_waits_for_another_is_not_run(supervised: Supervised) -> None:
    with pytest.raises(NotReady, match="Step 2 depends on Step 1"):
        supervised.run(2, STEP_2)
    assert not (supervised.pantry.root / "runs").exists()


def test_work_that_cannot_be_delivered_is_kept(supervised: Supervised) -> None:
    document = supervised.pantry.root / "design/pantry.md"
    script = (
        STEP_1
        + f"path = pathlib.Path({str(document)!r}); path.write_text(path.read_text().replace('whole grams', 'grams'))\n"
    )
    with pytest.raises(UsageError, match=r"Step 1 verifies, but the project changed meanwhile.*work\.patch"):
        supervised.run(1, script)
    [run] = read_runs(supervised.pantry.root, "pantry")
    assert run.outcome == "stopped"
    assert not (supervised.pantry.root / "pantry").exists()
    assert supervised.pantry.git.run("worktree", "list").count("\n") == 1


def test_a_second_run_of_the_step_is_told_who_holds_it(supervised: Supervised) -> None:
    folder = supervised.pantry.root / "runs/pantry/step_01"
    folder.parent.mkdir(parents=True)
    with document_lock(folder, "step run 1"):
        error: list[str] = []

        def other() -> None:
            try:
                supervised.run(1, "pass")
            except UsageError as problem:
                error.append(str(problem))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(30)
    assert "held by process" in error[0]


def test_the_next_run_removes_the_tree_of_one_that_was_killed_and_ends_its_agent(supervised: Supervised) -> None:
    pid = supervised.scripts / "pid"
    agent = shlex.join(supervised.command(f"write({str(pid)!r}, str(os.getpid()))\ntime.sleep(600)\n"))
    temporary = tempfile.gettempdir()
    environment = {**os.environ, "TMPDIR": temporary, "PYTHONPATH": os.getcwd()}
    words = [sys.executable, "-m", "codegen", "step", "run", "1", "--unreviewed", "--agent", agent]
    with subprocess.Popen(words, cwd=supervised.pantry.root, env=environment, stderr=subprocess.DEVNULL) as tool:
        deadline = time.monotonic() + 60
        while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        tool.kill()
    assert len(list(Path(temporary).iterdir())) == 1
    [killed] = read_runs(supervised.pantry.root, "pantry")
    supervised.run(1, STEP_1)
    assert is_gone(int(pid.read_text()))
    outcomes = [run.outcome for run in read_runs(supervised.pantry.root, "pantry")]
    assert (killed.outcome, outcomes) == ("running", ["stopped", "review"])


def test_the_tree_of_a_run_that_lives_is_not_touched_by_another(supervised: Supervised) -> None:
    git = supervised.pantry.git
    with agent_tree(git, str(git.head())) as tree:
        supervised.run(1, STEP_1)
        assert (tree.root / "design/pantry.md").is_file() and tree.git.changes() == []


def indented(script: str) -> str:
    return "".join(f"\n    {line}" for line in script.strip().split("\n"))


def messages(run: Run) -> str:
    return "\n".join(f.message for each in run.rounds for f in each.findings)


def is_gone(pid: int) -> bool:
    """Whether a process ended; a zombie that nobody waits for counts as ended."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
            if "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]:
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False
