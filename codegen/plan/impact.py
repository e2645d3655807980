"""Everything that depends on a decision, a goal, a section or a method, top-down."""

from __future__ import annotations

import re
from dataclasses import dataclass

from codegen.diagnostics import UsageError
from codegen.document.model import Document
from codegen.document.reasons import Reasons, decision_name
from codegen.document.references import References
from codegen.document.staleness import step_status
from codegen.plan.graph import dependencies

IDENT = re.compile(r"\b[DG]-\d+\b")


@dataclass(frozen=True)
class Affected:
    """Something that depends on what was asked about; `why` names the nearest link, `distance` counts the links."""

    kind: str
    id: str
    title: str
    line: int
    why: str
    distance: int


def impact(document: Document, ident: str) -> list[Affected]:
    """What depends on `ident` (D-3, G-1, 5.2.4, 5.2, or a method's name): decisions, sections, methods, steps.

    Raises UsageError when there is no such thing.
    """
    references = References(document)
    graph = dependencies(document, references)
    decisions, entries = _start(document, ident)
    found: list[Affected] = []
    asked = {*decisions, *entries}
    distance = dict.fromkeys(decisions, 0)
    found += _decisions(document, decisions, distance)
    reasons = Reasons(document)
    behind = {ident: reasons.of_entry(entry) for ident, entry in document.entry_by_id.items()}
    for section in document.sections:
        if section.id[0] in "124" and "." in section.id:
            for decision in reasons.of_section(section.id):
                if decision in distance:
                    far = distance[decision] + 1
                    found.append(Affected("section", section.id, section.title, section.line, decision, far))
                    break
    reached: dict[str, tuple[int, str]] = dict.fromkeys(entries, (0, ""))
    for number, entry in document.entry_by_id.items():
        named = [*map(decision_name, entry.decisions), *behind[number]]
        if number not in reached and (why := next((name for name in named if name in distance), None)):
            reached[number] = (distance[why] + 1, why)
    users = graph.dependents()
    queue = sorted(reached, key=lambda number: reached[number][0])
    for number in queue:
        for user in users[number]:
            if user not in reached:
                reached[user] = (reached[number][0] + 1, f"uses {graph.entries[number].label}")
                queue.append(user)
    order = {number: at for at, number in enumerate(graph.entries)}
    for number in sorted(reached, key=lambda number: (reached[number][0], order[number])):
        far, why = reached[number]
        if number not in asked:
            entry = graph.entries[number]
            found.append(Affected("method", entry.number, entry.name or entry.title, entry.line, why, far))
    for step in document.steps:
        held = [e.id for m in step.methods if (e := document.entry_of(m)) is not None and e.id in reached]
        if held:
            far = min(reached[number][0] for number in held) + 1
            title = f"{step.title} ({step_status(document, step)})"
            why = f"holds {', '.join(graph.entries[ident].number for ident in held)}"
            found.append(Affected("step", f"Step {step.number}", title, step.row_line or step.line, why, far))
    return found


def _start(document: Document, ident: str) -> tuple[list[str], list[str]]:
    """The decisions or goals and the entries that were asked about."""
    if ident in document.decision_by_id or any(goal.id == ident for goal in document.goals):
        return [ident], []
    entry = document.entry(ident)
    if entry is not None:
        return [], [entry.id]
    below = [
        entry.id
        for entry in document.entries
        if ident in (entry.number, entry.module)
        or entry.number.startswith(f"{ident}.")
        or entry.module.startswith(f"{ident}.")
    ]
    if below:
        return [], below
    raise UsageError(f"{document.path}: there is no decision, goal, method or module {ident!r}")


def _decisions(document: Document, asked: list[str], distance: dict[str, int]) -> list[Affected]:
    """Decisions that speak of those asked about, and so on; `distance` takes them in."""
    found: list[Affected] = []
    queue = list(asked)
    for name in queue:
        for decision in document.decisions:
            texts = [field.value for key, field in decision.fields.items() if key != "affects"]
            named = {ident for text in texts for ident in IDENT.findall(text)}
            # `affects: D-5` says that D-5 depends on this one.
            source = document.decision_by_id.get(name)
            named_by = source is not None and decision.id in source.affects
            if (name in named or named_by) and decision.id not in distance:
                distance[decision.id] = distance[name] + 1
                why = f"named by {name}" if named_by else f"speaks of {name}"
                found.append(
                    Affected("decision", decision.id, decision.title, decision.line, why, distance[decision.id])
                )
                queue.append(decision.id)
    return found
