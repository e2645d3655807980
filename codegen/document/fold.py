"""Fold entries that are done, unfold them to work on them again, and close a finished step.

Folding takes what a caller sees of an entry (signature, annotations, raised types) and leaves the rest to the code and
to git. It changes no contract, no status and no approval: the parts of recorded digests that are over the entry's text
are dropped with the text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from codegen.diagnostics import UsageError
from codegen.document.edit import find_step
from codegen.document.folded import module_lines, note_lines
from codegen.document.lines import LineEdit, apply_edits
from codegen.document.model import NOTHING, Document, Entry, Module, RecordRow
from codegen.document.modern import modern
from codegen.document.naming import with_names
from codegen.document.parse import parse_document
from codegen.document.recording import set_record
from codegen.document.review import subjects
from codegen.document.rows import EditError, changed_row
from codegen.document.staleness import statuses
from codegen.document.stubs import Stubs

SETTLED = ("DONE", "ADOPTED")
KEPT = ("decisions", "tests", "phase", "waiver")
"""Fields that outlive folding, in the order in which they are written; what a name needs is read from its code."""
NOTED = (*KEPT, "deps", "purpose", "errors")


def foldable(document: Document) -> list[Entry]:
    """The open entries that can be folded: done or adopted, not stale, with a signature, and no Full Specification,
    whose rules are its text."""
    state = statuses(document)
    return [
        entry
        for entry in document.entries
        if not entry.folded
        and entry.module
        and entry.fences
        and not entry.full_specification
        and state[entry.id] in SETTLED
    ]


def folded(document: Document, names: Iterable[str] | None = None) -> str:
    """The text with these open entries folded (all that can be, without names).

    UsageError: a name is no entry, or one that is not done. EditError: a contract, status or approval would change.
    """
    document = with_names(modern(document))
    chosen = foldable(document) if names is None else [_foldable(document, name) for name in names]
    chosen = [entry for entry in chosen if not entry.folded]
    if not chosen:
        return document.text
    edits: list[LineEdit] = []
    for module in document.modules:
        entries = [entry for entry in chosen if entry.module == module.name]
        if entries:
            edits += _module_edits(document, module, entries)
    text = set_record(parse_document(apply_edits(document, edits), document.path), _rows(document, chosen))
    _verify(document, parse_document(text, document.path), chosen)
    return text


def finished_step(document: Document, number: int, commit: str = "") -> str:
    """The text with a step that is done reduced to its row: its part goes, the record gives its names to it, and its
    entries are folded. `commit` fills the Commit cell.

    UsageError: a name of it is not done.
    """
    document = modern(document)
    step = find_step(document, number)
    entries = list(dict.fromkeys(e.id for m in step.methods if (e := document.entry_of(m)) is not None))
    if step.folded:
        return document.text
    state = statuses(document)
    open_ones = [name for name in entries if state[name] != "DONE"]
    if open_ones or not step.row_line:
        raise UsageError(f"{document.path}: Step {number} is not done: {', '.join(open_ones) or 'it has no row'}")
    names = [name for ident in entries for name in (ident, *document.entry_by_id[ident].contracts)]
    text = set_record(document, {name: {"step": str(number)} for name in dict.fromkeys(names)})
    document = parse_document(text, document.path)
    step = find_step(document, number)
    count = sum(row.step == str(number) for row in document.record_rows)
    cells = {"names": str(count)} | ({"commit": commit} if commit else {})
    edits = [LineEdit(step.line, step.line_end, ()), *_names_cell(document, step.row_line, cells)]
    document = parse_document(apply_edits(document, edits), document.path)
    can = {entry.id for entry in foldable(document)}
    return folded(document, [name for name in entries if name in can])


def _names_cell(document: Document, line: int, cells: Mapping[str, str]) -> list[LineEdit]:
    """The row of a step with cells set, and the column `Names` where the table lacks it."""
    table = next(table for table in document.tables if table.line < line <= table.line_end)
    if "names" in table.columns:
        return [LineEdit(line, line, (changed_row(document, line, cells),))]
    edits: list[LineEdit] = []
    for at in range(table.line, table.line_end + 1):
        old = document.lines[at - 1].rstrip("\r\n").rstrip()
        rest = {name: value for name, value in cells.items() if name != "names"}
        if at == line and rest:
            old = changed_row(document, line, rest).rstrip()
        old = old if old.endswith("|") else f"{old} |"
        more = {table.line: " Names |", table.line + 1: "---|", line: f" {cells['names']} |"}.get(at, " - |")
        edits.append(LineEdit(at, at, (old + more,)))
    return edits


def _foldable(document: Document, name: str) -> Entry:
    entry = document.entry(name)
    if entry is None:
        raise UsageError(f"{document.path}: there is no entry {name!r} in Section 5")
    status = statuses(document)[entry.id]
    if entry.folded or entry.id in {each.id for each in foldable(document)}:
        return entry
    why = f"is {status}" if status not in SETTLED else "has no signature, or is a Full Specification"
    raise UsageError(f"{document.path}:{entry.line}: {entry.label} {why}; only what is done is folded")


def _module_edits(document: Document, module: Module, entries: Sequence[Entry]) -> list[LineEdit]:
    """The module with these entries in its fence, and the open entries taken out."""
    stubs = Stubs(module.fences[0].code if module.fences else "")
    for entry in entries:
        stubs.add(entry)
    own = [entry for entry in document.entries if entry.module == module.name and (entry.folded or entry in entries)]
    fields, notes = _fields(module, own)
    lines = module_lines(module.id, module.name, module.purpose, fields, stubs.text(), notes)
    lines[0] = document.lines[module.line - 1].rstrip("\r\n")
    edits = [LineEdit(module.line, module.line_end, tuple(lines))]
    return edits + [LineEdit(entry.line, entry.line_end, ()) for entry in entries]


def _fields(module: Module, entries: Sequence[Entry]) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """What the module says once, and what single names say otherwise. A folded module's own fields stay."""
    values: dict[str, dict[str, str]] = {}
    for entry in entries:
        said = {name: entry.fields[name].value for name in KEPT if name in entry.fields}
        said = {name: value for name, value in said.items() if value.lower() not in NOTHING}
        for name in entry.contracts:
            values[name.removeprefix(f"{module.name}.")] = said
    common = {name: field.value for name, field in module.fields.items() if name in NOTED}
    for name in ("decisions", "tests") if not module.folded else ():
        used = [said[name] for said in values.values() if said.get(name)]
        if used:
            common[name] = max(dict.fromkeys(used), key=used.count)
    notes = {name: dict(note_values) for name, note_values in _old_notes(module).items()}
    for name, said in values.items():
        differing = {field: value for field, value in said.items() if value != common.get(field)}
        if differing:
            notes.setdefault(name, {}).update(differing)
    return common, notes


def _old_notes(module: Module) -> Mapping[str, Mapping[str, str]]:
    return {name: {key: field.value for key, field in note.fields.items()} for name, note in module.notes.items()}


def _rows(document: Document, entries: Sequence[Entry]) -> dict[str, dict[str, str]]:
    """The record's digests without their parts for the text, and an entry's approval on each of its names."""
    known = subjects(document)
    rows: dict[str, dict[str, str]] = {}
    for entry in entries:
        subject = known.get(entry.id)
        approved = document.record.get(entry.id, RecordRow(entry.id))
        for name, contract in entry.contracts.items():
            row = document.record.get(name)
            cells: dict[str, str] = {"digest": contract} if row is not None and row.digest else {}
            if subject is not None and subject.verdict == "APPROVED" and subject.approval is not None:
                tail = subject.digest.partition("/")[2]
                cells |= {
                    "verdict": approved.verdict,
                    "reviewer": approved.reviewer,
                    "date": approved.date,
                    "approved": f"{contract}/{tail}" if tail else contract,
                }
            if cells:
                rows[name] = cells
    return rows


def _verify(old: Document, new: Document, chosen: Sequence[Entry]) -> None:
    before, after = statuses(old), statuses(new)
    judged, again = subjects(old), subjects(new)
    for entry in chosen:
        for name, contract in entry.contracts.items():
            seen = new.entry_by_name.get(name)
            if seen is None or not seen.folded or seen.contracts.get(name) != contract:
                message = f"folding would change what {entry.label} says of `{name}`; fold it by hand"
                raise EditError(f"{old.path}:{entry.line}: {message}")
            if after[seen.id] != before[entry.id]:
                raise EditError(f"{old.path}:{entry.line}: folding would make {name} {after[seen.id]}")
        subject = judged.get(entry.id)
        if subject is not None and subject.verdict == "APPROVED":
            lost = [n for n in entry.contracts if n not in again or again[n].verdict != "APPROVED"]
            if lost:
                raise EditError(f"{old.path}:{entry.line}: folding would take back the approval of {', '.join(lost)}")


def unfolded(document: Document, names: Sequence[str]) -> str:
    """The text with these folded names as open entries below their module, a class with its members; what they said
    stays, digests of their text join those of their contracts. UsageError: no such folded name."""
    entries: list[Entry] = []
    for name in names:
        entry = document.entry(name)
        if entry is None or not entry.folded:
            raise UsageError(f"{document.path}: {name!r} is no folded name of Section 5")
        if not any(entry.id.startswith(f"{each.id}.") for each in entries):
            entries = [each for each in entries if not each.id.startswith(f"{entry.id}.")] + [entry]
    edits: list[LineEdit] = []
    for module in document.modules:
        chosen = [entry for entry in entries if entry.module == module.name]
        if chosen:
            edits.append(_opened(document, module, chosen))
    moved = parse_document(apply_edits(document, edits), document.path)
    known, judged = subjects(document), subjects(moved)
    rows: dict[str, dict[str, str]] = {}
    for entry in entries:
        now = moved.entry_by_id[entry.id]
        for name in now.contracts:
            row = document.record.get(name)
            if row is not None and row.digest == document.entry_by_id[name].digest:
                rows[name] = {"digest": now.cell(name)}
        if all(name in known and known[name].verdict == "APPROVED" for name in now.contracts):
            rows.setdefault(entry.id, {})["approved"] = judged[entry.id].digest
    return set_record(moved, rows)


def _opened(document: Document, module: Module, chosen: Sequence[Entry]) -> LineEdit:
    stubs = Stubs(module.fences[0].code)
    whole = {entry.name: stubs.block(entry.name) for entry in chosen}
    gone = {name for name in stubs.names if any(name == each or name.startswith(f"{each}.") for each in whole)}
    text = stubs.without(gone)
    notes = {name: values for name, values in _old_notes(module).items() if name not in gone}
    common = {name: field.value for name, field in module.fields.items() if name in NOTED}
    head = document.lines[module.line - 1].rstrip("\r\n")
    if text.strip():
        lines = module_lines(module.id, module.name, module.purpose, common, text, notes)
    else:
        lines = [head, "", *([module.purpose, ""] if module.purpose else []), *note_lines(notes)]
    lines[0] = head
    taken = [e.number for e in document.entries if e.module == module.name and not e.folded]
    at = max([0, *(int(number.rpartition(".")[2]) for number in taken)])
    more: list[str] = []
    for count, entry in enumerate(chosen, at + 1):
        more += ["", *open_lines(entry, f"{module.id}.{count}", whole[entry.name])]
    return LineEdit(module.line, module.line_end, (*lines, *more))


def without_names(document: Document, module: Module, gone: Collection[str]) -> LineEdit:
    """A folded module without these names (full ones): out of its fence and its notes."""
    stubs = Stubs(module.fences[0].code)
    local = {name.removeprefix(f"{module.name}.") for name in gone}
    text = stubs.without([name for name in stubs.names if name in local])
    notes = {name: values for name, values in _old_notes(module).items() if name not in local}
    common = {name: field.value for name, field in module.fields.items() if name in NOTED}
    lines = module_lines(module.id, module.name, module.purpose, common, text, notes)
    if not text.strip():
        lines = [line for line in lines if line.strip("`") not in ("python", "")]
    lines[0] = document.lines[module.line - 1].rstrip("\r\n")
    return LineEdit(module.line, module.line_end, tuple(lines))


def long_form(document: Document) -> Document:
    """The document with every folded module opened, for a reader; it is not written."""
    names = [entry.id for entry in document.entries if entry.folded]
    return parse_document(unfolded(document, names), document.path) if names else document


def long_lines(entry: Entry) -> list[str]:
    """A folded entry in the long form, alone."""
    return open_lines(entry, entry.number, [line for line in entry.code.split("\n") if line.strip()])


def open_lines(entry: Entry, number: str, code: Sequence[str]) -> list[str]:
    """A folded entry in the long form, as `view`, briefs and `unfold` show it; `code` is its stub, with members."""
    fields = {
        name: entry.fields[name].value for name in ("deps", "decisions", "tests", "phase") if name in entry.fields
    }
    said = [f"- deps: {fields.get('deps') or '-'}", f"- decisions: {fields.get('decisions') or '-'}"]
    said += [f"- errors: {'; '.join(entry.errors) or '-'}", f"- tests: {fields.get('tests') or '-'}"]
    said += [f"- phase: {fields['phase']}"] if "phase" in fields else []
    purpose = entry.purpose or f"`{entry.full_name}`."
    return [
        f"#### {number} `{entry.name}`",
        "",
        purpose,
        "",
        *said,
        "",
        "```python",
        *code,
        "```",
    ]
