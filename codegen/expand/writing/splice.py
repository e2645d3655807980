"""Put blocks into a base text. Only whole lines are added, and the author's bytes stay as they are."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from codegen.expand.planning.planned import HOLE_NAME, Planned
from codegen.expand.reading.canonical import digest_of
from codegen.expand.reading.parsing import first_line, last_line
from codegen.expand.reading.source import ending, split_lines
from codegen.expand.reading.strip import string_lines
from codegen.expand.reading.suites import characters


@dataclass(frozen=True)
class Insert:
    """Lines to put below a base line; `replaces` are the base lines whose place they take."""

    after: int
    rank: int
    lines: tuple[str, ...]
    replaces: range = range(0)


def block_lines(block: Planned, lines: Sequence[str], newline: str) -> tuple[str, ...]:
    """The text of a planned block, opening lines and end mark included."""
    generated = [f"{block.indent}{text}" for text in block.openers]
    for row in split_lines(block.code):
        text = row.rstrip("\n")
        if HOLE_NAME in text and block.statement is not None and text.strip() in (HOLE_NAME, _binding(text)):
            generated.extend(_author_lines(block, block.statement, lines, text))
        else:
            generated.append(f"{block.indent}{text}" if text else "")
    generated.append(f"{block.indent}# END {block.tag} {digest_of(block.form)}")
    return tuple(line if ending(line) else line + newline for line in generated)


def _binding(text: str) -> str:
    name, equals, hole = text.strip().partition(f" = {HOLE_NAME}")
    return f"{name} = {HOLE_NAME}" if equals and not hole and name.isidentifier() else HOLE_NAME


def _author_lines(block: Planned, statement: ast.stmt, lines: Sequence[str], text: str) -> list[str]:
    """The author's statement: with its `return` made a binding, or further indented inside a wrapper."""
    first, last = first_line(statement), last_line(statement)
    own = list(lines[first - 1 : last])
    if block.shape == "return":
        name = text.strip().partition(" = ")[0]
        begin = statement.col_offset
        head = characters(own[0], 0, begin)
        return [head + f"{name} =" + characters(own[0], begin + len("return"), None), *own[1:]]
    fixed = string_lines(statement)
    extra = text[: len(text) - len(text.lstrip())]
    return [
        line if number in fixed or not line.strip() else block.indent + extra + line.removeprefix(block.indent)
        for number, line in enumerate(own, first)
    ]


def replaced_lines(block: Planned) -> range:
    """Base lines whose place the block takes: none, but for a block with a hole."""
    if block.statement is None:
        return range(0)
    return range(first_line(block.statement), last_line(block.statement) + 1)


def splice(lines: Sequence[str], inserts: Sequence[Insert], newline: str) -> str:
    """The base text with the inserts in it; a missing newline at its end stays missing."""
    by_line: dict[int, list[Insert]] = {}
    dropped: set[int] = set()
    for insert in sorted(inserts, key=lambda each: (each.after, each.rank)):
        by_line.setdefault(insert.after, []).append(insert)
        dropped.update(insert.replaces)
    out: list[str] = []
    for number in range(len(lines) + 1):
        if number and number not in dropped:
            out.append(lines[number - 1])
        for insert in by_line.get(number, ()):
            out.extend(insert.lines)
    done = [line if ending(line) else line + newline for line in out]
    if done and lines and not ending(lines[-1]):
        done[-1] = done[-1].removesuffix(ending(done[-1]))
    return "".join(done)


def neighbour_newline(lines: Sequence[str], after: int, default: str) -> str:
    """The ending of the line above, so that a file with mixed newlines keeps its mixture."""
    return (ending(lines[after - 1]) if 0 < after <= len(lines) else "") or default
