"""Take hand-written checks under management: their lines go, their messages become notes of the annotations."""

from __future__ import annotations

import ast
import textwrap

from codegen.expand.judging.adopt import Twin, message_of, twin_of
from codegen.expand.judging.compare import unpaired
from codegen.expand.planning.planned import Planned
from codegen.expand.planning.state import Plan
from codegen.expand.reading.file import Reading
from codegen.expand.reading.marks import Opener
from codegen.expand.reading.parsing import first_line, suites_of
from codegen.expand.reading.source import ending

NARROWEST = 40


def adopted_text(reading: Reading, plan: Plan, width: int) -> str | None:
    """The file's text without the hand-written checks that planned blocks make; None when there are none."""
    found: list[tuple[Planned, Twin]] = []
    taken: set[int] = set()
    for planned in unpaired(reading, plan):
        twin = twin_of(planned, reading.base_tree, reading.base_layout.comments)
        if twin is not None and not twin.difference and not taken & set(twin.lines):
            taken.update(twin.lines)
            found.append((planned, twin))
    if not found:
        return None
    lines: list[str | None] = list(reading.source.lines)
    origin = reading.base.origin
    for _, twin in found:
        for line in twin.lines:
            lines[origin[line - 1] - 1] = None
    for line in _emptied(reading.base_tree, [twin for _, twin in found]):
        text = reading.base.lines[line - 1]
        lines[origin[line - 1] - 1] = f"{text[: len(text) - len(text.lstrip())]}pass{ending(text)}"
    for planned, twin in found:
        opener = planned.annotations[0]
        said = message_of(twin.statements)
        if said == message_of(ast.parse(planned.code).body):
            continue  # It is the pattern's own message: the end mark of a generated block was lost.
        notation = opener.notation
        if said and notation is not None and notation.note is None:
            at = origin[opener.last_line - 1] - 1
            lines[at] = _noted(reading.source.lines[at], opener, said, width)
    return "".join(line for line in lines if line is not None)


def _noted(line: str, opener: Opener, note: str, width: int) -> str:
    """The annotation's last line with the note behind it; hanging lines below take what does not fit."""
    end = ending(line)
    whole = f"{line.removesuffix(end)} - {note}"
    if len(whole) <= width or not opener.comment.own_line:
        return whole + end
    margin = whole[: len(whole) - len(whole.lstrip())]
    room = max(width - len(margin), NARROWEST)
    rows = textwrap.wrap(whole.strip(), room, subsequent_indent="#   ", break_long_words=False, break_on_hyphens=False)
    return "".join(f"{margin}{row}{end}" for row in rows)


def _emptied(tree: ast.Module, twins: list[Twin]) -> list[int]:
    """The first line of each suite of which nothing would be left: it needs a statement."""
    gone = {id(statement) for twin in twins for statement in twin.statements}
    found: list[int] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        for owner, suite in suites_of(node):
            if not isinstance(owner, ast.Module) and all(id(statement) in gone for statement in suite):
                found.append(first_line(suite[-1]))
            waiting.extend(suite)
    return found
