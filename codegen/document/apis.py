"""Section 5: module headings and the API entries below them."""

from __future__ import annotations

import re
from dataclasses import replace

from codegen.document.blocks import HeadingBlock
from codegen.document.digests import digest, normal_block, normal_code
from codegen.document.model import Entry, Fence, Module, clean_name, split_names
from codegen.document.outline import Outline, first_paragraph, read_fields, split_number

CODE = re.compile(r"`([^`]+)`")
DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*$")
FULL = re.compile(r"\bfull specification\b", re.IGNORECASE)
SPECIFIES = re.compile(r"\s*[-–—:(]\s*full specification\b.*$", re.IGNORECASE)
PYTHON = ("python", "py", "python3")


def read_entries(outline: Outline) -> tuple[tuple[Module, ...], tuple[Entry, ...]]:
    """Modules and entries in order. An entry is a heading below level 3 with a number of three parts or more."""
    modules: list[Module] = []
    entries: list[Entry] = []
    module = ""
    for heading in outline.below(outline.chapter(5)):
        number, title = split_number(heading.text)
        names = [clean_name(name) for name in CODE.findall(title)]
        if heading.level == 3:
            named = next((name for name in names if DOTTED.match(name)), "")
            module = named
            if named:
                modules.append(Module(number, named, heading.line))
        elif number.count(".") >= 2:
            entries.append(_entry(heading, number, title, names, module, outline))
    return tuple(modules), _sealed(entries, outline)


def _entry(heading: HeadingBlock, number: str, title: str, names: list[str], module: str, outline: Outline) -> Entry:
    blocks = outline.own(heading)
    fields = read_fields(blocks)
    fences = tuple(block for block in blocks if isinstance(block, Fence) and block.language in PYTHON)
    bare = clean_name(SPECIFIES.sub("", title))
    if not names and DOTTED.match(bare):
        names = [bare]

    def names_in(field: str, separators: str = ",;") -> tuple[str, ...]:
        return split_names(fields[field].value, separators) if field in fields else ()

    return Entry(
        id=number,
        module=module,
        name=names[0] if names else "",
        names=tuple(names),
        title=title,
        purpose=first_paragraph(blocks) or (fields["purpose"].value if "purpose" in fields else ""),
        deps=names_in("deps"),
        decisions=names_in("decisions"),
        errors=names_in("errors", ";"),
        tests=fields["tests"].value if "tests" in fields else "",
        code="".join(fence.code for fence in fences),
        code_line=fences[0].line + 1 if fences else 0,
        fences=fences,
        fields=fields,
        full_specification=bool(FULL.search(title)),
        line=heading.line,
        line_end=outline.end(heading),
        digest="",
    )


def _sealed(entries: list[Entry], outline: Outline) -> tuple[Entry, ...]:
    """The entries with their digests. A dependency given by number counts by name: renumbering changes nothing."""
    names = {entry.id: entry.full_name or entry.title for entry in entries}
    return tuple(replace(entry, digest=_digest(entry, names, outline)) for entry in entries)


def _digest(entry: Entry, names: dict[str, str], outline: Outline) -> str:
    deps = sorted({names.get(dep, dep) for dep in entry.deps})
    text: list[str] = []
    if entry.full_specification:
        fields = {field.line for field in entry.fields.values()}
        blocks = [b for b in outline.between(entry.line + 1, entry.line_end) if b.line not in fields]
        text = [part for block in blocks if not isinstance(block, Fence) for part in normal_block(block)]
    parts = [entry.full_name or entry.title, *deps, "errors", *entry.errors, "code", normal_code(entry.code)]
    return digest([*parts, *text])
