"""Names that changed after they were done.

What the record holds of a name that is DONE is a digest of its contract and, while its entry is open, one of the
entry's text. When either is no longer that one, the name is stale, whatever the table says; `effective_status` is what
the tools go by.
"""

from __future__ import annotations

from codegen.document.model import Document, Entry, Step, StepMethod


def is_stale(document: Document, entry: Entry | None, method: StepMethod) -> bool:
    """Whether a method that is DONE no longer matches its entry. Without a digest nothing can be said: False."""
    if method.status == "STALE":
        return True
    if method.status != "DONE" or not method.digest or entry is None:
        return False
    if not method.recorded:
        return method.digest != entry.digest
    if entry.folded:
        return not same_contract(method.digest, entry, entry.id)
    # an open entry is done as a whole: each name that it defines has its row
    rows = document.record
    return not all(name in rows and same_contract(rows[name].digest, entry, name) for name in entry.contracts)


def same_contract(cell: str, entry: Entry, name: str) -> bool:
    """Whether a digest in the record is what the entry says of this name now. Without a part for the text, the
    contract alone is compared: the entry was folded when it was written."""
    contract, _, text = cell.partition(".")
    return contract == (entry.contracts.get(name) or entry.digest) and (
        not text or entry.folded or text == entry.digest
    )


def effective_status(document: Document, method: StepMethod) -> str:
    """The method's status, STALE when its entry changed after it was done."""
    return "STALE" if is_stale(document, document.entry_of(method), method) else method.status


def step_status(document: Document, step: Step) -> str:
    """The step's status, STALE when it says DONE and one of its methods is not, or not any more."""
    open_ones = any(effective_status(document, method) not in ("DONE", "ADOPTED") for method in step.methods)
    return "STALE" if step.status == "DONE" and open_ones else step.status


def stale_methods(document: Document) -> list[tuple[Step, StepMethod]]:
    """The stale methods in the order of the plan."""
    found: list[tuple[Step, StepMethod]] = []
    for step in document.steps:
        found += [(step, method) for method in step.methods if effective_status(document, method) == "STALE"]
    return found


def statuses(document: Document) -> dict[str, str]:
    """The status of every entry, by identity: of its name in a step, else of its row; a folded one without either is
    ADOPTED, an open one NOT_STARTED."""
    found: dict[str, str] = {}
    for step in document.steps:
        for method in step.methods:
            if (entry := document.entry_of(method)) is not None:
                found.setdefault(entry.id, effective_status(document, method))
    for entry in document.entries:
        row = document.record.get(entry.id)
        if entry.id not in found and row is not None and row.status:
            method = StepMethod(entry.id, entry.number, row.status, row.digest, row.line, recorded=True)
            found[entry.id] = effective_status(document, method)
        found.setdefault(entry.id, "ADOPTED" if entry.folded else "NOT_STARTED")
    return found


def unplanned(document: Document) -> list[Entry]:
    """The entries that are in no step and not there already: neither adopted nor recorded as done."""
    planned = {entry.id for step in document.steps for m in step.methods if (entry := document.entry_of(m))}
    state = statuses(document)
    return [e for e in document.entries if e.id not in planned and state[e.id] in ("NOT_STARTED", "STALE", "FAILED")]
