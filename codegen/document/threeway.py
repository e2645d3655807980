"""Two branches of a document merged by what its parts are, where git sees only lines that lie side by side.

A part is a heading with the text up to the next one, known by its title without the number and by the titles above it.
What one branch changed, added or took out is taken; what both added is kept from both, ours first; a part that both
changed is merged line by line. What cannot be decided keeps git's conflict marks, for lint to name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse

from codegen.document.model import Document

_NUMBER = re.compile(r"(?:[\d.]+\s+|Step \d+:\s*|D-\d+:\s*)")
_DIARY = "Iteration log"
_DRAWN = ("<!-- codegen:graph -->", "<!-- codegen:end -->")
Key = tuple[str, ...]
_Change = tuple[int, int, Sequence[str]]


def merged(base: Document, ours: Document, theirs: Document) -> str:
    """The text of both branches. The drawing of the plan is ours where both drew it; `codegen plan` draws it again."""
    old, mine, other = (_parts(document) for document in (base, ours, theirs))
    lines: list[str] = []
    for key in _order(old, mine, other):
        lines += _part(old.get(key), mine.get(key), other.get(key), diary=key[-1:] == (_DIARY,))
    return "".join(lines)


def _parts(document: Document) -> dict[Key, list[str]]:
    """The lines of each part, in order; a title that a part has twice below one heading is told apart by its count."""
    starts: list[tuple[int, Key]] = [(1, ())]
    path: list[tuple[int, str]] = []
    seen: set[Key] = {()}
    for heading in document.headings:
        path = [each for each in path if each[0] < heading.level]
        path.append((heading.level, _NUMBER.sub("", heading.text, count=1).strip()))
        key = tuple(text for _, text in path)
        while key in seen:
            key = (*key, "again")
        seen.add(key)
        starts.append((heading.line, key))
    ends = [line for line, _ in starts[1:]] + [len(document.lines) + 1]
    text = [line if line.endswith("\n") else f"{line}\n" for line in document.lines]
    return {key: _undrawn(text[line - 1 : end - 1]) for (line, key), end in zip(starts, ends, strict=True)}


def _undrawn(lines: Sequence[str]) -> list[str]:
    """Lines, the drawing of a plan as one of them: it is made by the tool and has no parts of its own."""
    found: list[str] = []
    inside = False
    for line in lines:
        if inside:
            found[-1] += line
        else:
            found.append(line)
        inside = (inside or line.strip() == _DRAWN[0]) and line.strip() != _DRAWN[1]
    return found


def _is_drawn(line: str) -> bool:
    return line.strip().startswith(_DRAWN[0])


def _order(old: Mapping[Key, object], mine: Mapping[Key, object], other: Mapping[Key, object]) -> list[Key]:
    """All keys of both branches: ours as they are, what they added behind what it follows there and what we added."""
    found = list(mine)
    previous: Key | None = None
    for key in other:
        if key not in mine:
            at = found.index(previous) + 1 if previous is not None else 0
            while at < len(found) and found[at] not in old and found[at] not in other and len(found[at]) >= len(key):
                at += 1
            found.insert(at, key)
        previous = key
    return found


def _part(old: list[str] | None, mine: list[str] | None, other: list[str] | None, diary: bool) -> list[str]:
    if mine == other or other == old:
        return mine or []
    if mine == old:
        return other or []
    if mine and other and [*filterfalse(_is_drawn, mine)] == [*filterfalse(_is_drawn, other)]:
        return mine
    if old is None or mine is None or other is None:
        return _marked(mine or [], other or [])
    return list(_lines(old, mine, other, diary))


@dataclass
class _Range:
    """A stretch of the old lines that changes of one or both branches touch."""

    start: int
    end: int
    mine: list[_Change]
    other: list[_Change]


def _lines(old: list[str], mine: list[str], other: list[str], diary: bool) -> Iterator[str]:
    """Lines that both changed are kept from both where they are a `diary`."""
    at = 0
    for each in _ranges(_changes(old, mine), _changes(old, other)):
        yield from old[at : each.start]
        ours, theirs = (_with(old, each, changes) for changes in (each.mine, each.other))
        if not each.other or ours == theirs:
            yield from ours
        elif not each.mine:
            yield from theirs
        elif each.start == each.end or diary:
            yield from (*ours, *theirs)
        elif all(map(_is_drawn, (*ours, *theirs))):
            yield from ours
        else:
            yield from _marked(ours, theirs)
        at = each.end
    yield from old[at:]


def _changes(old: list[str], new: list[str]) -> list[_Change]:
    matcher = difflib.SequenceMatcher(None, _names(old), _names(new), autojunk=False)
    return [(i, k, new[j:m]) for tag, i, k, j, m in matcher.get_opcodes() if tag != "equal"]


def _names(lines: list[str]) -> list[str]:
    """Lines as they are compared: a heading without its number, which the tool counts."""
    return [re.sub(r"^(#+ )" + _NUMBER.pattern, r"\1", line) for line in lines]


def _ranges(mine: list[_Change], other: list[_Change]) -> list[_Range]:
    """The changes of both, those that overlap as one; insertions at one place overlap."""
    found: list[_Range] = []
    both = sorted([(c, True) for c in mine] + [(c, False) for c in other], key=lambda each: (each[0][0], each[0][1]))
    for change, is_mine in both:
        start, end, _ = change
        last = found[-1] if found else None
        touches = last is not None and (start < last.end or (start == end == last.start == last.end))
        if last is None or not touches:
            last = _Range(start, end, [], [])
            found.append(last)
        last.end = max(last.end, end)
        (last.mine if is_mine else last.other).append(change)
    return found


def _with(old: list[str], within: _Range, changes: list[_Change]) -> list[str]:
    found: list[str] = []
    at = within.start
    for start, end, new in changes:
        found += [*old[at:start], *new]
        at = end
    return [*found, *old[at : within.end]]


def _marked(mine: Sequence[str], other: Sequence[str]) -> list[str]:
    return ["<<<<<<< ours\n", *mine, "=======\n", *other, ">>>>>>> theirs\n"]
