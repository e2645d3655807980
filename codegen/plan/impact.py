"""Everything that depends on a decision, a goal, a section or a method, top-down."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from codegen.diagnostics import UsageError
from codegen.document.model import Decision, Document, Entry
from codegen.document.project import Project
from codegen.document.reasons import Reasons, decision_name
from codegen.document.references import References
from codegen.document.staleness import step_status
from codegen.plan.graph import Dependencies, dependencies

IDENT = re.compile(r"\b[DG]-\d+\b")


@dataclass(frozen=True)
class Affected:
    """Something that depends on what was asked about; `why` names the nearest link, `distance` counts the links.

    `path` is that of another document, "" in the one that was asked.
    """

    kind: str
    id: str
    title: str
    line: int
    why: str
    distance: int
    path: str = ""


Shared = Mapping[str, Mapping[str, str]]
"""Who shares a quantity with whom: `id:D-3` of a decision or goal, or the identity of an entry → the same of another →
the quantity."""


def impact(
    document: Document, ident: str, project: Project | None = None, shared: Shared | None = None
) -> list[Affected]:
    """What depends on `ident` (D-3, G-1, 5.2.4, 5.2, or a method's name): decisions, sections, methods, steps; with the
    project, in its other documents too, and with `shared` through the quantities that constraints name.

    Raises UsageError when there is no such thing.
    """
    project = project or Project([document])
    documents = [document, *project.others(document)]
    references = {each.id: References(each, project) for each in documents}
    graphs = {each.id: dependencies(each, references[each.id]) for each in documents}
    decisions, entries = _start(document, ident)
    distance = dict.fromkeys(decisions, 0)
    shared = shared or {}
    found = _decisions(document, decisions, distance, shared)
    found += _sections(document, distance)
    reached: dict[str, tuple[int, str]] = dict.fromkeys(entries, (0, ""))
    found += _elsewhere(documents, [f"{document.id}:{name}" for name in distance], distance, shared)
    found += _elsewhere(documents, entries, dict.fromkeys(entries, 0), shared)
    for name in distance:
        for target, what in shared.get(f"{document.id}:{name}", {}).items():
            if ":" not in target:
                reached.setdefault(target, (distance[name] + 1, f"has `{what}`, which {name} constrains"))
    for each in documents:
        for name, entry in each.entry_by_id.items():
            why = _reason(each, entry, references[each.id], distance, document)
            if name not in reached and why:
                reached[name] = (distance[why.rpartition(":")[2]] + 1, why)
    users = _users(documents, references, graphs)
    labels = {name: entry.label for each in documents for name, entry in each.entry_by_id.items()}
    queue = sorted(reached, key=lambda name: reached[name][0])
    for name in queue:
        for user in users.get(name, ()):
            if user not in reached:
                reached[user] = (reached[name][0] + 1, f"uses {labels[name]}")
                queue.append(user)
    for each in documents:
        found += _reached(each, reached, {*decisions, *entries}, "" if each is document else str(each.path))
    return found


def _reason(
    each: Document, entry: Entry, references: References, distance: dict[str, int], asked: Document
) -> str | None:
    """The decision or goal, of those reached, that an entry follows; in another document as `id:D-3`."""
    named = [*map(decision_name, entry.decisions), *references.reasons.of_entry(entry)]
    if each is asked:
        return next((name for name in named if name in distance), None)
    return next((n for n in named if n.startswith(f"{asked.id}:") and n.rpartition(":")[2] in distance), None)


def _users(
    documents: Sequence[Document], references: dict[str, References], graphs: dict[str, Dependencies]
) -> dict[str, list[str]]:
    """Who uses an entry, in any document."""
    users: dict[str, list[str]] = {}
    for document in documents:
        for name, entry in document.entry_by_id.items():
            for need in (*graphs[document.id].edges[name], *references[document.id].elsewhere(entry)):
                users.setdefault(need, []).append(name)
    return users


def _sections(document: Document, distance: dict[str, int]) -> list[Affected]:
    reasons = Reasons(document)
    found: list[Affected] = []
    for section in document.sections:
        if section.id[0] in "124" and "." in section.id:
            named = next((decision for decision in reasons.of_section(section.id) if decision in distance), None)
            if named:
                far = distance[named] + 1
                found.append(Affected("section", section.id, section.title, section.line, named, far))
    return found


def _reached(document: Document, reached: dict[str, tuple[int, str]], asked: set[str], path: str) -> Iterator[Affected]:
    """The methods and steps of one document that are reached."""
    order = {name: at for at, name in enumerate(document.entry_by_id)}
    for name in sorted((n for n in reached if n in order), key=lambda name: (reached[name][0], order[name])):
        far, why = reached[name]
        if name not in asked:
            entry = document.entry_by_id[name]
            shown = entry.full_name if entry.folded else entry.number
            yield Affected("method", shown, entry.name or entry.title, entry.line, why, far, path)
    for step in document.steps:
        held = [e for m in step.methods if (e := document.entry_of(m)) is not None and e.id in reached]
        if held:
            far = min(reached[entry.id][0] for entry in held) + 1
            title = f"{step.title} ({step_status(document, step)})"
            why = f"holds {', '.join(entry.name if entry.folded else entry.number for entry in held)}"
            yield Affected("step", f"Step {step.number}", title, step.row_line or step.line, why, far, path)


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


def _elsewhere(
    documents: Sequence[Document], names: Sequence[str], distance: Mapping[str, int], shared: Shared
) -> Iterator[Affected]:
    """Decisions and goals that constrain a quantity of what is asked about: of entries in all documents, of decisions
    in the others (in the own one they are found with the decisions that speak of each other)."""
    seen: set[str] = set()
    for name in names:
        own = documents[0].id if ":" in name else None
        for target, what in shared.get(name, {}).items():
            home, is_decision, ident = target.partition(":")
            found = next((each for each in documents if is_decision and each.id == home), None)
            if found is None or target in seen or (home == own and ident.startswith("D-")):
                continue
            seen.add(target)
            far = distance[name.rpartition(":")[2]] + 1
            item = found.decision_by_id.get(ident) or next((goal for goal in found.goals if goal.id == ident), None)
            if item is not None:
                title = item.title if isinstance(item, Decision) else item.text
                path = "" if found is documents[0] else str(found.path)
                yield Affected("decision", ident, title, item.line, f"constrains `{what}` too", far, path)


def _decisions(document: Document, asked: list[str], distance: dict[str, int], shared: Shared) -> list[Affected]:
    """Decisions that speak of those asked about or constrain the same quantity, and so on; `distance` takes them in."""
    found: list[Affected] = []
    queue = list(asked)
    for name in queue:
        for decision in document.decisions:
            texts = [field.value for key, field in decision.fields.items() if key != "affects"]
            named = {ident for text in texts for ident in IDENT.findall(text)}
            # `affects: D-5` says that D-5 depends on this one.
            source = document.decision_by_id.get(name)
            named_by = source is not None and decision.id in source.affects
            what = shared.get(f"{document.id}:{name}", {}).get(f"{document.id}:{decision.id}")
            if (name in named or named_by or what) and decision.id not in distance:
                distance[decision.id] = distance[name] + 1
                why = f"named by {name}" if named_by else f"speaks of {name}"
                if not named_by and name not in named:
                    why = f"constrains `{what}`, like {name}"
                found.append(
                    Affected("decision", decision.id, decision.title, decision.line, why, distance[decision.id])
                )
                queue.append(decision.id)
    return found
