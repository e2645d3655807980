"""Which commits belong to which step, read from git's trailers.

A commit cannot hold its own id, so the document cannot say in a step's commit which commit that is. The trailers
`Design-Doc:`, `Step:` and `Reverts-Step:` say it the other way round, and this module is the one place that reads
them; the Commit column of the table of steps is a copy, filled by the next write of the ledger.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from codegen.workflow.git import Git

TITLE = re.compile(r"Step (?P<numbers>\d+(?:, \d+)*): (?P<title>.+)$")
_FORMAT = "%H%x00%h%x00%P%x00%cs%x00%s%x00%(trailers:only,unfold)%x1e"


@dataclass(frozen=True)
class StepCommit:
    """A commit of a step, or with `reverts` its rollback. `document` is "" where the trailers name none.

    `numbers` are more than one where a correction (`is_fix`) spans several steps; `number` is the first.
    """

    id: str
    short: str
    parents: tuple[str, ...]
    date: str
    subject: str
    number: int
    document: str
    reverts: bool
    trailers: dict[str, str]
    numbers: tuple[int, ...] = ()

    @property
    def is_claimed(self) -> bool:
        """Whether this replaces the commit that a claim names: then it has that one's id."""
        return self.claims == self.id

    @property
    def is_part(self) -> bool:
        """Whether it leaves its step in progress: a later commit of the step finishes it."""
        return "Step-Part" in self.trailers

    @property
    def claims(self) -> str:
        """The id of another commit that this one says was of its steps, "" where it speaks for itself."""
        return self.trailers.get("Step-Claims", "")

    @property
    def is_fix(self) -> bool:
        """Whether it corrects steps that stay done, or takes such a correction back."""
        return "Step-Fix" in self.trailers


def step_commits(git: Git, document: str | None = None) -> list[StepCommit]:
    """All commits of HEAD's history that carry a step, oldest first; of one document or of all.

    A commit counts by its trailers, or by a subject of the form `Step N: …`.
    """
    if git.head() is None:
        return []
    patterns = ("^Step [0-9]+(, [0-9]+)*: ", "^Step: [0-9]+", "^Reverts-Step: [0-9]+")
    greps = [f"--grep={pattern}" for pattern in patterns]
    text = git.run("log", "--reverse", "--topo-order", "-E", *greps, f"--format={_FORMAT}", "HEAD")
    found: list[StepCommit] = []
    for record in text.split("\x1e"):
        fields = record.lstrip("\n").split("\0")
        if len(fields) < 6:
            continue
        commit = _read(*fields[:6])
        if commit and (document is None or commit.document in ("", document)):
            found.append(commit)
    return found


def standing_commits(commits: list[StepCommit]) -> dict[int, StepCommit]:
    """The commit that each step stands by: its last one that finished or corrected it and was not rolled back."""
    found = {number: [each for each in stack if not each.is_part] for number, stack in stacks(commits).items()}
    return {number: stack[-1] for number, stack in found.items() if stack}


def stacks(commits: list[StepCommit]) -> dict[int, list[StepCommit]]:
    """The commits of each step that were not rolled back, oldest first: the step, its corrections, the step again."""
    found: dict[int, list[StepCommit]] = {}
    for commit in commits:
        for number in commit.numbers:
            stack = found.setdefault(number, [])
            if not commit.reverts:
                stack.append(commit)
            elif stack:
                stack.pop()
    return dict(sorted(found.items()))


def _read(ident: str, short: str, parents: str, date: str, subject: str, trailers: str) -> StepCommit | None:
    lines = [line.split(": ", 1) for line in trailers.split("\n") if ": " in line]
    values = dict(reversed(lines))
    title = TITLE.match(subject)
    reverted = [value for key, value in lines if key == "Reverts-Step"]
    named = reverted or [value for key, value in lines if key == "Step"]
    found = named or (title["numbers"].split(", ") if title else [])
    if not found or not all(number.isdigit() for number in found):
        return None
    numbers = tuple(int(number) for number in dict.fromkeys(found))
    document = values.get("Design-Doc", "")
    return StepCommit(
        ident, short, tuple(parents.split()), date, subject, numbers[0], document, bool(reverted), values, numbers
    )
