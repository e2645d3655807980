"""Section 5 beside the code, method by method, and the reviewer's word on it.

The word is a field of the step in the document: `- review: approved by NAME on DATE, digest 1a2b3c4d`. The digest is
over the step's files as they lay in the working tree and over its entries; when either changes, the review is void.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.drift.code import Code, Place
from codegen.drift.section import Documented, documented_definitions, place_of
from codegen.workflow.git import Git
from codegen.workflow.ledger import today
from codegen.workflow.target import Target
from codegen.workflow.verify import python_files

FIELD = "review"
_RECORD = re.compile(r"approved by (?P<reviewer>.+) on (?P<date>\d{4}-\d\d-\d\d), digest (?P<digest>[0-9a-f]{8})$")
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(?P<start>\d+)(?:,(?P<count>\d+))? @@")


@dataclass(frozen=True)
class MethodReview:
    """One definition: what Section 5 says, and what changed in the code since HEAD where it stands now."""

    name: str
    section: str
    documented: str
    place: str
    diff: str


@dataclass(frozen=True)
class Record:
    """A recorded review. `valid` says whether it is about what lies there now."""

    reviewer: str
    date: str
    valid: bool


def method_reviews(target: Target, git: Git) -> list[MethodReview]:
    """Everything the step's entries define, in order."""
    code = Code(target.root)
    wanted = {entry.id for entry in target.entries}
    hunks: dict[str, list[tuple[range, str]]] = {}
    found: list[MethodReview] = []
    for documented in documented_definitions(target.document)[0]:
        if documented.entry.id not in wanted or _is_member(documented):
            continue
        place = place_of(documented, code)
        shown, diff = "", "not in the code"
        if place:
            if place.module.shown not in hunks:
                hunks[place.module.shown] = list(_hunks(target, git, place.module.shown))
            shown, diff = place.where, _diff_of(place, hunks[place.module.shown])
        fence = "\n".join(_fence_part(documented))
        found.append(MethodReview(documented.full_name, documented.entry.number, fence, shown, diff))
    return found


def review_digest(target: Target) -> str:
    """Eight hex digits over the step's files and its entries."""
    seal = hashlib.sha256()
    for path in sorted({*python_files(target), *_other_files(target)}):
        seal.update(path.encode() + b"\0" + hashlib.sha256((target.root / path).read_bytes()).digest())
    for entry in target.entries:
        seal.update(f"{entry.id} {entry.digest}\0".encode())
    return seal.hexdigest()[:8]


def record_text(target: Target, reviewer: str) -> str:
    """The value of the `review:` field for an approval today."""
    return f"approved by {reviewer} on {today()}, digest {review_digest(target)}"


def recorded(target: Target) -> Record | None:
    """The step's recorded review, None where there is none that can be read."""
    field = target.step.fields.get(FIELD)
    match = _RECORD.match(field.value) if field else None
    if match is None:
        return None
    return Record(match["reviewer"], match["date"], match["digest"] == review_digest(target))


def _other_files(target: Target) -> Iterator[str]:
    for path in target.step.files:
        if (target.root / path).is_file():
            yield path


def _is_member(documented: Documented) -> bool:
    """Whether it is shown inside its class already."""
    return "." in documented.key


def _fence_part(documented: Documented) -> tuple[str, ...]:
    node = documented.definition.node
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    annotations = documented.annotated.promises.get(documented.key, ())
    last = max([node.end_lineno or node.lineno, *(promise.last_line for promise in annotations)])
    return documented.fence_lines[first - 1 : last]


def _hunks(target: Target, git: Git, path: str) -> Iterator[tuple[range, str]]:
    """The hunks of a file's difference from HEAD, each with its lines in the working tree."""
    if git.head() is None or not git.run("ls-files", "--", path):
        text = (target.root / path).read_text(encoding="utf-8", errors="replace")
        lines = text.split("\n")
        yield range(1, len(lines) + 1), "\n".join(f"+{line}" for line in lines)
        return
    start = range(0)
    block: list[str] = []
    diff = git.run("diff", "--no-color", "--no-ext-diff", "-U0", "HEAD", "--", path)
    for line in diff.encode("utf-8", "surrogateescape").decode("utf-8", "replace").split("\n"):
        match = _HUNK.match(line)
        if match:
            if block:
                yield start, "\n".join(block)
            first, count = int(match["start"]), int(match["count"] or 1)
            start, block = range(first, first + max(count, 1)), []
        elif block or (line[:1] in "+-" and start):
            block.append(line)
    if block:
        yield start, "\n".join(block).rstrip("\n")


def _diff_of(place: Place, hunks: list[tuple[range, str]]) -> str:
    """The changed lines inside a definition."""
    node = place.definition.node
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    last = place.definition.end_line
    lines: list[str] = []
    for span, text in hunks:
        if span.start > last or span.stop <= first:
            continue
        if span.start >= first and span.stop - 1 <= last:
            lines += text.split("\n")
            continue
        number = span.start - 1
        for line in text.split("\n"):
            number += not line.startswith("-")
            if first <= number <= last:
                lines.append(line)
    return "\n".join(lines) or "unchanged since HEAD"
