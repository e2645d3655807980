"""What changed between two versions of a document, in decisions, methods and steps instead of lines."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.document.digests import normal_code
from codegen.document.model import Decision, Document, Entry, Step

SHORT = 90


@dataclass(frozen=True)
class Change:
    """One thing that was added, removed or changed; `details` say what about it."""

    kind: str
    id: str
    what: str
    title: str
    line: int
    details: tuple[str, ...] = ()


def compare(old: Document, new: Document) -> list[Change]:
    """The changes from `old` to `new`, top-down. Formatting alone is no change."""
    return [
        *_front(old, new),
        *_sections(old, new),
        *_decisions(old, new),
        *_entries(old, new),
        *_steps(old, new),
    ]


def summary(changes: list[Change]) -> str:
    """One line for the version history: "D-3 changed; 5.1.4 added"."""
    counted = [change for change in changes if change.kind in ("decision", "section", "method")]
    return "; ".join(f"{change.id} {change.what}" for change in counted)


def _moved(name: str, old: str, new: str) -> str:
    return f"{name}: {_short(old) or '(nothing)'} → {_short(new) or '(nothing)'}"


def _short(text: str) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= SHORT else folded[: SHORT - 1] + "…"


def _front(old: Document, new: Document) -> Iterator[Change]:
    names = ("title", "version", "status", "roots", "supersedes")
    before = {name: _text(getattr(old.front, name)) for name in names}
    after = {name: _text(getattr(new.front, name)) for name in names}
    details = tuple(_moved(name, before[name], after[name]) for name in names if before[name] != after[name])
    if details:
        yield Change("document", new.id, "changed", new.front.title, 1, details)


def _text(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def _sections(old: Document, new: Document) -> Iterator[Change]:
    """Sections of chapters 1, 2 and 4: at level 3, or the chapter where it has none."""
    before = {s.id: s for s in old.sections if s.id[0] in "124" and s.level in (2, 3)}
    after = {s.id: s for s in new.sections if s.id[0] in "124" and s.level in (2, 3)}
    parents = {ident.split(".")[0] for ident in [*before, *after] if "." in ident}
    for ident in [*after, *(i for i in before if i not in after)]:
        if ident in parents:
            continue
        one, two = before.get(ident), after.get(ident)
        if one is None and two is not None:
            yield Change("section", ident, "added", two.title, two.line)
        elif two is None and one is not None:
            yield Change("section", ident, "removed", one.title, one.line)
        elif one is not None and two is not None and one.digest != two.digest:
            yield Change("section", ident, "changed", two.title, two.line)


def _decisions(old: Document, new: Document) -> Iterator[Change]:
    before, after = old.decision_by_id, new.decision_by_id
    for ident, decision in after.items():
        if ident not in before:
            yield Change("decision", ident, "added", decision.title, decision.line)
        elif details := tuple(_decision_details(before[ident], decision)):
            yield Change("decision", ident, "changed", decision.title, decision.line, details)
    for ident, decision in before.items():
        if ident not in after:
            yield Change("decision", ident, "removed", decision.title, decision.line)


def _decision_details(old: Decision, new: Decision) -> Iterator[str]:
    if old.title != new.title:
        yield _moved("title", old.title, new.title)
    named = False
    for name in dict.fromkeys([*old.fields, *new.fields]):
        if old.text(name) != new.text(name):
            named = True
            yield _moved(name, old.text(name), new.text(name))
    if old.digest != new.digest and not named and old.title == new.title:
        yield "its text"


def _entries(old: Document, new: Document) -> Iterator[Change]:
    """Entries are matched by full name, and by number when the name is gone: a renumbered entry is the same one."""
    before = {entry.full_name or entry.id: entry for entry in old.entries}
    names = {entry.full_name or entry.id for entry in new.entries}
    gone = {entry.number: entry for name, entry in before.items() if name not in names and not entry.folded}
    matched: set[str] = set()
    for entry in new.entries:
        one = before.get(entry.full_name or entry.id) or (None if entry.folded else gone.get(entry.number))
        if one is None:
            yield Change("method", _shown(entry), "added", entry.name or entry.title, entry.line)
            continue
        matched.add(one.id)
        if details := tuple(_entry_details(one, entry, old, new)):
            yield Change("method", _shown(entry), "changed", entry.name or entry.title, entry.line, details)
    for entry in before.values():
        if entry.id not in matched:
            yield Change("method", _shown(entry), "removed", entry.name or entry.title, entry.line)


def _shown(entry: Entry) -> str:
    """The number of an open entry; a folded one shares its module's with others and is shown by name."""
    return entry.full_name if entry.folded else entry.number


def _entry_details(old: Entry, new: Entry, old_doc: Document, new_doc: Document) -> Iterator[str]:
    if old.full_name != new.full_name:
        yield _moved("name", old.full_name, new.full_name)
    if old.number != new.number:
        yield _moved("number", old.number, new.number)
    before, after = signatures(old.code), signatures(new.code)
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield _moved("signature", before.get(name, ""), after.get(name, ""))
    if before == after and normal_code(old.code) != normal_code(new.code):
        yield "implementation"
    yield from _lists("deps", _names(old, old_doc), _names(new, new_doc))
    yield from _lists("decisions", old.decisions, new.decisions)
    yield from _lists("errors", old.errors, new.errors)
    if old.tests != new.tests:
        yield _moved("tests", old.tests, new.tests)
    if old.purpose.split() != new.purpose.split():
        yield _moved("purpose", old.purpose, new.purpose)


def _names(entry: Entry, document: Document) -> tuple[str, ...]:
    """Dependencies by name, so that renumbering is no change."""
    known = document.entry_by_number
    return tuple(known[dep].name or dep if dep in known else dep for dep in entry.deps)


def _lists(name: str, old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[str]:
    added = [f"+{item}" for item in new if item not in old]
    removed = [f"-{item}" for item in old if item not in new]
    if added or removed:
        yield f"{name}: {', '.join(added + removed)}"


def signatures(code: str) -> dict[str, str]:
    """The first line of every definition in a fence, as Python would print it; {} when it is not Python."""
    try:
        tree = ast.parse(textwrap.dedent(code))
    except (SyntaxError, ValueError):
        return {}
    found: dict[str, str] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = prefix + node.name
                if isinstance(node, ast.ClassDef):
                    visit(node.body, name + ".")
                    node.body = []
                node.body = [ast.Pass()]
                found[name] = ast.unparse(node).removesuffix("\n    pass").rstrip(":")

    visit(tree.body, "")
    return found


def _steps(old: Document, new: Document) -> Iterator[Change]:
    before, after = old.step_by_number, new.step_by_number
    for number, step in after.items():
        line = step.row_line or step.line
        if number not in before:
            yield Change("step", f"Step {number}", "added", step.title, line)
        elif details := tuple(_step_details(before[number], step)):
            yield Change("step", f"Step {number}", "changed", step.title, line, details)
    for number, step in before.items():
        if number not in after:
            yield Change("step", f"Step {number}", "removed", step.title, step.row_line or step.line)


def _step_details(old: Step, new: Step) -> Iterator[str]:
    for name in ("title", "status", "commit", "purpose", "checkpoints", "tests", "rollback"):
        if getattr(old, name) != getattr(new, name):
            yield _moved(name, getattr(old, name), getattr(new, name))
    yield from _lists("depends", tuple(map(str, old.depends)), tuple(map(str, new.depends)))
    yield from _lists("files", old.files, new.files)
    before = {method.name: method for method in old.methods}
    after = {method.name: method for method in new.methods}
    yield from _lists("methods", tuple(before), tuple(after))
    for name, method in after.items():
        if name in before and before[name].status != method.status:
            yield _moved(f"`{name}`", before[name].status, method.status)
