"""One commit for one step: its files, the document with the statuses flipped, and the brief. Nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from codegen.diagnostics import UsageError
from codegen.document.review import unapproved
from codegen.document.staleness import effective_status
from codegen.document.store import document_lock, write_document
from codegen.document.store import replace_file as write_file
from codegen.patterns import load_library
from codegen.workflow.brief import brief
from codegen.workflow.git import Change, Git
from codegen.workflow.ledger import method_key, reviewed_items, with_commits
from codegen.workflow.review import recorded
from codegen.workflow.target import Target, belongs
from codegen.workflow.trail import standing_commits, step_commits
from codegen.workflow.verify import check


class NotCommitted(UsageError):
    """The step cannot be committed as things are; nothing was changed."""


@dataclass(frozen=True)
class Committed:
    id: str
    short: str
    paths: tuple[str, ...]
    dirty: tuple[str, ...]


def commit_step(target: Target, git: Git, review: bool = True, allow_dirty: bool = False) -> Committed:
    """Commit a step that is done and reviewed.

    NotCommitted: a method is not DONE or is stale, the code drifted since, the review is missing or void
    (`review=False` records that in a trailer instead), files outside the step are changed (`allow_dirty` records
    them), there is a conflict, or there is nothing to commit. GitError: git or a hook refused; then index and document
    are as they were.
    """
    git.require()
    with document_lock(target.document.path, f"step commit {target.step.number}"):
        target = target.again()
        reviewer = _checked(target, review)
        changes = git.changes()
        dirty = _foreign(changes, target, allow_dirty)
        _refresh_brief(target)
        old_text = target.document.text
        new_text = _with_known_commits(target, git)
        write_document(target.document.path, new_text, old_text)
        paths = [change.path for change in git.changes() if belongs(change.path, target.own_paths)]
        try:
            if target.document_path not in paths:
                raise NotCommitted(
                    f"Step {target.step.number}: {target.document_path} is as in HEAD, so this commit would flip no "
                    "status; was the step committed already?"
                )
            ident = git.commit_only(paths, message(target, reviewer, dirty))
        except UsageError:
            write_document(target.document.path, old_text, new_text)
            raise
    return Committed(ident, git.short(ident), tuple(paths), tuple(dirty))


def message(target: Target, reviewer: str | None, dirty: list[str]) -> str:
    """Title, purpose and trailers of a step's commit."""
    step = target.step
    lines = [target.config.commit_title(step.number, step.title), ""]
    if step.purpose:
        lines += [step.purpose, ""]
    lines += [
        f"Design-Doc: {target.document_path}",
        f"Step: {step.number}",
        f"Doc-Version: {target.document.front.version or '-'}",
        f"Step-Review: {reviewer or 'none'}",
    ]
    missing = [subject.id for subject in unapproved(target.document, reviewed_items(target.document, step))]
    if missing:
        lines.append(f"Unapproved: {', '.join(missing)}")
    if dirty:
        more = f" and {len(dirty) - 3} more" if len(dirty) > 3 else ""
        lines.append(f"Dirty: {', '.join(dirty[:3])}{more}")
    return "\n".join(lines) + "\n"


def _checked(target: Target, review: bool) -> str | None:
    """The reviewer, None without a review. NotCommitted: the step is not ready."""
    number = target.step.number
    open_ones = {
        method_key(target.step, method): effective_status(target.document, method)
        for method in target.step.methods
        if effective_status(target.document, method) != "DONE"
    }
    if open_ones or target.step.status != "DONE":
        names = ", ".join(f"{name} ({status})" for name, status in open_ones.items()) or target.step.status
        raise NotCommitted(f"Step {number} is not done: {names}; run `codegen step done {number}`")
    wrong = next((finding for finding in check(target) if finding.severity == "error"), None)
    if wrong:
        raise NotCommitted(
            f"Step {number} is not what Section 5 says any more: {wrong.path}:{wrong.line} {wrong.message}; run "
            f"`codegen step verify {number}`"
        )
    found = recorded(target)
    if not review:
        return found.reviewer if found and found.valid else None
    if found is None:
        raise NotCommitted(
            f"Step {number} is not reviewed; run `codegen step review {number}` and then "
            f"`codegen step review {number} --approve NAME`, or give --no-review"
        )
    if not found.valid:
        raise NotCommitted(f"Step {number} changed after {found.reviewer} approved it on {found.date}; review it again")
    return found.reviewer


def _foreign(changes: list[Change], target: Target, allow_dirty: bool) -> list[str]:
    """Changed paths outside the step. NotCommitted: there are some and they are not allowed, or a conflict."""
    conflicts = [change.path for change in changes if change.unmerged]
    if conflicts:
        raise NotCommitted(f"unresolved conflicts: {_some(conflicts)}; resolve them first")
    document = Path(target.document_path)
    lock = document.with_name(f".{document.name}.lock").as_posix()  # held by this very command
    own = [*target.own_paths, lock]
    foreign = sorted(change.path for change in changes if not belongs(change.path, own))
    if foreign and not allow_dirty:
        raise NotCommitted(
            f"Step {target.step.number}: changed and not in its `files:`: {_some(foreign)}; add them to `files:`, "
            "commit or stash them, or give --allow-dirty (recorded in the commit)"
        )
    return foreign


def _some(paths: list[str]) -> str:
    return ", ".join(paths[:8]) + (f" and {len(paths) - 8} more" if len(paths) > 8 else "")


def _refresh_brief(target: Target) -> None:
    """Render the step's brief, so that the commit holds the one that belongs to its document."""
    path = target.root / target.brief_path
    text = brief(target, load_library(target.root)).text
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, text.encode("utf-8"))


def _with_known_commits(target: Target, git: Git) -> str:
    """The document's text with the Commit cells of the other steps as git's trailers have them."""
    standing = standing_commits(step_commits(git, target.document_path))
    known = {number: commit.short for number, commit in standing.items() if number != target.step.number}
    return with_commits(target.document, known)
