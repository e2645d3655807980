"""Annotated code in design documents: what it will expand to, and which patterns a document uses.

Nothing is written: the preview and the index go to the reader, the document stays the authors'.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from codegen.diagnostics import Finding, UsageError
from codegen.document import Document, Entry, read_document
from codegen.document.model import Fence
from codegen.expand.driver.expansion import expand_bytes
from codegen.expand.driver.settings import find_project, read_settings
from codegen.expand.model import Options
from codegen.expand.reading.file import read_file
from codegen.expand.reading.marks import Marks
from codegen.expand.reading.source import Source, split_lines
from codegen.patterns import Library, UnknownPattern, load_library

PYTHON = frozenset({"python", "py", "python3", "pycon", ""})


@dataclass(frozen=True)
class Shown:
    """Markdown for the reader, and what is wrong with the annotations, by line of the document."""

    text: str
    findings: tuple[Finding, ...] = ()


def preview(path: Path, section: str | None = None) -> Shown:
    """The expanded code of the document's entries, or of one section and those below it. Raises UsageError."""
    document = read_document(path)
    library, marks, options = _tools(path)
    parts: list[str] = []
    findings: list[Finding] = []
    for entry in _entries(document, section):
        for fence in _annotated(entry, marks):
            code = textwrap.dedent(fence.code)
            report = expand_bytes(str(path), code.encode(), library, marks, options)
            findings += [replace(finding, line=finding.line + fence.line) for finding in report.findings]
            text = code if report.text is None else report.text
            parts.append(f"#### {entry.label}\n```python\n{text.rstrip()}\n```\n")
    return Shown("\n".join(parts), tuple(findings))


def pattern_index(path: Path) -> Shown:
    """A table of the patterns the document uses: where, how often, and what each checks."""
    document = read_document(path)
    library, marks, _ = _tools(path)
    used: dict[str, list[str]] = {}
    for entry in document.entries:
        for id in _patterns(entry, marks):
            used.setdefault(id, []).append(entry.full_name if entry.folded else entry.number)
    rows = ["| Pattern | Used | In | Checks |", "|---|---|---|---|"]
    for id in sorted(used):
        places = ", ".join(dict.fromkeys(used[id]))
        rows.append(f"| {id} | {len(used[id])} | {places} | {_summary(library, id)} |")
    return Shown("\n".join(rows) + "\n")


def _tools(path: Path) -> tuple[Library, Marks, Options]:
    settings = read_settings(find_project(path.resolve().parent))
    library = load_library(settings.folder)
    return library, Marks(library.tags()), settings.options


def _entries(document: Document, section: str | None) -> list[Entry]:
    if section is None:
        return list(document.entries)
    one = document.entry(section)
    found = [one] if one else [e for e in document.entries if e.number == section or e.number.startswith(f"{section}.")]
    if not found:
        known = ", ".join(dict.fromkeys(entry.number for entry in document.entries[:12]))
        raise UsageError(f"{document.path}: no entry {section} in Section 5; there are {known}")
    return found


def _annotated(entry: Entry, marks: Marks) -> Iterator[Fence]:
    for fence in entry.fences:
        if fence.language.lower() in PYTHON and marks.prefilter.search(fence.code.encode()):
            yield fence


def _patterns(entry: Entry, marks: Marks) -> Iterator[str]:
    for fence in _annotated(entry, marks):
        try:
            reading = read_file(Source(split_lines(textwrap.dedent(fence.code))), marks)
        except SyntaxError:
            continue
        for opener in reading.openers if reading else ():
            yield from (item.id for item in (opener.notation.items if opener.notation else ()))


def _summary(library: Library, id: str) -> str:
    try:
        return library.get(id).summary
    except UnknownPattern:
        return "not in the library"
