"""One commit for one step: its files, the document with the statuses flipped, and the brief. Nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codegen.diagnostics import UsageError
from codegen.document.edit import set_step_commit
from codegen.document.model import Document, Step
from codegen.document.parse import parse_document
from codegen.document.review import unapproved
from codegen.document.staleness import effective_status
from codegen.document.store import document_lock, write_document
from codegen.document.store import replace_file as write_file
from codegen.patterns import load_library
from codegen.workflow.audit import other_rows
from codegen.workflow.brief import brief
from codegen.workflow.git import Change, Git
from codegen.workflow.ledger import PROVEN, came_before, method_key, reviewed_items, with_commits
from codegen.workflow.review import recorded, review_digest
from codegen.workflow.sealing import weakened
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
    them), rows of another step are changed, there is a conflict, or there is nothing to commit. GitError: git or a
    hook refused; then index and document are as they were.
    """
    return _commit([target], git, "", review, allow_dirty)


def commit_fix(
    targets: Sequence[Target], git: Git, text: str, review: bool = True, allow_dirty: bool = False
) -> Committed:
    """Commit a correction of steps of one document that are done and stay done; `text` says what was corrected.

    Refused like the commit of a step; only that no status has to change.
    """
    return _commit(list(targets), git, text, review, allow_dirty)


def _commit(targets: list[Target], git: Git, fix: str, review: bool, allow_dirty: bool) -> Committed:
    git.require()
    path = targets[0].document.path
    with document_lock(path, f"step commit {_numbers(targets)}"):
        targets = [target.again() for target in targets]
        reviewers = [_checked(target, review) for target in targets]
        reviewer = ", ".join(dict.fromkeys(filter(None, reviewers))) if all(reviewers) else None
        dirty = _foreign(git.changes(), targets, allow_dirty)
        _refuse_other_rows(targets, git)
        for target in targets:
            if not came_before(target.step):
                _refresh_brief(target)
        old_text = targets[0].document.text
        new_text = _with_known_commits(targets, git)
        write_document(path, new_text, old_text)
        own = [pattern for target in targets for pattern in target.own_paths]
        paths = [change.path for change in git.changes() if belongs(change.path, own)]
        try:
            _refuse_nothing(targets, paths, fix)
            ident = git.commit_only(paths, message(targets, reviewer, dirty, fix))
        except UsageError:
            write_document(path, old_text, new_text)
            raise
    return Committed(ident, git.short(ident), tuple(paths), tuple(dirty))


def message(targets: Sequence[Target], reviewer: str | None, dirty: list[str], fix: str = "") -> str:
    """Title, purpose and trailers of the commit of a step, or of a correction."""
    first = targets[0]
    numbers = [target.step.number for target in targets]
    lines = [first.config.commit_title(numbers, fix or first.step.title), ""]
    if first.step.purpose and not fix:
        lines += [first.step.purpose, ""]
    lines += [f"Design-Doc: {first.document_path}", *(f"Step: {number}" for number in numbers)]
    if fix:
        lines.append("Step-Fix: the steps stay done")
    lines += [f"Doc-Version: {first.document.front.version or '-'}", f"Step-Review: {reviewer or 'none'}"]
    wanted = dict.fromkeys(item for target in targets for item in reviewed_items(target.document, target.step))
    missing = [subject.id for subject in unapproved(first.document, list(wanted))]
    if missing:
        lines.append(f"Unapproved: {', '.join(missing)}")
    if dirty:
        more = f" and {len(dirty) - 3} more" if len(dirty) > 3 else ""
        lines.append(f"Dirty: {', '.join(dirty[:3])}{more}")
    return "\n".join(lines) + "\n"


def steps_of_changes(document: Document, root: Path, git: Git) -> list[Step]:
    """The steps a correction is of: the fewest done ones whose `files:` hold all that is changed below the document's
    roots, and those whose rows are changed. NotCommitted: a changed file of the roots is in no done step, or nothing
    is changed."""
    git.require()
    path = document.path.resolve().relative_to(root).as_posix()
    roots = [form for each in document.front.roots for form in (each, f"{each}.py")]
    left = {change.path for change in git.changes() if belongs(change.path, roots)}
    before = _in_head(git, path, document)
    chosen = {number: document.step_by_number[number] for number in other_rows(before, document, [])}
    left = {file for file in left if not any(belongs(file, list(step.files)) for step in chosen.values())}
    while left:
        shares = {step.number: {f for f in left if belongs(f, list(step.files))} for step in document.steps}
        best = max(document.steps, key=lambda step: (len(shares[step.number]), step.status == "DONE"), default=None)
        if best is None or not shares[best.number]:
            raise NotCommitted(f"{_some(sorted(left))}: in the `files:` of no step of {path}; `codegen plan` makes one")
        chosen[best.number] = best
        left -= shares[best.number]
    if not chosen:
        raise NotCommitted(f"{path}: nothing below its roots ({', '.join(document.front.roots)}) is changed")
    return [chosen[number] for number in sorted(chosen)]


def _numbers(targets: Sequence[Target]) -> str:
    return ", ".join(str(target.step.number) for target in targets)


def _in_head(git: Git, path: str, like: Document) -> Document | None:
    text = git.show("HEAD", path) if git.head() else None
    return parse_document(text, like.path) if text is not None else None


def _refuse_other_rows(targets: list[Target], git: Git) -> None:
    """The document is committed whole: what it says of other steps must be what it said."""
    document = targets[0].document
    before = _in_head(git, targets[0].document_path, document)
    others = other_rows(before, document, [target.step.number for target in targets])
    if others and before is not None:
        names = ", ".join(f"Step {number}" for number in others)
        raise NotCommitted(
            f"Step {_numbers(targets)}: the document also changes the statuses of {names}; commit that step first, "
            "commit the document alone, or name all of them with --fix"
        )


def _refuse_nothing(targets: list[Target], paths: list[str], fix: str) -> None:
    document = targets[0].document_path
    if fix and not paths:
        raise NotCommitted(f"Step {_numbers(targets)}: none of its files is changed; there is nothing to commit")
    if not fix and document not in paths:
        raise NotCommitted(
            f"Step {_numbers(targets)}: {document} is as in HEAD, so this commit would flip no status; was the step "
            "committed already? A correction of it is committed with --fix TEXT"
        )


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
    _refuse_unproven(target)
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


def _refuse_unproven(target: Target) -> None:
    """What is done was proven as it lies there: by `step done`, which seals what it saw, and its tests say no less."""
    number = target.step.number
    again = f"run `codegen step done {number}`"
    field = target.step.fields.get(PROVEN)
    if field is not None and not field.value.endswith(f"digest {review_digest(target)}"):
        raise NotCommitted(f"Step {number} changed after it was proven ({field.value.partition(',')[0]}); {again}")
    if field is None and not target.step.folded and not came_before(target.step):
        raise NotCommitted(f"Step {number} was set DONE by hand and never proven; {again}")
    for name, reason in weakened(target.document, target.root).items():
        if name in target.names:
            raise NotCommitted(f"Step {number}: {name} is no longer proven: {reason}; put the tests back, or {again}")


def _foreign(changes: list[Change], targets: list[Target], allow_dirty: bool) -> list[str]:
    """Changed paths outside the step. NotCommitted: there are some and they are not allowed, or a conflict."""
    conflicts = [change.path for change in changes if change.unmerged]
    if conflicts:
        raise NotCommitted(f"unresolved conflicts: {_some(conflicts)}; resolve them first")
    document = Path(targets[0].document_path)
    lock = document.with_name(f".{document.name}.lock").as_posix()  # held by this very command
    own = [*(pattern for target in targets for pattern in target.own_paths), lock]
    foreign = sorted(change.path for change in changes if not belongs(change.path, own))
    if foreign and not allow_dirty:
        raise NotCommitted(
            f"Step {_numbers(targets)}: changed and not in its `files:`: {_some(foreign)}; add them to `files:`, "
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


def _with_known_commits(targets: list[Target], git: Git) -> str:
    """The document's text with the Commit cells of the other steps as git's trailers have them, and the own ones empty:
    a commit cannot hold its own id."""
    document = targets[0].document
    own = {target.step.number for target in targets}
    for target in targets:
        if target.step.commit:
            document = parse_document(set_step_commit(document, target.step.number, ""), document.path)
    standing = standing_commits(step_commits(git, targets[0].document_path))
    return with_commits(document, {number: each.short for number, each in standing.items() if number not in own})
