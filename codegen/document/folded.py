"""The folded form of a module of Section 5: one fence of stubs, what holds for all of its names, and the exceptions.

A stub is a signature and, where there are any, its annotations, the errors it raises (`raise KeyError  # when …`) and a
last line `...`. Reading gives one entry for each name: a class without its methods, each method, each function, each
constant.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from codegen.document.blocks import Block, Item
from codegen.document.contracts import Function, Piece, contract, error_names, members_of, pieces_of
from codegen.document.digests import digest
from codegen.document.model import Entry, Fence, Field, Module, Note, qualify, split_names

NOTED = ("purpose", "deps", "decisions", "errors", "tests", "phase", "waiver")
NOTE = re.compile(r"`([^\W\d][\w.]*)`\s*:\s*(.*)$", re.DOTALL)
FIELD_START = re.compile(rf"(?:^|;)\s*({'|'.join(NOTED)})\s*:\s*", re.IGNORECASE)
COMMENT = re.compile(r"#\s*(.*?)\s*$")


def read_notes(blocks: Sequence[Block]) -> dict[str, Note]:
    """The exceptions among the list items below a folded module, by name inside the module."""
    found: dict[str, Note] = {}
    for block in blocks:
        match = NOTE.match(block.text) if isinstance(block, Item) else None
        if isinstance(block, Item) and match:
            parts = FIELD_START.split(match[2])
            values = {
                name.lower(): Field(name.lower(), value.strip(), block.line, block.line_end)
                for name, value in zip(parts[1::2], parts[2::2], strict=False)
            }
            found.setdefault(match[1], Note(match[1], values, block.line, block.line_end))
    return found


def read_folded(module: Module) -> list[Entry]:
    """One entry for each name of a folded module. A fence that is not Python gives one entry, so that lint names it."""
    found: list[Entry] = []
    for fence in module.fences:
        groups: dict[str, list[Piece]] = {}
        for piece in pieces_of(fence.code):
            groups.setdefault(piece.name, []).append(piece)
        found += [_entry(module, fence, name, pieces) for name, pieces in groups.items()]
        if not groups and fence.code.strip():
            found.append(_made(module, "", (fence,), (), fence.line, digest([fence.code])))
    return found


def _entry(module: Module, fence: Fence, name: str, pieces: list[Piece]) -> Entry:
    """The entry of one name; a property with its setter and overloads are one."""
    first, last = min(piece.first for piece in pieces), max(piece.last for piece in pieces)
    part = Fence(fence.language, _slice(fence, pieces, first, last), fence.line + first - 1, fence.line + last)
    errors = tuple(error for piece in pieces for error in _errors(piece, fence))
    seals = [contract(piece, fence.code, error_names(errors)) for piece in pieces]
    seal = seals[0] if len(seals) == 1 else digest(seals)
    return _made(module, name, (part,), errors, fence.line + pieces[0].node.lineno, seal)


def _made(module: Module, name: str, fences: tuple[Fence, ...], errors: tuple[str, ...], line: int, seal: str) -> Entry:
    note = module.notes.get(name)
    fields = {**module.fields, **(note.fields if note else {})}

    def value(field: str) -> str:
        return fields[field].value if field in fields else ""

    full = qualify(module.name, name)
    return Entry(
        id=full,
        number=module.id,
        module=module.name,
        name=name or module.name,
        names=(name or module.name,),
        title=f"`{name or module.name}`",
        purpose=value("purpose") or module.purpose,
        deps=split_names(value("deps")),
        decisions=split_names(value("decisions")),
        errors=(*errors, *split_names(value("errors"), ";")),
        tests=value("tests"),
        code="".join(fence.code for fence in fences),
        code_line=fences[0].line + 1,
        fences=fences,
        fields=fields,
        full_specification=False,
        line=line,
        line_end=fences[-1].line_end,
        digest=seal,
        folded=True,
        contracts={full: seal},
    )


def _slice(fence: Fence, pieces: list[Piece], first: int, last: int) -> str:
    """The lines of a name, dedented, what is not its own left blank so that lines keep their places."""
    lines = fence.code.split("\n")
    kept = {at for piece in pieces for at in piece.lines}
    members = [each for piece in pieces for each in members_of(piece, fence.code)]
    gone = {at for each in members for at in each.lines}
    shown = [lines[at - 1] if at in kept - gone else "" for at in range(first, last + 1)]
    for piece in pieces:
        if isinstance(piece.node, ast.ClassDef) and members and _is_bare(piece.node):
            shown[members[0].first - first] = " " * (piece.node.col_offset + 4) + "..."
    return textwrap.dedent("\n".join(shown)) + "\n"


def _is_bare(node: ast.ClassDef) -> bool:
    """Whether a class has nothing but methods and classes in it."""
    return all(isinstance(each, Function | ast.ClassDef) for each in node.body)


def _errors(piece: Piece, fence: Fence) -> Iterator[str]:
    """The `raise` lines of a stub, each with the comment behind it: "KeyError when there is no such rank"."""
    if not isinstance(piece.node, Function | ast.ClassDef):
        return
    lines = fence.code.split("\n")
    for node in piece.node.body:
        if isinstance(node, ast.Raise) and node.exc is not None:
            comment = COMMENT.search(lines[node.lineno - 1])
            name = ast.unparse(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
            yield f"{name} {comment[1]}" if comment else name


def module_lines(
    number: str,
    module: str,
    purpose: str,
    fields: Mapping[str, str],
    code: str,
    notes: Mapping[str, Mapping[str, str]],
) -> list[str]:
    """A folded module as lines of Markdown, without a blank line at its end. `code` is the text of the fence."""
    lines = [f"### {number} `{module}`", ""]
    if purpose:
        lines += [purpose, ""]
    said = [f"- {name}: {value}" for name, value in fields.items() if value]
    if said:
        lines += [*said, ""]
    lines += ["```python", *code.strip("\n").split("\n"), "```"]
    extra = list(note_lines(notes))
    return [*lines, "", *extra] if extra else lines


def note_lines(notes: Mapping[str, Mapping[str, str]]) -> Iterable[str]:
    """The exceptions as list items, by name."""
    for name, values in sorted(notes.items()):
        said = "; ".join(f"{field}: {value}" for field, value in values.items() if value)
        if said:
            yield f"- `{name}`: {said}"
