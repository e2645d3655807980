"""Task lists with boxes below headings, as both tools keep them: `- [x] T012 [P] [US1] text`, `- [ ] 1.2 text`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from codegen.document.blocks import Item, read_blocks
from codegen.importers.prose import one_line
from codegen.importers.sections import Part

_BOX = re.compile(r"\[(?P<box>[ xX~-])\]\s+(?P<text>.+)$", re.DOTALL)
_IDENT = re.compile(r"(?:\*\*)?(?P<id>T\d{1,4}[a-z]?|\d+(?:\.\d+)+[a-z]?)(?:\*\*)?[.:)]?\s+")
_PATH = re.compile(r"(?<![\w/.:@-])(?:[\w.-]+/)+[\w.-]*\w\.\w{1,8}(?![\w/])|`([\w.-]+\.[a-z]{1,5})`")
_ADDRESS = re.compile(r"\bhttps?://\S+|\b\w+\.(com|org|io|dev|net)/\S*")


@dataclass(frozen=True)
class Task:
    """One box. `id` is the tool's own, "" where it has none."""

    id: str
    text: str
    done: bool

    @property
    def paths(self) -> list[str]:
        """Files that the text names."""
        text = _ADDRESS.sub(" ", self.text)
        return [match[1] or match[0] for match in _PATH.finditer(text) if "[" not in match[0] and ".." not in match[0]]

    @property
    def line(self) -> str:
        """The task as an item of a list, its id and tick kept."""
        return f"[{'x' if self.done else ' '}] {f'{self.id} ' if self.id else ''}{self.text}"


@dataclass(frozen=True)
class Group:
    """A heading with boxes below it. `numbers` are the groups it waits for, counted from 1."""

    title: str
    purpose: str
    checkpoint: str
    check: str
    tasks: tuple[Task, ...]
    depends: tuple[int, ...] = ()

    @property
    def status(self) -> str:
        """DONE when all boxes are ticked, IN_PROGRESS when some are."""
        done = sum(task.done for task in self.tasks)
        if self.tasks and done == len(self.tasks):
            return "DONE"
        return "IN_PROGRESS" if done else "NOT_STARTED"

    @property
    def files(self) -> list[str]:
        """Files that the tasks name, each once."""
        return list(dict.fromkeys(path for task in self.tasks for path in task.paths))


def tasks_of(text: str) -> tuple[Task, ...]:
    """The boxes in a text, in order, nested ones included; boxes in fences are examples and do not count."""
    found: list[Task] = []
    for block in read_blocks(text):
        if isinstance(block, Item):
            found += [task for piece in (block.text, *block.nested) if (task := _task(piece))]
    return tuple(found)


def groups_of(parts: list[Part]) -> list[tuple[Part, tuple[Task, ...]]]:
    """The parts of level 2 that hold boxes, or of level 3 where level 2 has none, or the whole text."""
    for level in (2, 3, 1, 0):
        found = [(part, tasks_of(part.whole)) for part in parts if part.level == level]
        kept = [(part, tasks) for part, tasks in found if tasks]
        if kept:
            return kept
    return []


def needs(tasks: Iterable[Task], place: dict[str, int]) -> set[int]:
    """The groups of the tasks that these tasks name: "(depends on T012)"."""
    found: set[int] = set()
    for task in tasks:
        for words in re.findall(r"depends on ([^)]*)", task.text, re.IGNORECASE):
            found |= {place[ident] for ident in re.findall(r"T\d{1,4}|\d+\.\d+", words) if ident in place}
    return found


def _task(text: str) -> Task | None:
    match = _BOX.match(text.strip())
    if not match:
        return None
    words = match["text"]
    ident = _IDENT.match(words)
    rest = words[ident.end() :] if ident else words
    return Task(ident["id"] if ident else "", one_line(rest), match["box"] in "xX")
