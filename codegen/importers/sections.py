"""Read foreign Markdown: its headings as a tree, its lists, its `**Label**: text` paragraphs.

What is in a fence is never structure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from codegen.document.blocks import HeadingBlock, Item, read_blocks, split_lines
from codegen.document.parse import read_text
from codegen.importers.prose import fence_after

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LABEL = re.compile(
    r"\s{0,3}(?:[-*+]\s+)?(?:\*\*(?P<bold>[^*\n]{2,60}?)(?::\*\*|\*\*\s*:)|(?P<bare>[A-Z][a-z]+(?: [a-z]+)?):)\s*"
)
_RULE = re.compile(r"\s{0,3}([-*_])(\s*\1){2,}\s*$")


@dataclass(frozen=True)
class Part:
    """A heading, its number of `#`, and the text below it up to the next heading, and up to the next of its level.
    `line` is the heading's line in the file, 0 for what comes before any."""

    level: int
    title: str
    own: str
    whole: str
    line: int = 0


def read_parts(path: Path) -> list[Part]:
    """The parts of a file in order; the first has level 0 and holds what comes before any heading. [] for no file."""
    # A comment leaves its line ends, so that lines keep their numbers.
    return (
        parts_of(_COMMENT.sub(lambda found: "\n" * found[0].count("\n"), read_text(path).replace("\r\n", "\n")))
        if path.is_file()
        else []
    )


def parts_of(text: str) -> list[Part]:
    """The parts of a text, without its front matter."""
    lines = split_lines(text)
    skipped = 0
    if lines and lines[0].strip() == "---":
        end = next((at for at, line in enumerate(lines[1:], 1) if line.strip() == "---"), -1)
        skipped = end + 1
        lines = lines[skipped:]
    text = "".join(lines)
    headings = [block for block in read_blocks(text) if isinstance(block, HeadingBlock)]
    parts = [Part(0, "", "".join(lines[: headings[0].line - 1 if headings else len(lines)]), text)]
    for at, heading in enumerate(headings):
        following = headings[at + 1].line - 1 if at + 1 < len(headings) else len(lines)
        after = next((h.line - 1 for h in headings[at + 1 :] if h.level <= heading.level), len(lines))
        parts.append(
            Part(
                heading.level,
                heading.text.strip(),
                "".join(lines[heading.line_end : following]),
                "".join(lines[heading.line_end : after]),
                skipped + heading.line_end,
            )
        )
    return parts


def find(parts: list[Part], *titles: str) -> Part | None:
    """The first part whose title begins with one of these, or has it in brackets behind a translation."""
    wanted = tuple(title.lower() for title in titles)
    for part in parts:
        names = (part.title.lower(), part.title.lower().partition("(")[2].strip())
        if part.level and any(name.startswith(wanted) for name in names):
            return part
    return None


def rest_of(parts: list[Part], used: Iterable[Part | None]) -> list[tuple[str, str]]:
    """(title, text) of what is below none of the used parts, in pieces as large as can be; the head is left out."""
    taken = {id(part) for part in used}
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(parts):
        part = parts[at]
        end = next((i for i in range(at + 1, len(parts)) if parts[i].level <= part.level), len(parts))
        if part.level and id(part) in taken:
            at = end
            continue
        whole = part.level > 1 and not any(id(each) in taken for each in parts[at:end])
        text = without_rules(part.whole if whole else part.own).strip()
        if part.level > 1 and text:
            found.append((part.title, text))
        at = end if whole else at + 1
    return found


def others_in(folder: Path, known: Iterable[str]) -> list[str]:
    """Files of a folder that an importer does not read, as a to-do; hidden ones aside."""
    names = {path.name + "/" * path.is_dir() for path in folder.iterdir() if not path.name.startswith(".")}
    left = sorted(names - set(known))
    return [f"take over what is worth it from {', '.join(left)}: not imported"] if left else []


def children(parts: list[Part], parent: Part) -> list[Part]:
    """The parts one level below a part (its nearest lower level)."""
    at = parts.index(parent)
    below: list[Part] = []
    for part in parts[at + 1 :]:
        if part.level <= parent.level:
            break
        below.append(part)
    level = min((part.level for part in below), default=0)
    return [part for part in below if part.level == level]


def items(text: str) -> list[str]:
    """The items of the outermost lists, each as one line; nested items follow their own after a semicolon."""
    found: list[str] = []
    for block in read_blocks(text):
        if isinstance(block, Item):
            found.append("; ".join(" ".join(piece.split()) for piece in [block.text, *block.nested] if piece.strip()))
    return found


def labels(text: str) -> dict[str, str]:
    """`**Label**: text` and `- Label: text` by lower-case label; a text goes on to the next label, rule or heading."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in _outside_fences(text):
        match = _LABEL.match(line)
        if match:
            current = [line[match.end() :]]
            found.setdefault((match["bold"] or match["bare"]).strip().lower(), current)
        elif _RULE.match(line) or line.startswith("#"):
            current = None
        elif current is not None:
            current.append(line)
    return {label: "\n".join(lines).strip() for label, lines in found.items()}


def without_rules(text: str) -> str:
    """The text without horizontal rules."""
    return "\n".join(line for line in text.split("\n") if not _RULE.match(line))


def _outside_fences(text: str) -> Iterator[str]:
    fence = ""
    for line in text.split("\n"):
        before, fence = fence, fence_after(fence, line)
        if not fence and not before:
            yield line
