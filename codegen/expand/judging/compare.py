"""Compare the blocks that stand in a file with the planned ones: states, reasons, and the new text.

Nothing is edited in place. The plan says what a fresh expansion of the author's text has (see `planning`); the reading
says what stands; the new text is the author's lines with, at each site, either the block that stands or the fresh one.
So the work is pairing and judging:

- Pairing. A block below its annotation is found by the annotation's line in the author's text, which no edit of blocks
  moves; a remote one by its place and the line above it. Several at one place pair by their opening lines first, so
  that adding an annotation does not make its neighbours stale, and then by order.
- Judging. The seal comes before the plan: a block whose own digest does not match its mark was edited, whatever the
  plan says now, and is never replaced without being asked for. Only a block that nobody edited can be stale.
- Keeping. A block that is fresh keeps its bytes, also when a formatter gave it others than we would.
- Leftovers. A block that no plan pairs with is an orphan and goes, unless its annotation has an error: then the author
  is in the middle of a change, and it stays.

One error leaves the whole file alone: half an expansion would be neither the author's text nor ours.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field

from codegen.diagnostics import Finding
from codegen.expand.judging.adopt import Twin, equivalent, twin_of
from codegen.expand.model import FileReport, Options, SiteReport, State
from codegen.expand.planning.imports import NeededImport
from codegen.expand.planning.planned import Planned
from codegen.expand.planning.state import Plan
from codegen.expand.reading.blocks import Block
from codegen.expand.reading.canonical import digest_of
from codegen.expand.reading.file import Reading, import_on
from codegen.expand.reading.parsing import statements_between
from codegen.expand.reading.source import ending
from codegen.expand.writing.splice import Insert, block_lines, neighbour_newline, replaced_lines, splice

ABOVE_BLOCKS, BELOW_BLOCKS = -1, 99


@dataclass
class Comparison:
    """Pairs of a planned block and what stands in its place, blocks that nothing asks for, and the outcome."""

    pairs: list[tuple[Planned, int | None]] = field(default_factory=list)
    unasked: list[int] = field(default_factory=list)
    sites: list[SiteReport] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    inserts: list[Insert] = field(default_factory=list)
    refused: bool = False


def compare(path: str, reading: Reading, plan: Plan, imports: Sequence[NeededImport], options: Options) -> FileReport:
    """The file's report; its text is the expansion unless something forbids to write it."""
    work = Comparison(findings=list(plan.findings))
    _match(reading, plan, work)
    failed = {finding.line for finding in plan.findings if finding.severity == "error"}
    for planned, index in work.pairs:
        _judge(path, reading, planned, index, options, work)
    for index in work.unasked:
        _judge_unasked(path, reading, index, failed, options, work)
    _judge_imports(path, reading, imports, work)
    for mark in reading.loose:
        work.sites.append(
            SiteReport(
                mark.line, mark.comment.column + 1, State.ORPHAN, f"END {mark.tag}", "no block above it has this seal"
            )
        )
        work.findings.append(
            Finding(
                path,
                mark.line,
                mark.comment.column + 1,
                "orphan",
                "an end mark without its annotation, and nothing above it has this seal",
                "error",
                "Remove the mark, and the code above it if it was generated.",
            )
        )
    for opener in reading.inside:
        message = "an annotation inside a generated block, which is replaced as a whole"
        place = (opener.line, opener.comment.column + 1)
        work.findings.append(Finding(path, *place, "inside-block", message, "error", "Move it out of the block."))
    errors = any(finding.severity == "error" for finding in work.findings)
    work.refused = errors
    work.sites.sort(key=lambda site: (site.line, site.what))
    if work.refused:
        return FileReport(path, tuple(work.sites), tuple(sorted(work.findings)), refused=True)
    text = splice(reading.base.lines, work.inserts, reading.source.newline)
    changed = text != reading.source.text
    return FileReport(path, tuple(work.sites), tuple(sorted(work.findings)), text, changed)


def _key(reading: Reading, block: Block, after: int) -> tuple[str, int]:
    if block.place is None:
        opener = block.openers[0].line if block.openers else block.first
        return ("own", reading.base.line_of(opener))
    return (block.place, after)


def _slot(lines: Sequence[str], key: tuple[str, int]) -> tuple[str, int]:
    """Where a block belongs: formatters may put blank lines above one that does not stand below its annotation."""
    place, line = key
    while place != "own" and line and not lines[line - 1].strip():
        line -= 1
    return place, line


def _match(reading: Reading, plan: Plan, work: Comparison) -> None:
    """Pair by place; among several at one place by their opening lines first, then by order."""
    lines = reading.base.lines
    waiting: dict[tuple[str, int], list[int]] = {}
    for index, block in enumerate(reading.blocks):
        key = _key(reading, block, reading.base.after[index])
        waiting.setdefault(_slot(lines, key), []).append(index)
    pairs: dict[int, int] = {}
    for exact in (True, False):
        for number, planned in enumerate(plan.blocks):
            if number in pairs:
                continue
            slot = _slot(lines, planned.key)
            for index in waiting.get(slot, []):
                if exact and _opening(reading.blocks[index]) != planned.openers:
                    continue
                pairs[number] = index
                waiting[slot].remove(index)
                break
    work.pairs = [(planned, pairs.get(number)) for number, planned in enumerate(plan.blocks)]
    used = set(pairs.values())
    work.unasked = [index for index in range(len(reading.all_blocks)) if index not in used]


def _opening(block: Block) -> tuple[str, ...]:
    if block.place is None:
        return ()
    return tuple(f"# {opener.tag} on {block.place}: {opener.text}" for opener in block.openers)


def _judge(
    path: str, reading: Reading, planned: Planned, index: int | None, options: Options, work: Comparison
) -> None:
    base, newline = reading.base, reading.source.newline
    fresh = block_lines(planned, base.lines, neighbour_newline(base.lines, planned.after, newline))
    opener = planned.annotations[0]
    what = ", ".join(pattern.partition(" ")[0] for pattern in planned.patterns)
    column = opener.comment.column + 1
    replaces = replaced_lines(planned)
    if index is None:
        line = base.origin[planned.line - 1]
        seal = digest_of(planned.form)
        work.sites.append(
            SiteReport(line, column, State.UNEXPANDED, what, _where(planned), fresh_seal=seal, origin=planned.origin)
        )
        if twin := twin_of(planned, reading.base_tree, reading.base_layout.comments):
            work.findings.append(_written_by_hand(path, (line, column), what, twin, base.origin))
        work.inserts.append(Insert(planned.after, planned.rank, fresh, replaces))
        return
    block = reading.blocks[index]
    stands = reading.source.lines[block.first - 1 : block.last]
    state, reason = _state(block, planned)
    diff = "" if state is State.FRESH else _diff(stands, fresh, block.first)
    if state is State.FRESH:
        fresh = stands
    line = block.openers[0].line
    seals = (digest_of(block.form), digest_of(planned.form))
    work.sites.append(SiteReport(line, column, state, what, reason, diff, *seals, planned.origin))
    calm = options.force or (options.adopt and _same_check(reading, block, planned))
    if state is State.EDITED and not (calm and block.replaceable and planned.shape != "wrap"):
        fix = "Restore it, or replace it with `codegen expand --force`."
        work.findings.append(Finding(path, line, column, "edited", f"{what}: {reason}\n{diff}".rstrip(), "error", fix))
    stays = block.place is not None and _key(reading, block, base.after[index])[0] == planned.key[0]
    work.inserts.append(Insert(base.after[index] if stays else planned.after, planned.rank, fresh, replaces))


def _written_by_hand(path: str, place: tuple[int, int], what: str, twin: Twin, origin: Sequence[int]) -> Finding:
    """The same check, or nearly the same, stands below an annotation already."""
    if not twin.difference:
        message = f"{what}: the code below makes this check already, and is not marked as generated"
        fix = "Take it under management with `codegen expand --adopt`, or remove it."
        return Finding(path, *place, "already-checked", message, "error", fix)
    message = f"{what}: line {origin[twin.lines.start - 1]} checks nearly the same by hand: {twin.difference}"
    fix = "Remove one of the two, or change the annotation to say what the code does."
    return Finding(path, *place, "nearly-checked", message, "warning", fix)


def unpaired(reading: Reading, plan: Plan) -> list[Planned]:
    """The planned blocks of which nothing stands yet."""
    work = Comparison()
    _match(reading, plan, work)
    return [planned for planned, index in work.pairs if index is None]


def _state(block: Block, planned: Planned) -> tuple[State, str]:
    if block.seal == "empty" and block.shape == "plain" and planned.shape != "return":
        return State.MISSING, "the block is empty"
    if block.seal == "cut":
        return State.EDITED, "the marks do not enclose whole statements"
    if block.end is None:
        return State.EDITED, "the end mark is missing"
    if block.seal != "whole":
        return State.EDITED, "the block was edited since it was generated"
    if block.form == planned.form and block.shape == planned.shape and _opening(block) == planned.openers:
        return State.FRESH, ""
    if block.has_comments:
        return State.EDITED, "the block is out of date, and a comment in it would be lost"
    if block.form != planned.form:
        return State.STALE, f"{', '.join(planned.patterns)} renders differently now"
    return State.STALE, "the annotation's text changed"


def _same_check(reading: Reading, block: Block, planned: Planned) -> bool:
    """Whether an edited block differs from the planned one in messages and temporary names only."""
    stands = statements_between(reading.tree, block.body_first, block.body_last)
    return bool(stands) and block.hole is None and equivalent(stands or [], ast.parse(planned.code).body)


def _where(planned: Planned) -> str:
    return f"on {planned.key[0]}" if planned.key[0] != "own" else ""


def _judge_unasked(
    path: str, reading: Reading, index: int, failed: set[int], options: Options, work: Comparison
) -> None:
    """A block that no annotation asks for goes, if nobody edited it; one whose annotation has an error stays."""
    block = reading.all_blocks[index]
    opener = block.openers[0] if block.openers else None
    if opener is not None and block.place is None and opener.line in failed:
        return
    column = (opener.comment if opener else block.end.comment if block.end else None).column + 1  # type: ignore[union-attr]
    what = opener.text if opener and opener.text else f"END {block.tag}"
    stands = reading.source.lines[block.first - 1 : block.last]
    diff = _diff(stands, (), block.first)
    work.sites.append(SiteReport(block.first, column, State.ORPHAN, what, "no annotation asks for this block", diff))
    removable = block.seal == "whole" and not block.has_comments
    if not removable and not (options.force and block.replaceable):
        work.findings.append(
            Finding(
                path,
                block.first,
                column,
                "orphan",
                f"{what}: no annotation asks for this block, and it was edited\n{diff}".rstrip(),
                "error",
                "Remove it, or put its annotation back.",
            )
        )


def _judge_imports(path: str, reading: Reading, needed: Sequence[NeededImport], work: Comparison) -> None:
    """Managed imports that stand, those to add, those nothing needs any more; one below a check that needs it moves."""
    base, waiting = reading.base, list(needed)
    blocks = {planned.after for planned, _ in work.pairs if planned.key[0] == "own"}

    def rank(after: int) -> int:
        return BELOW_BLOCKS if after in blocks else ABOVE_BLOCKS

    for mark in reading.imports:
        statement = import_on(reading.tree, mark)
        assert statement is not None
        text = ast.unparse(statement)
        match = next((want for want in waiting if ast.unparse(ast.parse(want.statement)) == text), None)
        column = mark.comment.column + 1
        after = base.line_of(mark.line - 1)
        if match is not None and match.before is not None and after >= match.before:
            work.sites.append(SiteReport(mark.line, column, State.STALE, text, "is below a check that needs it"))
            continue
        if match is None:
            work.sites.append(SiteReport(mark.line, column, State.ORPHAN, text, "no generated block needs this import"))
            continue
        waiting.remove(match)
        work.sites.append(SiteReport(mark.line, column, State.FRESH, text))
        work.inserts.append(Insert(after, rank(after), (reading.source.lines[mark.line - 1],)))
    for want in waiting:
        newline = neighbour_newline(base.lines, want.after, reading.source.newline)
        work.sites.append(
            SiteReport(base.origin[want.line - 1], 1, State.UNEXPANDED, want.statement, f"needed by {want.what}")
        )
        work.inserts.append(Insert(want.after, rank(want.after), (want.text + newline,)))
    for strange in reading.strange:
        work.findings.append(
            Finding(
                path,
                strange.line,
                strange.comment.column + 1,
                "edited",
                "a managed import that is not one name imported at module level",
                "error",
                "Remove the comment, or give the import a line of its own.",
            )
        )


def _diff(stands: Sequence[str], fresh: Sequence[str], line: int) -> str:
    rows = difflib.unified_diff(
        [row.removesuffix(ending(row)) for row in stands],
        [row.removesuffix(ending(row)) for row in fresh],
        lineterm="", n=0,
    )  # fmt: skip
    return "\n".join(list(rows)[2:])
