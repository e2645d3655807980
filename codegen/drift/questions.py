"""Sections 1 to 4 of a document about code that exists: a question where only a person knows, beside it what the code
shows. Each question is a placeholder in angle brackets, so that `lint` names it until it is answered."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.drift.survey import Survey

_MOST = 4
"""So many names stand in a cell; the rest is counted."""


def goals(title: str, survey: Survey, reached: tuple[str, ...]) -> Iterator[str]:
    """The lines of Section 1."""
    says = next((f"Its docstring: {each.says}" for each in survey.modules if each.says), "")
    yield from ("## 1. Goals and scope", "", "### 1.1 Problem", "")
    yield from (f"<which problem does {title} solve, for whom, and what did they do before?>", "")
    if says:
        yield from (says, "")
    yield from ("### 1.2 Goals", "")
    yield "- G-1: <what is true for its users because this code exists? one goal each for what they come for>"
    if survey.commands:
        yield from ("", f"Commands: {_cell([f'{what} (`{name}`)' for what, name in survey.commands])}.")
    tops = [name for name in reached if name.count(".") == 1] or list(reached)
    if tops:
        yield from ("", f"Users reach {_cell([f'`{name}`' for name in tops])}.")
    yield from ("", "### 1.3 Non-goals", "", "- <what do users expect of it and not get, and why not?>", "")
    yield from ("### 1.4 Metrics", "", "- <which number must hold, where is it now, and what measures it?>", "")
    yield from ("### 1.5 Glossary", "", "- **<term>**: <which words of the code need their meaning said?>", "")


def architecture(survey: Survey) -> Iterator[str]:
    """The lines of Section 2."""
    yield from ("## 2. Architecture and integration", "")
    yield from ("<which invariants hold between these modules, and which must no change break?>", "")
    if survey.needs:
        yield from (f"It needs {', '.join(survey.needs)}.", "")
    yield from ("| Module | Says of itself | Lines | Imports | Imported by |", "|---|---|---|---|---|")
    users = {each.name: sum(each.name in other.imports for other in survey.modules) for each in survey.modules}
    for each in survey.modules:
        imports = _cell([f"`{name}`" for name in each.imports])
        yield f"| `{each.name}` | {_escaped(each.says) or '-'} | {each.lines} | {imports} | {users[each.name]} |"
    yield ""
    for group in survey.cycles:
        names = ", ".join(f"`{name}`" for name in group)
        yield from (f"- <may these {len(group)} modules go on importing each other?> {names}",)
    if survey.cycles:
        yield ""


def decision(module: str) -> list[str]:
    """The lines of Section 3: one decision to begin with, which the modules of Section 5 follow."""
    return [
        "## 3. Decisions",
        "",
        "### D-1: <which decision shaped this code most?>",
        "",
        "- status: proposed",
        "- drivers: <what made a choice necessary?>",
        "- options: <which other ways were there, and what spoke for and against each?>",
        "- outcome: <which one was taken, and why?>",
        "- consequences: <what is easier because of it, and what harder?>",
        f"- affects: {module}",
        "- confirmation: <how can anybody see that it is kept?>",
        "",
    ]


def flows(survey: Survey) -> Iterator[str]:
    """The lines of Section 4."""
    yield from ("## 4. Flows, states and failures", "", "### 4.1 Main flow", "")
    yield from ("<what happens from a user's call to its result, step by step?>", "", "### 4.2 States", "")
    yield from ("<which states are there, who may change them, and when?>", "")
    if survey.states:
        yield from ("| States | Values | Set by |", "|---|---|---|")
        for state in survey.states:
            setters = _cell([f"`{name}`" for name in state.set_by])
            yield f"| `{state.name}` | {_cell(list(state.values), 12)} | {setters} |"
        yield ""
    yield from ("### 4.3 Failures", "", "<what fails, who hears of it, and what then?>", "")
    if survey.failures:
        yield from ("| Exception | Is a | Raised by |", "|---|---|---|")
        for failure in survey.failures:
            bases = _escaped(", ".join(failure.bases))
            yield f"| `{failure.name}` | {bases or '-'} | {_cell([f'`{name}`' for name in failure.raised_by])} |"
        yield ""
    yield from ("### 4.4 Concurrency", "", "<what runs at the same time, and what keeps it apart?>", "")
    for what, names in survey.beside.items():
        yield f"- `{what}` in {_cell([f'`{name}`' for name in names])}"
    if survey.beside:
        yield ""


def _cell(names: list[str], most: int = _MOST) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more or "-"


def _escaped(text: str) -> str:
    """Text in the cell of a table: no bar parts it, no angle bracket looks like a placeholder."""
    return text.replace("|", "\\|").replace("<", "&lt;")
