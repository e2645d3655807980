"""What `codegen lint` says about constraints.

What is found is said at a line of a document that carries one of the claims, a decision's or goal's before all others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codegen.constraints.claims import Claim, Claims
from codegen.constraints.kinds import Clash, infer
from codegen.constraints.solve import Solver, has_solver
from codegen.diagnostics import Finding, Severity
from codegen.document.model import Document
from codegen.patterns import Library

CODES: dict[str, tuple[Severity, str]] = {
    "CON001": ("error", "A constraint line that is no constraint"),
    "CON002": ("error", "A name in a constraint that is the tail of several quantities"),
    "CON003": ("error", "A quantity that is used as two of number, word and truth value"),
    "CON004": ("error", "Claims that cannot hold together: the smallest set of them"),
    "CON005": ("note", "Constraints were read and not solved, because z3 is not installed"),
    "CON006": ("warning", "The solver did not decide in its two seconds"),
}
SECONDS = 2.0
"""How long the solver may take, all claims together."""
MOST = 20
"""So many contradictions are named at most; the next run names the rest."""


def check(documents: Sequence[Document], library: Library, seconds: float = SECONDS) -> list[Finding]:
    """Findings about the constraints of all documents of a project, each at a line of one of them; documents that
    another one replaced are left out."""
    alive = [document for document in documents if document.front.status != "superseded"]
    return list(_Check(Claims(alive, library), seconds).findings())


@dataclass
class _Check:
    claims: Claims
    seconds: float

    def findings(self) -> Iterator[Finding]:
        for unread in self.claims.unread:
            if unread.is_ambiguous:
                fix = "Write more of the name, up to the full dotted one."
                yield _finding(unread.document, unread.line, "CON002", unread.message, fix)
            else:
                fix = "Write comparisons of names, numbers and words joined by and, or, not; or `state in {a, b}`."
                yield _finding(unread.document, unread.line, "CON001", unread.message, fix)
        lines = [claim for claim in self.claims.claims if claim.is_written]
        if not has_solver():
            if lines:
                message = f"{len(lines)} constraints were read and not solved: z3 is not installed"
                fix = "Install the extra: pip install 'roll-ts[smt]'."
                yield _finding(lines[0].document, lines[0].line, "CON005", message, fix)
            return
        deadline = time.monotonic() + self.seconds
        named = 0
        for group in groups(self.claims.claims):
            for each in self._group(group, deadline):
                named += each.code == "CON004"
                if named <= MOST:
                    yield each

    def _group(self, group: list[Claim], deadline: float) -> Iterator[Finding]:
        known = self.claims.quantities
        try:
            kinds = infer([claim.tree for claim in group], known.kinds)
        except Clash as error:
            yield from self._clash(group, error)
            return
        whole = frozenset(name for name, each in known.by_name.items() if each.whole)
        while group:
            left = deadline - time.monotonic()
            verdict = Solver(kinds, whole, left).judge([claim.tree for claim in group])
            if not verdict.decided and not verdict.core:
                first = _first(group)
                others = f"and what shares quantities with it ({len(group) - 1} more) can hold"
                message = f"{first.who}: z3 did not decide in {self.seconds:g} s whether `{first.text}` {others}"
                fix = "Avoid products of quantities, or split the constraint."
                yield _finding(first.document, first.line, "CON006", message, fix)
                return
            if not verdict.core:
                return
            yield _contradiction([group[at] for at in verdict.core], verdict.decided)
            group = [claim for at, claim in enumerate(group) if at not in verdict.core]

    def _clash(self, group: list[Claim], error: Clash) -> Iterator[Finding]:
        """The first claim that does not fit the ones before it."""
        kinds = self.claims.quantities.kinds
        ordered = sorted(group, key=lambda claim: not claim.is_written)
        for at in range(len(ordered)):
            try:
                infer([claim.tree for claim in ordered[: at + 1]], kinds)
            except Clash as found:
                claim = ordered[at]
                message = f"{claim.who}: {found} in `{claim.text}`"
                fix = "A quantity is a number, a word or a truth value; give one of the two another name."
                yield _finding(claim.document, claim.line, "CON003", message, fix)
                return
        raise AssertionError(f"no claim explains: {error}")


def groups(claims: Sequence[Claim]) -> list[list[Claim]]:
    """Claims that share quantities, straight or through others; a default alone can always hold and is left out."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for claim in claims:
        for name in claim.names:
            parent[root(name)] = root(claim.names[0])
    found: dict[str, list[Claim]] = {}
    for claim in claims:
        key = root(claim.names[0]) if claim.names else f"{claim.document.path}:{claim.line}"
        found.setdefault(key, []).append(claim)
    return [group for group in found.values() if len(group) > 1 or not group[0].who.startswith(("default", "type"))]


def _first(group: Sequence[Claim]) -> Claim:
    return next((claim for claim in group if claim.is_written), group[0])


def _contradiction(core: list[Claim], is_smallest: bool) -> Finding:
    first = _first(core)
    said = "; ".join(f"{each.who}: `{each.text}` ({each.document.path}:{each.line})" for each in core)
    what = "cannot hold" if len(core) == 1 else "cannot hold together"
    size = "" if is_smallest else " (there was no time to look for a smaller set)"
    fix = "Change one of them, or supersede a decision."
    return _finding(first.document, first.line, "CON004", f"{what}: {said}{size}", fix)


def _finding(document: Document, line: int, code: str, message: str, fix: str) -> Finding:
    return Finding(str(document.path), line, 1, code, message, CODES[code][0], fix)
