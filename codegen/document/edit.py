"""Edits of a design document: each gives the new text, which differs from the old in the lines concerned only.

Lines are found through the model's line numbers and changed in place: a table cell between its pipes, a value after
its key. Line ends, padding and everything else stay as they are. Each edit reads its own result again and raises
EditError when the result does not say what was asked; so no text leaves this module unverified.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from codegen.diagnostics import UsageError
from codegen.document.ledger import HISTORY, LOG
from codegen.document.lines import LineEdit, apply_edits
from codegen.document.model import (
    DECISION_STATUSES,
    DOCUMENT_STATUSES,
    METHOD_STATUSES,
    STEP_STATUSES,
    VERDICTS,
    Document,
    Step,
    StepMethod,
    Table,
)
from codegen.document.parse import parse_document
from codegen.document.recording import set_record
from codegen.document.rows import EditError, bare, changed_row, format_row, new_row


def set_method_status(document: Document, step: int, method: str, status: str, digest: str | None = None) -> str:
    """Set the status of one method of a step; with `digest`, that cell too ("" empties it).

    `method` is the name or the section as written in the step's table. Raises UsageError for an unknown step,
    method or status word.
    """
    return set_method_statuses(document, step, {method: (status, digest)})


def set_method_statuses(document: Document, step: int, changes: Mapping[str, tuple[str, str | None]]) -> str:
    """Set the statuses (and digests, where not None) of several methods of one step at once."""
    return set_statuses(document, {step: changes})


def set_statuses(document: Document, changes: Mapping[int, Mapping[str, tuple[str, str | None]]]) -> str:
    """Set the statuses (and digests, where not None) of methods of several steps at once, by step and method.

    In the record a digest is taken from the entry, for every name that it defines; "" empties the cells.
    """
    edits: list[LineEdit] = []
    wanted: dict[int, tuple[str, str | None]] = {}
    recorded: dict[str, dict[str, str]] = {}
    for step, methods in changes.items():
        for name, (status, digest) in methods.items():
            _known(status, METHOD_STATUSES, "method status")
            row = find_method(find_step(document, step), name)
            if row.recorded:
                recorded |= _record_cells(document, row, status, digest)
                continue
            cells = {"status": status}
            if digest is not None:
                cells["digest"] = digest or "-"
            edits.append(_row_edit(document, row.line, cells))
            wanted[row.line] = (status, digest)
    text = apply_edits(document, edits)
    found = {m.line: m for s in parse_document(text, document.path).steps for m in s.methods}
    for line, (status, digest) in wanted.items():
        seen = found.get(line)
        _verify(seen is not None and seen.status == status, document, line, f"status {status}")
        _verify(seen is not None and digest in (None, seen.digest), document, line, f"digest {digest}")
    return set_record(parse_document(text, document.path), recorded) if recorded else text


def _record_cells(document: Document, method: StepMethod, status: str, digest: str | None) -> dict[str, dict[str, str]]:
    """The cells of every name that the method's entry defines; a name that the document does not have, alone."""
    entry = document.entry_of(method)
    if entry is None:
        return {method.name: {"status": status} | ({} if digest is None else {"digest": ""})}
    cells: dict[str, dict[str, str]] = {}
    for name in dict.fromkeys([entry.id, *entry.contracts]):
        row = document.record.get(name)
        if digest is None and name != entry.id and (row is None or not row.status):
            continue
        cells[name] = {"status": status} | ({} if digest is None else {"digest": entry.cell(name) if digest else ""})
    return cells


def set_step_status(document: Document, step: int, status: str) -> str:
    """Set the status of a step in the table of steps."""
    _known(status, STEP_STATUSES, "step status")
    row = _row_line(find_step(document, step))
    text = apply_edits(document, [_row_edit(document, row, {"status": status})])
    _verify(parse_document(text, document.path).step_by_number[step].status == status, document, row, status)
    return text


def set_step_commit(document: Document, step: int, commit: str) -> str:
    """Record the commit of a step in the table of steps; "" empties the cell."""
    row = _row_line(find_step(document, step))
    text = apply_edits(document, [_row_edit(document, row, {"commit": commit or "-"})])
    _verify(parse_document(text, document.path).step_by_number[step].commit == commit, document, row, commit)
    return text


def set_decision_status(document: Document, decision: str, status: str) -> str:
    """Set the status word of a decision; what stands behind it in the line stays."""
    _known(status, DECISION_STATUSES, "decision status")
    if decision not in document.decision_by_id:
        raise UsageError(f"{document.path}: there is no decision {decision}")
    found = document.decision_by_id[decision]
    field = found.fields.get("status")
    if field is None:
        raise UsageError(f"{document.path}:{found.line}: {decision} has no `- status:` line; add one")
    line = bare(document, field.line)
    match = re.match(r"(.*?status\W*?:\W*)([A-Za-z_]+)", line, re.IGNORECASE)
    if not match:
        raise UsageError(f"{document.path}:{field.line}: no status word after `status:`; write one")
    new = line[: match.start(2)] + status + line[match.end(2) :]
    text = apply_edits(document, [LineEdit(field.line, field.line, (new,))])
    seen = parse_document(text, document.path).decision_by_id[decision].status
    _verify(seen == status, document, field.line, status)
    return text


def set_front_field(document: Document, key: str, value: str) -> str:
    """Set a scalar of the front matter; a comment behind it stays. A new key goes before the closing mark."""
    front = document.front
    if not front.line_end:
        raise UsageError(f"{document.path}: there is no front matter to hold `{key}`; begin the document with one")
    if key == "status":
        _known(value, DOCUMENT_STATUSES, "document status")
    text = yaml_scalar(value)
    line = front.lines.get(key, 0)
    if line:
        match = re.match(r"(\s*[^:\s]+\s*:)([ \t]*)(.*?)([ \t]+#.*)?$", bare(document, line))
        if not match or match.group(3).startswith(("[", "{", "|", ">", "&", "*")):
            raise UsageError(f"{document.path}:{line}: `{key}` is not a one-line value; edit it by hand")
        comment = match.group(4) or ""
        if comment:
            room = len(match.group(3)) + len(comment) - len(comment.lstrip()) - len(text)
            comment = " " * max(1, room) + comment.lstrip()
        edit = LineEdit(line, line, (f"{match.group(1)}{match.group(2) or ' '}{text}{comment}",))
    else:
        edit = LineEdit(front.line_end, front.line_end - 1, (f"{key}: {text}",))
    new = apply_edits(document, [edit])
    seen = parse_document(new, document.path).front
    _verify(getattr(seen, key, seen.extra.get(key)) == value, document, line or front.line_end, f"{key}: {value}")
    return new


def yaml_scalar(value: str) -> str:
    """The value as YAML in one line, quoted only where it must be."""
    simple = re.match(r"[^\s\-?:,\[\]{}#&*!|>'\"%@`][^#\r\n]*$", value) and ": " not in value
    if simple and value == value.strip() and not value.endswith(":"):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def add_history_row(document: Document, version: str, date: str, change: str) -> str:
    """Add a row below the last one of the version history."""
    text = _add_row(document, HISTORY, "version", {"version": version, "date": date, "change": change})
    seen = parse_document(text, document.path).history
    _verify(bool(seen) and seen[-1].version == version, document, seen[-1].line if seen else 1, version)
    return text


def add_log_row(document: Document, asked: str, changed: str, decisions: str, date: str) -> str:
    """Add a round to the iteration log, numbered after the last one."""
    rounds = [int(row.round) for row in document.log if re.fullmatch(r"\d{1,9}", row.round)]
    number = str(max(rounds, default=0) + 1)
    values = {"round": number, "date": date, "asked": asked, "changed": changed, "decisions": decisions}
    text = _add_row(document, LOG, "round", values)
    seen = parse_document(text, document.path).log
    _verify(bool(seen) and seen[-1].round == number, document, seen[-1].line if seen else 1, f"round {number}")
    return text


def set_log_row(document: Document, line: int, changed: str, decisions: str) -> str:
    """Change what the round in this line has changed and decided."""
    text = apply_edits(document, [_row_edit(document, line, {"changed": changed, "decisions": decisions})])
    seen = next((row for row in parse_document(text, document.path).log if row.line == line), None)
    _verify(seen is not None and seen.changed == changed, document, line, changed)
    return text


def set_approvals(document: Document, rows: Mapping[str, Mapping[str, str]]) -> str:
    """Record verdicts: item → verdict, reviewer, date, digest.

    A row of a review record of the old form is changed where it is; all others go into the record.
    """
    edits: list[LineEdit] = []
    recorded: dict[str, dict[str, str]] = {}
    old = {approval.line for approval in document.old_approvals}
    known = {approval.item: approval for approval in document.approvals}
    for item, cells in rows.items():
        _known(cells["verdict"], VERDICTS, "verdict")
        if item in known and known[item].line in old:
            edits.append(_row_edit(document, known[item].line, dict(cells)))
        else:
            recorded[item] = {("approved" if name == "digest" else name): value for name, value in cells.items()}
    text = apply_edits(document, edits)
    if recorded:
        text = set_record(parse_document(text, document.path), recorded)
    seen = {approval.item: approval for approval in parse_document(text, document.path).approvals}
    for item, cells in rows.items():
        ok = item in seen and seen[item].verdict == cells["verdict"]
        _verify(ok, document, seen[item].line if item in seen else 1, f"{item} {cells['verdict']}")
    return text


COLUMNS = {
    HISTORY: ("Version", "Date", "Change"),
    LOG: ("Round", "Date", "Asked", "Changed", "Decisions"),
}
TITLES = {HISTORY: "Version history", LOG: "Iteration log"}


def _add_row(document: Document, heading: str, key: str, values: dict[str, str]) -> str:
    return apply_edits(document, [_new_rows(document, heading, (key,), [values])])


def _new_rows(document: Document, heading: str, keys: tuple[str, ...], rows: list[dict[str, str]]) -> LineEdit:
    table = _table_under(document, heading, keys)
    columns = table.columns if table else tuple(column.lower() for column in COLUMNS[heading])
    lines = [new_row(columns, row) for row in rows]
    if table:
        last = max([table.line + 1, *(row.line for row in table.rows)])
        return LineEdit(last + 1, last, tuple(lines))
    head = [format_row(COLUMNS[heading]), "|" + "---|" * len(columns)]
    found = next((h for h in document.headings if h.level == 2 and h.text.lower() == heading), None)
    if found:
        return LineEdit(found.line + 1, found.line, ("", *head, *lines, ""))
    title = ["", f"## {TITLES[heading]}", "", *head, *lines]
    first = next((h for h in document.headings if h.level == 2 and re.match(r"\d", h.text)), None)
    at = first.line if first else len(document.lines) + 1
    return LineEdit(at, at - 1, (*title[1:], ""))


def _table_under(document: Document, heading: str, keys: tuple[str, ...]) -> Table | None:
    found = next((h for h in document.headings if h.level == 2 and h.text.lower() == heading), None)
    if found is None:
        return None
    for table in document.tables:
        if found.line < table.line <= found.line_end and all(key in table.columns for key in keys):
            return table
    return None


def find_step(document: Document, step: int) -> Step:
    """The step with this number. Raises UsageError naming those there are."""
    if step not in document.step_by_number:
        known = ", ".join(str(number) for number in document.step_by_number) or "none"
        raise UsageError(f"{document.path}: there is no Step {step}; steps in the document: {known}")
    return document.step_by_number[step]


def find_method(step: Step, name: str) -> StepMethod:
    """The method of a step with this name, last part of a name, or printed number."""
    exact = [method for method in step.methods if name == method.name]
    exact = exact or [method for method in step.methods if name == method.section]
    found = exact or [method for method in step.methods if method.name.endswith("." + name)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(f"`{method.name}`" for method in found)
        raise UsageError(f"Step {step.number}: `{name}` may be any of {names}; give the full name")
    names = ", ".join(f"`{method.name}`" for method in step.methods) or "none"
    raise UsageError(f"Step {step.number} has no method `{name}`; it has: {names}")


def _row_line(step: Step) -> int:
    if not step.row_line:
        raise UsageError(f"Step {step.number} (line {step.line}) has no row in the table of steps; add one")
    return step.row_line


def _row_edit(document: Document, line: int, cells: Mapping[str, str]) -> LineEdit:
    return LineEdit(line, line, (changed_row(document, line, cells),))


def _known(word: str, words: tuple[str, ...], what: str) -> None:
    if word not in words:
        raise UsageError(f"{word!r} is no {what}; it must be one of {', '.join(words)}")


def _verify(good: bool, document: Document, line: int, what: str) -> None:
    if not good:
        raise EditError(f"{document.path}:{line}: the edit would not be read back as {what}; edit the line by hand")
