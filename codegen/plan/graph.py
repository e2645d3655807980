"""Who depends on whom: `deps:` as written, and what the annotated implementations show besides.

Edges from `deps:` are binding. Edges inferred from code are taken too, except inside a circle: mutually recursive
methods are no mistake, they only have no order.
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.diagnostics import UsageError
from codegen.document.cycles import components, cycles
from codegen.document.model import Document, Entry
from codegen.document.references import References, owner_of


class CircularDependencies(UsageError):
    """`deps:` go in a cycle, so that there is no order to plan."""


@dataclass(frozen=True)
class Dependencies:
    """The graph over entries by identity, in document order; `edges[a]` are the entries that `a` needs.

    `explicit` is what `deps:` says, `inferred` what only the code says (without the own class), and `edges` the union
    less the inferred edges that lie in a cycle.
    """

    entries: dict[str, Entry]
    explicit: dict[str, tuple[str, ...]]
    inferred: dict[str, tuple[str, ...]]
    edges: dict[str, tuple[str, ...]]

    def dependents(self) -> dict[str, tuple[str, ...]]:
        """The same edges the other way round."""
        found: dict[str, list[str]] = {ident: [] for ident in self.entries}
        for ident, needs in self.edges.items():
            for need in needs:
                found[need].append(ident)
        return {ident: tuple(users) for ident, users in found.items()}


def dependencies(document: Document, references: References | None = None) -> Dependencies:
    """The dependency graph of Section 5. Raises CircularDependencies when `deps:` go in a cycle."""
    references = references or References(document)
    entries = document.entry_by_id
    explicit = {ident: references.deps(entry) for ident, entry in entries.items()}
    circles = cycles(explicit)
    if circles:
        lines = [
            f"{document.path}:{entries[c[0]].line}: {' → '.join(entries[each].label for each in [*c, c[0]])}"
            for c in circles
        ]
        raise CircularDependencies("`deps:` go in a cycle, cut it first:\n" + "\n".join(lines))
    owners = _owners(entries)
    inferred: dict[str, tuple[str, ...]] = {}
    implied: dict[str, tuple[str, ...]] = {}
    for ident, entry in entries.items():
        owner = owners.get(ident)
        used = [other for other in references.used(entry) if other not in explicit[ident]]
        inferred[ident] = tuple(other for other in used if other != owner)
        implied[ident] = tuple(dict.fromkeys([*([owner] if owner else []), *used]))
    return Dependencies(entries, explicit, inferred, _union(explicit, implied))


def _owners(entries: dict[str, Entry]) -> dict[str, str]:
    classes = {name: ident for ident, entry in entries.items() for name in entry.full_names}
    found: dict[str, str] = {}
    for ident, entry in entries.items():
        owner = classes.get(owner_of(entry))
        if owner is not None and owner != ident:
            found[ident] = owner
    return found


def _union(explicit: dict[str, tuple[str, ...]], implied: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    both = {ident: tuple(dict.fromkeys([*needs, *implied[ident]])) for ident, needs in explicit.items()}
    part: dict[str, int] = {}
    for number, component in enumerate(components(both)):
        part |= dict.fromkeys(component, number)
    return {
        ident: tuple(n for n in needs if n in explicit[ident] or part[n] != part[ident])
        for ident, needs in both.items()
    }
