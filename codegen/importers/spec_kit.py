"""A feature folder of Spec Kit (`specs/NNN-name/` with spec.md, plan.md, research.md, tasks.md) as a design.

User stories become flows, functional requirements goals, success criteria metrics, research decisions, phases steps.
FR-, SC-, US- and T-numbers stay in the texts; ticks become the steps' statuses.
"""

from __future__ import annotations

import re
from pathlib import Path

from codegen.diagnostics import UsageError
from codegen.importers.assemble import Decided, Design, ident_of
from codegen.importers.sections import Part, find, items, labels, others_in, read_parts, rest_of, without_rules
from codegen.importers.tasks import Group, Task, groups_of, needs, not_read

NAME = "Spec Kit"
_STORY = re.compile(r"user story\s*(\d+)\s*[-–—:]?\s*(.*)$", re.IGNORECASE)
_MARKS = re.compile(r"\s*\*\((mandatory|optional|include [^)]*)\)\*\s*$")
_PRIORITY = re.compile(r"[(（][^()（）]*\bP\d\s*[)）]")
_METRICS = ("measurable outcomes", "success criteria")
_SPEC = (("out of scope", "non-goals"), ("key entities",), ("assumptions",), ("dependencies",), ("clarifications",))
_PLAN = ("summary", "technical context", "constitution check", "project structure", "complexity tracking")
_OPEN = re.compile(r"\[?NEEDS CLARIFICATION:?\s*([^\]\n]*)\]?")
_ORNAMENT = re.compile(r"[\s⚠️🎯]*(MVP)?[\s⚠️🎯]*$")


def feature_folder(path: Path) -> Path:
    """The feature that a path means: itself, or the only one below `specs/`. UsageError names those there are."""
    if (path / "spec.md").is_file() or (path / "tasks.md").is_file():
        return path
    found = sorted({each.parent for name in ("spec.md", "tasks.md") for each in path.glob(f"specs/*/{name}")})
    found = found or sorted({each.parent for each in path.glob("*/spec.md")})
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(
            f"{path}: has neither spec.md nor tasks.md, and no specs/*/ with them; name a feature's folder"
        )
    raise UsageError(f"{path}: which feature? name one of {', '.join(str(each) for each in found)}")


def read_feature(path: Path) -> Design:
    """Read a feature. Files that are missing leave their sections empty."""
    folder = feature_folder(path)
    spec, plan = read_parts(folder / "spec.md"), read_parts(folder / "plan.md")
    design = Design(ident_of(folder.resolve().name), _title(spec, plan, folder), NAME)
    head = labels("\n".join(part.own for part in spec[:2]))
    design.problem = "\n\n".join(filter(None, [head.get("input", ""), _own(plan, "summary")]))
    design.goals = _requirements(spec)
    design.non_goals = _text(spec, *_SPEC[0])
    design.metrics = _items(spec, *_METRICS)
    design.glossary = _items(spec, "key entities")
    design.context = [
        (_plain(part), without_rules(part.whole))
        for title in ("technical context", "constitution check", "project structure", "complexity tracking")
        if (part := find(plan, title)) and part.whole.strip()
    ]
    for titles in _SPEC[2:]:
        if (part := find(spec, *titles)) and part.whole.strip():
            design.context.append((_plain(part), without_rules(part.whole)))
    research = read_parts(folder / "research.md")
    design.decisions = _decisions(research)
    stories = _stories(spec)
    design.flows = [(title, without_rules(part.whole)) for title, part in stories]
    if (part := find(spec, "edge cases")) and part.whole.strip():
        design.flows.append((_plain(part), without_rules(part.whole)))
    read = [find(spec, *titles) for titles in (*_SPEC, ("edge cases",))]
    design.context += rest_of(
        spec, [*read, _listed_part(spec, *_METRICS), _required(spec), *(part for _, part in stories)]
    )
    design.context += rest_of(plan, [find(plan, title) for title in _PLAN])
    design.context += rest_of(research, [part for part in research if "decision" in labels(part.own)])
    sources = [part.own for part in (*spec, *plan)]
    design.todos = [f"clarify: {found or 'see the text'}" for text in sources for found in _OPEN.findall(text)]
    design.todos += others_in(folder, ("spec.md", "plan.md", "research.md", "tasks.md"))
    tasks = read_parts(folder / "tasks.md")
    found = groups_of(tasks)
    used = [part for part, _ in found]
    design.groups = _groups(found)
    design.context += [(f"Tasks: {title}", text) for title, text in rest_of(tasks, used)]
    design.todos += not_read(used, "tasks.md")
    return design


def _title(spec: list[Part], plan: list[Part], folder: Path) -> str:
    for parts in (spec, plan):
        title = next((part.title for part in parts if part.level == 1), "")
        if title:
            return re.sub(r"^(feature specification|implementation plan|specification)\s*:\s*", "", title, flags=re.I)
    return folder.name


def _required(spec: list[Part]) -> Part | None:
    """The part with the requirements: by its title, or, in another language, by the numbers of its items."""
    named = find(spec, "functional requirements") or find(spec, "requirements")
    return named or next((part for part in spec if part.level > 1 and "**FR-" in part.own), None)


def _requirements(spec: list[Part]) -> list[str]:
    part = _required(spec)
    return [_unbold(text) for text in items(part.whole)] if part else []


def _stories(spec: list[Part]) -> list[tuple[str, Part]]:
    """Stories with their titles; in another language they are known by the priority in their heading."""
    found: list[tuple[str, Part]] = []
    for part in spec:
        match = _STORY.match(part.title)
        if match and part.level > 1:
            found.append((f"US{match[1]}: {match[2].strip()}", part))
        elif part.level > 1 and _PRIORITY.search(part.title):
            found.append((f"US{len(found) + 1}: {part.title}", part))
    return found


def _decisions(parts: list[Part]) -> list[Decided]:
    found: list[Decided] = []
    for part in parts:
        said = labels(part.own)
        if "decision" not in said:
            continue
        title = re.sub(r"^(decision\s*)?(\d+(\.\d+)*)?\s*[:.)–-]?\s*", "", part.title, flags=re.I) or part.title
        options = next((text for label, text in said.items() if label.startswith("alternatives")), "")
        rest = [f"**{k.capitalize()}**: {v}" for k, v in said.items() if v and k not in ("decision", "rationale")]
        rest = [text for text in rest if not text.lower().startswith("**alternatives")]
        drivers = said.get("rationale", "")
        if any(line.lstrip().startswith(("```", "~~~", "|")) for line in part.own.split("\n")):
            rest = [without_rules(part.own)]  # code and tables belong to no label
        found.append(Decided(title, said["decision"], _listed(drivers), _listed(options), "\n\n".join(rest)))
    return found


def _groups(found_parts: list[tuple[Part, tuple[Task, ...]]]) -> list[Group]:
    found: list[Group] = []
    place = {task.id: at for at, (_, tasks) in enumerate(found_parts, 1) for task in tasks if task.id}
    base = 0
    stories: list[int] = []
    for at, (part, tasks) in enumerate(found_parts, 1):
        said = labels(part.whole)
        title = re.sub(r"^phase\s+\w+\s*[:.–-]\s*", "", part.title, flags=re.IGNORECASE)
        title = _ORNAMENT.sub("", title).strip() or part.title
        is_story = _STORY.match(title) is not None
        waits = {base} if base else set()
        if not is_story and stories:
            waits = set(stories)
        waits |= {number for number in needs(tasks, place) if number < at}
        purpose = said.get("purpose") or said.get("goal") or ""
        check = said.get("independent test", "")
        found.append(Group(title, purpose, said.get("checkpoint", ""), check, tasks, tuple(sorted(waits))))
        if is_story:
            stories.append(at)
        else:
            base, stories = at, []
    return found


def _own(parts: list[Part], title: str) -> str:
    part = find(parts, title)
    return without_rules(part.own).strip() if part else ""


def _text(parts: list[Part], *titles: str) -> str:
    part = find(parts, *titles)
    return without_rules(part.whole).strip() if part else ""


def _listed_part(parts: list[Part], *titles: str) -> Part | None:
    """The first part of these titles that holds a list."""
    return next((part for title in titles if (part := find(parts, title)) and items(part.whole)), None)


def _items(parts: list[Part], *titles: str) -> list[str]:
    part = _listed_part(parts, *titles)
    return [_unbold(text) for text in items(part.whole)] if part else []


def _plain(part: Part) -> str:
    return _MARKS.sub("", part.title)


def _unbold(text: str) -> str:
    return re.sub(r"^\*\*(.+?)\*\*", r"\1", text)


def _listed(text: str) -> str:
    """A list inside a field as one sentence after another."""
    found = items(text)
    return "; ".join(found) if found else text
