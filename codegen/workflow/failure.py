"""The error path of a step: what went wrong decides what must be revised, and by whom the plan is shaken.

A code bug leaves the document alone. A document error sends the step's entries back to review. A design gap sends the
decisions behind them back as well, and names the steps that build on what will change: they become stale with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.diagnostics import UsageError
from codegen.document.edit import add_log_row, find_step, set_approvals
from codegen.document.model import Document
from codegen.document.modern import modern
from codegen.document.parse import parse_document
from codegen.document.reasons import Reasons
from codegen.document.review import subjects
from codegen.plan.graph import dependencies
from codegen.workflow.gaps import with_gap
from codegen.workflow.git import Git
from codegen.workflow.ledger import failed, today
from codegen.workflow.reopening import reopened
from codegen.workflow.target import Target
from codegen.workflow.trail import stacks, step_commits


@dataclass(frozen=True)
class Failure:
    """What a failure asks for: ids to revise, ids and steps that build on them, the next command."""

    kind: str
    revise: tuple[str, ...]
    dependents: tuple[str, ...]
    stale_steps: tuple[int, ...]
    then: str


def diagnose(target: Target, kind: str, methods: list[str]) -> Failure:
    """What must be revised for a failure of these methods (of the whole step without any)."""
    number = target.step.number
    if kind == "code-bug":
        again = f"correct the code, then `codegen step verify {number}`"
        return Failure(kind, (), (), (), again)
    chosen = _entries(target, methods)
    revise = list(chosen)
    dependents: tuple[str, ...] = ()
    if kind == "design-gap":
        reasons = Reasons(target.document)
        named = {ident for chosen_id in chosen for ident in reasons.of_entry(target.document.entry_by_id[chosen_id])}
        decisions = [decision.id for decision in target.document.decisions if decision.id in named]
        revise = decisions + revise
        dependents = tuple(_dependents(target.document, chosen))
    stale = tuple(
        step.number
        for step in target.document.steps
        if step.number != number
        and any((entry := target.document.entry_of(method)) and entry.id in dependents for method in step.methods)
    )
    then = "revise Section 5, `codegen review next`, `codegen plan`" if kind == "design-gap" else "correct Section 5"
    return Failure(kind, tuple(revise), dependents, stale, f"{then}, then `codegen step start {number}`")


def opened(target: Target, git: Git, document: Document) -> Document:
    """The document with the step open, as it was before its commit folded it; one that is open stays as it is.

    UsageError: no commit of the step is in this branch, so that nobody knows what it was.
    """
    number = target.step.number
    if not find_step(document, number).folded:
        return document
    stack = stacks(step_commits(git, target.document_path)).get(number, []) if git.head() else []
    for commit in reversed(stack):
        parent = git.parent(commit.claims or commit.id)
        text = git.show(parent, target.document_path) if parent else None
        before = modern(parse_document(text, document.path)) if text is not None else None
        old = before.step_by_number.get(number) if before is not None else None
        if old is not None and not old.folded:
            return parse_document(reopened(document, number, before), document.path)
    raise UsageError(
        f"Step {number} is finished and no commit of it is in this branch, so it cannot be opened again; correct "
        f"it with `codegen step commit {number} --fix TEXT`, or open its entries with `codegen unfold` and plan them"
    )


def recorded_failure(document: Document, number: int, methods: list[str], failure: Failure, reason: str) -> str:
    """The text with the step FAILED, a row in the iteration log, and what must be revised back in review."""
    text = failed(document, number, methods)
    if failure.kind == "design-gap":
        text = with_gap(parse_document(text, document.path), number, failure.revise, reason)
    asked = f"Step {number} failed ({failure.kind}): {reason}"
    decisions = ", ".join(item for item in failure.revise if item.startswith("D-"))
    changed = ", ".join(item for item in failure.revise if not item.startswith("D-"))
    text = add_log_row(parse_document(text, document.path), asked, changed, decisions, today())
    known = subjects(document)
    rows = {
        item: {"verdict": "NEEDS_REVIEW"}
        for item in failure.revise
        if item in known and known[item].approval is not None
    }
    return set_approvals(parse_document(text, document.path), rows) if rows else text


def _entries(target: Target, methods: list[str]) -> list[str]:
    wanted = set(methods)
    found: dict[str, None] = {}
    for method in target.step.methods:
        entry = target.document.entry_of(method)
        named = {method.name, method.section, method.name.rpartition(".")[2]}
        if entry and (not wanted or wanted & named):
            found[entry.id] = None
    return list(found)


def _dependents(document: Document, ids: list[str]) -> list[str]:
    """Entries that need one of these, straight or not, in document order."""
    users = dependencies(document).dependents()
    found: set[str] = set()
    todo = list(ids)
    while todo:
        for user in users.get(todo.pop(), ()):
            if user not in found and user not in ids:
                found.add(user)
                todo.append(user)
    return [ident for ident in document.entry_by_id if ident in found]
