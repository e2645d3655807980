"""A change of OpenSpec (`openspec/changes/ID/` with proposal.md, design.md, specs/, tasks.md) as a design.

Requirements become goals and their scenarios flows, each with its capability and delta (ADDED, MODIFIED, …) in front;
decisions of design.md become decisions, groups of tasks steps. Task numbers and ticks stay.
"""

from __future__ import annotations

import re
from pathlib import Path

from codegen.diagnostics import UsageError
from codegen.importers.assemble import Decided, Design, ident_of
from codegen.importers.sections import (
    Part,
    children,
    find,
    items,
    labels,
    others_in,
    read_parts,
    rest_of,
    without_rules,
)
from codegen.importers.tasks import Group, Task, groups_of, needs, not_read

NAME = "OpenSpec"
_WHY = ("why", "problem", "motivation", "summary")
_WHAT = ("what changes", "proposal", "solution", "changes")
_NOT = ("out of scope", "non-goals")
_BOTH = ("goals / non-goals", "goals and non-goals", "goals/non-goals")
_AROUND = ("context", "overview")
_DECIDED = ("decisions", "architecture decisions", "key decisions", "trade-offs and decisions")
_ROLLOUT = ("migration", "rollout")
_PROPOSAL = (_WHY, _WHAT, _NOT, ("impact",), ("capabilities",))
_DESIGN = (
    _BOTH,
    ("goals",),
    ("non-goals",),
    _AROUND,
    _DECIDED,
    ("risks",),
    _ROLLOUT,
    ("testing",),
    ("open questions",),
)
_REQUIREMENT = re.compile(r"requirement:\s*(.*)$", re.IGNORECASE)
_NUMBER = re.compile(r"^(decision\s*)?([dD]?-?\d+(\.\d+)*)?\s*[:.)–—-]?\s*", re.IGNORECASE)


def change_folder(path: Path) -> Path:
    """The change that a path means: itself, or the only open one. UsageError names those there are."""
    if any((path / name).is_file() for name in ("proposal.md", "tasks.md")):
        return path
    for base in (path / "openspec" / "changes", path / "changes", path):
        found = sorted({each.parent for name in ("proposal.md", "tasks.md") for each in base.glob(f"*/{name}")})
        found = [each for each in found if each.name != "archive"]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(str(each) for each in found[:12])
            raise UsageError(f"{path}: which change? name one of {names}{' …' if len(found) > 12 else ''}")
    raise UsageError(
        f"{path}: has neither proposal.md nor tasks.md, and no openspec/changes/*/; name a change's folder"
    )


def read_change(path: Path) -> Design:
    """Read a change. Files that are missing leave their sections empty."""
    folder = change_folder(path)
    proposal, notes = read_parts(folder / "proposal.md"), read_parts(folder / "design.md")
    design = Design(ident_of(folder.resolve().name), _title(proposal, folder), NAME)
    design.problem = _text(proposal, *_WHY)
    changes = find(proposal, *_WHAT)
    design.goals_text = _shown(changes) if changes else ""
    goals, non_goals = _goals(notes)
    design.non_goals = "\n\n".join(filter(None, [non_goals, _text(proposal, *_NOT)]))
    for part in (find(proposal, "impact"), find(notes, *_AROUND), find(proposal, "capabilities")):
        if part and part.whole.strip():
            design.context.append((part.title, without_rules(part.whole)))
    design.decisions = _decisions(notes)
    requirements = _requirements(folder)
    design.goals = [*goals, *(f"{name}: {text}" if text else name for name, text, _ in requirements)]
    design.flows = [(name, scenarios) for name, _, scenarios in requirements if scenarios]
    for part in (find(notes, "risks"), find(notes, *_ROLLOUT), find(notes, "testing")):
        if part and part.whole.strip():
            design.flows.append((part.title, without_rules(part.whole)))
    design.context += rest_of(proposal, [find(proposal, *titles) for titles in _PROPOSAL])
    design.context += rest_of(notes, [find(notes, *titles) for titles in _DESIGN])
    design.context += _unread_of_specs(folder)
    questions = find(notes, "open questions")
    design.todos = items(questions.whole) if questions else []
    if questions and not design.todos and questions.whole.strip():
        design.context.append((questions.title, _shown(questions)))
    design.todos += others_in(folder, ("proposal.md", "design.md", "tasks.md", "specs/"))
    _take_tasks(design, read_parts(folder / "tasks.md"))
    return design


def _title(proposal: list[Part], folder: Path) -> str:
    title = next((part.title for part in proposal if part.level == 1), "")
    title = re.sub(r"^(change|proposal|change proposal)\s*:\s*", "", title, flags=re.IGNORECASE)
    return title or ident_of(folder.resolve().name).replace("_", " ").capitalize()


def _goals(notes: list[Part]) -> tuple[list[str], str]:
    """Goals as items, non-goals as text, from their own headings or from bold labels below a common one."""
    part = find(notes, *_BOTH)
    if part:
        below = children(notes, part)
        inner = {each.title.lower(): each.whole for each in below} or labels(part.whole)
        non = next((text for title, text in inner.items() if title.startswith("non")), "")
        yes = next((text for title, text in inner.items() if title.startswith("goal")), "")
        return items(yes) or [yes] * bool(yes.strip()), non
    yes = _text(notes, "goals")
    return items(yes) or [yes] * bool(yes), _text(notes, "non-goals")


def _decisions(notes: list[Part]) -> list[Decided]:
    part = find(notes, *_DECIDED)
    if part is None:
        return []
    found: list[Decided] = []
    for child in children(notes, part):
        said = labels(child.whole)
        outcome = said.get("decision") or said.get("choice") or _first_paragraph(child.whole)
        options = next((v for k, v in said.items() if k.startswith(("alternatives", "options"))), "")
        drivers = said.get("rationale") or said.get("why") or ""
        title = _NUMBER.sub("", child.title, count=1) or child.title
        found.append(Decided(title, outcome, drivers, options, without_rules(child.whole)))
    if not found:
        for text in items(part.whole):
            bold = re.match(r"\*\*(.+?)\*\*[:.]?\s*", text)
            title = (bold[1] if bold else text).rstrip(":.")
            found.append(Decided(_NUMBER.sub("", title[:100], count=1) or title, text[bold.end() :] if bold else text))
    return found


def _requirements(folder: Path) -> list[tuple[str, str, str]]:
    """(capability, delta and name; body on one line; scenarios) of every requirement of the change."""
    found: list[tuple[str, str, str]] = []
    for path in sorted((folder / "specs").glob("**/*.md")):
        capability = path.parent.relative_to(folder / "specs").as_posix()
        delta = ""
        for part in read_parts(path):
            if part.level == 2:
                delta = part.title.split()[0] if part.title.lower().endswith("requirements") else ""
                if delta.upper() == "RENAMED":
                    renamed = "; ".join(items(part.own)).replace("`", "").replace("### Requirement: ", "")
                    found.append((f"{delta} {capability}", renamed, ""))
            match = _REQUIREMENT.match(part.title)
            if match and part.level == 3:
                name = " ".join(filter(None, [delta, f"{capability}/{match[1].strip()}"]))
                found.append((name, " ".join(part.own.split()), part.whole.removeprefix(part.own).strip()))
    return found


def _unread_of_specs(folder: Path) -> list[tuple[str, str]]:
    """What the delta specifications hold besides requirements."""
    found: list[tuple[str, str]] = []
    for path in sorted((folder / "specs").glob("**/*.md")):
        parts = read_parts(path)
        capability = path.parent.relative_to(folder / "specs").as_posix()
        read = [part for part in parts if part.level == 3 and _REQUIREMENT.match(part.title)]
        read += [part for part in parts if part.level == 2 and part.title.lower().startswith("renamed")]
        found += [(f"{capability}: {title}", text) for title, text in rest_of(parts, read)]
    return found


def _take_tasks(design: Design, parts: list[Part]) -> None:
    found = groups_of(parts)
    used = [part for part, _ in found]
    design.groups = _groups(found)
    design.context += [(f"Tasks: {title}", text) for title, text in rest_of(parts, used)]
    design.todos += not_read(used, "tasks.md")


def _groups(found: list[tuple[Part, tuple[Task, ...]]]) -> list[Group]:
    place = {task.id: at for at, (_, tasks) in enumerate(found, 1) for task in tasks if task.id}
    groups: list[Group] = []
    for at, (part, tasks) in enumerate(found, 1):
        title = re.sub(r"^\d+(\.\d+)*[.):]?\s+", "", part.title) or "Tasks"
        waits = {at - 1} if at > 1 else set()
        waits |= {number for number in needs(tasks, place) if number < at}
        groups.append(Group(title, "", "", "", tasks, tuple(sorted(waits))))
    return groups


def _text(parts: list[Part], *titles: str) -> str:
    part = find(parts, *titles)
    return without_rules(part.whole).strip() if part else ""


def _shown(part: Part) -> str:
    return without_rules(part.whole).strip()


def _first_paragraph(text: str) -> str:
    return next((piece.strip() for piece in re.split(r"\n\s*\n", text) if piece.strip()), "")
