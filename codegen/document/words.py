"""What changed between two texts, word by word: `[-gone-]` and `{+new+}`, with a line around each change."""

from __future__ import annotations

import difflib
import re

TOKEN = re.compile(r"\n|[^\S\n]+|\w+|[^\w\s]")
AROUND = 1


def word_diff(old: str, new: str) -> list[str]:
    """The lines that changed, words marked, a line around them; longer stretches that are the same become `…`."""
    before, after = TOKEN.findall(old), TOKEN.findall(new)
    parts: list[str] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            parts.append("".join(after[c:d]))
            continue
        gone, come = "".join(before[a:b]), "".join(after[c:d])
        parts.append(_marked(gone, "[-", "-]") + _marked(come, "{+", "+}"))
    lines = "".join(parts).split("\n")
    changed = [at for at, line in enumerate(lines) if "[-" in line or "{+" in line]
    shown = {near for at in changed for near in range(at - AROUND, at + AROUND + 1) if 0 <= near < len(lines)}
    found: list[str] = []
    for at, line in enumerate(lines):
        if at in shown:
            found.append(line)
        elif not found or found[-1] != "…":
            found.append("…")
    return found


def _marked(text: str, opening: str, closing: str) -> str:
    """Each line of a changed stretch in its own marks."""
    return "\n".join(f"{opening}{line}{closing}" if line.strip() else line for line in text.split("\n"))
