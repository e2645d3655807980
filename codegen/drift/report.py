"""Section 5 of a design document against the code it describes.

An entry whose row in Section 6 says NOT_STARTED is pending: its differences are notes. Everything else that differs
is an error. Coverage counts the callables on the surface of the document's `roots` (see `codegen.drift.surface`): one
is covered when some fence of Section 5 defines it, under whichever of its names.
"""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from codegen.diagnostics import Finding, Severity
from codegen.document.model import Document, Entry
from codegen.drift import compare as codes
from codegen.drift.bodies import unbound_names
from codegen.drift.calls import CallGraph
from codegen.drift.code import Code, Place
from codegen.drift.compare import Strictness, compare
from codegen.drift.raises import error_differences
from codegen.drift.section import Documented, documented_definitions, place_of
from codegen.drift.surface import Reached, has_root, modules_of, surface_of


@dataclass(frozen=True)
class Coverage:
    """The callables that users reach, and the full names of those that Section 5 defines. `inside` are other public
    names of public modules, which nobody outside uses."""

    reached: tuple[Reached, ...] = ()
    documented: frozenset[str] = frozenset()
    inside: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()

    @property
    def covered(self) -> dict[str, tuple[str, ...]]:
        """What Section 5 defines of it: names inside their module, in source order, by the module that defines them."""
        return self._by_module(True)

    @property
    def uncovered(self) -> dict[str, tuple[str, ...]]:
        """What Section 5 does not define of it; keys as in `covered`."""
        return self._by_module(False)

    @property
    def covered_count(self) -> int:
        return sum(map(len, self.covered.values()))

    @property
    def total(self) -> int:
        return len(self.reached)

    def _by_module(self, is_documented: bool) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {name: [] for name in self.modules}
        for each in self.reached:
            names = found.setdefault(each.place.module.name, [])
            if (each.place.full_name in self.documented) is is_documented:
                names.append(each.place.definition.name)
        return {module: tuple(names) for module, names in found.items()}


@dataclass(frozen=True)
class DriftReport:
    """`compared` counts definitions found on both sides."""

    document: str
    findings: tuple[Finding, ...]
    coverage: Coverage
    compared: int
    pending: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)


def drift(
    document: Document, code: Code, only: frozenset[str] | None = None, strict_pending: bool = False
) -> DriftReport:
    """Compare Section 5 with the code. `only` limits it to these entry ids (no coverage then); `strict_pending`
    treats entries that are not started like all others."""
    return _Comparison(document, code, only, strict_pending).report()


@dataclass
class _Comparison:
    document: Document
    code: Code
    only: frozenset[str] | None
    strict_pending: bool
    findings: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shown = _relative(self.document.path, self.code.root)
        self.pending_ids = frozenset() if self.strict_pending else not_started(self.document)
        self.roots = modules_of(self.document, self.code)
        self.graph = CallGraph(self.code, self.roots)

    def report(self) -> DriftReport:
        definitions, bad = documented_definitions(self.document)
        if self.only is None:
            self._missing_roots()
        for fence in bad:
            if self._wanted(fence.entry):
                message = f"entry {fence.entry.number}: the fence is not valid Python: {fence.reason}"
                self._add(fence.entry, fence.line, codes.FENCE, message, "Correct the code; a body may be `...`.")
        pairs = self._pairs([each for each in definitions if self._wanted(each.entry)])
        self._missing_signatures(definitions, {fence.entry.id for fence in bad})
        full = {
            place.full_name for documented, place in pairs if not documented.definition.elided or documented.promises
        }
        for documented, place in pairs:
            for difference in compare(documented.definition, place.definition, Strictness()):
                line = documented.fence_line + difference.line
                self._add(documented.entry, line, difference.code, f"{difference.message} ({place.where})")
            self._body(documented, place)
            if not (documented.definition.elided and not documented.promises and place.full_name in full):
                self._promises(documented, place)
        self._errors(pairs)
        coverage = self._coverage(pairs)
        pending = tuple(entry.id for entry in self.document.entries if entry.id in self.pending_ids)
        return DriftReport(self.shown, tuple(self.findings), coverage, len(pairs), pending)

    def _wanted(self, entry: Entry) -> bool:
        return self.only is None or entry.id in self.only

    def _missing_roots(self) -> None:
        for root in self.document.front.roots:
            if not has_root(self.code, root):
                severity: Severity = "note" if self.pending_ids else "error"
                line = self.document.front.lines.get("roots", self.document.front.line) or 1
                fix = "Correct `roots` in the front matter, or write the code."
                message = f"root {root} does not exist"
                self.findings.append(Finding(self.shown, line, 1, codes.MISSING, message, severity, fix))

    def _add(self, entry: Entry, line: int, code: str, message: str, fix: str | None = None) -> None:
        if entry.id in self.pending_ids:
            self.findings.append(Finding(self.shown, line, 1, codes.PENDING, f"pending: {message}", "note", fix))
        else:
            self.findings.append(Finding(self.shown, line, 1, code, message, "error", fix))

    def _pairs(self, definitions: list[Documented]) -> list[tuple[Documented, Place]]:
        pairs = []
        for documented in definitions:
            place = place_of(documented, self.code)
            if place:
                pairs.append((documented, place))
            elif not self._owner_is_missing(documented):
                message = f"{documented.full_name} is in the document, not in the code{self._nearest(documented)}"
                self._add(documented.entry, documented.line, codes.MISSING, message)
        return pairs

    def _owner_is_missing(self, documented: Documented) -> bool:
        """Whether the class is missing and reported already, in the same fence."""
        owner = documented.definition.owner
        return bool(owner and "." in documented.key and not self.code.find(documented.module, owner))

    def _nearest(self, documented: Documented) -> str:
        moved = [each.shown for each in self.roots if documented.definition.name in each.definitions]
        if moved:
            return f" (there is one in {', '.join(moved[:3])})"
        module = self.code.module(documented.module)
        if module is None:
            return f" (there is no module {documented.module or 'given by its heading'})"
        near = difflib.get_close_matches(documented.definition.name, module.definitions, 1)
        return f" (nearest: {near[0]}, {module.shown}:{module.definitions[near[0]].line})" if near else ""

    def _missing_signatures(self, definitions: list[Documented], unreadable: set[str]) -> None:
        shown = {(each.entry.id, each.definition.name) for each in definitions}
        for entry in self.document.entries:
            if not self._wanted(entry) or entry.id in unreadable:
                continue
            for name in entry.names:
                local = name.removeprefix(f"{entry.module}.")
                if name != entry.module and (entry.id, local) not in shown:
                    message = f"entry {entry.number}: no Python fence defines `{local}`, so it cannot be compared"
                    self._add(entry, entry.line, codes.FENCE, message, "Show its signature in a ```python fence.")

    def _promises(self, documented: Documented, place: Place) -> None:
        ours = Counter(text for text, _ in documented.promises)
        theirs = Counter(promise.text for promise in place.module.annotated.promises.get(place.definition.name, ()))
        lines = dict(documented.promises)
        name = documented.definition.name
        for text in (ours - theirs).elements():
            message = f"{name}: `{text}` is promised here and not annotated in the code ({place.where})"
            self._add(documented.entry, lines[text], codes.VALIDATION, message)
        for text in (theirs - ours).elements():
            message = f"{name}: the code carries `{text}`, which the document does not promise ({place.where})"
            self._add(documented.entry, documented.line, codes.VALIDATION, message)

    def _body(self, documented: Documented, place: Place) -> None:
        if documented.entry.id in self.pending_ids or documented.entry.folded:
            return
        for line, name in unbound_names(documented, place):
            message = f"{documented.definition.name}: the body uses `{name}`, which nothing binds ({place.where})"
            fix = "Use the names of the signature, or leave the body to the code: `...`."
            at = documented.fence_line + line
            self.findings.append(Finding(self.shown, at, 1, codes.BODY, message, "warning", fix))

    def _errors(self, pairs: list[tuple[Documented, Place]]) -> None:
        by_entry: dict[str, list[tuple[Documented, Place]]] = {}
        for documented, place in pairs:
            by_entry.setdefault(documented.entry.id, []).append((documented, place))
        owners = {place.full_name: documented.entry.id for documented, place in pairs}
        for entry in self.document.entries:
            apart = frozenset(name for name, owner in owners.items() if owner != entry.id)
            for message, fix in error_differences(entry, by_entry.get(entry.id, []), self.graph, apart):
                self._add(entry, _errors_line(entry), codes.RAISE, f"entry {entry.number}: {message}", fix)

    def _coverage(self, pairs: list[tuple[Documented, Place]]) -> Coverage:
        if self.only is not None:
            return Coverage()
        documented = {place.full_name for _, place in pairs}
        self._constructors(documented, pairs)
        surface = surface_of(self.document, self.code)
        for each in surface.reached:
            if each.place.full_name not in documented:
                self.findings.append(_undocumented(each))
        inside = tuple(name for name in surface.inside if name not in documented)
        modules = tuple(module.name for module in self.roots)
        return Coverage(surface.reached, frozenset(documented), inside, modules)

    def _constructors(self, documented: set[str], pairs: list[tuple[Documented, Place]]) -> None:
        for each, place in pairs:
            constructor = place.module.definitions.get(f"{place.definition.name}.__init__")
            if each.definition.kind != "class" or constructor is None or len(constructor.parameters) < 2:
                continue
            if f"{place.module.name}.{constructor.name}" not in documented:
                message = f"{each.definition.name}: its `__init__` takes arguments and is not shown ({place.where})"
                self._add(each.entry, each.line, codes.UNDOCUMENTED, message, "Show `def __init__` in the fence.")


def _undocumented(each: Reached) -> Finding:
    place = each.place
    shown = each.name if each.name == place.full_name else f"{each.name} (defined as {place.full_name})"
    message = f"{shown} is public and Section 5 does not define it: {each.why}"
    fix = "Document it, or make it private with a leading underscore."
    return Finding(place.module.shown, place.definition.line, 1, codes.UNDOCUMENTED, message, "error", fix)


def not_started(document: Document) -> frozenset[str]:
    """Ids of the entries whose rows in Section 6 all say NOT_STARTED."""
    statuses: dict[str, set[str]] = {}
    for step in document.steps:
        for method in step.methods:
            entry = document.entry_of(method)
            if entry:
                statuses.setdefault(entry.id, set()).add(method.status)
    return frozenset(ident for ident, found in statuses.items() if found == {"NOT_STARTED"})


def _errors_line(entry: Entry) -> int:
    return entry.fields["errors"].line if "errors" in entry.fields else entry.line


def _relative(path: Path, root: Path) -> str:
    path = path.resolve()
    return path.relative_to(root.resolve()).as_posix() if path.is_relative_to(root.resolve()) else str(path)
