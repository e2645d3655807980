"""Git through its own command, with explicit pathspecs: hooks, signing and worktrees behave as the user set them up.

Paths are relative to the project folder, with forward slashes, also where that is a folder inside the repository.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from codegen.diagnostics import UsageError

QUICK = 60.0
WITH_HOOKS = 900.0


class GitError(UsageError):
    """Git refused or failed; the message is its own."""


@dataclass(frozen=True)
class Change:
    """A path that differs from HEAD, or is not tracked. `unmerged` marks a conflict."""

    path: str
    tracked: bool
    unmerged: bool = False


@dataclass(frozen=True)
class Git:
    """The repository around one project folder."""

    root: Path

    def run(
        self,
        *arguments: str,
        text: str | None = None,
        deadline: float = QUICK,
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Standard output of one git command. GitError: it failed, or took longer than `deadline` seconds."""
        command = ["git", "-c", "core.quotePath=false", *arguments]
        settings = {"LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
        try:
            done = subprocess.run(
                command,
                cwd=self.root,
                input=None if text is None else text.encode("utf-8", "surrogateescape"),
                stdin=subprocess.DEVNULL if text is None else None,
                capture_output=True,
                timeout=deadline,
                env={**os.environ, **settings, **(environment or {})},
                check=False,
            )
        except FileNotFoundError as error:
            raise GitError("git is not installed; steps are committed with it") from error
        except subprocess.TimeoutExpired as error:
            raise GitError(f"git {arguments[0]}: no answer within {deadline:.0f} s (a hook may wait)") from error
        if done.returncode:
            said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
            raise GitError(f"git {arguments[0]} failed ({done.returncode}): {said or 'no message'}")
        # a patch must come back with the bytes it had, whatever their encoding
        return done.stdout.decode("utf-8", "surrogateescape")

    def require(self) -> None:
        """GitError: the project folder is in no repository."""
        try:
            self.run("rev-parse", "--show-toplevel")
        except GitError as error:
            raise GitError(f"{self.root}: is in no git repository; make one with `git init`") from error

    def prefix(self) -> str:
        """The project folder inside the repository, "" at its top, else with a slash at the end."""
        return self.run("rev-parse", "--show-prefix").rstrip("\n")

    def changes(self) -> list[Change]:
        """Every difference from HEAD below the project folder, untracked files one by one."""
        text = self.run("status", "--porcelain=v2", "-z", "--untracked-files=all", "--", ".")
        prefix = self.prefix()
        found: list[Change] = []
        fields = iter(text.split("\0"))
        for item in fields:
            if item[:2] == "? ":
                found.append(Change(item[2:].removeprefix(prefix), tracked=False))
            elif item[:2] == "1 ":
                found.append(Change(item.split(" ", 8)[8].removeprefix(prefix), tracked=True))
            elif item[:2] == "2 ":
                found.append(Change(item.split(" ", 9)[9].removeprefix(prefix), tracked=True))
                found.append(Change(next(fields).removeprefix(prefix), tracked=True))
            elif item[:2] == "u ":
                path = item.split(" ", 10)[10].removeprefix(prefix)
                found.append(Change(path, tracked=True, unmerged=True))
        return found

    def head(self) -> str | None:
        """The id of HEAD, or None before the first commit."""
        try:
            return self.run("rev-parse", "--verify", "--quiet", "HEAD").strip()
        except GitError:
            return None

    def short(self, commit: str) -> str:
        """An id shortened as git does it."""
        return self.run("rev-parse", "--short", commit).strip()

    def show(self, commit: str, path: str) -> str | None:
        """A file's text in a commit, None where the commit has no such file."""
        listed = self.run("ls-tree", "-z", commit, "--", path)
        if not listed:
            return None
        return self.run("show", f"{commit}:./{path}")

    def is_shallow(self) -> bool:
        """Whether the repository was cloned without its older history."""
        return self.run("rev-parse", "--is-shallow-repository").strip() == "true"

    def ends(self) -> frozenset[str]:
        """The commits at which a shallow history ends: what came before them is not here. Empty for a whole one."""
        return frozenset(self.run("rev-list", "--max-parents=0", "HEAD").split()) if self.is_shallow() else frozenset()

    def has(self, commit: str) -> bool:
        """Whether there is such a commit here."""
        try:
            self.run("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
        except GitError:
            return False
        return True

    def tracks(self, paths: Iterable[str]) -> bool:
        """Whether HEAD or the index knows any of these paths."""
        return bool(self.run("ls-files", "--", *map(literal, paths)))

    def parent(self, commit: str) -> str | None:
        """The first parent of a commit, None for the first one."""
        parents = self.run("rev-list", "--parents", "-n", "1", commit).split()
        return parents[1] if len(parents) > 1 else None

    def touched(self, commit: str) -> list[str]:
        """Paths that a commit changes against its first parent."""
        text = self.run("diff-tree", "--root", "--no-commit-id", "--name-only", "-r", "-z", "--relative", commit)
        inside = [path for path in text.split("\0") if path]
        everything = self.run("diff-tree", "--root", "--no-commit-id", "--name-only", "-r", "-z", commit)
        prefix = self.prefix()
        outside = [f"/{path}" for path in everything.split("\0") if path and not path.startswith(prefix)]
        return inside + outside

    def commit_only(self, paths: list[str], message: str, contents: Mapping[str, str] | None = None) -> str:
        """Commit exactly these paths as they lie in the working tree, and return the commit's id.

        `contents` are texts that some of the paths have in the commit instead; their files stay as they are. What else
        is staged stays staged. When a hook refuses, the index is as it was.
        """
        if contents:
            return self._commit_contents(paths, message, contents)
        untracked = [change.path for change in self.changes() if not change.tracked and change.path in paths]
        if untracked:
            self.run("add", "--intent-to-add", "--", *map(literal, untracked))
        try:
            self.run(
                "commit", "--quiet", "--only", "--cleanup=verbatim", "--file=-", "--", *map(literal, paths),
                text=message, deadline=WITH_HOOKS,
            )  # fmt: skip
        except GitError:
            if untracked:
                self.run("rm", "--cached", "--quiet", "--", *map(literal, untracked))
            raise
        return self.run("rev-parse", "HEAD").strip()

    def commit_note(self, paths: list[str], message: str) -> str:
        """Commit these tracked paths, if they differ at all; a commit without a change where none does."""
        self.run(
            *("commit", "--quiet", "--allow-empty", "--only", "--cleanup=verbatim", "--file=-", "--"),
            *map(literal, paths),
            text=message,
            deadline=WITH_HOOKS,
        )
        return self.run("rev-parse", "HEAD").strip()

    def _commit_contents(self, paths: list[str], message: str, contents: Mapping[str, str]) -> str:
        """Commit from an index of its own, as `git commit --only` does, so that a file need not be written twice."""
        with tempfile.TemporaryDirectory(prefix="index-") as folder:
            environment = {"GIT_INDEX_FILE": f"{folder}/index"}
            head = self.head()
            self.run("read-tree", *([head] if head else ["--empty"]), environment=environment)
            plain = "".join(f"{literal(path)}\0" for path in paths if path not in contents)
            if plain:
                self.run(
                    *("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"),
                    text=plain,
                    environment=environment,
                )
            for path, text in contents.items():
                blob = self.run("hash-object", "-w", f"--path={path}", "--stdin", text=text).strip()
                entry = f"100644,{blob},{self.prefix()}{path}"
                self.run("update-index", "--add", "--cacheinfo", entry, environment=environment)
            self.run(
                *("commit", "--quiet", "--cleanup=verbatim", "--file=-"),
                text=message,
                deadline=WITH_HOOKS,
                environment=environment,
            )
        self.run("reset", "--quiet", "--", *map(literal, paths))
        return self.run("rev-parse", "HEAD").strip()


def literal(path: str) -> str:
    """A pathspec that means this path and no pattern."""
    return f":(literal){path}"
