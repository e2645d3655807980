"""How far a document is: by section, step and method; what is ready, what waits, what comes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from codegen.document.model import Document, Entry, Step
from codegen.document.review import unapproved
from codegen.document.staleness import effective_status, statuses, step_status, unplanned


@dataclass(frozen=True)
class MethodProgress:
    """A method of a step. `status` is STALE when its entry changed after it was done; `recorded` is the table's."""

    name: str
    section: str
    status: str
    recorded: str
    line: int


@dataclass(frozen=True)
class StepProgress:
    """A step; `waits_for` are the steps it depends on that are not done."""

    number: int
    title: str
    status: str
    commit: str
    methods: tuple[MethodProgress, ...]
    waits_for: tuple[int, ...]
    line: int

    @property
    def done(self) -> int:
        return sum(method.status == "DONE" for method in self.methods)


@dataclass(frozen=True)
class SectionProgress:
    """A module section of Section 5 (5.1): its entries and how many of them are done."""

    id: str
    title: str
    entries: int
    done: int


@dataclass(frozen=True)
class Progress:
    """A document's state. `ready` steps may start now; `next` is the first of them or the one in progress.

    `adopted` counts the names whose code was there before the document.
    """

    id: str
    title: str
    version: str
    status: str
    path: str
    sections: tuple[SectionProgress, ...]
    steps: tuple[StepProgress, ...]
    ready: tuple[int, ...]
    next: int | None
    unplanned: tuple[str, ...]
    unreviewed: tuple[str, ...]
    todos: tuple[str, ...]
    adopted: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """Methods by status."""
        return dict(Counter(method.status for step in self.steps for method in step.methods))

    @property
    def done(self) -> bool:
        """Whether all steps are done and every entry is in one, or was there before."""
        known = any(section.entries for section in self.sections)
        return known and all(step.status == "DONE" for step in self.steps) and not self.unplanned


def progress(document: Document) -> Progress:
    """The state of one document."""
    steps = tuple(_step(document, step) for step in document.steps)
    status = {step.number: step.status for step in steps}
    steps = tuple(_waiting(document, step, status) for step in steps)
    in_progress = [step.number for step in steps if step.status == "IN_PROGRESS"]
    ready = tuple(
        step.number for step in steps if step.status in ("NOT_STARTED", "STALE", "FAILED") and not step.waits_for
    )
    state = statuses(document)
    return Progress(
        id=document.id,
        title=document.front.title or document.title,
        version=document.front.version,
        status=document.front.status,
        path=str(document.path),
        sections=_sections(document, state),
        steps=steps,
        ready=ready,
        next=next(iter([*in_progress, *ready]), None),
        unplanned=tuple(_shown(entry) for entry in unplanned(document)),
        unreviewed=tuple(subject.id for subject in unapproved(document)),
        adopted=sum(status == "ADOPTED" for status in state.values()),
        todos=tuple(f"{todo.id}: {todo.text}" for todo in document.todos if not todo.done),
    )


def _step(document: Document, step: Step) -> StepProgress:
    methods = tuple(
        MethodProgress(method.name, method.section, effective_status(document, method), method.status, method.line)
        for method in step.methods
    )
    line = step.row_line or step.line
    return StepProgress(step.number, step.title, step_status(document, step), step.commit, methods, (), line)


def _waiting(document: Document, step: StepProgress, status: dict[int, str]) -> StepProgress:
    depends: Iterable[int] = document.step_by_number[step.number].depends
    waits = tuple(number for number in depends if status.get(number) != "DONE")
    return StepProgress(step.number, step.title, step.status, step.commit, step.methods, waits, step.line)


def _shown(entry: Entry) -> str:
    return entry.full_name if entry.folded else entry.number


def _sections(document: Document, state: dict[str, str]) -> tuple[SectionProgress, ...]:
    entries: Counter[str] = Counter()
    done: Counter[str] = Counter()
    for entry in document.entries:
        above = ".".join(entry.number.split(".")[:2])
        entries[above] += 1
        done[above] += state[entry.id] in ("DONE", "ADOPTED")
    return tuple(
        SectionProgress(section.id, section.title.strip("`"), entries[section.id], done[section.id])
        for section in document.sections
        if section.level == 3 and section.id.startswith("5.")
    )
