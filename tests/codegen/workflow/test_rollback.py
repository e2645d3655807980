"""A step can be taken back alone: files and statuses as before its commit, everything later kept."""

from __future__ import annotations

import pytest

from codegen.document.store import update_document
from codegen.workflow.audit import audit
from codegen.workflow.ledger import started
from codegen.workflow.rollback import NotRolledBack, roll_back, rollback_plan
from codegen.workflow.trail import standing_commits, step_commits
from tests.codegen.workflow.conftest import Pantry, complete, finish, implement


def taken_back(pantry: Pantry, number: int, cascade: bool = False) -> list[int]:
    target = pantry.target(number)
    plan = rollback_plan(target, pantry.git, cascade)
    for item in plan:
        roll_back(target, pantry.git, item)
    return [item.step.number for item in plan]


def test_files_and_statuses_are_as_before_the_commit(pantry: Pantry) -> None:
    complete(pantry, 1, 2)
    assert taken_back(pantry, 2) == [2]
    assert not (pantry.root / "pantry/shelf.py").exists()
    assert (pantry.root / "pantry/jar.py").exists()
    assert pantry.statuses() == {1: "DONE", 2: "NOT_STARTED", 3: "NOT_STARTED"}
    methods = pantry.document.step_by_number[2].methods
    assert {(method.status, method.digest) for method in methods} == {("NOT_STARTED", "")}
    assert pantry.git.changes() == []
    assert pantry.git.run("log", "-1", "--format=%s").strip() == 'Revert "Step 2: The shelf"'


def test_a_step_that_others_build_on_is_refused_without_cascade(pantry: Pantry) -> None:
    complete(pantry, 1, 2, 3)
    with pytest.raises(NotRolledBack, match=r"Step 2 \(The shelf\), Step 3 \(The report\)"):
        rollback_plan(pantry.target(1), pantry.git, cascade=False)


def test_cascade_takes_back_in_reverse_order(pantry: Pantry) -> None:
    complete(pantry, 1, 2, 3)
    assert taken_back(pantry, 1, cascade=True) == [3, 2, 1]
    assert set(pantry.statuses().values()) == {"NOT_STARTED"}
    assert not (pantry.root / "pantry").exists() or not list((pantry.root / "pantry").glob("*.py"))
    assert standing_commits(step_commits(pantry.git)) == {}


def test_a_step_taken_back_can_be_done_again(pantry: Pantry) -> None:
    complete(pantry, 1)
    taken_back(pantry, 1)
    again = complete(pantry, 1)
    assert standing_commits(step_commits(pantry.git))[1].id == again[0]
    assert audit(pantry.git, {"design/pantry.md": pantry.document}) == []


def test_taking_back_the_second_doing_of_a_step_leaves_the_first(pantry: Pantry) -> None:
    first = complete(pantry, 1)[0]
    old_digest = pantry.document.step_by_number[1].methods[0].digest
    pantry.change("design/pantry.md", "grams: int = 0", "grams: int = 1")
    pantry.commit_all("A jar is never empty")
    update_document(pantry.root / "design/pantry.md", lambda document: started(document, 1, unreviewed=True))
    pantry.change("pantry/jar.py", "grams: int = 0", "grams: int = 1")
    pantry.change("tests/test_jar.py", "== 5", "== 6")
    finish(pantry, 1)
    taken_back(pantry, 1)
    assert "grams: int = 0" in (pantry.root / "pantry/jar.py").read_text()
    step = pantry.document.step_by_number[1]
    assert step.status == "DONE" and step.methods[0].digest == old_digest
    assert standing_commits(step_commits(pantry.git))[1].id == first


def test_uncommitted_changes_in_its_files_are_in_the_way(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.change("pantry/jar.py", "grams: int = 0", "grams: int = 7")
    with pytest.raises(NotRolledBack, match=r"uncommitted changes in pantry/jar\.py"):
        taken_back(pantry, 1)
    assert "grams: int = 7" in (pantry.root / "pantry/jar.py").read_text()


def test_later_commits_on_the_same_lines_refuse_and_change_nothing(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.change("pantry/jar.py", "grams: int = 0", "grams: int = 7")
    pantry.commit_all("Full jars")
    head, text = pantry.git.head(), (pantry.root / "design/pantry.md").read_bytes()
    with pytest.raises(NotRolledBack, match="later commits changed what"):
        taken_back(pantry, 1)
    assert (pantry.git.head(), (pantry.root / "design/pantry.md").read_bytes()) == (head, text)
    assert pantry.git.changes() == []


def test_a_step_without_a_commit_cannot_be_taken_back(pantry: Pantry) -> None:
    implement(pantry, 1)
    with pytest.raises(NotRolledBack, match="Step 1 has no commit in this branch"):
        rollback_plan(pantry.target(1), pantry.git, cascade=False)


def test_a_hook_that_refuses_leaves_everything_as_it_was(pantry: Pantry) -> None:
    complete(pantry, 1)
    hook = pantry.root / ".git/hooks/commit-msg"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    text = (pantry.root / "design/pantry.md").read_bytes()
    with pytest.raises(Exception, match="git commit failed"):
        taken_back(pantry, 1)
    assert (pantry.root / "design/pantry.md").read_bytes() == text
    assert pantry.git.changes() == []
    assert (pantry.root / "pantry/jar.py").exists()


def test_bytes_of_another_encoding_come_back_as_they_were(pantry: Pantry) -> None:
    complete(pantry, 1)
    pantry.change("design/pantry.md", "- files: pantry/shelf.py,", "- files: pantry/label.txt, pantry/shelf.py,")
    old = b"caf\xe9\r\nsecond\n"
    (pantry.root / "pantry/label.txt").write_bytes(old)
    pantry.commit_all("A label")
    implement(pantry, 2)
    (pantry.root / "pantry/label.txt").write_bytes(b"th\xe9\r\nsecond\n")
    finish(pantry, 2)
    taken_back(pantry, 2)
    assert (pantry.root / "pantry/label.txt").read_bytes() == old
