"""Who approved what: the review record against the text as it is now.

A subject of review is a decision, a section of chapters 1, 2 and 4 (level 3, or the chapter itself where it has no
sub-sections) or an entry of Section 5. It is approved when the record says APPROVED for its present digest.
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.document.model import Approval, Document

REVIEWED_CHAPTERS = ("1", "2", "4")


@dataclass(frozen=True)
class Subject:
    """Something to review; `verdict` is what holds for its present text."""

    id: str
    kind: str
    title: str
    line: int
    line_end: int
    digest: str
    verdict: str
    approval: Approval | None


def subjects(document: Document) -> dict[str, Subject]:
    """All subjects by id, top-down: sections 1 and 2, decisions, section 4, entries."""
    record = {approval.item: approval for approval in document.approvals}
    found: dict[str, Subject] = {}

    def add(ident: str, kind: str, title: str, line: int, line_end: int, digest: str) -> None:
        approval = record.get(ident)
        subject = Subject(ident, kind, title, line, line_end, digest, _verdict(approval, digest), approval)
        found.setdefault(ident, subject)

    for chapter in ("1", "2", "3", "4", "5"):
        if chapter == "3":
            for decision in document.decisions:
                add(decision.id, "decision", decision.title, decision.line, decision.line_end, decision.digest)
        elif chapter == "5":
            for entry in document.entries:
                add(entry.id, "method", entry.name or entry.title, entry.line, entry.line_end, entry.digest)
        else:
            parts = [s for s in document.sections if s.level == 3 and s.id.startswith(chapter + ".")]
            parts = parts or [s for s in document.sections if s.level == 2 and s.id == chapter]
            for section in parts:
                add(section.id, "section", section.title, section.line, section.line_end, section.digest)
    return found


def _verdict(approval: Approval | None, digest: str) -> str:
    if approval is None:
        return "NEEDS_REVIEW"
    if approval.verdict == "APPROVED" and approval.digest != digest:
        return "NEEDS_REVIEW"
    return approval.verdict


def unapproved(document: Document, items: list[str] | None = None) -> list[Subject]:
    """The subjects (of these ids, or all) that are not approved as they stand. Unknown ids are left out."""
    known = subjects(document)
    chosen = known.values() if items is None else [known[item] for item in items if item in known]
    return [subject for subject in chosen if subject.verdict != "APPROVED"]
