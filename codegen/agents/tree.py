"""A git worktree for one run, outside of the project and thrown away afterwards, whatever happened in it.

It is locked while its process lives; trees of processes that died are removed by the next run. HEAD and the index are
put back after each round, so that a commit, a stash or a hidden path of the agent does not blind the checks.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codegen.workflow.git import Git, GitError

_REASON = re.compile(r"codegen step run, process (\d+) on (.+)")
_NO_HOOKS = ("-c", f"core.hooksPath={os.devnull}")


@dataclass(frozen=True)
class Tree:
    """A worktree at `base`; `root` is the project's folder in it."""

    root: Path
    top: Path
    base: str
    link: bytes

    @property
    def git(self) -> Git:
        return Git(self.root)

    def settle(self) -> bool:
        """Put HEAD and index back to `base`, leaving the files; whether the agent had moved HEAD."""
        link = self.top / ".git"
        if not link.is_file() or link.is_symlink() or link.read_bytes() != self.link:
            if link.is_dir() and not link.is_symlink():
                shutil.rmtree(link)
            else:
                link.unlink(missing_ok=True)
            link.write_bytes(self.link)
        head = self.git.head()
        self.git.run("update-ref", "--no-deref", "HEAD", self.base)
        self.git.run("read-tree", self.base)
        return head != self.base


@contextlib.contextmanager
def worktree(git: Git, base: str) -> Iterator[Tree]:
    """A worktree of the repository at a commit, for the time of the block."""
    remove_dead(git)
    prefix = git.prefix()
    folder = Path(tempfile.mkdtemp(prefix="codegen-step-")).resolve()
    top = folder / "tree"
    reason = f"codegen step run, process {os.getpid()} on {socket.gethostname()}"
    try:
        git.run(
            *_NO_HOOKS, "worktree", "add", "--quiet", "--detach", "--lock", "--reason", reason, str(top), base
        )  # fmt: skip
        yield Tree(top / prefix if prefix else top, top, base, (top / ".git").read_bytes())
    finally:
        _remove(git, top)
        shutil.rmtree(folder, ignore_errors=True)


def remove_dead(git: Git) -> None:
    """Remove the worktrees of runs whose process is gone."""
    path = Path()
    for line in git.run("worktree", "list", "--porcelain").split("\n"):
        if line.startswith("worktree "):
            path = Path(line.removeprefix("worktree "))
        match = _REASON.search(line) if line.startswith("locked ") else None
        if match and match[2] == socket.gethostname() and not Path(f"/proc/{match[1]}").exists():
            _remove(git, path)
            shutil.rmtree(path.parent, ignore_errors=True)


def refs(git: Git) -> dict[str, str]:
    """Every branch, tag and stash with its commit."""
    text = git.run("for-each-ref", "--format=%(refname) %(objectname)")
    return dict(line.split(" ", 1) for line in text.splitlines())


def _remove(git: Git, top: Path) -> None:
    """Remove a worktree and git's note of it, also when its folder is damaged or was never made."""
    shutil.rmtree(top, ignore_errors=True)
    with contextlib.suppress(GitError):  # it is not registered
        git.run("worktree", "unlock", str(top))
    git.run("worktree", "prune")
