"""Edits of source lines: the one way in which the text of a document is changed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from codegen.document.model import Document

LINE_END = re.compile(r"[\r\n]*\Z")


@dataclass(frozen=True)
class LineEdit:
    """Put `lines` (without line ends) in the place of source lines `first` to `last`; `last < first` inserts."""

    first: int
    last: int
    lines: tuple[str, ...]


def apply_edits(document: Document, edits: Iterable[LineEdit]) -> str:
    """The text with all edits made. Line numbers are those of `document`; the edits must not overlap."""
    lines = list(document.lines)
    ordered = sorted(edits, key=lambda edit: (edit.first, edit.last))
    for edit in reversed(ordered):
        old = lines[edit.first - 1 : edit.last]
        ends = [LINE_END.search(line).group() for line in old]  # type: ignore[union-attr]
        new = []
        for at, text in enumerate(edit.lines):
            end = ends[at] if at < len(ends) else document.newline
            new.append(text + (end or document.newline))
        last_line = edit.last >= len(lines)
        if old and last_line and not ends[-1] and new:
            new[-1] = new[-1].rstrip("\r\n")
        if not old and edit.first > len(lines) and lines and not LINE_END.search(lines[-1]).group():  # type: ignore[union-attr]
            lines[-1] += document.newline
        lines[edit.first - 1 : edit.last] = new
    return "".join(lines)
