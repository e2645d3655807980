"""Numbers are what a reader sees: references by number become names, and numbers are counted again.

A number that two headings carry says nothing; references by it are left for a person (REF009), and nothing is
renumbered while there are any.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from codegen.document.lines import LineEdit, apply_edits
from codegen.document.model import Document, Field
from codegen.document.parse import parse_document
from codegen.document.rows import bare

NUMBER = re.compile(r"(?<![\w.`])5(?:\.\d+){1,2}(?![\w.]*\w|`)")
HEADING = re.compile(r"(\s*#{2,6}\s+|\s*)(\d+(?:\.\d+)*)")
SECTION = re.compile(r"(?<![\w.`])[124]\.\d+(?:\.\d+)*(?![\w`])")


def with_names(document: Document) -> Document:
    """The document with the numbers in `deps:` and `affects:` turned into names, where each means one thing."""
    fields = [entry.fields[name] for entry in document.entries for name in ("deps",) if name in entry.fields]
    fields += [decision.fields["affects"] for decision in document.decisions if "affects" in decision.fields]
    names = _names(document)
    edits = [edit for field in {f.line: f for f in fields}.values() for edit in _in_field(document, field, names)]
    return parse_document(apply_edits(document, edits), document.path) if edits else document


def _in_field(document: Document, field: Field, names: dict[str, str]) -> Iterator[LineEdit]:
    for line in range(field.line, field.line_end + 1):
        old = bare(document, line)
        new = NUMBER.sub(lambda found: f"`{names[found[0]]}`" if found[0] in names else found[0], old)
        if new != old:
            yield LineEdit(line, line, (new,))


def _names(document: Document) -> dict[str, str]:
    """Printed number → name, for modules and open entries; numbers that two things have are left out."""
    pairs = [(module.id, module.name) for module in document.modules]
    pairs += [(entry.number, entry.id) for entry in document.entries if not entry.folded and entry.names]
    counts = Counter(number for number, _ in pairs)
    return {number: name for number, name in pairs if counts[number] == 1}


def doubled_numbers(document: Document) -> list[str]:
    """Numbers of Section 5 that two headings carry."""
    counts = Counter(section.id for section in document.sections if section.id.startswith("5."))
    return [number for number, count in counts.items() if count > 1]


def renumbered(document: Document) -> Document:
    """The document with the sub-headings of sections 1, 2, 4 and 5 counted again in their order, and `affects:` with
    them. The same document where a reference by a doubled number is left."""
    document = with_names(document)
    doubled = set(doubled_numbers(document))
    texts = [text for entry in document.entries for text in entry.deps]
    texts += [text for decision in document.decisions for text in decision.affects]
    if any(text in doubled for text in texts):
        return document
    edits: list[LineEdit] = []
    moved: dict[str, str] = {}
    count: dict[str, int] = {}
    stack: list[tuple[int, str]] = []
    for section in document.sections:
        chapter = section.id.partition(".")[0]
        while stack and stack[-1][0] >= section.level:
            stack.pop()
        if section.level == 2 or chapter not in "1245" or not stack:
            stack.append((section.level, section.id))
            continue
        above = stack[-1][1]
        count[above] = count.get(above, 0) + 1
        number = f"{above}.{count[above]}"
        stack.append((section.level, number))
        if number != section.id:
            moved.setdefault(section.id, number)
            old = bare(document, section.line)
            new = HEADING.sub(lambda found, number=number: found[1] + number, old, count=1)  # type: ignore[misc]
            edits.append(LineEdit(section.line, section.line, (new,)))
    for decision in document.decisions:
        if "affects" in decision.fields and moved:
            field = decision.fields["affects"]
            for line in range(field.line, field.line_end + 1):
                old = bare(document, line)
                new = SECTION.sub(lambda found: moved.get(found[0], found[0]), old)
                if new != old:
                    edits.append(LineEdit(line, line, (new,)))
    return parse_document(apply_edits(document, edits), document.path) if edits else document
