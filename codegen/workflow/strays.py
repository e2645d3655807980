"""Whether every commit that implements a document's code belongs to a step.

Held to it are the commits after one that the project names (`since` in `[tool.codegen.step]`): what came before is
accepted as it is. A commit touches a document's code when it changes a path below one of the document's `roots`; it
belongs to a step by its trailers. A document without steps, of adopted code, asks for none. Merges bring no change of
their own and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from codegen.diagnostics import Finding, UsageError
from codegen.document.model import Document
from codegen.workflow.git import Git, GitError, literal
from codegen.workflow.history import History
from codegen.workflow.target import belongs
from codegen.workflow.trail import step_commits

FIRST = "first step"
"""For `since`: what comes after the first commit of a step."""
_FIX = "name another in [tool.codegen.step] of pyproject.toml"


def strays(git: Git, documents: Mapping[str, Document], since: str) -> list[Finding]:
    """The commits after `since` that change the code of a document and belong to no step, oldest first.

    In a shallow clone without `since` all commits that are here count, but for those at which the history ends.
    UsageError: there is no such commit, or HEAD does not come from it.
    """
    roots = {
        form: path
        for path, document in documents.items()
        if document.front.status != "superseded" and document.steps
        for root in document.front.roots
        for form in (root.rstrip("/"), f"{root.rstrip('/')}.py")
    }
    if not roots or git.head() is None:
        return []
    held = git.ends()
    for commit in step_commits(git):
        held |= {commit.id, commit.claims} if commit.document else set()
    if since == FIRST:
        begun = next((commit.id for commit in step_commits(git) if commit.document), None)
        if begun is None:
            return []
        since = begun
    specs = [literal(root) for root in roots]
    log = git.run("log", "--no-merges", "--reverse", "--format=%H%x00%h%x00%s", _range(git, since), "--", *specs)
    document_id = {path: document.id for path, document in documents.items()}
    findings: list[Finding] = []
    loose = [each for line in log.splitlines() if (each := line.split("\0", 2))[0] not in held]
    history = History(git)
    history.load_touched(ident for ident, _, _ in loose)
    for ident, short, subject in loose:
        touched = history.touched(ident)
        for path in dict.fromkeys(roots.values()):
            own = [root for root, document in roots.items() if document == path]
            files = [file for file in touched if belongs(file, own)]
            if files:
                more = f" and {len(files) - 3} more" if len(files) > 3 else ""
                message = f"{short} ({subject}) changes {', '.join(files[:3])}{more} and belongs to no step"
                fix = f"Run `codegen step claim --commit {short} --doc {document_id[path]}`."
                findings.append(Finding(path, 1, 1, "STEP026", message, fix=fix))
    return findings


def accepted(git: Git, since: str) -> frozenset[str]:
    """The commits up to `since`, which are taken as they are; none where all history counts, or it is not here."""
    if not since or since == FIRST or not git.has(since):
        return frozenset()
    return frozenset(git.run("rev-list", since).split())


def _range(git: Git, since: str) -> str:
    if not git.has(since):
        if git.is_shallow():
            return "HEAD"
        raise UsageError(f"`since` is {since}, no commit of this repository; {_FIX}")
    try:
        git.run("merge-base", "--is-ancestor", since, "HEAD")
    except GitError as error:
        if git.is_shallow():
            return "HEAD"
        raise UsageError(f"`since` is {since}, which HEAD does not come from; {_FIX}") from error
    return f"{since}..HEAD"
