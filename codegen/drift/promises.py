"""Which validations a definition carries: its `# VAL:` and `# AST:` annotations, in a form that can be compared.

The notation is read by the expander's own grammar. Arguments are compared as code (`min=0,max=7` is `min=0, max=7`);
the note after ` - ` is not compared, nor are prose and the openings of remote sites, which an annotation elsewhere
asked for. An annotation belongs to the innermost function or class around it, one above a definition to that
definition.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace

from codegen.drift.signatures import Definition
from codegen.expand.reading.comments import read_layout
from codegen.expand.reading.grammar import Item
from codegen.expand.reading.marks import EndMark, Marks, Opener

TAGS = ("VAL", "AST")
_MARKS = Marks(TAGS)


@dataclass(frozen=True)
class Promise:
    """One annotated validation as `VAL: VAL_INT_RANGE(min=0, max=7)`, and the lines of its annotation."""

    text: str
    line: int
    last_line: int


@dataclass(frozen=True)
class Annotated:
    """Annotations and managed blocks of one text."""

    promises: dict[str, tuple[Promise, ...]]
    managed: tuple[range, ...]

    def is_managed(self, line: int) -> bool:
        """Whether a line stands between an annotation and its end mark."""
        return any(line in block for block in self.managed)


def read_promises(text: str, definitions: Iterable[Definition]) -> Annotated:
    """The promises of every definition of `text`, by qualified name; "" holds those outside all definitions.

    The text must be valid Python.
    """
    if not _MARKS.prefilter.search(text.encode()):
        return Annotated({}, ())
    lines = text.split("\n")
    owners = sorted(
        (replace(each, end_line=_last_comment(lines, each)) for each in definitions),
        key=lambda each: (each.line, -each.end_line),
    )
    promises: dict[str, list[Promise]] = {}
    managed: list[range] = []
    opened: Opener | None = None
    for mark in _MARKS.find(read_layout([f"{line}\n" for line in lines]).comments):
        if isinstance(mark, EndMark) and opened:
            managed.append(range(opened.last_line + 1, mark.line))
            opened = None
        elif isinstance(mark, Opener):
            opened = mark
            if mark.place is None and mark.notation is not None:
                owner = _owner(owners, mark.line, mark.last_line)
                promises.setdefault(owner, []).extend(
                    Promise(_normal(item), mark.line, mark.last_line) for item in mark.notation.items
                )
    return Annotated({name: tuple(found) for name, found in promises.items()}, tuple(managed))


def _normal(item: Item) -> str:
    return f"{item.tag}: {ast.unparse(ast.parse(item.source, mode='eval'))}"


def _owner(owners: list[Definition], line: int, last_line: int) -> str:
    inside = [each for each in owners if each.line <= line <= each.end_line]
    if inside and inside[-1].kind == "function":
        return inside[-1].name
    for each in owners:
        first = min([each.line, *(decorator.lineno for decorator in each.node.decorator_list)])
        if last_line + 1 == first or first <= line < each.line:
            return each.name
    return inside[-1].name if inside else ""


def _last_comment(lines: list[str], definition: Definition) -> int:
    """The last line of a definition with the comments that close it: the parser ends at its last statement."""
    last = definition.end_line
    for at in range(last, len(lines)):
        stripped = lines[at].lstrip()
        indent = len(lines[at]) - len(stripped)
        if stripped and not (stripped.startswith("#") and indent > definition.node.col_offset):
            break
        if stripped:
            last = at + 1
    return last
