"""Methods that changed after they were done.

A method's digest is taken from Section 5 when it becomes DONE. When the entry's digest is no longer that one, the
method is stale, whatever the table says; `effective_status` is what the tools go by.
"""

from __future__ import annotations

from codegen.document.model import Document, Entry, Step, StepMethod


def is_stale(entry: Entry | None, method: StepMethod) -> bool:
    """Whether a method that is DONE no longer matches its entry. Without a digest nothing can be said: False."""
    if method.status == "STALE":
        return True
    return method.status == "DONE" and bool(method.digest) and entry is not None and entry.digest != method.digest


def effective_status(document: Document, method: StepMethod) -> str:
    """The method's status, STALE when its entry changed after it was done."""
    return "STALE" if is_stale(document.entry_of(method), method) else method.status


def step_status(document: Document, step: Step) -> str:
    """The step's status, STALE when it is DONE and one of its methods is stale."""
    stale = any(effective_status(document, method) == "STALE" for method in step.methods)
    return "STALE" if step.status == "DONE" and stale else step.status


def stale_methods(document: Document) -> list[tuple[Step, StepMethod]]:
    """The stale methods in the order of the plan."""
    found: list[tuple[Step, StepMethod]] = []
    for step in document.steps:
        found += [(step, method) for method in step.methods if effective_status(document, method) == "STALE"]
    return found
