"""Read a design document: the one grammar, from blocks to the model.

Reading never fails on content: what is missing is empty, what is malformed becomes a finding in
`Document.problems` (codes DOC0xx). Only a file that is not there or not UTF-8 text is an error of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from codegen.diagnostics import Finding, UsageError
from codegen.document.apis import read_entries
from codegen.document.blocks import HeadingBlock, read_blocks, split_lines
from codegen.document.decisions import read_decisions
from codegen.document.front import read_front
from codegen.document.ledger import read_approvals, read_goals, read_history, read_log, read_record, read_todos
from codegen.document.model import Approval, Document, Entry, Fence, Heading, RecordRow, Section, Table
from codegen.document.outline import Outline
from codegen.document.steps import read_step_rows, read_steps


def read_document(path: Path) -> Document:
    """Read a file. Raises UsageError when it cannot be opened or is not UTF-8."""
    path = Path(path)
    return parse_document(read_text(path), path)


def read_text(path: Path) -> str:
    """The text of a file with its line ends as they are."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        message = f"{path}: byte {error.start} is not UTF-8; save the document as UTF-8"
        raise UsageError(message) from error


def parse_document(text: str, path: Path = Path("document.md")) -> Document:
    """Read a text; `path` is only kept for messages and later writes."""
    lines = split_lines(text)
    front, front_errors = read_front(lines)
    blocks = read_blocks(text, front.line_end + 1)
    outline = Outline(blocks, len(lines))
    problems = [Finding(str(path), error.line, 1, "DOC001", str(error)) for error in front_errors]
    fences = tuple(block for block in blocks if isinstance(block, Fence))
    problems += [problem for fence in fences for problem in _fence_problems(fence, lines, path)]
    modules, entries = read_entries(outline)
    rows = read_step_rows(outline, path, problems)
    record, old = read_record(outline), read_approvals(outline)
    sections = outline.sections()
    return Document(
        path=path,
        text=text,
        newline=newline_of(lines),
        lines=tuple(lines),
        front=front,
        title=next((block.text for block in blocks if isinstance(block, HeadingBlock) and block.level == 1), ""),
        history=read_history(outline),
        log=read_log(outline),
        todos=read_todos(outline),
        goals=read_goals(outline),
        headings=tuple(Heading(h.level, h.text, h.line, outline.end(h)) for h in outline.headings),
        sections=sections,
        decisions=read_decisions(outline),
        modules=modules,
        entries=entries,
        step_rows=rows,
        steps=read_steps(outline, rows, path, problems, record, entries),
        approvals=_approvals(record, old, entries, sections),
        record_rows=record,
        old_approvals=old,
        fences=fences,
        tables=tuple(block for block in blocks if isinstance(block, Table)),
        problems=tuple(problems),
    )


def _approvals(
    record: tuple[RecordRow, ...], old: tuple[Approval, ...], entries: tuple[Entry, ...], sections: tuple[Section, ...]
) -> tuple[Approval, ...]:
    """The verdicts of the record, and those of a review record of the old form, whose numbers are turned into names."""
    found = [Approval(r.item, r.verdict, r.reviewer, r.date, r.approved, r.line) for r in record if r.verdict]
    known = {approval.item for approval in found}
    names = {section.id: section_item(section) for section in reversed(sections) if section.id[0] in "124"}
    names |= {entry.number: entry.id for entry in reversed(entries) if not entry.folded}
    for each in old:
        item = names.get(each.item, each.item)
        if item not in known:
            found.append(Approval(item, each.verdict, each.reviewer, each.date, each.digest, each.line))
    return tuple(found)


def section_item(section: Section) -> str:
    """What the record calls a section of chapters 1, 2 and 4: its chapter and its title."""
    chapter = section.id.partition(".")[0]
    return f"{chapter} {section.title}" if section.level > 2 else chapter


OPENING = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*[\w.+-]*[ \t]*$")
CHAPTER = re.compile(r"#{2,6} \d+(\.\d+)*\.? ")


def _fence_problems(fence: Fence, lines: list[str], path: Path) -> Iterator[Finding]:
    """A fence that is never closed, or that a later one closed: then it has swallowed the text between them."""
    fix = "Close the fence with the mark that opened it."
    if not fence.closed:
        message = "the code fence opened here is never closed; all that follows is read as code"
        yield Finding(str(path), fence.line, 1, "DOC002", message, fix=fix)
        return
    opened = OPENING.match(lines[fence.line - 1].rstrip("\r\n"))
    for at, line in enumerate(fence.code.split("\n") if opened else (), fence.line + 1):
        again = OPENING.match(line)
        named = again is not None and line.strip() != again.group(1)
        if (named and again and opened and again.group(1).startswith(opened.group(1))) or (
            fence.language.startswith("py") and CHAPTER.match(line)
        ):
            message = f"the code fence opened here is not closed before line {at} ({line.strip()[:40]!r})"
            yield Finding(str(path), fence.line, 1, "DOC002", message, fix=fix)
            return


def newline_of(lines: list[str]) -> str:
    """The line end used most often; LF for a text of one line."""
    crlf = sum(line.endswith("\r\n") for line in lines)
    return "\r\n" if crlf * 2 > len(lines) else "\n"
