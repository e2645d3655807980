"""What a step needs of other documents, and whether it is there."""

from __future__ import annotations

from codegen.document.model import Document, Step
from codegen.document.project import Project
from codegen.document.references import References
from codegen.document.staleness import statuses

THERE = ("DONE", "ADOPTED")


def not_ready_elsewhere(document: Document, step: Step, project: Project) -> list[str]:
    """The entries of other documents that the step's entries need and that are not done there (or no longer), each as
    "api:shop.api.serve (STALE)"."""
    references = References(document, project)
    states = {each.id: statuses(each) for each in project.others(document)}
    found: dict[str, None] = {}
    for method in step.methods:
        entry = document.entry_of(method)
        for other, needed in references.elsewhere(entry).values() if entry else ():
            status = states[other.id][needed.id]
            if status not in THERE:
                found[f"{other.id}:{needed.id} ({status})"] = None
    return list(found)
