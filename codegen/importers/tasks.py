"""Task lists below headings, as both tools keep them: `- [x] T012 [P] [US1] text`, `- [ ] 1.2 text`.

People and models write boxes in every way there is, so every item below a heading of tasks is a task, with a box or
without, and only a mark that everybody reads as done is done: a lost task, or one that is done by a typing error, would
make the step look finished.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from codegen.document.blocks import Item, read_blocks
from codegen.importers.prose import one_line
from codegen.importers.sections import Part

# A letter or digit other than x is a label of the tool (`[P]`, `[1]`), not a mark in a box.
_BOX = re.compile(r"\[\s*(?P<mark>[xX]|[^\w\s\[\]]|)\s*\](?!\()\s*(?P<text>.+)$", re.DOTALL)
_DONE = frozenset("xX✓✔☑✅")
_HEADING = re.compile(r"(phase\b|step\b|tasks?\b|implementation\b|user story\b|\d+(\.\d+)*[.):]?\s)", re.IGNORECASE)
_BARE_BOX = re.compile(r"\s*\[\s*[xX]?\s*\]\s*\S")
_IDENT = re.compile(r"(?:\*\*)?(?P<id>T\d{1,4}[a-z]?|\d+(?:\.\d+)+[a-z]?)(?:\*\*)?[.:)]?\s+")
_PATH = re.compile(r"(?<![\w/.:@-])(?:[\w.-]+/)+[\w.-]*\w\.\w{1,8}(?![\w/])|`([\w.-]+\.[a-z]{1,5})`")
_ADDRESS = re.compile(r"\bhttps?://\S+|\b\w+\.(com|org|io|dev|net)/\S*")


@dataclass(frozen=True)
class Task:
    """One item. `id` is the tool's own, "" where it has none."""

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
    """A heading with tasks below it. `depends` are the groups it waits for, counted from 1."""

    title: str
    purpose: str
    checkpoint: str
    check: str
    tasks: tuple[Task, ...]
    depends: tuple[int, ...] = ()

    @property
    def status(self) -> str:
        """DONE when all tasks are done, IN_PROGRESS when some are."""
        done = sum(task.done for task in self.tasks)
        if self.tasks and done == len(self.tasks):
            return "DONE"
        return "IN_PROGRESS" if done else "NOT_STARTED"

    @property
    def files(self) -> list[str]:
        """Files that the tasks name, each once."""
        return list(dict.fromkeys(path for task in self.tasks for path in task.paths))


def tasks_of(text: str) -> tuple[Task, ...]:
    """The items of all lists in a text, in order; items in fences are examples and do not count.

    A nested item with a box is a task of its own; one without belongs to the text of the item around it. An item
    without a box around items with one is their heading.
    """
    found: list[Task] = []
    for block in read_blocks(text):
        if isinstance(block, Item):
            boxed = [piece for piece in block.nested if _BOX.match(piece.strip())]
            notes = [piece for piece in block.nested if piece not in boxed]
            if not boxed or _BOX.match(block.text.strip()):
                found.append(_task("; ".join([block.text, *notes])))
            found += map(_task, boxed)
    return tuple(found)


def groups_of(parts: list[Part]) -> list[tuple[Part, tuple[Task, ...]]]:
    """The parts of level 2 that hold tasks, or of level 3 where level 2 has none, or the whole text."""
    for level in (2, 3, 1, 0):
        found = [(part, tasks_of(part.whole)) for part in parts if part.level == level and _of_tasks(part)]
        kept = [(part, tasks) for part, tasks in found if tasks]
        if kept:
            return kept
    return []


def not_read(used: Iterable[Part], name: str) -> list[str]:
    """Lines below headings of tasks that look like a task and are no item of a list, as to-dos with their place."""
    found: list[str] = []
    for part in used:
        for at, line in enumerate(part.whole.split("\n"), part.line + 1):
            if _BARE_BOX.match(line):
                found.append(f"take over by hand what {name}:{at} says, it is no item of a list: {one_line(line)}")
    return found


def needs(tasks: Iterable[Task], place: dict[str, int]) -> set[int]:
    """The groups of the tasks that these tasks name: "(depends on T012)"."""
    found: set[int] = set()
    for task in tasks:
        for words in re.findall(r"depends on ([^)]*)", task.text, re.IGNORECASE):
            found |= {place[ident] for ident in re.findall(r"T\d{1,4}|\d+\.\d+", words) if ident in place}
    return found


def _of_tasks(part: Part) -> bool:
    """Whether items below the heading are tasks: it says so, or one of them has a box."""
    if part.level and _HEADING.match(part.title):
        return True
    pieces = (piece for block in read_blocks(part.whole) if isinstance(block, Item) for piece in _pieces(block))
    return any(_BOX.match(piece.strip()) for piece in pieces)


def _pieces(item: Item) -> list[str]:
    return [item.text, *item.nested]


def _task(text: str) -> Task:
    match = _BOX.match(text.strip())
    words = match["text"] if match else text.strip()
    ident = _IDENT.match(words)
    rest = words[ident.end() :] if ident else words
    return Task(ident["id"] if ident else "", one_line(rest), match is not None and match["mark"] in _DONE)
