"""Propose what annotations that cannot be expanded probably mean, as edits that their author may accept.

A proposal was tried: in its place it expands without an error. Where nothing fits, the proposal is a plain comment.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from codegen.diagnostics import Finding
from codegen.expand.driver.expansion import expand_file
from codegen.expand.driver.meanings import candidates
from codegen.expand.model import Options
from codegen.expand.reading.file import Reading
from codegen.expand.reading.marks import Marks, Opener
from codegen.expand.reading.parsing import Function, last_line
from codegen.expand.reading.scopes import bound_in, parameters_of
from codegen.expand.reading.source import ending, read_source
from codegen.patterns import Library

_UNKNOWN = frozenset({"bad-annotation", "unexpandable", "unknown-pattern", "wrong-tag"})
"""Findings of what the grammar or the library does not know. Any other is about a check that was surely meant."""

_UNDEFINED = re.compile(r": ([A-Za-z_]\w*) is not defined")


@dataclass(frozen=True)
class Suggestion:
    """One proposed edit: the annotation's lines, what it says, what it could say, and why it cannot stay.

    `expands` is False for a plain comment, which is what is left where no pattern fits.
    """

    path: str
    first: int
    last: int
    column: int
    old: str
    new: str
    why: str
    expands: bool

    def finding(self) -> Finding:
        """The proposal as a finding; the fix is the line to write."""
        message = f"{self.old}: {self.why}"
        kind = "Write" if self.expands else "No pattern says this; make it a plain comment"
        return Finding(self.path, self.first, self.column + 1, "suggestion", message, "error", f"{kind}: `{self.new}`")


def suggest(path: str, data: bytes, library: Library, marks: Marks, options: Options) -> list[Suggestion]:
    """The proposals for one file, in order; [] for a file that cannot be read."""
    done = expand_file(path, data, library, marks, options)
    if done.reading is None:
        return []
    found = []
    for opener in done.reading.openers:
        first, last = _lines(done.reading, opener)
        wrong = [f for f in done.report.findings if first <= f.line <= last and _matters(f)]
        if wrong:
            found.append(_propose(path, done.reading, opener, wrong[0], library, marks, options))
    return [each for each in found if each is not None]


def accept(data: bytes, suggestions: Sequence[Suggestion]) -> bytes:
    """The file with the proposals written."""
    source = read_source(data)
    rows: list[str | None] = list(source.lines)
    for each in suggestions:
        _write(rows, source.lines, each)
    return source.encode("".join(row for row in rows if row is not None))


def _matters(finding: Finding) -> bool:
    return finding.severity == "error" or finding.code == "unexpandable"


def _lines(reading: Reading, opener: Opener) -> tuple[int, int]:
    """The annotation's lines in the file."""
    origin = reading.base.origin
    return origin[opener.line - 1], origin[opener.last_line - 1]


def _propose(
    path: str, reading: Reading, opener: Opener, wrong: Finding, library: Library, marks: Marks, options: Options
) -> Suggestion | None:
    first, last = _lines(reading, opener)
    said = _said(reading, opener)
    names = _names(reading, opener)

    def made(new: str, expands: bool) -> Suggestion:
        return Suggestion(
            path, first, last, opener.comment.column, f"# {opener.tag}: {said}", new, wrong.message, expands
        )

    for text in (*_respelled(opener.tag, said, wrong, names), *candidates(opener.tag, said, library, names)):
        proposal = made(f"# {text}", True)
        if _expands(path, reading, proposal, library, marks, options):
            return proposal
    if wrong.code not in _UNKNOWN:
        return None  # A plain comment would lose the check; the finding says what is wrong with it.
    return made(f"# note: {said}" if said else "# note: empty", False)


def _respelled(tag: str, said: str, wrong: Finding, names: Sequence[str]) -> list[str]:
    """The annotation with the nearest name in place of one that is not defined."""
    found = _UNDEFINED.search(wrong.message) if wrong.code == "unresolved-name" else None
    if found is None:
        return []
    near = difflib.get_close_matches(found[1], names, n=2, cutoff=0.7)
    return [f"{tag}: " + re.sub(rf"(?<![\w.]){re.escape(found[1])}(?!\w)", name, said) for name in near]


def _expands(
    path: str, reading: Reading, proposal: Suggestion, library: Library, marks: Marks, options: Options
) -> bool:
    """Whether the proposal, written in its place, gives a block and no error of its own."""
    rows: list[str | None] = list(reading.source.lines)
    _write(rows, reading.source.lines, proposal)
    text = "".join(row for row in rows if row is not None)
    report = expand_file(path, reading.source.encode(text), library, marks, options).report
    own = [f for f in report.findings if f.line == proposal.first and _matters(f)]
    return not own and any(site.line == proposal.first for site in report.sites)


def _write(rows: list[str | None], lines: Sequence[str], proposal: Suggestion) -> None:
    """Put the proposal in place of the annotation; its further lines go."""
    head = lines[proposal.first - 1]
    rows[proposal.first - 1] = head[: proposal.column] + proposal.new + ending(head)
    for line in range(proposal.first + 1, proposal.last + 1):
        rows[line - 1] = None


def _said(reading: Reading, opener: Opener) -> str:
    """What stands behind the tag, on one line."""
    texts = [opener.comment.text.partition(":")[2]]
    texts += [reading.base.lines[line - 1].strip().lstrip("#") for line in range(opener.line + 1, opener.last_line + 1)]
    return " ".join(" ".join(texts).split())


def _names(reading: Reading, opener: Opener) -> list[str]:
    """What code at the place can speak of: parameters and variables of its function, and attributes that it uses."""
    function = _function_of(reading.base_tree, opener)
    if function is None:
        return sorted(bound_in(reading.base_tree))
    parameters = [p.arg for p in parameters_of(function) if p.arg not in ("self", "cls")]
    members = [
        ast.unparse(n)
        for n in ast.walk(function)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"
    ]
    return list(dict.fromkeys([*parameters, *sorted(bound_in(function)), *sorted(members)]))


def _function_of(tree: ast.Module, opener: Opener) -> Function | None:
    """The innermost function around the annotation, or the one whose `def` begins right below it."""
    best: Function | None = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        begin = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        around = begin <= opener.line <= last_line(node) or begin == opener.last_line + 1
        if around and (best is None or node.lineno > best.lineno):
            best = node
    return best
