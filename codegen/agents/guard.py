"""Hold the agent to the step's files: whatever else changed is put back and named.

The document and the brief are the tool's: they come back as they were, even if only a status was ticked.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from codegen.agents.tree import Tree
from codegen.diagnostics import Finding
from codegen.workflow.git import literal
from codegen.workflow.target import Target, belongs

_SHOWN = 20


def hold(tree: Tree, target: Target, kept: Mapping[str, bytes]) -> tuple[list[Finding], list[str]]:
    """Undo everything outside of the step's files. What was undone as warnings, and its paths.

    `kept` are the files of the tool as it wrote them.
    """
    findings: list[Finding] = []
    reverted: list[str] = []
    if tree.settle():
        message = "the agent made commits or switched branches; its changes were kept as changes, the commits not"
        findings.append(Finding(target.document_path, 0, 0, "RUN005", message, "warning"))
    for path, content in kept.items():
        file = tree.root / path
        if file.is_symlink() or not file.is_file() or file.read_bytes() != content:
            _clear(file)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            reverted.append(path)
            what = "the document" if path == target.document_path else "the brief"
            message = f"the agent changed {what}, which the tool alone writes; it was put back"
            findings.append(Finding(path, 0, 0, "RUN004", message, "warning"))
    for change in tree.git.changes():
        if change.path in kept:
            continue
        own = belongs(change.path, list(target.step.files))
        if own and not _leaves_the_tree(tree.root, change.path):
            continue
        _restore(tree, change.path)
        reverted.append(change.path)
        code, why = ("RUN003", "is not in the step's `files:`") if not own else ("RUN007", "became a link")
        if len(findings) < _SHOWN:
            findings.append(Finding(change.path, 0, 0, code, f"{why}; the agent's change was undone", "warning"))
    if len(reverted) > _SHOWN:
        message = f"{len(reverted)} paths outside of the step were put back in all"
        findings.append(Finding(target.document_path, 0, 0, "RUN003", message, "warning"))
    return findings, reverted


def _leaves_the_tree(root: Path, path: str) -> bool:
    """Whether a path is a link, or lies below one: what it says would not be what is in the tree."""
    file = root / path
    return any(each.is_symlink() for each in (file, *file.parents) if each.is_relative_to(root) and each != root)


def _restore(tree: Tree, path: str) -> None:
    file = tree.root / path.rstrip("/")
    link = next((each for each in reversed(file.parents) if each.is_relative_to(tree.root) and each.is_symlink()), None)
    _clear(link or file)
    if tree.git.run("ls-files", "--", literal(path)):
        tree.git.run("checkout", "--", literal(path))


def _clear(file: Path) -> None:
    if file.is_dir() and not file.is_symlink():
        shutil.rmtree(file)
    else:
        file.unlink(missing_ok=True)
