"""Bring Section 5 up to code that moved first: the edits that make the document say what the code says.

Signatures, fields and annotations that differ are rewritten from the code, undocumented exceptions are added to
`errors:`, and undocumented callables get a stub in the folded fence of their module, because nobody has to plan what is
there. What only the document has stays: taking back a promise is the author's decision, and so is an entry that is not
started. The digest of a DONE method whose text was brought up to its code is taken again, unless it was stale before.

`compact` also shortens the functions of entries that are done to their contract: signature, annotations, raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codegen.document.edit import set_statuses
from codegen.document.lines import LineEdit, apply_edits
from codegen.document.model import Document, Entry
from codegen.document.parse import parse_document
from codegen.document.staleness import effective_status
from codegen.drift.bodies import renamed_parameters
from codegen.drift.calls import CallGraph
from codegen.drift.code import Code, Place
from codegen.drift.compact import compact_function
from codegen.drift.compare import Strictness, compare
from codegen.drift.fence_edits import FenceEdits
from codegen.drift.folded_sync import folded_modules
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
    for edits in (_rewritten_definitions, _documented_raises, folded_modules, *([_compacted] if compact else [])):
        new = parse_document(apply_edits(new, edits(new, code)), document.path)
    new = _sealed_again(document, new, code)
    return Proposal(new.text, drift(new, code))


def _rewritten_definitions(document: Document, code: Code) -> Iterator[LineEdit]:
    pending = not_started(document)
    everything = documented_definitions(document)[0]
    full = {each.full_name for each in everything if not each.definition.elided or each.promises}
    for documented in everything:
        place = place_of(documented, code)
        if place is None or documented.entry.id in pending or documented.entry.folded:
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
        if (
            entry.id in done
            and not entry.folded
            and agrees
            and place
            and definition.kind == "function"
            and not shown_elsewhere
        ):
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
        if entry.id not in pending and entry.id in pairs and not entry.folded:
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


def _sealed_again(old: Document, new: Document, code: Code) -> Document:
    """Take the digest of DONE methods again whose entry was fresh before and agrees with the code now."""
    drifting = {finding.line for finding in drift(new, code).findings if finding.severity == "error"}
    changes: dict[int, dict[str, tuple[str, str | None]]] = {}
    for step in old.steps:
        for method in step.methods:
            after = new.entry_of(method)
            if after is None or effective_status(old, method) != "DONE" or effective_status(new, method) == "DONE":
                continue
            if not any(after.line <= line <= after.line_end for line in drifting):
                changes.setdefault(step.number, {})[method.name or method.section] = ("DONE", after.digest)
    return parse_document(set_statuses(new, changes), new.path) if changes else new
