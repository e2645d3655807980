"""Section 5: what each entry must have, and what its fences define."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.diagnostics import Finding
from codegen.document.lint.codes import finding
from codegen.document.model import Document, Entry
from codegen.document.references import References


def check_apis(document: Document, references: References) -> Iterator[Finding]:
    """Findings API001 to API004, API008 and API009."""
    owner: dict[str, Entry] = {}
    for entry in document.entries:
        yield from _entry(document, entry)
        yield from _fences(document, entry, references)
        for name in entry.full_names:
            if name in owner:
                first = owner[name]
                message = f"`{name}` has two entries (the other is {first.number} in line {first.line})"
                yield finding(document, entry.line, "API009", message, "Join them, or rename one.")
            owner.setdefault(name, entry)


def _entry(document: Document, entry: Entry) -> Iterator[Finding]:
    if not entry.names:
        message = f"{entry.number} names no API"
        fix = "Put the qualified name in backticks into the heading: `Class.method`."
        yield finding(document, entry.line, "API008", message, fix)
    elif not entry.module:
        message = f"{entry.number} `{entry.name}` belongs to no module"
        fix = f"Name the module in the heading above: ### {entry.number.rpartition('.')[0]} `package.module`."
        yield finding(document, entry.line, "API008", message, fix)
    if not entry.purpose and not entry.folded:
        fix = "Begin with one sentence that says what it is for."
        yield finding(document, entry.line, "API003", f"{entry.number} does not say what it is for", fix)
    if not entry.fences and not entry.full_specification:
        fix = "Add a ```python fence with its signature."
        yield finding(document, entry.line, "API004", f"{entry.number} has no signature", fix)


def _fences(document: Document, entry: Entry, references: References) -> Iterator[Finding]:
    api = references.apis[entry.id]
    if api.error:
        line, reason = api.error
        fix = "Write it as Python; a body may be `...` or comments and `...`."
        yield finding(document, line, "API001", f"{entry.number}: the fence is not Python: {reason}", fix)
        return
    if not entry.fences or not entry.names:
        return
    for name in entry.names:
        local = name.removeprefix(f"{entry.module}.")
        if local == entry.module or local in api.defined:
            continue
        names = ", ".join(f"`{defined}`" for defined in list(api.defined)[:5]) or "nothing"
        message = f"{entry.number}: the heading names `{name}`, the fence defines {names}"
        yield finding(document, entry.line, "API002", message, "Make heading and fence agree.")
