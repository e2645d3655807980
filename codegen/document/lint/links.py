"""References between the parts of a document: dependencies, decisions, approvals."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.diagnostics import Finding
from codegen.document.cycles import cycles
from codegen.document.lint.codes import finding
from codegen.document.model import Document, Entry
from codegen.document.reasons import decision_name
from codegen.document.references import References
from codegen.document.review import subjects

FIELDS = ("status", "drivers", "options", "outcome", "consequences", "affects", "confirmation")


def check_links(document: Document, references: References) -> Iterator[Finding]:
    """Findings REF001 to REF011, REV001 to REV004."""
    explicit = {entry.id: references.deps(entry) for entry in document.entries}
    for entry in document.entries:
        yield from _dependencies(document, entry, references)
        yield from _unnamed(document, entry, references, explicit[entry.id])
        yield from _reasons(document, entry, references)
    by_id = document.entry_by_id
    for cycle in cycles(explicit):
        names = " → ".join(by_id[ident].label for ident in [*cycle, cycle[0]])
        message = f"dependencies in a cycle: {names}"
        yield finding(document, by_id[cycle[0]].line, "REF002", message, "Cut it: one of them must not need the next.")
    yield from _decisions(document, references)
    yield from _approvals(document)


def _dependencies(document: Document, entry: Entry, references: References) -> Iterator[Finding]:
    line = entry.fields["deps"].line if "deps" in entry.fields else entry.line
    for text in entry.deps:
        target = references.resolve(text, entry)
        if target.unknown:
            near = references.nearest(target.name)
            fix = f"Did you mean `{near}`?" if near else "Name an entry of Section 5 by number or name."
            yield finding(document, line, "REF001", f"{entry.label}: the dependency {text!r} is not in Section 5", fix)
        elif target.candidates:
            names = ", ".join(f"`{name}`" for name in target.candidates[:5])
            message = f"{entry.label}: the dependency {text!r} may be any of {names}"
            yield finding(document, line, "REF009", message, "Give the full name or the number.")
        elif len(target.entries) == 1 and target.entries[0].id == entry.id:
            yield finding(document, line, "REF003", f"{entry.label} depends on itself ({text!r})", "Remove it.")


def _unnamed(document: Document, entry: Entry, references: References, explicit: tuple[str, ...]) -> Iterator[Finding]:
    if entry.folded:
        return  # what a folded name needs is read from its code; `deps:` says only more than that
    used = references.used(entry)
    missing = [other for ident, other in used.items() if ident not in explicit and not _own_class(entry, other)]
    if missing and not entry.folded:
        line = entry.fields["deps"].line if "deps" in entry.fields else entry.line
        names = ", ".join(other.label for other in missing)
        message = f"{entry.label}: the code uses {names}, which `deps:` does not name"
        yield finding(document, line, "REF008", message, "Add it to `deps:`.")


def _own_class(entry: Entry, other: Entry) -> bool:
    return any(entry.full_name.startswith(f"{name}.") for name in other.full_names)


def _reasons(document: Document, entry: Entry, references: References) -> Iterator[Finding]:
    goals = {goal.id for goal in document.goals}
    line = entry.fields["decisions"].line if "decisions" in entry.fields else entry.line
    for ident in entry.decisions:
        name = decision_name(ident)
        decision = document.decision_by_id.get(name) or references.decision_elsewhere(name)
        if decision is None and name not in goals:
            fix = "Name a decision D-n of Section 3 or a goal G-n of Section 1; of another document as `other:D-n`."
            yield finding(document, line, "REF004", f"{entry.label}: there is no decision or goal {name!r}", fix)
        elif decision is not None and decision.status in ("rejected", "superseded"):
            message = f"{entry.label} follows {name}, which is {decision.status}"
            yield finding(document, line, "REF011", message, "Name the decision that holds.")
    if not entry.decisions and not references.reasons.affecting[entry.id]:
        message = f"{entry.label}: no decision or goal explains it"
        fix = "Add `- decisions: D-n`, or name it in the `affects:` of a decision."
        yield finding(document, entry.line, "REF006", message, fix)


def _decisions(document: Document, references: References) -> Iterator[Finding]:
    named = {ident for entry in document.entries for ident in references.reasons.of_entry(entry)}
    sections = {section.id for section in document.sections}
    for decision in document.decisions:
        missing = [name for name in FIELDS if name not in decision.fields]
        if missing:
            message = f"{decision.id} lacks {', '.join(f'`{name}:`' for name in missing)}"
            yield finding(document, decision.line, "REF010", message, f"Add `- {missing[0]}: …`.")
        for text in decision.affects:
            if not (text in sections or _is_decision(document, references, text) or _is_place(references, text)):
                message = f"{decision.id} affects {text!r}, which is no section and no API of this document"
                fix = "Name sections by number, APIs by name."
                yield finding(document, decision.fields["affects"].line, "REF007", message, fix)
        if decision.status == "accepted" and not decision.affects and decision.id not in named:
            message = f"{decision.id} is accepted and nothing implements it"
            fix = "Name it in `decisions:` of an entry, or list what it changes in its `affects:`."
            yield finding(document, decision.line, "REF005", message, fix)


def _is_decision(document: Document, references: References, text: str) -> bool:
    return text in document.decision_by_id or references.decision_elsewhere(text) is not None


def _is_place(references: References, text: str) -> bool:
    return references.reasons.is_place(text) or references.is_elsewhere(text)


def _approvals(document: Document) -> Iterator[Finding]:
    known = subjects(document)
    first: dict[str, int] = {}
    names = document.entry_by_name
    for row in document.record_rows:
        if row.item not in known and row.item not in names:
            message = f"the record names {row.item!r}, which is not in the document"
            fix = "Rename it with `codegen rename OLD NEW`, or take it out with `codegen remove NAME`."
            yield finding(document, row.line, "REV004", message, fix)
    for item, line in [
        *((row.item, row.line) for row in document.record_rows),
        *((each.item, each.line) for each in document.old_approvals),
    ]:
        if item in first:
            message = f"{item} is twice in the record (first in line {first[item]})"
            yield finding(document, line, "REV003", message, "Keep the row that holds.")
        first.setdefault(item, line)
    recorded = {row.item for row in document.record_rows}
    for approval in document.approvals:
        subject = known.get(approval.item)
        if subject is None:
            if approval.item not in recorded:
                message = f"the review record names {approval.item!r}, which is not in the document"
                yield finding(document, approval.line, "REV002", message, "Remove the row, or correct the id.")
        elif approval.verdict == "APPROVED" and subject.verdict != "APPROVED":
            what = "a decision it follows" if _own(approval.digest) == _own(subject.digest) else "it"
            message = f"{subject.label}: {what} changed after {approval.reviewer or 'somebody'} approved it"
            shown = subject.number if subject.kind == "section" else subject.id
            yield finding(document, approval.line, "REV001", message, f"Run `codegen review show {shown}`.")


def _own(digest: str) -> str:
    return digest.partition("/")[0]
