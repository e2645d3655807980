"""The managed block in a context file (AGENTS.md, IFLOW.md, …): the rest of the file is the person's.

The block is between two comment lines, each once. Whatever is outside of them keeps its bytes.
"""

from __future__ import annotations

from pathlib import Path

from codegen.diagnostics import UsageError

BEGIN = "<!-- codegen: managed block -->"
END = "<!-- codegen: end of the managed block -->"


def block_of(text: str, path: Path) -> str | None:
    """What is between the marks, with LF; None where there is no block. UsageError: the marks do not pair."""
    found = _span(text, path)
    return None if found is None else text[found[0] : found[1]].replace("\r\n", "\n")


def with_block(text: str, block: str, path: Path) -> str:
    """The text with the block replaced, or added at the end."""
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    found = _span(text, path)
    body = block.replace("\n", newline)
    if found is not None:
        return text[: found[0]] + body + text[found[1] :]
    gap = "" if not text else newline if text.endswith(("\n\n", "\r\n\r\n")) else newline * 2
    if text.endswith("\n"):
        gap = "" if text.endswith(("\n\n", "\r\n\r\n")) else newline
    return f"{text}{gap}{BEGIN}{newline}{body}{END}{newline}"


def without_block(text: str, path: Path) -> str:
    """The text without marks, block and the blank line before them."""
    found = _span(text, path)
    if found is None:
        return text
    before = text[: text.rindex(BEGIN, 0, found[0])]
    after = text[text.index(END, found[1]) + len(END) :].removeprefix("\r").removeprefix("\n")
    for newline in ("\r\n", "\n"):
        if before.endswith(newline * 2):
            return before[: -len(newline)] + after
    return before + after


def _span(text: str, path: Path) -> tuple[int, int] | None:
    """Where the block's own lines begin and end."""
    begins, ends = text.count(BEGIN), text.count(END)
    if not begins and not ends:
        return None
    start = text.find(BEGIN)
    line = text[: max(start, 0)].count("\n") + 1
    if begins != 1 or ends != 1 or text.find(END) < start:
        fix = "keep each once and in order, or remove both with what is between them"
        raise UsageError(f"{path}:{line}: the marks of the managed block do not pair ({begins} and {ends}); {fix}")
    first = text.find("\n", start) + 1
    return first, text.find(END)
