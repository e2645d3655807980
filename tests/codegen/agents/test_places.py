"""A run works wherever git lets a project be, and leaves each place as it was but for the commit."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.codegen.agents.scripted import STEP_1, Supervised
from tests.codegen.workflow.conftest import DOCUMENT, Pantry


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def filled(root: Path) -> Path:
    (root / "design").mkdir(parents=True)
    (root / "design/pantry.md").write_text(DOCUMENT)
    (root / "pyproject.toml").write_text("[project]\nname = 'pantry'\n")
    return root


def in_a_folder_of_a_repository(base: Path) -> Path:
    root = filled(base / "tools" / "pantry")
    (base / "other").mkdir()
    (base / "other/file.txt").write_text("theirs\n")
    git(base, "init", "--quiet")
    return root


def with_odd_names(base: Path) -> Path:
    root = filled(base / "Größe 大 'x' $HOME")
    git(root, "init", "--quiet")
    return root


def with_long_ids(base: Path) -> Path:
    git(filled(base), "init", "--quiet", "--object-format=sha256")
    return base


def committed(root: Path) -> Path:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "Design")
    return root


def in_a_linked_worktree(base: Path) -> Path:
    main = filled(base / "main")
    git(main, "init", "--quiet")
    committed(main)
    git(main, "worktree", "add", "--quiet", "-b", "side", str(base / "side"))
    return base / "side"


def in_a_shallow_clone(base: Path) -> Path:
    main = filled(base / "main")
    git(main, "init", "--quiet")
    committed(main)
    (main / "more.txt").write_text("x")
    committed(main)
    git(base, "clone", "--quiet", "--depth=1", f"file://{main}", str(base / "clone"))
    return base / "clone"


def in_a_clone_that_borrows(base: Path) -> Path:
    main = filled(base / "main")
    git(main, "init", "--quiet")
    committed(main)
    git(base, "clone", "--quiet", "--shared", str(main), str(base / "clone"))
    return base / "clone"


def with_line_ends_of_another_system(base: Path) -> Path:
    git(filled(base), "init", "--quiet")
    git(base, "config", "core.autocrlf", "true")
    return base


@pytest.mark.slow
@pytest.mark.parametrize(
    "place",
    [
        in_a_folder_of_a_repository,
        with_odd_names,
        with_long_ids,
        in_a_linked_worktree,
        in_a_shallow_clone,
        in_a_clone_that_borrows,
        with_line_ends_of_another_system,
    ],
    ids=lambda place: place.__name__,
)
def test_a_step_is_run_and_committed(
    place: Callable[[Path], Path],
    tmp_path_factory: pytest.TempPathFactory,
    pantry: Pantry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    base = tmp_path_factory.mktemp("place")
    root = place(base)
    if git(root, "status", "--porcelain"):
        committed(root)
    worktrees = git(root, "worktree", "list")
    monkeypatch.setenv("PYTHONPATH", str(root))
    supervised = Supervised(Pantry(root), tmp_path_factory.mktemp("scripts"))
    outside = (
        "\nwrite(os.path.join(os.popen('git rev-parse --show-toplevel').read().strip(), 'other/file.txt'), 'mine')"
    )
    run, _ = supervised.run(1, STEP_1 + outside, commit=True)
    assert (run.outcome, supervised.codes(run), run.warnings) == ("committed", [["RUN003"]], [])
    assert git(root, "status", "--porcelain") == ""
    assert git(root, "log", "--format=%s").startswith("Step 1: Jars\n")
    assert git(root, "worktree", "list").count("\n") == worktrees.count("\n")
    assert list(temporary.iterdir()) == []
    if (base / "other/file.txt").exists():
        assert (base / "other/file.txt").read_text() == "theirs\n"
