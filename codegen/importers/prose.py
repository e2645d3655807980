"""Foreign text inside a design document: its words stay, what our grammar would read as structure does not.

Headings become bold lines, rules go, words in angle brackets become code, and an item that looks like a goal or a to-do
of ours loses that look.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)$")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$")
_RULE = re.compile(r"\s{0,3}([-*_=])(\s*\1){2,}\s*$")
_ANGLE = re.compile(r"<[a-zA-Z/!][^<>`\n]{0,80}>")
_OPENING = re.compile(r"(?<!\\)<(?=[a-zA-Z/!?])")
_SPAN = re.compile(r"(`+[^`]*`+)")
_OURS = re.compile(r"(\s*[-*+]\s+)(\*{0,2}[GT]-\d+)")


def prose(text: str) -> str:
    """A piece of foreign Markdown that may be put below any heading of a document, without blank lines around it."""
    lines: list[str] = []
    fence = ""
    for line in text.replace("\r\n", "\n").expandtabs(4).split("\n"):
        before, fence = fence, fence_after(fence, line)
        if not fence and not before:
            if _RULE.match(line):
                line = ""
            elif heading := _HEADING.match(line):
                line = f"**{_bare(heading[1])}**"
            line = _OURS.sub(r"\1\\\2", _quiet(line))
        blank = not line.strip()
        if not (blank and lines and not lines[-1]) or fence:
            lines.append(line.rstrip())
    if fence:
        lines.append(fence)
    return _spaced("\n".join(lines).strip("\n"))


def fence_after(fence: str, line: str) -> str:
    """The mark of the fence that is open behind a line, given the one open before it; "" for none."""
    mark = _FENCE.match(line)
    if not mark:
        return fence
    if not fence:
        return mark[1]
    return "" if mark[1].startswith(fence) and not mark[2].strip() else fence


def one_line(text: str) -> str:
    """A text as one line for a field, a list item or a table cell."""
    words = " ".join(_quiet(line) for line in text.replace("\r\n", "\n").split("\n") if not _FENCE.match(line))
    return " ".join(words.split())


def quote(text: str) -> str:
    """A text as a block quote: nothing in it is structure."""
    return "\n".join(f"> {line}".rstrip() for line in prose(text).split("\n"))


def uncoded(text: str) -> str:
    """The text without backticks: no command is read out of it."""
    return text.replace("`", "'")


def _bare(title: str) -> str:
    return title.replace("**", "").strip() or "…"


def _quiet(line: str) -> str:
    """What is in angle brackets as code, and a lone bracket escaped: either would begin raw HTML."""
    pieces = [piece if piece.startswith("`") else _ANGLE.sub(_coded, piece) for piece in _SPAN.split(line)]
    pieces = _SPAN.split("".join(pieces))
    return "".join(piece if piece.startswith("`") else _OPENING.sub(r"\\<", piece) for piece in pieces)


def _coded(match: re.Match[str]) -> str:
    return f"`{match.group()}`"


def _spaced(text: str) -> str:
    """A blank line between a bold heading and what follows or precedes it, and before a table."""
    return re.sub(r"(?m)^(\*\*[^*\n]+\*\*)\n(?=\S)", r"\1\n\n", text)
