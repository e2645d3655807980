"""One commit for one step: its files, the document with the statuses flipped, and the record. Nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from codegen.diagnostics import UsageError
from codegen.document.edit import set_step_commit
from codegen.document.fold import finished_step
from codegen.document.model import Document, Step
from codegen.document.modern import modern
from codegen.document.parse import parse_document, read_document
from codegen.document.review import unapproved
from codegen.document.staleness import effective_status
from codegen.document.store import document_lock, write_document
from codegen.document.store import replace_file as write_file
from codegen.workflow.audit import other_rows, same_rows
from codegen.workflow.gaps import open_gap
from codegen.workflow.git import Change, Git
from codegen.workflow.ledger import PROVEN, came_before, method_key, reviewed_items, with_commits
from codegen.workflow.records import record_text, whole_step
from codegen.workflow.reopening import reopened
from codegen.workflow.review import recorded, review_digest
from codegen.workflow.sealing import weakened
from codegen.workflow.target import Target, belongs, target_of
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
    them), there is a conflict, or there is nothing to commit. What the document says of other steps that are not
    committed yet is held back for their commits. GitError: git or a hook refused; then index and document are as they
    were.
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
        others = _other_steps(targets, git)
        dirty = _foreign(git.changes(), targets, allow_dirty, [each.own_paths for each in others])
        old_text = targets[0].document.text
        new_text = _with_known_commits(targets, git)
        said = message(targets, reviewer, dirty, fix)
        finishing = [target for target in targets if not target.step.folded]
        for target in finishing:
            new_text = finished_step(parse_document(new_text, path), target.step.number)
        if not fix:
            _refuse_out_of_order(targets[0], others)
            _refuse_again(targets[0], git, parse_document(new_text, path))
        with _put_back(path, old_text, new_text, finishing):
            own = [pattern for target in targets for pattern in target.own_paths]
            paths = [change.path for change in git.changes() if belongs(change.path, own)]
            _refuse_nothing(targets, paths, fix)
            ident = git.commit_only(paths, said, _held_back(targets[0], git, others))
    return Committed(ident, git.short(ident), tuple(paths), tuple(dirty))


@contextlib.contextmanager
def _put_back(path: Path, old: str, new: str, finishing: Sequence[Target]) -> Iterator[None]:
    """Write the document, and the records of the steps that it finishes; on an error all are as they were."""
    files = {target.root / target.brief_path: target for target in finishing}
    before = {file: file.read_bytes() if file.is_file() else None for file in files}
    write_document(path, new, old)
    try:
        for file, target in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            write_file(file, record_text(target.document, target.step).encode("utf-8"))
        yield
    except UsageError:
        write_document(path, old, new)
        for file, data in before.items():
            if data is not None:
                write_file(file, data)
            else:
                file.unlink(missing_ok=True)
        raise


def commit_part(target: Target, git: Git, text: str, allow_dirty: bool = False) -> Committed:
    """Commit work on a step that goes on: its files so far, the step stays in progress.

    NotCommitted: the step is not in progress, or what `commit_step` refuses about other files and rows.
    """
    git.require()
    with document_lock(target.document.path, f"step commit {target.step.number}"):
        target = target.again()
        number = target.step.number
        if target.step.status not in ("IN_PROGRESS", "FAILED"):
            raise NotCommitted(f"Step {number} is {target.step.status}; a part is of a step that is in progress")
        others = _other_steps([target], git)
        dirty = _foreign(git.changes(), [target], allow_dirty, [each.own_paths for each in others])
        paths = [change.path for change in git.changes() if belongs(change.path, target.own_paths)]
        if not paths:
            raise NotCommitted(f"Step {number}: none of its files is changed; there is nothing to commit")
        lines = [target.config.commit_title([number], text), ""]
        lines += [f"Design-Doc: {target.document_path}", f"Step: {number}", "Step-Part: the step goes on"]
        lines += [_dirty_line(dirty)] if dirty else []
        ident = git.commit_only(paths, "\n".join(lines) + "\n", _held_back(target, git, others))
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
        lines.append(_dirty_line(dirty))
    return "\n".join(lines) + "\n"


def _dirty_line(dirty: Sequence[str]) -> str:
    more = f" and {len(dirty) - 3} more" if len(dirty) > 3 else ""
    return f"Dirty: {', '.join(dirty[:3])}{more}"


def steps_of_changes(document: Document, root: Path, git: Git) -> list[Step]:
    """The steps a correction is of: the fewest done ones whose `files:` hold all that is changed below the document's
    roots, and those whose rows are changed. NotCommitted: a changed file of the roots is in no done step, or nothing
    is changed."""
    git.require()
    path = document.path.resolve().relative_to(root).as_posix()
    roots = [form for each in document.front.roots for form in (each, f"{each}.py")]
    left = {change.path for change in git.changes() if belongs(change.path, roots)}
    before = _in_head(git, path, document)
    document = modern(document)
    steps = [whole_step(root, document, step) for step in document.steps]
    changed = other_rows(before, document, [])
    chosen = {step.number: step for step in steps if step.number in changed}
    left = {file for file in left if not any(belongs(file, list(step.files)) for step in chosen.values())}
    while left:
        shares = {step.number: {f for f in left if belongs(f, list(step.files))} for step in steps}
        best = max(steps, key=lambda step: (len(shares[step.number]), step.status == "DONE"), default=None)
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
    return modern(parse_document(text, like.path)) if text is not None else None


def _other_steps(targets: Sequence[Target], git: Git) -> list[Target]:
    """The steps whose rows differ from HEAD's and that this commit is not of: they wait for commits of their own."""
    first = targets[0]
    document = modern(first.document)
    before = _in_head(git, first.document_path, document)
    own = [target.step.number for target in targets]
    numbers = other_rows(before, document, own) if before is not None else []
    return [target_of(first.root, first.document, number, first.config) for number in numbers]


def _held_back(target: Target, git: Git, others: Sequence[Target]) -> dict[str, str]:
    """The document as this commit has it: what it says of other steps is what HEAD says. Empty where it says that."""
    if not others:
        return {}
    document = read_document(target.document.path)
    before = _in_head(git, target.document_path, document)
    for other in others:
        text = reopened(document, other.step.number, before, exact=True)
        document = parse_document(text, document.path)
    return {target.document_path: document.text}


def _refuse_out_of_order(target: Target, others: Sequence[Target]) -> None:
    """A commit must work alone: the steps that this one builds on are in HEAD as they are now."""
    waiting = [other.step.number for other in others if other.step.number in target.step.depends]
    if waiting:
        number = target.step.number
        names = ", ".join(f"Step {each}" for each in waiting)
        order = " ".join(map(str, [*waiting, number]))
        raise NotCommitted(f"Step {number} builds on {names}, not committed yet; run `codegen step commit {order}`")


def _refuse_again(target: Target, git: Git, after: Document) -> None:
    """`after` is the document as it would be committed."""
    before = _in_head(git, target.document_path, target.document)
    number = target.step.number
    old = before.step_by_number.get(number) if before is not None else None
    if old is not None and same_rows(old, modern(after).step_by_number[number]):
        raise NotCommitted(
            f"Step {number} is in HEAD as it is now, so this commit would flip no status; a correction of it is "
            f"committed with `codegen step commit {number} --fix TEXT`"
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
    if gap := open_gap(target.document, target.step):
        raise NotCommitted(f"Step {number}: {gap}")
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
    _refuse_unproven(target)
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


def _foreign(
    changes: list[Change], targets: list[Target], allow_dirty: bool, others: Sequence[list[str]] = ()
) -> list[str]:
    """Changed paths outside the step and of no `others` that wait for their own commits. NotCommitted: there are some
    and they are not allowed, or a conflict."""
    conflicts = [change.path for change in changes if change.unmerged]
    if conflicts:
        raise NotCommitted(f"unresolved conflicts: {_some(conflicts)}; resolve them first")
    document = Path(targets[0].document_path)
    lock = document.with_name(f".{document.name}.lock").as_posix()  # held by this very command
    own = [*(pattern for target in targets for pattern in target.own_paths), lock]
    own += [pattern for patterns in others for pattern in patterns]
    foreign = sorted(change.path for change in changes if not belongs(change.path, own))
    if foreign and not allow_dirty:
        raise NotCommitted(
            f"Step {_numbers(targets)}: changed and not in its `files:`: {_some(foreign)}; add them to `files:`, "
            "commit or stash them, or give --allow-dirty (recorded in the commit)"
        )
    return foreign


def _some(paths: list[str]) -> str:
    return ", ".join(paths[:8]) + (f" and {len(paths) - 8} more" if len(paths) > 8 else "")


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
