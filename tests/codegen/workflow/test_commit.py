"""One commit a step: its files, its statuses, its trailers, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from codegen.document.parse import parse_document
from codegen.document.store import DocumentBusy, document_lock, update_document
from codegen.workflow.commit import NotCommitted, commit_step
from codegen.workflow.git import GitError
from codegen.workflow.ledger import with_field
from codegen.workflow.review import FIELD, record_text
from codegen.workflow.trail import standing_commits, step_commits
from tests.codegen.workflow.conftest import Pantry, complete, finish, implement
from tests.codegen.workflow.conftest import done as set_done


def done(pantry: Pantry, number: int = 1) -> None:
    implement(pantry, number)
    set_done(pantry, number)


def test_a_commit_holds_the_files_the_document_and_the_brief(pantry: Pantry) -> None:
    complete(pantry, 1)
    expected = [
        "design/pantry.md",
        "pantry/__init__.py",
        "pantry/jar.py",
        "steps/pantry/step_01.md",
        "tests/test_jar.py",
    ]
    assert pantry.committed() == expected
    assert pantry.git.changes() == []


def test_the_message_has_title_purpose_and_trailers(pantry: Pantry) -> None:
    complete(pantry, 1)
    assert pantry.git.run("log", "-1", "--format=%B").strip() == (
        "Step 1: Jars\n\nwhat everything else holds\n\n"
        "Design-Doc: design/pantry.md\nStep: 1\nDoc-Version: 0.2\nStep-Review: none\n"
        "Unapproved: D-1, pantry.jar.Jar, pantry.jar.fill"
    )


def test_the_statuses_flip_in_the_same_commit(pantry: Pantry) -> None:
    complete(pantry, 1)
    before, after = (pantry.git.show(commit, "design/pantry.md") for commit in ("HEAD~1", "HEAD"))
    assert before and "| 1 | Jars | - | NOT_STARTED |" in before and "5.1.2 | NOT_STARTED | -" in before
    assert after and "| 1 | Jars | - | DONE |" in after
    rows = parse_document(after).record
    assert {name: (row.status, row.step) for name, row in rows.items()} == {
        "pantry.jar.Jar": ("DONE", "1"),
        "pantry.jar.fill": ("DONE", "1"),
    }


def test_the_commit_cell_is_filled_by_the_next_step_and_agrees_with_the_trailers(pantry: Pantry) -> None:
    first, second = complete(pantry, 1, 2)
    steps = pantry.document.step_by_number
    assert first.startswith(steps[1].commit) and steps[1].commit
    assert steps[2].commit == ""
    assert {n: c.id for n, c in standing_commits(step_commits(pantry.git)).items()} == {1: first, 2: second}


def test_an_unfinished_step_is_refused(pantry: Pantry) -> None:
    implement(pantry, 1)
    with pytest.raises(NotCommitted, match=r"Step 1 is not done: pantry\.jar\.Jar \(IN_PROGRESS\)"):
        commit_step(pantry.target(1), pantry.git, review=False)


def test_a_method_whose_entry_changed_since_done_is_refused(pantry: Pantry) -> None:
    done(pantry)
    pantry.change("design/pantry.md", "grams: int = 0", "grams: int = 1")
    with pytest.raises(NotCommitted, match=r"pantry\.jar\.Jar \(STALE\)"):
        commit_step(pantry.target(1), pantry.git, review=False)


def test_a_step_without_review_is_refused(pantry: Pantry) -> None:
    done(pantry)
    with pytest.raises(NotCommitted, match="Step 1 is not reviewed"):
        commit_step(pantry.target(1), pantry.git)


def test_a_reviewed_step_is_committed_with_the_reviewer(pantry: Pantry) -> None:
    done(pantry)
    target = pantry.target(1)
    update_document(target.document.path, lambda document: with_field(document, 1, FIELD, record_text(target, "Grace")))
    commit_step(pantry.target(1), pantry.git)
    assert "Step-Review: Grace" in pantry.git.run("log", "-1", "--format=%B")


def test_a_review_is_void_when_the_code_changed_after_it(pantry: Pantry) -> None:
    done(pantry)
    target = pantry.target(1)
    update_document(target.document.path, lambda document: with_field(document, 1, FIELD, record_text(target, "Grace")))
    pantry.change("tests/test_jar.py", "== 5", "== 5  # grams")
    with pytest.raises(NotCommitted, match="Step 1 changed after it was proven"):
        commit_step(pantry.target(1), pantry.git)
    set_done(pantry, 1)
    with pytest.raises(NotCommitted, match="Step 1 changed after Grace approved it"):
        commit_step(pantry.target(1), pantry.git)


@pytest.mark.parametrize("path", ["pyproject.toml", "notes.txt"])
def test_a_changed_file_of_something_else_is_refused_or_recorded(pantry: Pantry, path: str) -> None:
    done(pantry)
    pantry.write(path, "[project]\nname = 'other'\n")
    with pytest.raises(NotCommitted, match=f"changed and not in its `files:`: {path}"):
        commit_step(pantry.target(1), pantry.git, review=False)
    commit_step(pantry.target(1), pantry.git, review=False, allow_dirty=True)
    assert f"Dirty: {path}" in pantry.git.run("log", "-1", "--format=%B")
    assert path not in pantry.committed()


def test_what_else_is_staged_stays_staged(pantry: Pantry) -> None:
    done(pantry)
    pantry.write("notes.txt", "mine\n")
    pantry.git.run("add", "notes.txt")
    commit_step(pantry.target(1), pantry.git, review=False, allow_dirty=True)
    assert pantry.git.run("status", "--porcelain", "notes.txt") == "A  notes.txt\n"


def test_a_hook_that_refuses_leaves_document_and_index_as_they_were(pantry: Pantry) -> None:
    complete(pantry, 1)
    done(pantry, 2)
    hook = pantry.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho no tea, no commit >&2\nexit 1\n")
    hook.chmod(0o755)
    text, head = (pantry.root / "design/pantry.md").read_bytes(), pantry.git.head()
    with pytest.raises(GitError, match="no tea, no commit"):
        commit_step(pantry.target(2), pantry.git, review=False)
    assert (pantry.root / "design/pantry.md").read_bytes() == text
    assert pantry.git.head() == head
    assert pantry.staged() == []
    hook.unlink()
    finish(pantry, 2)


def test_a_step_is_not_committed_twice(pantry: Pantry) -> None:
    complete(pantry, 1)
    with pytest.raises(NotCommitted, match="is in HEAD as it is now"):
        commit_step(pantry.target(1), pantry.git, review=False)


def test_one_of_two_at_once_is_told_who_holds_the_document(pantry: Pantry) -> None:
    done(pantry)
    said: list[str] = []

    def other() -> None:
        try:
            commit_step(pantry.target(1), pantry.git, review=False)
        except DocumentBusy as error:
            said.append(str(error))

    with document_lock(pantry.root / "design/pantry.md", "step commit 1"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(20)
    assert "(step commit 1)" in said[0]


def test_a_project_in_a_folder_of_the_repository_commits_its_own_paths(
    pantry: Pantry, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = Pantry(pantry.root / "inner")
    inner.write("pyproject.toml", "[project]\n")
    inner.write("design/pantry.md", (pantry.root / "design/pantry.md").read_text())
    pantry.commit_all("A second project")
    pantry.write("notes.txt", "outside of the project\n")
    monkeypatch.setenv("PYTHONPATH", str(inner.root))
    complete(inner, 1)
    assert "inner/pantry/jar.py" in inner.git.run("show", "--format=", "--name-only", "HEAD").split()
    assert inner.committed()[0] == "design/pantry.md"


def test_the_title_can_be_set(pantry: Pantry) -> None:
    pantry.write("pyproject.toml", "[tool.codegen.step]\ntitle = 'pantry {number}: {title}'\n")
    pantry.commit_all("Titles")
    complete(pantry, 1)
    assert pantry.git.run("log", "-1", "--format=%s").strip() == "pantry 1: Jars"
    assert [commit.number for commit in step_commits(pantry.git)] == [1]


def test_a_step_may_be_the_first_commit_of_a_repository(pantry: Pantry) -> None:
    pantry.git.run("update-ref", "-d", "HEAD")
    pantry.git.run("rm", "--cached", "--quiet", "-r", ".")
    done(pantry)
    commit_step(pantry.target(1), pantry.git, review=False, allow_dirty=True)
    assert [commit.number for commit in step_commits(pantry.git)] == [1]
    assert "pyproject.toml" not in pantry.committed()


def test_code_that_drifted_since_done_is_refused(pantry: Pantry) -> None:
    done(pantry)
    pantry.change("pantry/jar.py", "grams: int = 0", "grams: int = 3")
    with pytest.raises(NotCommitted, match=r"Step 1 is not what Section 5 says any more: design/pantry\.md"):
        commit_step(pantry.target(1), pantry.git, review=False)


@pytest.mark.slow
def test_of_two_commands_that_commit_one_step_one_wins_and_the_other_is_told(pantry: Pantry) -> None:
    done(pantry)
    command = [sys.executable, "-m", "codegen", "step", "commit", "1", "--no-review"]
    path = os.pathsep.join([str(pantry.root), str(Path(__file__).parents[3])])
    environment = {**os.environ, "PYTHONPATH": path}
    both = [
        subprocess.Popen(command, cwd=pantry.root, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120)[1].decode() for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], said
    loser = said[0] if both[0].returncode else said[1]
    assert "held by process" in loser or "committed already" in loser
    assert [commit.number for commit in step_commits(pantry.git)] == [1]
