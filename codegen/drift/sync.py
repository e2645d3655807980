"""Bring Section 5 up to code that moved first: the edits that make the document say what the code says.

Signatures, fields and annotations that differ are rewritten from the code, undocumented exceptions are added to
`errors:`, undocumented callables get an entry at the end of their module. What only the document has stays: taking
back a promise is the author's decision, and so is an entry that is not started. The digest of a DONE method whose
text was brought up to its code is taken again, unless it was stale before.

`compact` also shortens the functions of entries that are done to their contract: signature, annotations, raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codegen.document.edit import LineEdit, apply_edits, set_statuses
from codegen.document.model import Document, Entry
from codegen.document.parse import parse_document
from codegen.document.staleness import effective_status
from codegen.drift.adopt import Adoption, Sketch
from codegen.drift.bodies import renamed_parameters
from codegen.drift.calls import CallGraph
from codegen.drift.code import Code, Module, Place
from codegen.drift.compact import compact_function
from codegen.drift.compare import Strictness, compare
from codegen.drift.fence_edits import FenceEdits
from codegen.drift.raises import undocumented_raises
from codegen.drift.report import DriftReport, drift, not_started
from codegen.drift.section import Documented, documented_definitions, place_of
from codegen.drift.signatures import Definition
from codegen.drift.sketch import Sketcher, signature_lines
from codegen.drift.surface import modules_of


@dataclass(frozen=True)
class Proposal:
    """The new text, and the drift that is left for the author."""

    text: str
    left: DriftReport


def propose(document: Document, code: Code, compact: bool = False) -> Proposal:
    """The document's text with Section 5 brought up to the code."""
    new = document
    for edits in (_rewritten_definitions, _documented_raises, _new_entries, *([_compacted] if compact else [])):
        new = parse_document(apply_edits(new, edits(new, code)), document.path)
    new = _sealed_again(document, new, code)
    return Proposal(new.text, drift(new, code))


def _rewritten_definitions(document: Document, code: Code) -> Iterator[LineEdit]:
    pending = not_started(document)
    everything = documented_definitions(document)[0]
    full = {each.full_name for each in everything if not each.definition.elided or each.promises}
    for documented in everything:
        place = place_of(documented, code)
        if place is None or documented.entry.id in pending:
            continue
        lines = FenceEdits(document, documented)
        promised = sorted(text for text, _ in documented.promises)
        annotated = place.module.annotated
        held = sorted(each.text for each in annotated.promises.get(place.definition.name, ()))
        differs = any(compare(documented.definition, place.definition, Strictness()))
        sketcher = Sketcher(place.module, annotated)
        if place.definition.kind != documented.definition.kind:
            continue
        if place.definition.kind == "class":
            hidden = _hidden_constructor(documented, place)
            if differs or promised != held or hidden:
                constructor = sketcher.function(hidden) if hidden else []
                yield from lines.class_head(sketcher.class_(place.definition, []), constructor)
        elif promised != held and (not _is_short(documented) or documented.full_name not in full):
            yield lines.whole(sketcher.function(place.definition))
        elif differs:
            yield from _new_signature(documented, place, lines, sketcher)


def _new_signature(documented: Documented, place: Place, lines: FenceEdits, sketcher: Sketcher) -> Iterator[LineEdit]:
    """The code's signature over the author's body. A renamed parameter is renamed in the body too; where the body reads
    one that the signature lost it is the author's to change, and so the old signature stays above it."""
    renamed = renamed_parameters(documented.definition, place.definition)
    if renamed is None:
        return
    yield lines.signature(sketcher.decorators(place.definition), signature_lines(place.definition), renamed)
    yield from lines.rename_in_body(renamed)


def _compacted(document: Document, code: Code) -> Iterator[LineEdit]:
    """Functions and methods of entries that are done and agree with the code, without what only the code must say."""
    drifting = {finding.line for finding in drift(document, code).findings if finding.severity == "error"}
    methods = [method for step in document.steps for method in step.methods]
    done = {
        entry.id
        for method in methods
        if (entry := document.entry_of(method)) and effective_status(document, method) == "DONE"
    }
    everything = documented_definitions(document)[0]
    full = {each.full_name for each in everything if not _is_short(each)}
    for documented in everything:
        entry, definition = documented.entry, documented.definition
        shown_elsewhere = _is_short(documented) and documented.full_name in full
        place = place_of(documented, code)
        agrees = not any(entry.line <= line <= entry.line_end for line in drifting)
        if entry.id in done and agrees and place and definition.kind == "function" and not shown_elsewhere:
            lines = compact_function(Sketcher(place.module, place.module.annotated), place.definition)
            yield FenceEdits(document, documented).whole(lines)


def _hidden_constructor(documented: Documented, place: Place) -> Definition | None:
    """The `__init__` that a class fence must show and does not."""
    constructor = place.module.definitions.get(f"{place.definition.name}.__init__")
    if constructor is None or len(constructor.parameters) < 2:
        return None
    names = {each.name for each in documented.siblings}
    return None if f"{documented.definition.name}.__init__" in names else constructor


def _is_short(documented: Documented) -> bool:
    """Whether this form of a definition shows no body: another fence may show it."""
    return documented.definition.elided and not documented.promises


def _documented_raises(document: Document, code: Code) -> Iterator[LineEdit]:
    pending = not_started(document)
    graph = CallGraph(code, modules_of(document, code))
    pairs: dict[str, list[tuple[Documented, Place]]] = {}
    for documented in documented_definitions(document)[0]:
        place = place_of(documented, code)
        if place:
            pairs.setdefault(documented.entry.id, []).append((documented, place))
    for entry in document.entries:
        if entry.id not in pending and entry.id in pairs:
            names = list(undocumented_raises(entry, pairs[entry.id], graph))
            if names:
                yield _errors_edit(document, entry, names)


def _errors_edit(document: Document, entry: Entry, names: list[str]) -> LineEdit:
    field = entry.fields.get("errors")
    if field:
        line = document.lines[field.line - 1].rstrip("\r\n")
        if not entry.errors:
            line = line[: line.index(":") + 1]
        more = "; ".join(names)
        joint = " " if line.endswith(":") else "; "
        return LineEdit(field.line, field.line, (line.rstrip(" .") + joint + more,))
    item = f"- errors: {'; '.join(names)}"
    if entry.fields:
        last = max(each.line_end for each in entry.fields.values())
        return LineEdit(last + 1, last, (item,))
    first = entry.fences[0].line
    return LineEdit(first, first - 1, (item, ""))


def _new_entries(document: Document, code: Code) -> Iterator[LineEdit]:
    uncovered = drift(document, code).coverage.uncovered
    names = {f"{module}.{name}" for module, found in uncovered.items() for name in found}
    if not names:
        return
    adoption = Adoption(code, list(document.front.roots))
    chapter = document.section("5")
    end = chapter.line_end if chapter else len(document.lines)
    number = max([0, *(int(module.id.partition(".")[2] or 0) for module in document.modules)])
    appended: list[str] = []
    for module in adoption.modules:
        sketches = [part for each in adoption.sketches[module.name] if (part := _only(each, names))]
        sketches += _new_members(module, sketches, uncovered[module.name])
        if not sketches:
            continue
        entries = [entry for entry in document.entries if entry.module == module.name]
        if entries:
            parent, _, last = entries[-1].number.rpartition(".")
            at = entries[-1].line_end
            lines = _entries(adoption, sketches, parent, int(last), next((e.tests for e in entries if e.tests), ""))
            yield _insert(document, at, lines)
        else:
            number += 1
            appended += [f"### 5.{number} `{module.name}`", "", *_entries(adoption, sketches, f"5.{number}", 0)]
    if appended:
        yield _insert(document, end, appended)


def _entries(adoption: Adoption, sketches: list[Sketch], parent: str, last: int, tests: str = "") -> list[str]:
    """New entries; `tests` are those of the module's other entries, where no test file is named like the module."""
    lines: list[str] = []
    for at, sketch in enumerate(sketches, last + 1):
        entry = adoption.entry(sketch, f"{parent}.{at}")
        if tests and not any(line.startswith("- tests: ") for line in entry):
            entry.insert(entry.index("```python") - 1, f"- tests: {tests}")
        lines += [*entry, ""]
    return lines


def _insert(document: Document, after: int, lines: list[str]) -> LineEdit:
    """Insert below a line, one blank line before what is new."""
    if document.lines[after - 1].strip():
        lines = ["", *lines[:-1]]
    return LineEdit(after + 1, after, tuple(lines))


def _new_members(module: Module, sketches: list[Sketch], uncovered: tuple[str, ...]) -> list[Sketch]:
    """What is new in a class that has its entry already and shows its members there, like a property of a dataclass."""
    shown = {name for sketch in sketches for name in (*sketch.names, *sketch.shown)}
    return [Sketch(module, (name,), {}) for name in uncovered if name not in shown]


def _only(sketch: Sketch, names: set[str]) -> Sketch | None:
    """The part of a sketch whose names are among `names`."""
    kept = tuple(name for name in sketch.names if f"{sketch.module.name}.{name}" in names)
    return Sketch(sketch.module, kept, {name: sketch.members.get(name, ()) for name in kept}) if kept else None


def _sealed_again(old: Document, new: Document, code: Code) -> Document:
    """Take the digest of DONE methods again whose entry was fresh before and agrees with the code now."""
    drifting = {finding.line for finding in drift(new, code).findings if finding.severity == "error"}
    changes: dict[int, dict[str, tuple[str, str | None]]] = {}
    for step in old.steps:
        for method in step.methods:
            before, after = old.entry_of(method), new.entry_of(method)
            if before is None or after is None or method.status != "DONE":
                continue
            fresh = method.digest == before.digest and after.digest != before.digest
            if fresh and not any(after.line <= line <= after.line_end for line in drifting):
                changes.setdefault(step.number, {})[method.name or method.section] = ("DONE", after.digest)
    return parse_document(set_statuses(new, changes), new.path) if changes else new
