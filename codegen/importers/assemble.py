"""A design document of six sections from what an importer found. Section 5 is left to be written: no signatures there.

Decisions come in as proposed and the document as a draft: whatever was agreed elsewhere is reviewed here once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from codegen.diagnostics import UsageError
from codegen.document.edit import yaml_scalar
from codegen.document.model import Step
from codegen.document.rows import format_row
from codegen.document.scaffold import IDENT
from codegen.importers.prose import one_line, prose, quote, uncoded
from codegen.importers.tasks import Group
from codegen.plan.compose import STEP_COLUMNS, numbers, step_row, table_head


@dataclass(frozen=True)
class Decided:
    """A decision as the other tool has it."""

    title: str
    outcome: str
    drivers: str = ""
    options: str = ""
    text: str = ""


@dataclass
class Design:
    """What an importer reads: foreign Markdown, by where it goes. Pairs are (title, text)."""

    ident: str
    title: str
    source: str
    problem: str = ""
    goals: list[str] = field(default_factory=list)
    goals_text: str = ""
    non_goals: str = ""
    metrics: list[str] = field(default_factory=list)
    glossary: list[str] = field(default_factory=list)
    context: list[tuple[str, str]] = field(default_factory=list)
    decisions: list[Decided] = field(default_factory=list)
    flows: list[tuple[str, str]] = field(default_factory=list)
    todos: list[str] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)


def document_of(design: Design, roots: Sequence[str], date: str) -> str:
    """The text of the document. UsageError: its id is no name."""
    if not IDENT.match(design.ident):
        raise UsageError(f"{design.ident!r} is no id for a document; give one with --id: letters, digits, `_` and `-`")
    chosen = list(roots) or _roots(design)
    return "\n".join(_lines(design, chosen, date)).rstrip("\n") + "\n"


def ident_of(folder: str) -> str:
    """An id from the name of a folder: `001-user-login` and `2026-01-31-user-login` give `user_login`."""
    name = re.sub(r"^(\d{4}-\d\d-\d\d|\d+)[-_]", "", folder)
    return re.sub(r"\W+", "_", name).strip("_").lower() or "imported"


def _lines(design: Design, roots: Sequence[str], date: str) -> Iterator[str]:
    title = one_line(design.title) or design.ident
    yield from ("---", f"id: {design.ident}", f"title: {yaml_scalar(title)}", "version: 0.1", "status: draft")
    yield from (f"roots: [{', '.join(roots)}]", "supersedes: []", "---", f"# {title}", "")
    yield from ("## Version history", "", *table_head(("Version", "Date", "Change")))
    yield from (format_row(("0.1", date, f"imported from {design.source}")), "")
    yield from ("## Iteration log", "", *table_head(("Round", "Date", "Asked", "Changed", "Decisions")), "")
    yield from ("## Open to-dos", "")
    todos = [*design.todos, "write Section 5 (`codegen adopt PACKAGE` where the code exists), then run `codegen plan`"]
    yield from (*(f"- T-{at}: {one_line(text)}" for at, text in enumerate(todos, 1)), "")
    yield from ("## 1. Goals and scope", "")
    yield from _section("1.1 Problem", prose(design.problem))
    goals = "\n".join(f"- G-{at}: {one_line(text)}" for at, text in enumerate(design.goals, 1))
    yield from _section("1.2 Goals", "\n\n".join(filter(None, [goals, prose(design.goals_text)])))
    yield from _section("1.3 Non-goals", prose(design.non_goals))
    yield from _section("1.4 Metrics", "\n".join(f"- {one_line(text)}" for text in design.metrics))
    yield from _section("1.5 Glossary", "\n".join(f"- {one_line(text)}" for text in design.glossary))
    yield from ("## 2. Architecture and integration", "")
    yield from _numbered("2", design.context)
    yield from ("## 3. Decisions", "")
    for at, decided in enumerate(design.decisions, 1):
        yield from _decision(at, decided)
    if not design.decisions:
        yield from ("None was recorded.", "")
    yield from ("## 4. Flows, states and failures", "")
    yield from _numbered("4", design.flows)
    yield from ("## 5. APIs and implementation", "", f"{design.source} holds no signatures; see the open to-dos.", "")
    yield from _plan(design.groups, design.source, date)


def _section(title: str, text: str) -> Iterator[str]:
    yield from (f"### {title}", "", text or "Nothing was recorded.", "")


def _numbered(chapter: str, parts: Sequence[tuple[str, str]]) -> Iterator[str]:
    for at, (title, text) in enumerate(parts, 1):
        yield from _section(f"{chapter}.{at} {one_line(title)}", prose(text))
    if not parts:
        yield from ("Nothing was recorded.", "")


def _decision(number: int, decided: Decided) -> Iterator[str]:
    yield from (f"### D-{number}: {one_line(decided.title)}", "", "- status: proposed")
    for name in ("drivers", "options", "outcome"):
        value = one_line(getattr(decided, name))
        if value:
            yield f"- {name}: {value}"
    yield ""
    if decided.text.strip():
        yield from (quote(decided.text), "")


def _plan(groups: Sequence[Group], source: str, date: str) -> Iterator[str]:
    steps = [_step(number, group) for number, group in enumerate(groups, 1)]
    yield from ("## 6. Plan", "", "### 6.1 Dependency graph", "", "<!-- codegen:graph -->", "<!-- codegen:end -->", "")
    yield from ("### 6.2 Steps", "", *table_head(STEP_COLUMNS), *map(step_row, steps), "")
    for step, group in zip(steps, groups, strict=True):
        yield from (f"### Step {step.number}: {step.title}", "")
        yield from (f"- purpose: {step.purpose}", f"- depends: {numbers(step.depends)}")
        yield from (f"- files: {', '.join(step.files) or '-'}", f"- checkpoints: {step.checkpoints}")
        yield from (f"- tests: {step.tests}", f"- rollback: {step.rollback}", f"- imported: from {source} on {date}")
        yield from ("- names: -", "- tasks:", *(f"  - {task.line}" for task in group.tasks), "")


def _step(number: int, group: Group) -> Step:
    tests = [path for path in group.files if re.search(r"(^|/)test_[^/]*\.py$|_test\.py$", path)]
    by_hand = uncoded(one_line(group.check))
    return Step(
        number=number,
        title=one_line(group.title),
        depends=group.depends,
        status=group.status,
        commit="",
        purpose=one_line(group.purpose) or one_line(group.title),
        files=tuple(group.files),
        checkpoints=one_line(group.checkpoint) or "all tasks are done",
        tests=f"`pytest {' '.join(tests)}`" if tests else f"by hand: {by_hand or 'the tasks, one by one'}",
        rollback="revert the step's commit, after those of the steps that depend on it",
        methods=(),
        fields={},
        row_line=0,
        line=0,
        line_end=0,
    )


def _roots(design: Design) -> list[str]:
    """The packages that the tasks' Python files lie in, tests aside; the id where there are none."""
    found: dict[str, None] = {}
    for path in (path for group in design.groups for path in group.files):
        folders = path.removeprefix("src/").split("/")[:-1]
        if path.endswith(".py") and folders and folders[0] != "tests":
            found[("src/" if path.startswith("src/") else "") + folders[0]] = None
    return list(found) or [design.ident]
