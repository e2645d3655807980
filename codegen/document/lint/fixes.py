"""The findings that a tool can fix: each fix gives a text that differs in the lines concerned only."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.document.edit import LineEdit, apply_edits
from codegen.document.lint.structure import glued_tables, meant_status, needless_blanks, repeated_fields
from codegen.document.merging import repaired
from codegen.document.model import (
    DECISION_STATUSES,
    DOCUMENT_STATUSES,
    METHOD_STATUSES,
    STEP_STATUSES,
    VERDICTS,
    Document,
)
from codegen.document.modern import modern
from codegen.document.naming import renumbered
from codegen.document.parse import parse_document
from codegen.document.recording import sorted_record
from codegen.document.review import withdrawn
from codegen.document.rows import bare, changed_row

FIXED = ("DOC006", "DOC008", "DOC009", "DOC014", "DOC017", "REV001")


def fix(document: Document, sides: Sequence[Document] = ()) -> Document:
    """The document with all of FIXED corrected where there is one way to do it, in the present form, numbers
    counted again, references by number turned into names and the record in order; nothing is written.

    `sides` are the document on the two branches of a merge: they say what a doubled number means."""
    for step in (_status_words, _title, _blanks, _tables, _repetitions):
        edits = step(document)
        if edits:
            document = parse_document(apply_edits(document, edits), document.path)
    document = repaired(document, sides)
    document = parse_document(withdrawn(document), document.path)
    for change in (modern, renumbered):
        document = change(document)
    return parse_document(sorted_record(document), document.path)


def _status_words(document: Document) -> list[LineEdit]:
    edits: list[LineEdit] = []
    lines = document.lines

    def in_line(line: int, word: str, words: tuple[str, ...]) -> None:
        meant = meant_status(word, words)
        if word and word not in words and meant and bare(document, line).count(word) == 1:
            edits.append(LineEdit(line, line, (bare(document, line).replace(word, meant),)))

    def in_row(line: int, column: str, word: str, words: tuple[str, ...]) -> None:
        meant = meant_status(word, words)
        if word not in words and meant and line <= len(lines):
            edits.append(LineEdit(line, line, (changed_row(document, line, {column: meant}),)))

    if document.front.status:
        in_line(document.front.lines["status"], document.front.status, DOCUMENT_STATUSES)
    for decision in document.decisions:
        if "status" in decision.fields:
            in_line(decision.fields["status"].line, decision.status, DECISION_STATUSES)
    for row in document.step_rows:
        in_row(row.line, "status", row.status, STEP_STATUSES)
    for step in document.steps:
        for method in step.methods:
            if not method.recorded:
                in_row(method.line, "status", method.status, METHOD_STATUSES)
    for known in document.record_rows:
        if known.status:
            in_row(known.line, "status", known.status, METHOD_STATUSES)
    for approval in document.approvals:
        in_row(approval.line, "verdict", approval.verdict, VERDICTS)
    return edits


def _title(document: Document) -> list[LineEdit]:
    heading = next((h for h in document.headings if h.level == 1), None)
    if heading is None or not document.front.title or document.front.title == document.title:
        return []
    line = bare(document, heading.line)
    if not line.startswith("# "):
        return []
    return [LineEdit(heading.line, heading.line, (f"# {document.front.title}",))]


def _blanks(document: Document) -> list[LineEdit]:
    return [LineEdit(line, line, (bare(document, line).rstrip(),)) for line in needless_blanks(document)]


def _tables(document: Document) -> list[LineEdit]:
    return [LineEdit(line, line - 1, ("",)) for line in glued_tables(document)]


def _repetitions(document: Document) -> list[LineEdit]:
    """Fields that stand twice word for word; where they differ, the author has to say which one holds."""
    return [
        LineEdit(line, line, ())
        for line, first in repeated_fields(document).items()
        if bare(document, line) == bare(document, first) and first < line
    ]
