"""The shape of a document: front matter, sections, numbers, status words, versions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.diagnostics import Finding
from codegen.document.lint.codes import finding
from codegen.document.model import (
    DECISION_STATUSES,
    DOCUMENT_STATUSES,
    METHOD_STATUSES,
    STEP_STATUSES,
    VERDICTS,
    Decision,
    Document,
    Entry,
    Step,
)
from codegen.document.rows import bare
from codegen.document.versions import VERSION

CHAPTERS = {
    1: "Goals and scope",
    2: "Architecture and integration",
    3: "Decisions",
    4: "Flows, states and failures",
    5: "APIs and implementation",
    6: "Plan",
}
REQUIRED = ("id", "title", "version", "status", "roots")
PLACEHOLDER = re.compile(r"<[a-z][a-z ,'…-]{2,60}>")
SPAN = re.compile(r"`[^`]*`")
FIELD_LINE = re.compile(r"[-*+] (?:\*\*)?([a-z]+)(?:\*\*)?:", re.IGNORECASE)
KNOWN_FIELDS = frozenset(
    {"status", "drivers", "options", "outcome", "consequences", "affects", "confirmation"}
    | {"purpose", "deps", "decisions", "errors", "tests", "phase"}
    | {"depends", "files", "checkpoints", "rollback", "review"}
)
CONFLICT = re.compile(r"(<{7} |>{7} |={7}$)")


def check_structure(document: Document) -> Iterator[Finding]:
    """Findings DOC001 to DOC017, those of reading the document included."""
    yield from document.problems
    yield from _front(document)
    yield from _chapters(document)
    yield from _numbers(document)
    yield from _statuses(document)
    yield from _history(document)
    yield from _lines(document)
    yield from _glued_tables(document)
    for line, first in repeated_fields(document).items():
        name = bare(document, line).partition(":")[0].lstrip("-*+ ")
        message = f"`{name}:` is written twice, and only line {first} counts"
        yield finding(document, line, "DOC017", message, "Join them, or delete one.")


def _front(document: Document) -> Iterator[Finding]:
    front = document.front
    if not front.line_end:
        return
    for key in REQUIRED:
        if key not in front.lines:
            fix = f"Add a line `{key}: …`."
            yield finding(document, front.line_end, "DOC001", f"the front matter lacks `{key}`", fix)
        elif key != "roots" and not getattr(front, key):
            yield finding(document, front.lines[key], "DOC001", f"`{key}` is empty", "Give it a value.")
    if front.title and document.title and front.title != document.title:
        line = next((h.line for h in document.headings if h.level == 1), 1)
        message = f"the heading says {document.title!r}, the front matter {front.title!r}"
        yield finding(document, line, "DOC008", message, f"Make the heading `# {front.title}`.")


def _chapters(document: Document) -> Iterator[Finding]:
    chapters = [section for section in document.sections if section.level == 2]
    seen: dict[str, int] = {}
    last = 0
    for section in chapters:
        number = int(section.id) if re.fullmatch(r"[1-9]", section.id) else 0
        if section.id in seen:
            continue
        seen[section.id] = section.line
        if number not in CHAPTERS:
            message = f"Section {section.id} is not one of the six sections"
            yield finding(document, section.line, "DOC005", message, "Make it a sub-section, or drop its number.")
        elif number < last:
            message = f"Section {number} comes after Section {last}"
            yield finding(document, section.line, "DOC005", message, "Put the sections in order from 1 to 6.")
        last = max(last, number)
        body = [line for line in document.lines[section.line : section.line_end] if line.strip()]
        if not body:
            yield finding(document, section.line, "DOC013", f"Section {section.id} has no text")
    end = len(document.lines)
    for number, title in CHAPTERS.items():
        if str(number) not in seen:
            message = f"Section {number} ({title}) is missing"
            yield finding(document, end, "DOC005", message, f"Add a heading `## {number}. {title}`.")


def _numbers(document: Document) -> Iterator[Finding]:
    kinds = (
        [(section.id, section.line) for section in document.sections],
        [(decision.id, decision.line) for decision in document.decisions],
        [(goal.id, goal.line) for goal in document.goals],
        [(todo.id, todo.line) for todo in document.todos],
    )
    for ids in kinds:
        seen: dict[str, int] = {}
        for ident, line in ids:
            if ident in seen:
                message = f"`{ident}` is used twice (first in line {seen[ident]})"
                yield finding(document, line, "DOC010", message, "Renumber one of them.")
            seen.setdefault(ident, line)
    above: list[tuple[int, str]] = []
    for section in document.sections:
        while above and above[-1][0] >= section.level:
            above.pop()
        if above and section.level > 2 and not section.id.startswith(above[-1][1] + "."):
            message = f"{section.id} is under {above[-1][1]}"
            yield finding(document, section.line, "DOC011", message, "Renumber it, or move it to where it belongs.")
        above.append((section.level, section.id))


def _statuses(document: Document) -> Iterator[Finding]:
    front = document.front
    if front.status:
        yield from _word(document, front.lines["status"], front.status, DOCUMENT_STATUSES, "document status")
    for decision in document.decisions:
        if "status" in decision.fields:
            line = decision.fields["status"].line
            yield from _word(document, line, decision.status, DECISION_STATUSES, "decision status")
    for step in document.steps:
        if step.row_line or step.status:
            line = step.row_line or step.line
            yield from _word(document, line, step.status, STEP_STATUSES, "step status")
        for method in step.methods:
            if not method.recorded:
                yield from _word(document, method.line, method.status, METHOD_STATUSES, "method status")
    for row in document.record_rows:
        if row.status:
            yield from _word(document, row.line, row.status, METHOD_STATUSES, "method status")
    for approval in document.approvals:
        yield from _word(document, approval.line, approval.verdict, VERDICTS, "verdict")


def _word(document: Document, line: int, word: str, words: tuple[str, ...], what: str) -> Iterator[Finding]:
    if word not in words:
        meant = meant_status(word, words)
        fix = f"Write {meant}." if meant else f"Write one of {', '.join(words)}."
        yield finding(document, line, "DOC006", f"{word!r} is no {what}", fix)


def meant_status(word: str, words: tuple[str, ...]) -> str | None:
    """The status word that is meant by another spelling of it: "done", "In progress", "`DONE`"."""
    folded = re.sub(r"[\s-]+", "_", word.strip("`*_ ")).lower()
    return next((known for known in words if known.lower() == folded), None)


def _history(document: Document) -> Iterator[Finding]:
    version = document.front.version
    if not version:
        return
    line = document.front.lines["version"]
    if not VERSION.match(version):
        message = f"the version {version!r} is not of the form 1, 1.2 or 1.2.3"
        yield finding(document, line, "DOC007", message, "Write numbers with dots.")
    if not document.history:
        message = "there is no version history"
        yield finding(document, line, "DOC007", message, "Add `## Version history` with a row for this version.")
    elif all(row.version != version for row in document.history):
        message = f"the version is {version}, the last row of the version history {document.history[-1].version}"
        yield finding(document, line, "DOC007", message, "Write it with `codegen bump -m TEXT`.")
    for todo in document.todos:
        if document.front.status == "done" and not todo.done:
            yield finding(document, todo.line, "DOC016", f"{todo.id} is open and the document is done")


def _lines(document: Document) -> Iterator[Finding]:
    for number in needless_blanks(document):
        yield finding(document, number, "DOC014", "blanks at the end of the line", "Remove them.")
    fenced = _fenced(document)
    for number, line in enumerate(document.lines, 1):
        text = line.rstrip("\r\n")
        if text[:1] in ("<", ">", "=") and CONFLICT.match(text) and number not in fenced:
            fix = "Finish the merge and remove the mark."
            yield finding(document, number, "DOC015", f"a conflict mark: {text[:20]!r}", fix)
        if "<" in text and number not in fenced and (found := PLACEHOLDER.search(SPAN.sub("", text))):
            fix = "Fill it in, or delete the line."
            yield finding(document, number, "DOC012", f"the placeholder {found.group()} is still there", fix)


def needless_blanks(document: Document) -> list[int]:
    """The lines outside fences that end in blanks; two of them after a text are a line break and stay."""
    fenced = _fenced(document)
    found: list[int] = []
    for number, line in enumerate(document.lines, 1):
        text = line.rstrip("\r\n")
        if text[-1:] in (" ", "\t") and number not in fenced:
            hard_break = text.endswith("  ") and not text.endswith("   ") and bool(text.strip())
            if not hard_break:
                found.append(number)
    return found


def _fenced(document: Document) -> set[int]:
    return {n for fence in document.fences for n in range(fence.line, fence.line_end + 1)}


def _glued_tables(document: Document) -> Iterator[Finding]:
    for line in glued_tables(document):
        message = "a table follows a list without a blank line; forges show it as text of the list"
        yield finding(document, line, "DOC009", message, "Put a blank line before it.")


def glued_tables(document: Document) -> list[int]:
    """The first lines of tables that follow a list item directly."""
    found: list[int] = []
    for table in document.tables:
        before = bare(document, table.line - 1) if table.line > 1 else ""
        starts = bare(document, table.line).startswith("|")
        if before.strip() and starts and not before.startswith(("#", "|", "```", "~~~", "<!--", "---", "===")):
            found.append(table.line)
    return found


def repeated_fields(document: Document) -> dict[int, int]:
    """The lines of fields that their entry, decision or step has already, each with the line of the first one."""
    fenced = _fenced(document)
    found: dict[int, int] = {}
    holders: list[Entry | Decision | Step] = [*document.entries, *document.decisions, *document.steps]
    for holder in holders:
        taken = {field.line: name for name, field in holder.fields.items() if name in KNOWN_FIELDS}
        lines = {name: line for line, name in taken.items()}
        for number in range(holder.line, holder.line_end + 1):
            match = FIELD_LINE.match(document.lines[number - 1]) if number and number not in fenced else None
            first = lines.get(match.group(1).lower()) if match else None
            if first is not None and number != first:
                found[number] = first
    return found
