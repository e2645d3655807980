"""Rename and remove what a document describes, with its record: no status, digest or approval is lost or inherited."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Sequence

from codegen.diagnostics import UsageError
from codegen.document.contracts import last_part, pieces_of
from codegen.document.fold import without_names
from codegen.document.lines import LineEdit, apply_edits
from codegen.document.model import Document, Entry, Fence, Module, Step
from codegen.document.modern import modern
from codegen.document.parse import parse_document
from codegen.document.recording import set_record, sorted_record
from codegen.document.references import References
from codegen.document.review import subjects
from codegen.document.rows import EditError, bare, changed_row
from codegen.document.staleness import same_contract

DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*$")


def known_names(document: Document) -> set[str]:
    """The full names of a document's modules and of all that its entries define or its record and steps name."""
    listed = {method.name for step in document.steps for method in step.methods}
    recorded = {row.item for row in document.record_rows if DOTTED.fullmatch(row.item)}
    return {module.name for module in document.modules} | set(document.entry_by_name) | listed | recorded


def full_name(document: Document, name: str) -> str:
    """The full name that `name` means: itself, or what it is the tail of. UsageError: none, or several."""
    names = known_names(document)
    if name in names:
        return name
    found = sorted(each for each in names if each.endswith(f".{name}"))
    if len(found) == 1:
        return found[0]
    what = f"may be any of {', '.join(found[:5])}; give the full name" if found else "is nothing of Section 5"
    raise UsageError(f"{document.path}: {name!r} {what}")


def renamed(document: Document, old: str, new: str, module: str | None = None) -> str:
    """The text with a module, class, method, function or constant called `new`, and all below it with it: headings,
    fences, `names:`, `deps:`, `affects:`, the record. `old` and `new` are full names; `module` is the one that the name
    belongs to, where that is in another document.

    Digests and approvals that held before hold afterwards. UsageError: `new` is taken, no name, or in another module.
    """
    document = modern(document)
    _check(document, old, new)
    references = References(document)
    moved = {name: new + name.removeprefix(old) for name in known_names(document) if _is_below(name, old)}
    edits = _Edits(document)
    fenced = {at for fence in document.fences for at in range(fence.line, fence.line_end + 1)}
    whole = re.compile(rf"(?<![\w.]){re.escape(old)}(?!\w)")
    for at in range(document.front.line_end + 1, len(document.lines) + 1):
        if at not in fenced:
            edits.replace(at, whole, new)
    owner = _module_of(document, old)
    if owner is not None and old != owner.name:
        _local(document, edits, owner, old.removeprefix(f"{owner.name}."), new.removeprefix(f"{owner.name}."))
    for entry in document.entries:
        if "deps" in entry.fields:
            _short_deps(document, edits, references, entry, moved)
    home = owner.name if owner else module or ""
    local = old.removeprefix(f"{home}.")
    alike = [name for name in document.entry_by_name if last_part(name) == last_part(old) and name not in moved]
    for fence, own in _fences(document, home) if old != home else ():
        if own or not alike:
            _in_fence(edits, fence, local, last_part(new), own)
    after = parse_document(edits.text(), document.path)
    return sorted_record(parse_document(resealed(document, after, moved), document.path))


def _check(document: Document, old: str, new: str) -> None:
    taken = new in known_names(document) and not _only_the_row_is_left(document, old, new)
    if not DOTTED.fullmatch(new) or taken:
        raise UsageError(f"{new!r} is {'in the document already' if taken else 'no dotted name'}; give another")
    module = _module_of(document, old)
    if module is not None and old != module.name and not new.startswith(f"{module.name}."):
        raise UsageError(
            f"{new}: lies outside of {module.name}; a name is moved by moving its heading or stub, then renaming its "
            "row with `codegen rename`"
        )


def _only_the_row_is_left(document: Document, old: str, new: str) -> bool:
    """Whether Section 5 says `new` already and the record still `old`: somebody renamed the name by hand."""
    defined = document.entry_by_name
    return old in document.record and old not in defined and new in defined and new not in document.record


def _is_below(name: str, above: str) -> bool:
    return name == above or name.startswith(f"{above}.")


def _module_of(document: Document, name: str) -> Module | None:
    found = [module for module in document.modules if _is_below(name, module.name)]
    return max(found, key=lambda module: len(module.name), default=None)


class _Edits:
    """Changes of single lines, made one on top of the other."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._lines: dict[int, str] = {}

    def line(self, at: int) -> str:
        return self._lines.get(at, bare(self._document, at))

    def put(self, at: int, text: str) -> None:
        if text != self.line(at):
            self._lines[at] = text

    def replace(self, at: int, pattern: re.Pattern[str], new: str) -> None:
        self.put(at, pattern.sub(lambda _: new, self.line(at)))

    def text(self) -> str:
        return apply_edits(self._document, [LineEdit(at, at, (text,)) for at, text in self._lines.items()])


def _local(document: Document, edits: _Edits, module: Module, old: str, new: str) -> None:
    """Headings of open entries and notes of the folded form, which name things inside the module."""
    local = re.compile(rf"`{re.escape(old)}(?=[`.(])")
    for entry in document.entries:
        if entry.module == module.name and not entry.folded:
            edits.replace(entry.line, local, f"`{new}")
    for note in module.notes.values():
        edits.replace(note.line, local, f"`{new}")


def _short_deps(document: Document, edits: _Edits, references: References, entry: Entry, moved: dict[str, str]) -> None:
    """Dependencies by a short name of what is renamed are written in full."""
    field = entry.fields["deps"]
    for text in entry.deps:
        name = text.strip("`")
        target = references.resolve(text, entry)
        goal = next((moved[e.id] for e in target.entries if e.id in moved), None)
        if goal is None or len(target.entries) != 1 or name in moved or name[:1].isdigit():
            continue
        word = re.compile(rf"(?<![\w.])`?{re.escape(name)}`?(?![\w.])")
        for at in range(field.line, field.line_end + 1):
            edits.replace(at, word, f"`{goal}`")


def _fences(document: Document, module: str) -> Iterator[tuple[Fence, bool]]:
    """The fences of Section 5, each with whether it is of the module."""
    for each in document.modules:
        for fence in each.fences:
            yield fence, each.name == module
    for entry in document.entries:
        if not entry.folded:
            for fence in entry.fences:
                yield fence, entry.module == module


def _in_fence(edits: _Edits, fence: Fence, local: str, new: str, own: bool) -> None:
    """Names in code: a definition and its uses by bare name; of a member its definition in its class, or alone in its
    own fence, and `self.` and `cls.` there."""
    owner_class, _, old = local.rpartition(".")
    if owner_class and not own:
        return
    spans = [p.lines for p in pieces_of(fence.code) if p.name == owner_class] if owner_class else []
    alone = not any("." in piece.name for piece in pieces_of(fence.code))
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(fence.code).readline))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return
    lines = fence.code.split("\n")
    places: list[tuple[int, int]] = []
    for at, token in enumerate(tokens):
        if token.type != tokenize.NAME or token.string != old:
            continue
        before = tokens[at - 1].string if at else ""
        owner = tokens[at - 2].string if at > 1 and before == "." else ""
        inside = any(token.start[0] in span for span in spans) or (alone and not spans)
        if not owner_class:
            places += [token.start] if before != "." else []
        elif inside and (before in ("def", "class") or owner in ("self", "cls")):
            places.append(token.start)
    for line, column in reversed(places):
        at = fence.line + line
        text = edits.line(at)
        start = len(text) - len(text.lstrip()) - len(lines[line - 1]) + len(lines[line - 1].lstrip()) + column
        if text[start : start + len(old)] == old:
            edits.put(at, text[:start] + new + text[start + len(old) :])


def resealed(before: Document, after: Document, moved: dict[str, str]) -> str:
    """The text of `after`, a change by a tool that changes no meaning, with the digests and approvals that held in
    `before` taken again. `moved` says which names are called otherwise now."""
    judged, again = subjects(before), subjects(after)
    rows: dict[str, dict[str, str]] = {}
    for row in before.record_rows:
        now = moved.get(row.item, row.item)
        entry, seen = before.entry_by_name.get(row.item), after.entry_by_name.get(now)
        if entry and seen and row.digest and same_contract(row.digest, entry, row.item):
            rows.setdefault(now, {})["digest"] = seen.cell(now)
        if row.item in judged and now in again and judged[row.item].verdict == row.verdict == "APPROVED":
            rows.setdefault(now, {})["approved"] = again[now].digest
    return set_record(after, rows)


def removed(document: Document, names: Sequence[str]) -> str:
    """The text without these entries (a class with its members), or decisions: their text, their rows of the record,
    their places in steps. UsageError: a name is neither."""
    document = modern(document)
    edits: list[LineEdit] = []
    gone: set[str] = set()
    for name in names:
        if name in document.decision_by_id:
            decision = document.decision_by_id[name]
            edits.append(LineEdit(decision.line, decision.line_end, ()))
            gone.add(name)
            continue
        full = full_name(document, name)
        gone |= {each for each in known_names(document) if _is_below(each, full)}
    open_ones = [e for e in document.entries if not e.folded and e.full_names and set(e.full_names) <= gone]
    partly = [e for e in document.entries if not e.folded and set(e.full_names) & gone and e not in open_ones]
    if partly:
        raise UsageError(f"{document.path}:{partly[0].line}: {partly[0].label} names others too; cut it out by hand")
    edits += [LineEdit(entry.line, entry.line_end, ()) for entry in open_ones]
    for module in document.modules:
        if module.name in gone:
            edits = [edit for edit in edits if not module.line <= edit.first <= _end(document, module)]
            edits.append(LineEdit(module.line, _end(document, module), ()))
        elif module.folded and any(_is_below(name, module.name) for name in gone):
            edits.append(without_names(document, module, gone))
    edits += [edit for step in document.steps for edit in _step_without(document, step, gone)]
    text = apply_edits(document, edits)
    rows = {row.item: None for row in document.record_rows if row.item in gone}
    after = parse_document(set_record(parse_document(text, document.path), rows), document.path)
    left = gone & known_names(after)
    if left:
        raise EditError(f"{document.path}: {', '.join(sorted(left))} would still be there; take it out by hand")
    return after.text


def _end(document: Document, module: Module) -> int:
    return next(section.line_end for section in document.sections if section.line == module.line)


def _step_without(document: Document, step: Step, gone: set[str]) -> Iterator[LineEdit]:
    kept = [method.name for method in step.methods if method.name not in gone]
    if step.folded and step.names:
        lost = sum(row.step == str(step.number) and row.item in gone for row in document.record_rows)
        if lost:
            cells = {"names": str(step.names - lost)}
            yield LineEdit(step.row_line, step.row_line, (changed_row(document, step.row_line, cells),))
    elif "names" in step.fields and len(kept) < len(step.methods):
        field = step.fields["names"]
        listed = ", ".join(f"`{name}`" for name in kept) or "-"
        yield LineEdit(field.line, field.line_end, (f"- names: {listed}",))


def users_of(document: Document, names: Sequence[str]) -> list[str]:
    """Where `deps:` and `affects:` of what stays name what is to be removed, as `path:line: name`."""
    references = References(document)
    gone = {each for name in names if name not in document.decision_by_id for each in known_names(document)
            if _is_below(each, full_name(document, name))}  # fmt: skip
    found: list[str] = []
    for entry in document.entries:
        if entry.id not in gone and set(references.deps(entry)) & gone:
            found.append(f"{document.path}:{entry.line}: {entry.label} depends on it")
    for decision in document.decisions:
        if any(text.strip("`") in gone for text in decision.affects):
            found.append(f"{document.path}:{decision.line}: {decision.id} affects it")
    for entry in document.entries:
        if entry.id not in gone and set(entry.decisions) & set(names):
            found.append(f"{document.path}:{entry.line}: {entry.label} follows it")
    return found
