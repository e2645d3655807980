"""A fresh checkout of what would be committed: HEAD with the step's changes, and nothing that git ignores.

It is a repository of its own that borrows the project's objects, so that tests which ask git find a history. Index and
objects of the project are not touched.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from codegen.workflow.git import Git, GitError
from codegen.workflow.records import whole_step
from codegen.workflow.target import Target, belongs

_LEFT_OUT = ("__pycache__", ".git", ".codegen_cache", "*.pyc")
_AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "codegen"), ("EMAIL", "codegen@localhost"))
}


@contextlib.contextmanager
def checkout(target: Target, together: Sequence[Target] = ()) -> Iterator[Path]:
    """The project's folder as the step's commit, after those of the steps it builds on, would leave it; a correction
    is one commit of the steps `together`.

    Without a repository all files are copied, but for bytecode and environments.
    """
    git = Git(target.root)
    with tempfile.TemporaryDirectory(prefix="checkout-") as name:
        folder = Path(name).resolve()
        top = folder / "tree"
        try:
            git.require()
        except GitError:
            shutil.copytree(target.root, top, symlinks=True, ignore=_left_out)
            yield top
            return
        commit = _commit(git, folder, [pattern for each in (target, *together) for pattern in _patterns(each)])
        _check_out(git, folder, top, commit)
        yield top / git.prefix()


def _patterns(target: Target) -> list[str]:
    """What belongs to the step and to those it builds on, which are committed before it."""
    steps = target.document.step_by_number
    found, todo = {target.step.number}, [target.step.number]
    while todo:
        for number in steps[todo.pop()].depends:
            if number in steps and number not in found:
                found.add(number)
                todo.append(number)
    parts = [whole_step(target.root, target.document, steps[number]) for number in sorted(found)]
    files = [path for part in parts for path in part.files]
    return [*files, *target.own_paths]


def _commit(git: Git, folder: Path, patterns: Sequence[str]) -> str:
    """A commit of HEAD with these paths as they lie in the working tree; it exists in `folder` only."""
    (folder / "objects").mkdir()
    environment = {
        "GIT_INDEX_FILE": str(folder / "index"),
        "GIT_OBJECT_DIRECTORY": str(folder / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(_objects(git)),
        **_AUTHOR,
    }
    head = git.head()
    git.run("read-tree", *([head] if head else ["--empty"]), environment=environment)
    paths = [change.path for change in git.changes() if belongs(change.path, list(patterns))]
    if paths:
        listed = "".join(f":(literal){path}\0" for path in paths)
        git.run("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", text=listed, environment=environment)
    tree = git.run("write-tree", environment=environment).strip()
    parent = ["-p", head] if head else []
    return git.run("commit-tree", tree, *parent, "-m", "What would be committed", environment=environment).strip()


def _check_out(git: Git, folder: Path, top: Path, commit: str) -> None:
    own = Git(top)
    top.mkdir()
    own.run("init", "--quiet", "--template=", f"--object-format={'sha256' if len(commit) == 64 else 'sha1'}")
    info = top / ".git" / "objects" / "info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "alternates").write_bytes(os.fsencode(f"{_objects(git)}\n{folder / 'objects'}\n"))
    shallow = git.root / git.run("rev-parse", "--git-path", "shallow").strip()
    if shallow.is_file():
        shutil.copyfile(shallow, top / ".git" / "shallow")
    own.run("update-ref", "--no-deref", "HEAD", commit)
    own.run("read-tree", commit)
    own.run("checkout-index", "--all", "--quiet")


def _objects(git: Git) -> Path:
    return (git.root / git.run("rev-parse", "--git-path", "objects").strip()).resolve()


def _left_out(folder: str, names: list[str]) -> set[str]:
    environments = {name for name in names if (Path(folder) / name / "pyvenv.cfg").is_file()}
    return environments | shutil.ignore_patterns(*_LEFT_OUT)(folder, names)
