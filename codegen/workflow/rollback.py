"""Take a step's commit back: its files as they were before, its statuses as they were before, one commit.

Only the step's own commit is undone. Where later commits changed the same lines git's patch does not apply, and
nothing happens. The document is not patched: the step's rows are set back one by one, all else in it stays.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from codegen.diagnostics import UsageError
from codegen.document.model import Document, Step
from codegen.document.parse import parse_document
from codegen.document.staleness import step_status
from codegen.document.store import document_lock, write_document
from codegen.workflow.commit import Committed
from codegen.workflow.git import Git, GitError, literal
from codegen.workflow.ledger import with_commits
from codegen.workflow.records import whole_step
from codegen.workflow.reopening import reopened
from codegen.workflow.target import Target, belongs
from codegen.workflow.trail import StepCommit, stacks, standing_commits, step_commits


class NotRolledBack(UsageError):
    """The step cannot be taken back as things are; nothing was changed."""


@dataclass(frozen=True)
class Rollback:
    """One step to take back and the commit it stands by."""

    step: Step
    commit: StepCommit


def rollback_plan(target: Target, git: Git, cascade: bool) -> list[Rollback]:
    """What is taken back, in order: the step's last correction where it has one, else the step; with `cascade` the DONE
    steps that depend on it first, and of each step its corrections and its parts too.

    NotRolledBack: a DONE step depends on it and `cascade` is not given, or a step has no commit to take back.
    """
    git.require()
    commits = step_commits(git, target.document_path)
    standing = stacks(commits)
    own = standing.get(target.step.number, [])
    if own and own[-1].is_fix and not cascade:
        return [Rollback(target.step, own[-1])]  # the step is still done then, so that what builds on it stands
    dependents = _dependents(target.document, target.step.number)
    if dependents and not cascade:
        names = ", ".join(f"Step {step.number} ({step.title})" for step in dependents)
        raise NotRolledBack(
            f"Step {target.step.number} is what these done steps build on: {names}; take them back first, or give "
            "--cascade"
        )
    plan: list[Rollback] = []
    for step in [*(whole_step(target.root, target.document, each) for each in dependents), target.step]:
        stack = standing.get(step.number, [])
        if all(commit.is_fix for commit in stack):
            raise NotRolledBack(f"Step {step.number} has no commit in this branch; there is nothing to take back")
        fixes = itertools.takewhile(lambda commit: commit.is_fix, reversed(stack))
        last = next(at for at in range(len(stack) - 1, -1, -1) if not stack[at].is_fix)
        parts = itertools.takewhile(lambda commit: commit.is_part, reversed(stack[:last]))
        plan += [Rollback(step, commit) for commit in (*fixes, stack[last], *parts)]
    order = {commit.id: at for at, commit in enumerate(commits)}
    return sorted(plan, key=lambda each: order[each.commit.id], reverse=True)


def roll_back(target: Target, git: Git, item: Rollback) -> Committed:
    """Take one step back. NotRolledBack: uncommitted changes are in the way, or later commits changed its lines."""
    with document_lock(target.document.path, f"step rollback {item.step.number}"):
        target = Target(target.root, target.again().document, item.step, target.config)
        document_path = target.document_path
        if item.commit.claims:
            raise NotRolledBack(
                f"Step {item.step.number} came with {item.commit.claims[:7]}, which is not its own; undo that "
                "by hand and set the rows of the step back"
            )
        touched = [path for path in git.touched(item.commit.id) if path != document_path]
        if len(item.commit.numbers) > 1:
            touched = [path for path in touched if path.startswith("/") or belongs(path, target.own_paths)]
        outside = [path for path in touched if path.startswith("/")]
        if outside:
            raise NotRolledBack(
                f"{item.commit.short} touches {', '.join(outside)} outside the project; undo it by hand"
            )
        in_the_way = [c.path for c in git.changes() if c.path in touched or c.path == document_path]
        if in_the_way:
            raise NotRolledBack(
                f"Step {item.step.number}: uncommitted changes in {', '.join(in_the_way)}; commit or discard them first"
            )
        patch = _reverse_patch(git, item.commit, touched)
        old = target.document.text
        new = _document_before(target, git, item)
        message = _message(target, item)
        _apply(git, patch, item, check=True)
        write_document(target.document.path, new, old)
        try:
            _apply(git, patch, item)
            ident = git.commit_only(sorted([*touched, document_path]), message)
        except UsageError:
            _restore(git, touched, target, new, old)
            raise
    return Committed(ident, git.short(ident), tuple(sorted([*touched, document_path])), ())


def _dependents(document: Document, number: int) -> list[Step]:
    """Steps that depend on this one, straight or not, and have begun to rely on it: DONE or stale."""
    found: dict[int, Step] = {}
    todo = [number]
    while todo:
        current = todo.pop()
        for step in document.steps:
            if current in step.depends and step.number not in found:
                found[step.number] = step
                todo.append(step.number)
    return [step for step in found.values() if step_status(document, step) in ("DONE", "STALE")]


def _reverse_patch(git: Git, commit: StepCommit, paths: list[str]) -> str:
    if not paths:
        return ""
    parent = git.parent(commit.id)
    base = parent or git.run("hash-object", "-t", "tree", "/dev/null").strip()
    specs = [literal(path) for path in paths]
    return git.run("diff", "--binary", "--full-index", "--no-ext-diff", "--relative", commit.id, base, "--", *specs)


def _apply(git: Git, patch: str, item: Rollback, check: bool = False) -> None:
    if not patch:
        return
    prefix = git.prefix()
    directory = [f"--directory={prefix.rstrip('/')}"] if prefix else []
    try:
        git.run("apply", *(["--check"] if check else []), *directory, "-", text=patch)
    except GitError as error:
        raise NotRolledBack(
            f"Step {item.step.number}: later commits changed what {item.commit.short} changed, so it cannot be taken "
            f"back alone; take back what builds on it, or undo it by hand: {error}"
        ) from error


def _document_before(target: Target, git: Git, item: Rollback) -> str:
    parent = git.parent(item.commit.id)
    text = git.show(parent, target.document_path) if parent else None
    before = parse_document(text, target.document.path) if text is not None else None
    new = parse_document(reopened(target.document, item.step.number, before), target.document.path)
    standing = standing_commits(step_commits(git, target.document_path))
    known = {number: commit.short for number, commit in standing.items() if number != item.step.number}
    return with_commits(new, known)


def _restore(git: Git, paths: list[str], target: Target, new: str, old: str) -> None:
    """After a refused commit: files and document as HEAD and the author had them."""
    specs = [literal(path) for path in paths]
    known = [path for path in paths if git.run("ls-tree", "-z", "HEAD", "--", path)]
    if known:
        git.run("checkout", "HEAD", "--", *[literal(path) for path in known])
    for path in paths:
        if path not in known:
            (target.root / path).unlink(missing_ok=True)
    if specs:
        git.run("reset", "--quiet", "--", *specs)
    write_document(target.document.path, old, new)


def _message(target: Target, item: Rollback) -> str:
    lines = [
        f'Revert "{item.commit.subject}"',
        "",
        f"This reverts commit {item.commit.id}.",
        "",
        f"Design-Doc: {target.document_path}",
        f"Reverts-Step: {item.step.number}",
        f"Doc-Version: {target.document.front.version or '-'}",
    ]
    if item.commit.is_fix:
        lines.append("Step-Fix: taken back")
    if item.commit.is_part:
        lines.append("Step-Part: taken back")
    return "\n".join(lines) + "\n"
