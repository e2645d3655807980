"""Hold the agent to the step's files: whatever else changed is put back and named.

The document and the brief are the tool's: they come back as they were, even if only a status was ticked. Nothing is
written or removed through a link.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from codegen.agents.tree import Tree, clear
from codegen.diagnostics import Finding
from codegen.workflow.git import Change, Git
from codegen.workflow.target import Target, belongs

LARGEST = 10_000_000
_SHOWN = 20


def hold(tree: Tree, target: Target, kept: Mapping[str, bytes]) -> tuple[list[Finding], list[str]]:
    """Undo everything outside of the step's files. What was undone as warnings, and its paths.

    `kept` are the files of the tool as it wrote them.
    """
    findings: list[Finding] = []
    if tree.settle():
        message = "the agent made commits, switched branches or broke `.git`; its changes were kept as changes, no more"
        findings.append(Finding(target.document_path, 0, 0, "RUN005", message, "warning"))
    _open_repositories(tree)
    undone = _undo(tree, target, kept)
    for path, content in kept.items():
        file = tree.root / path
        if _is_regular(tree.root, file) and file.read_bytes() == content:
            continue
        clear(_first_link(tree.root, file) or file)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        undone.pop(path, None)
        what = "the document" if path == target.document_path else "the brief"
        message = f"the agent changed {what}, which the tool alone writes; it was put back"
        findings.append(Finding(path, 0, 0, "RUN004", message, "warning"))
    reverted = [finding.path for finding in findings if finding.code == "RUN004"] + list(undone)
    findings += list(undone.values())[:_SHOWN]
    if len(undone) > _SHOWN:
        message = f"{len(undone)} paths outside of the step were put back in all"
        findings.append(Finding(target.document_path, 0, 0, "RUN003", message, "warning"))
    return findings, reverted


def printable(path: str) -> str:
    """A path as it can be shown and recorded: a name that is not text is escaped."""
    return path if path.isprintable() else ascii(path)


def _undo(tree: Tree, target: Target, kept: Mapping[str, bytes]) -> dict[str, Finding]:
    """Put back what is not the step's, and what cannot be taken as it is. The findings by path."""
    findings: dict[str, Finding] = {}
    foreign: list[Change] = []
    for change in tree.git.changes():
        code, why = _objection(tree.root, change.path, target)
        if code and (change.path not in kept or _first_link(tree.root, tree.root / change.path)):
            foreign.append(change)
            shown = printable(change.path)
            message = f"{why}; the agent's change was undone"
            findings[shown] = Finding(shown, 0, 0, code, message, "error" if code == "RUN009" else "warning")
    _restore(tree.git, foreign)
    outside = [change for change in Git(tree.top).changes() if not _below(tree, change.path)]
    for change in outside:
        shown = printable(f"/{change.path}")
        message = "is not in the project; the agent's change was undone"
        findings[shown] = Finding(shown, 0, 0, "RUN003", message, "warning")
    _restore(Git(tree.top), outside)
    for path in target.step.files:  # git does not see a pipe or a socket
        file = tree.root / path
        if file.exists() and not file.is_dir() and not _is_regular(tree.root, file):
            clear(_first_link(tree.root, file) or file)
            findings[path] = Finding(path, 0, 0, "RUN007", "is no regular file; it was removed", "warning")
    return findings


def _objection(root: Path, path: str, target: Target) -> tuple[str, str]:
    """The code and reason for which a change cannot stay; "" for none."""
    file = root / path
    if not belongs(path, list(target.step.files)):
        return "RUN003", "is not in the step's `files:`"
    if _first_link(root, file):
        return "RUN007", "became a link"
    if file.is_file() and (size := file.stat().st_size) > LARGEST:
        return "RUN009", f"has {size} bytes, and a step's file at most {LARGEST}"
    return "", ""


def _restore(git: Git, changes: Iterable[Change]) -> None:
    """Bring paths back to the index, which is as the commit."""
    for change in changes:
        file = git.root / change.path.rstrip("/")
        clear(_first_link(git.root, file) or file)
    tracked = [change.path for change in changes if change.tracked]
    if tracked:
        git.run("checkout-index", "--force", "--quiet", "-z", "--stdin", text="\0".join(tracked) + "\0")


def _open_repositories(tree: Tree) -> None:
    """Remove the `.git` of repositories that the agent made below, which would hide their files."""
    for git in (tree.git, Git(tree.top)):
        for change in git.changes():
            if change.path.endswith("/"):
                clear(git.root / change.path / ".git")


def _below(tree: Tree, path: str) -> bool:
    return (tree.top / path).is_relative_to(tree.root)


def _is_regular(root: Path, file: Path) -> bool:
    return not _first_link(root, file) and file.exists() and stat.S_ISREG(file.lstat().st_mode)


def _first_link(root: Path, file: Path) -> Path | None:
    """The topmost link on the way to a file: what lies below it would not be what is in the tree."""
    way = [each for each in reversed((file, *file.parents)) if each.is_relative_to(root) and each != root]
    return next((each for each in way if each.is_symlink()), None)
