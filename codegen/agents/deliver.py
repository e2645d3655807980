"""Bring what verified into the project: as changes to review, or as a commit. All of it or nothing."""

from __future__ import annotations

from pathlib import Path

from codegen.agents.tree import Tree, worktree
from codegen.diagnostics import UsageError
from codegen.document.store import replace_file
from codegen.workflow.commit import commit_step
from codegen.workflow.git import Git, GitError
from codegen.workflow.target import Target, belongs, find_target


class NotDelivered(UsageError):
    """The project moved on while the agent worked; the message says where the work is kept."""


def for_review(target: Target, git: Git, tree: Tree, paths: list[str], kept_in: Path) -> None:
    """Write the tree's files into the project. NotDelivered: it is no longer as it was when the run began."""
    if git.head() != tree.base or any(belongs(change.path, target.own_paths) for change in git.changes()):
        raise NotDelivered(
            f"Step {target.step.number} verifies, but the project changed meanwhile; the work is in {kept_in}: "
            "`git apply` it, or run again"
        )
    _copy(tree.root, target.root, paths)


def as_commit(inner: Target, git: Git, tree: Tree, paths: list[str]) -> str:
    """Commit the tree's files with the person's hooks and configuration, and fast-forward the project; the commit's id.

    NotDelivered: the project's branch or the files moved; then the commit waits on a branch of its own.
    """
    with worktree(git, tree.base) as root:
        _copy(tree.root, root, paths)
        target = find_target(inner.step.number, str(root / inner.document_path), root)
        done = commit_step(target, Git(root), review=False)
    try:
        git.run("merge", "--ff-only", "--quiet", done.id)
    except GitError as error:
        branch = f"codegen/{inner.document.id}-step-{inner.step.number}"
        git.run("branch", "--force", branch, done.id)
        raise NotDelivered(
            f"Step {inner.step.number} verifies and is committed as {done.short}, but the project moved on: {error}; "
            f"the commit is on the branch {branch}"
        ) from error
    return done.id


def _copy(source_root: Path, root: Path, paths: list[str]) -> None:
    """Make these paths below `root` what they are in the source: all, or on an error of the disk none."""
    before: dict[Path, bytes | None] = {}
    try:
        for path in paths:
            source, file = source_root / path, root / path
            before[file] = file.read_bytes() if file.is_file() else None
            if not source.exists():
                file.unlink(missing_ok=True)
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, source.read_bytes())
            if source.stat().st_mode & 0o100:
                file.chmod(file.stat().st_mode | 0o111)
    except OSError:
        for file, content in before.items():
            if content is None:
                file.unlink(missing_ok=True)
            else:
                replace_file(file, content)
        raise
