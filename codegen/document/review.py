"""Who approved what: the review record against the text as it is now.

A subject of review is a decision, a section of chapters 1, 2 and 4 (level 3, or the chapter itself where it has no
sub-sections) or an entry of Section 5. It is approved when the record says APPROVED for its present digest. The digest
covers the subject's own text and, after a slash, the decisions it follows: so a changed decision takes back the
approval of all that depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from codegen.diagnostics import UsageError
from codegen.document.digests import digest
from codegen.document.edit import add_log_row, set_approvals, set_decision_status, set_log_row
from codegen.document.model import Approval, Document, Entry
from codegen.document.parse import parse_document, section_item
from codegen.document.reasons import Reasons

FEW = 8


@dataclass(frozen=True)
class Subject:
    """Something to review; `verdict` is what holds for its present text, `follows` the decisions behind it."""

    id: str
    kind: str
    title: str
    line: int
    line_end: int
    own: str
    digest: str
    follows: tuple[str, ...]
    verdict: str
    approval: Approval | None
    number: str = ""
    module: str = ""

    @property
    def label(self) -> str:
        """How messages call it: a printed number before a name or title, a decision's id."""
        return f"{self.number} {self.title}" if self.number else self.id


def subjects(document: Document) -> dict[str, Subject]:
    """All subjects by identity, top-down: sections 1 and 2, decisions, section 4, entries.

    An adopted name, whose code was there before anybody could review it, is one only when somebody judged it.
    """
    record = {approval.item: approval for approval in document.approvals}
    reasons = Reasons(document)
    sections = {section.line: section for section in document.sections}
    found: dict[str, Subject] = {}

    def add(
        ident: str, kind: str, title: str, line: int, end: int, own: str, follows: Iterable[str], **more: str
    ) -> None:
        known = tuple(name for name in follows if name in document.decision_by_id)
        context = digest(document.decision_by_id[name].digest for name in known)
        tail = f"/{context}" if known else ""
        approval = record.get(ident)
        old = more.get("old", own) + tail
        verdict = "NEEDS_REVIEW" if approval is None else approval.verdict
        if approval and approval.verdict == "APPROVED" and not _same(approval.digest, own + tail, old):
            verdict = "NEEDS_REVIEW"
        number = more.get("number", "")
        found.setdefault(
            ident,
            Subject(
                ident, kind, title, line, end, own, own + tail, known, verdict, approval, number, more.get("module", "")
            ),
        )

    for chapter in ("1", "2", "3", "4", "5"):
        if chapter == "3":
            for decision in document.decisions:
                title = decision.title
                add(decision.id, "decision", title, decision.line, decision.line_end, decision.digest, ())
        elif chapter == "5":
            for entry in document.entries:
                title, follows = entry.name or entry.title, reasons.of_entry(entry)
                more = {"number": entry.number, "module": entry.module}
                if entry.folded:
                    if entry.id in document.record:
                        add(entry.id, "method", title, entry.line, entry.line_end, entry.digest, follows, **more)
                    continue
                section = sections[entry.line]
                own = f"{_contract(entry)}.{entry.seal}"
                more["old"] = section.digest
                add(entry.id, "method", title, entry.line, entry.line_end, own, follows, **more)
        else:
            parts = [s for s in document.sections if s.level == 3 and s.id.startswith(chapter + ".")]
            parts = parts or [s for s in document.sections if s.level == 2 and s.id == chapter]
            for part in parts:
                follows = reasons.of_section(part.id)
                more = {"old": part.digest, "number": part.id}
                add(section_item(part), "section", part.title, part.line, part.line_end, part.seal, follows, **more)
    return found


def _contract(entry: Entry) -> str:
    """The contracts of an open entry's names as one digest; of a single name its own."""
    seals = [entry.contracts[name] for name in sorted(entry.contracts)]
    return seals[0] if len(seals) == 1 else digest(seals)


def _same(recorded: str, now: str, old: str) -> bool:
    """Whether an approved digest is for the present text; one without a part for the text was of a folded name."""
    if recorded in (now, old):
        return True
    contract, _, context = recorded.partition("/")
    own, _, present = now.partition("/")
    return "." not in contract and "." in own and contract == own.partition(".")[0] and context == present


def unapproved(document: Document, items: Iterable[str] | None = None) -> list[Subject]:
    """The subjects (of these ids, or all) that are not approved as they stand. Unknown ids are left out."""
    known = subjects(document)
    chosen = known.values() if items is None else [known[item] for item in items if item in known]
    return [subject for subject in chosen if subject.verdict != "APPROVED"]


def select(document: Document, names: Iterable[str]) -> list[Subject]:
    """The subjects with these ids or printed numbers; a chapter, section or module means all below it, 3 for all
    decisions.

    Raises UsageError for a name that means nothing.
    """
    known = subjects(document)
    found: dict[str, Subject] = {}
    for name in names:
        below = [known[name]] if name in known else list(_below(document, known, name))
        if not below:
            raise UsageError(f"{document.path}: {name!r} is no decision, section or method that is reviewed")
        found |= {subject.id: subject for subject in below}
    return list(found.values())


def _below(document: Document, known: Mapping[str, Subject], name: str) -> Iterable[Subject]:
    entry = document.entry(name)
    if entry is not None:
        return [known[entry.id]] if entry.id in known else []
    if name == "3":
        return [subject for subject in known.values() if subject.kind == "decision"]
    exact = [subject for subject in known.values() if subject.number == name]
    return exact or [
        subject
        for subject in known.values()
        if subject.number.startswith(f"{name}.") or (subject.kind == "method" and subject.id.startswith(f"{name}."))
    ]


def record(
    document: Document, items: Iterable[Subject], verdict: str, reviewer: str, date: str, reason: str = ""
) -> str:
    """The document with a verdict on these subjects in the record, and the round in the iteration log.

    A proposed decision becomes accepted or rejected by it. What is approved as it is keeps its reviewer and date.
    Verdicts of the same reviewer on the same day are one round, unless a reason is given.
    """
    asked = list(items)
    becomes = {"APPROVED": "accepted", "REJECTED": "rejected"}.get(verdict)
    for subject in asked:
        if subject.kind == "decision" and becomes and document.decision_by_id[subject.id].status == "proposed":
            document = parse_document(set_decision_status(document, subject.id, becomes), document.path)
    now = subjects(document)
    chosen = [each for each in asked if verdict != "APPROVED" or now[each.id].verdict != "APPROVED"]
    if not chosen:
        return document.text
    rows: dict[str, Mapping[str, str]] = {}
    for subject in chosen:
        cells = {"verdict": verdict, "reviewer": reviewer, "date": date, "digest": now[subject.id].digest}
        rows[subject.id] = cells
    document = parse_document(set_approvals(document, rows), document.path)
    return _log(document, _in_short(chosen), verdict, reviewer, date, reason)


def _in_short(chosen: Sequence[Subject]) -> list[str]:
    """What the iteration log calls them: sections by number, names in full, of many names the modules."""
    methods = [subject.id for subject in chosen if subject.kind == "method"]
    if len(methods) > FEW:
        methods = list(dict.fromkeys(subject.module for subject in chosen if subject.kind == "method"))
    return [s.number if s.kind == "section" else s.id for s in chosen if s.kind != "method"] + methods


def _log(document: Document, items: list[str], verdict: str, reviewer: str, date: str, reason: str) -> str:
    asked = f"review by {reviewer}: {verdict.lower()}{f', {reason}' if reason else ''}"
    last = document.log[-1] if document.log else None
    decisions = [item for item in items if item.startswith("D-")]
    others = [item for item in items if not item.startswith("D-")]
    if last is None or last.asked != asked or last.date != date:
        return add_log_row(document, asked, ", ".join(others) or "-", ", ".join(decisions) or "-", date)
    return set_log_row(document, last.line, _joined(last.changed, others), _joined(last.decisions, decisions))


def _joined(old: str, new: list[str]) -> str:
    known = [part.strip() for part in old.split(",") if part.strip() not in ("", "-")]
    return ", ".join(dict.fromkeys([*known, *new])) or "-"


def withdrawn(document: Document) -> str:
    """The document with NEEDS_REVIEW in the rows whose approval is for another text; reviewer and digest stay."""
    old = [s for s in subjects(document).values() if s.approval and s.approval.verdict != s.verdict]
    if not old:
        return document.text
    return set_approvals(document, {subject.id: {"verdict": "NEEDS_REVIEW"} for subject in old})
