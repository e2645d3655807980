"""A repository for one run, outside of the project and thrown away afterwards, whatever happened in it.

It borrows the project's objects and has nothing else of it: no branch, remote, hook, stash or configuration that an
agent could change or push. Its `.git` is made again after each round, so that a commit, a hidden path or a hook of the
agent does not blind the checks. Folders of runs whose process is gone are removed by the next run.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codegen.agents.process import end_marked
from codegen.diagnostics import UsageError
from codegen.workflow.git import Git

_PREFIX = "codegen-step-"
_OWNER = "owner"
_NO_HOOKS = ("-c", f"core.hooksPath={os.devnull}")
# What decides how git reads and writes a file, and who a commit is by.
_TAKEN_OVER = re.compile(
    r"user\.|filter\.|core\.(autocrlf|eol|filemode|symlinks|ignorecase|attributesfile|excludesfile)\Z"
)


@dataclass(frozen=True)
class Tree:
    """Files and repository at `base`; `root` is the project's folder in it, `top` the repository's."""

    root: Path
    top: Path
    base: str
    template: Path

    @property
    def git(self) -> Git:
        return Git(self.root)

    @property
    def mark(self) -> str:
        """What all processes of the run carry in their environment."""
        return str(self.top.parent)

    def settle(self) -> bool:
        """Make `.git` again at `base`, leaving the files; whether the agent had moved HEAD or broken it."""
        head = self.top / ".git" / "HEAD"
        moved = not head.is_file() or head.read_bytes() != f"{self.base}\n".encode()
        below = [each for each in reversed((self.root, *self.root.parents)) if each.is_relative_to(self.top)]
        for folder in below:
            if folder.is_symlink() or not folder.is_dir():
                clear(folder)
                folder.mkdir()
        clear(self.top / ".git")
        git = Git(self.top)
        git.run("init", "--quiet", f"--template={self.template}", f"--object-format={_format(self.base)}")
        git.run("update-ref", "--no-deref", "HEAD", self.base)
        self.unstage()
        return moved

    def unstage(self) -> None:
        """Put the index back to `base`."""
        self.git.run("read-tree", self.base)


@contextlib.contextmanager
def agent_tree(git: Git, base: str) -> Iterator[Tree]:
    """A tree of the project at a commit, for the time of the block."""
    prefix = git.prefix()
    with _own_folder(git) as folder:
        top = folder / "tree"
        (top / prefix).mkdir(parents=True)
        tree = Tree(top / prefix if prefix else top, top, base, _template(git, folder / "template"))
        tree.settle()
        Git(top).run("checkout-index", "--all", "--quiet")
        yield tree


@contextlib.contextmanager
def worktree(git: Git, base: str) -> Iterator[Path]:
    """The project's folder in a git worktree at a commit, with the person's hooks and configuration: for a commit.

    No agent runs in it.
    """
    with _own_folder(git) as folder:
        top = folder / "commit"
        try:
            git.run(*_NO_HOOKS, "worktree", "add", "--quiet", "--detach", str(top), base)
            yield top / git.prefix()
        finally:
            clear(top)
            git.run("worktree", "prune")


def remove_dead(git: Git) -> None:
    """Remove the folders of runs whose process is gone, for nobody holds the lock in them, and end their agents."""
    for folder in Path(tempfile.gettempdir()).resolve().glob(f"{_PREFIX}*"):
        owner = folder / _OWNER
        if owner.is_file() and owner.stat().st_uid == os.getuid():
            with owner.open("rb+") as stream:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue  # swallowed: its process lives
                end_marked(str(folder))
                clear(folder)
    git.run("worktree", "prune")


def clear(path: Path) -> None:
    """Remove a file, a link or a folder, also one whose folders may not be written to. UsageError: it stays."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    path.chmod(0o700)
    for parent, names, _ in os.walk(path):
        for name in names:
            if not os.path.islink(os.path.join(parent, name)):
                os.chmod(os.path.join(parent, name), 0o700)
    try:
        shutil.rmtree(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be removed: {error}; end what writes into it and remove it") from error


@contextlib.contextmanager
def _own_folder(git: Git) -> Iterator[Path]:
    """A temporary folder that is known to be in use as long as this process lives."""
    remove_dead(git)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
    try:
        unnamed = folder / f"{_OWNER}.new"
        with unnamed.open("wb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            unnamed.rename(folder / _OWNER)  # nobody sees it unlocked
            yield folder
    finally:
        clear(folder)


def _template(git: Git, folder: Path) -> Path:
    """What `git init` puts into the `.git` of a tree."""
    (folder / "objects" / "info").mkdir(parents=True)
    objects = _inside(git, "objects")
    (folder / "objects" / "info" / "alternates").write_bytes(os.fsencode(f"{objects}\n"))
    for name in ("shallow", "info/exclude", "info/attributes"):
        if (source := _inside(git, name)).is_file():
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(source, folder / name)
    for item in filter(None, git.run("config", "--local", "--null", "--list").split("\0")):
        key, _, value = item.partition("\n")
        if _TAKEN_OVER.match(key):
            git.run("config", "--file", str(folder / "config"), "--add", key, value)
    return folder


def _inside(git: Git, name: str) -> Path:
    """A path of the project's own repository."""
    return (git.root / git.run("rev-parse", "--git-path", name).rstrip("\n")).resolve()


def _format(commit: str) -> str:
    return "sha256" if len(commit) == 64 else "sha1"
