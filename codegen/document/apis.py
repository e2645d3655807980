"""Section 5: module headings and the API entries below them."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace

from codegen.document.blocks import HeadingBlock
from codegen.document.contracts import contract, error_names, pieces_of
from codegen.document.definitions import placed
from codegen.document.digests import digest, normal_block, normal_code
from codegen.document.folded import read_folded, read_notes
from codegen.document.model import Entry, Fence, Module, clean_name, qualify, split_names
from codegen.document.outline import Outline, first_paragraph, read_fields, split_number

CODE = re.compile(r"`([^`]+)`")
DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*$")
FULL = re.compile(r"\bfull specification\b", re.IGNORECASE)
SPECIFIES = re.compile(r"\s*[-–—:(]\s*full specification\b.*$", re.IGNORECASE)
REFERENCE = re.compile(r"(?<![\w.])5(?:\.\d+){2,}(?![\w.]*\w)")
PYTHON = ("python", "py", "python3")


def read_entries(outline: Outline) -> tuple[tuple[Module, ...], tuple[Entry, ...]]:
    """Modules and entries in order. An open entry is a heading below level 3 with a number of three parts or more; a
    module with a Python fence of its own is folded and gives one entry for each name in it."""
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
                modules.append(_module(heading, number, named, outline))
                entries += read_folded(modules[-1])
        elif number.count(".") >= 2:
            entries.append(_entry(heading, number, title, names, module, outline))
    return tuple(modules), _sealed(entries, outline)


def _module(heading: HeadingBlock, number: str, name: str, outline: Outline) -> Module:
    blocks = outline.own(heading)
    fences = tuple(block for block in blocks if isinstance(block, Fence) and block.language in PYTHON)
    end = max([heading.line_end, *(block.line_end for block in blocks)])
    return Module(
        id=number,
        name=name,
        line=heading.line,
        line_end=end,
        purpose=first_paragraph(blocks),
        fields=read_fields(blocks),
        notes=read_notes(blocks) if fences else {},
        fences=fences,
    )


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
        id=qualify(module, names[0]) if names else title,
        number=number,
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
    """The open entries with their digests. A dependency given by number counts by name: renumbering changes nothing."""
    names = {entry.number: entry.full_name or entry.title for entry in entries if not entry.folded}
    return tuple(
        entry
        if entry.folded
        else replace(
            entry,
            digest=_digest(entry, names, outline),
            contracts=_contracts(entry),
            seal=_text_seal(entry, names, outline),
        )
        for entry in entries
    )


def _digest(entry: Entry, names: dict[str, str], outline: Outline) -> str:
    deps = sorted({names.get(dep, dep) for dep in entry.deps})
    text: list[str] = []
    if entry.full_specification:
        fields = {field.line for field in entry.fields.values()}
        blocks = [b for b in outline.between(entry.line + 1, entry.line_end) if b.line not in fields]
        text = [part for block in blocks if not isinstance(block, Fence) for part in normal_block(block)]
    parts = [entry.full_name or entry.title, *deps, "errors", *entry.errors, "code", normal_code(entry.code)]
    return digest([*parts, *text])


def _text_seal(entry: Entry, names: dict[str, str], outline: Outline) -> str:
    """The digest of all that an entry says, its own number left out and other entries' numbers read as their names."""
    parts: list[str] = []
    for block in outline.between(entry.line, entry.line_end):
        texts = [split_number(block.text)[1]] if isinstance(block, HeadingBlock) else normal_block(block)
        if not isinstance(block, Fence):
            texts = [REFERENCE.sub(lambda found: names.get(found[0], found[0]), t).replace("`", "") for t in texts]
        parts += texts
    return digest(parts)


def _contracts(entry: Entry) -> dict[str, str]:
    """The contract of each name that an open entry defines, by full name. `errors:` belong to its first name; a name
    without a definition has a contract of its errors alone."""
    local = tuple(name.removeprefix(f"{entry.module}.") for name in entry.names)
    errors = error_names(entry.errors)
    seals: dict[str, list[str]] = {}
    for fence in entry.fences:
        code = textwrap.dedent(fence.code)
        tops = {piece.name: placed(piece.name, piece.node, local) for piece in pieces_of(code) if "." not in piece.name}
        for piece in pieces_of(code):
            top, dot, rest = piece.name.partition(".")
            name = tops[top] + dot + rest
            own = errors if local and name == local[0] else ()
            seals.setdefault(name, []).append(contract(piece, code, own))
    found = {qualify(entry.module, n): s[0] if len(s) == 1 else digest(s) for n, s in seals.items()}
    for name in entry.full_names:
        found.setdefault(name, digest(["undefined", "raises", *sorted(errors)]))
    return found
