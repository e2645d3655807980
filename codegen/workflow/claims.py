"""Commits that came about without `codegen step commit`: squash merges, plain commits of a step's files.

A claim is a commit of its own that says which steps another one finished or corrected (trailer `Step-Claims:`). It
holds the document only, and is made when the steps verify. History is not rewritten.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.document.model import Document
from codegen.workflow.audit import other_rows
from codegen.workflow.commit import NotCommitted
from codegen.workflow.git import Git
from codegen.workflow.history import History
from codegen.workflow.ledger import came_before
from codegen.workflow.records import whole_step
from codegen.workflow.target import Target, belongs
from codegen.workflow.trail import standing_commits, step_commits


def unclaimed(git: Git, path: str, document: Document) -> dict[str, list[int]]:
    """The steps that are DONE in HEAD without a commit of theirs, by the commit that made them so, oldest first."""
    standing = standing_commits(step_commits(git, path))
    missing = [s.number for s in document.steps if s.status == "DONE" and s.number not in standing]
    missing = [number for number in missing if not came_before(document.step_by_number[number])]
    if not missing or git.head() is None:
        return {}
    commits = git.run("log", "--format=%H", "HEAD", "--", path).split()
    history = History(git)
    history.load((commit, path) for commit in commits)
    found: dict[str, list[int]] = {}
    for older, commit in reversed(list(zip([*commits[1:], None], commits, strict=True))):
        before = history.document(older, path) if older else None
        after = history.document(commit, path)
        for number in missing:
            if _is_done(after, number) and not _is_done(before, number):
                found = {each: [n for n in numbers if n != number] for each, numbers in found.items()}
                found.setdefault(commit, []).append(number)
    return {commit: numbers for commit, numbers in found.items() if numbers}


def steps_of(git: Git, path: str, document: Document, commit: str) -> list[int]:
    """The steps that a commit finished, or whose files it changed. NotCommitted: a file of the roots is of no step."""
    history = History(git)
    parent = git.parent(commit)
    before = history.document(parent, path) if parent else None
    after = history.document(commit, path)
    chosen = set(other_rows(before, after, [])) if after is not None else set()
    steps = [whole_step(git.root, document, step) for step in document.steps]
    roots = [form for root in document.front.roots for form in (root, f"{root}.py")]
    for file in history.touched(commit):
        if not belongs(file, roots):
            continue
        owners = [step.number for step in steps if belongs(file, list(step.files))]
        if not owners:
            raise NotCommitted(f"{file} is in the `files:` of no step of {path}; name it in the step it belongs to")
        if not chosen & set(owners):
            chosen.add(owners[0])
    if not chosen:
        raise NotCommitted(f"{git.short(commit)} changes no step of {path}")
    return sorted(chosen)


def claim_message(targets: Sequence[Target], git: Git, commit: str, fix: bool) -> str:
    """Title and trailers of a claim."""
    first = targets[0]
    numbers = [target.step.number for target in targets]
    title = first.config.commit_title(numbers, f"{'corrected' if fix else 'finished'} by {git.short(commit)}")
    lines = [title, "", f"Design-Doc: {first.document_path}", *(f"Step: {number}" for number in numbers)]
    lines += ["Step-Fix: the steps stay done"] if fix else []
    return "\n".join([*lines, f"Step-Claims: {commit}"]) + "\n"


def _is_done(document: Document | None, number: int) -> bool:
    step = document.step_by_number.get(number) if document is not None else None
    return step is not None and step.status == "DONE"
