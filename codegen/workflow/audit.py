"""Whether git's history keeps the rule of one honest commit a step.

Every commit of a step must name its document and step, leave the step's own rows different from before and done,
leave the rows of all other steps alone (their Commit cells may be filled), and touch nothing but the step's files,
the document and the brief or record. A part (trailer `Step-Part:`) leaves its step open, and a later commit finishes
it. A correction (trailer `Step-Fix:`) may leave the rows as they are, and may span steps. And what the document calls
DONE must have such a commit, with the id its Commit cell gives, if it gives one.

In a shallow clone the commits at which the history ends are not judged, nor what an older commit may explain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from codegen.diagnostics import Finding
from codegen.document.model import Document, Step
from codegen.workflow.git import Git
from codegen.workflow.history import History
from codegen.workflow.ledger import came_before
from codegen.workflow.records import read_record, record_path, with_record
from codegen.workflow.target import belongs
from codegen.workflow.trail import TITLE, StepCommit, standing_commits, step_commits

_Found = Callable[[str, str], Finding]


def audit(git: Git, documents: dict[str, Document], accepted: Collection[str] = ()) -> list[Finding]:
    """All breaches in HEAD's history, oldest first, then those of the documents (by their paths) as they are.

    The commits with an `accepted` id are not judged: they came before the history that the project checks.
    """
    commits = step_commits(git)
    ends = git.ends()
    judged = [commit for commit in commits if commit.id not in ends and commit.id not in accepted]
    history = History(git)
    present = set(git.run("rev-list", "HEAD").split()) if any(commit.claims for commit in judged) else set()
    judged = [_as_claimed(git, commit) if commit.claims in present else commit for commit in judged]
    history.load_touched(commit.id for commit in judged if len(commit.parents) < 2)
    history.load((where, c.document) for c in judged if c.document for where in (c.id, *c.parents[:1]))
    named = [(c, documents[c.document]) for c in judged if c.document in documents]
    history.load(
        (where, record_path(document, number))
        for c, document in named
        for number in c.numbers
        for where in (c.id, *c.parents[:1])
    )
    findings = [finding for commit in judged for finding in _commit_findings(history, commit)]
    for path, document in documents.items() if not ends else ():
        findings += _document_findings(path, document, [c for c in commits if c.document in ("", path)])
    return findings


def _commit_findings(history: History, commit: StepCommit) -> Iterator[Finding]:
    def found(code: str, message: str, fix: str = "") -> Finding:
        return Finding(commit.document or "(no document)", 1, 1, code, f"{commit.short} {message}", fix=fix or None)

    title = None if commit.is_claimed else TITLE.match(commit.subject)
    if not commit.document:
        fix = "Commit steps with `codegen step commit`, which writes the trailers."
        yield found("STEP020", f"({commit.subject}) has no Design-Doc trailer", fix)
        return
    numbers = ", ".join(map(str, commit.numbers))
    if title and not commit.reverts and title["numbers"] != numbers:
        yield found("STEP020", f"is titled Step {title['numbers']} and its trailer says Step {numbers}")
    if commit.claims and not commit.is_claimed:
        return  # what it spoke for was rewritten: the steps must have another commit
    if len(commit.parents) > 1:
        yield found("STEP020", "is a merge; a step is one commit of its own")
        return
    after = history.document(commit.id, commit.document)
    if after is None:
        yield found("STEP020", f"names {commit.document}, which it does not hold")
        return
    before = history.document(commit.parents[0], commit.document) if commit.parents else None
    own = [commit.document]
    for number in commit.numbers:
        step = after.step_by_number.get(number)
        if step is None:
            yield found("STEP021", f"is of Step {number}, which its document does not have")
            return
        yield from _flips(commit, before, step, found)
        record = record_path(after, number)
        own += [*step.files, record]
        if before and number in before.step_by_number and (commit.reverts or step.folded):
            own += before.step_by_number[number].files
        for where in (commit.id, *commit.parents[:1]):
            if step.folded and (text := history.text(where, record)) is not None:
                own += with_record(step, read_record(text)).files
    for number in other_rows(before, after, commit.numbers):
        yield found("STEP022", f"(Step {numbers}) also changes the statuses of Step {number}")
    foreign = [path for path in history.touched(commit.id) if not belongs(path, own)]
    if foreign:
        message = f"(Step {numbers}) touches {', '.join(foreign)}, not in the step's `files:`"
        yield found("STEP023", message)


def _as_claimed(git: Git, claim: StepCommit) -> StepCommit:
    """The claimed commit, judged as one of the steps that the claim names."""
    short, parents = git.run("log", "-1", "--format=%h%x00%P", claim.claims).strip().split("\0")
    return replace(claim, id=claim.claims, short=short, parents=tuple(parents.split()))


def _flips(commit: StepCommit, before: Document | None, step: Step, found: _Found) -> Iterator[Finding]:
    old = before.step_by_number.get(step.number) if before else None
    if commit.is_fix and not commit.reverts and (old is None or old.status not in ("DONE", "STALE")):
        yield found("STEP021", f"corrects Step {step.number}, which was not done before")
    if commit.is_part and not commit.reverts:
        if step.status == "DONE":
            yield found("STEP021", f"is a part of Step {step.number} and leaves it DONE")
        return
    if not commit.is_fix and not commit.is_part and old is not None and same_rows(old, step):
        yield found("STEP021", f"flips no status of Step {step.number}")
    open_ones = [method.name for method in step.methods if method.status != "DONE"]
    if not commit.reverts and (open_ones or step.status != "DONE"):
        what = ", ".join(open_ones) or f"the step is {step.status}"
        yield found("STEP021", f"leaves Step {step.number} not done: {what}")
    if commit.reverts and old is None:
        yield found("STEP021", f"takes back Step {step.number}, which its parent does not have")


def other_rows(before: Document | None, after: Document, own: Sequence[int]) -> list[int]:
    """The steps, but for `own`, whose rows say another thing than before."""
    old = before.step_by_number if before else {}
    changed: list[int] = []
    for number, step in after.step_by_number.items():
        was = old.get(number)
        if number not in own and (_state(was) != _state(step) if was else _claim(step.status) != "open"):
            changed.append(number)
    return changed


def same_rows(old: Step, new: Step) -> bool:
    """Whether a step's rows say the same, digests of the entries' texts included: then a commit flips nothing."""
    return _state(old, True) == _state(new, True)


def _state(step: Step, texts: bool = False) -> tuple[str, tuple[tuple[str, str, str], ...]]:
    """What a commit of another step may not change. That this one was begun meanwhile is no claim about its code, and
    the document is committed whole. With `texts` also what the digests say of the entries' texts, which folding drops.
    """
    methods = sorted(
        (m.name or m.section, _claim(m.status), m.digest if texts else m.digest.partition(".")[0]) for m in step.methods
    )
    return _claim(step.status), tuple(methods)


def _claim(status: str) -> str:
    return "open" if status in ("NOT_STARTED", "IN_PROGRESS") else status


def _is(commit: StepCommit, cell: str) -> bool:
    return commit.id.startswith(cell) or commit.claims.startswith(cell)


def _document_findings(path: str, document: Document, commits: list[StepCommit]) -> Iterator[Finding]:
    standing = standing_commits(commits)
    for step in document.steps:
        line = step.row_line or step.line
        commit = standing.get(step.number)
        if step.status == "DONE" and commit is None and not came_before(step):
            message = f"Step {step.number} is DONE and has no commit"
            review = f"Run `codegen step review {step.number} --approve`, then `codegen step commit {step.number}`."
            fix = f"Run `codegen step claim --doc {document.id}`." if step.folded else review
            yield Finding(path, line, 1, "STEP024", message, fix=fix)
        elif step.commit and commit is not None and not _is(commit, step.commit):
            message = f"Step {step.number}: the Commit cell says {step.commit}, git's trailers say {commit.short}"
            yield Finding(path, line, 1, "STEP025", message, fix="Run `codegen step log --write`.")
        elif step.commit and commit is None:
            message = f"Step {step.number}: the Commit cell says {step.commit}, which is no commit of this step"
            yield Finding(path, line, 1, "STEP025", message, fix="Empty the cell.")
