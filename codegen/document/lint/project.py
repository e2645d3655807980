"""What only all documents of a project together show: cycles that run through several, and names two of them define."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.diagnostics import Finding
from codegen.document.cycles import cycles
from codegen.document.lint.codes import finding
from codegen.document.model import Document, Entry
from codegen.document.project import Project
from codegen.document.references import References


def check_project(project: Project) -> Iterator[Finding]:
    """Findings REF002 across documents, and API009 for a name that two documents define."""
    home: dict[str, tuple[Document, Entry]] = {}
    needs: dict[str, dict[str, None]] = {}
    for document in project.documents:
        references = References(document, project)
        for entry in document.entries:
            if entry.id in home and home[entry.id][0] is not document:
                first = home[entry.id][0]
                message = f"`{entry.id}` is in {first.id} too (line {home[entry.id][1].line})"
                yield finding(document, entry.line, "API009", message, "Describe it in one of them.")
            home.setdefault(entry.id, (document, entry))
            explicit = [] if entry.folded else [text for text in entry.deps]
            found = dict.fromkeys(references.deps(entry))
            for text in explicit:
                found |= dict.fromkeys(other.id for _, other in references.resolve(text, entry).elsewhere)
            needs[entry.id] = found
    for cycle in cycles(needs):
        homes = {home[name][0].id for name in cycle}
        if len(homes) > 1:
            document, entry = home[cycle[0]]
            names = " → ".join(f"{home[name][0].id}:{home[name][1].label}" for name in [*cycle, cycle[0]])
            message = f"dependencies in a cycle: {names}"
            yield finding(document, entry.line, "REF002", message, "Cut it: one of them must not need the next.")
