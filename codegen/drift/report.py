"""Section 5 of a design document against the code it describes.

An entry whose row in Section 6 says NOT_STARTED is pending: its differences are notes. Everything else that differs
is an error. Coverage counts the public callables (functions, classes, methods; no part private) of the document's
`roots`: one is covered when some fence of Section 5 defines it.
"""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from codegen.diagnostics import Finding, Severity
from codegen.document.model import Document, Entry
from codegen.drift import compare as codes
from codegen.drift.calls import CallGraph
from codegen.drift.code import Code, Module, Place, is_public_module
from codegen.drift.compare import Strictness, compare
from codegen.drift.raises import error_differences
from codegen.drift.section import Documented, documented_definitions, place_of


@dataclass(frozen=True)
class Coverage:
    """Public callables of the roots, and which of them Section 5 defines; by module, dotted names in source order."""

    covered: dict[str, tuple[str, ...]]
    uncovered: dict[str, tuple[str, ...]]

    @property
    def covered_count(self) -> int:
        return sum(map(len, self.covered.values()))

    @property
    def total(self) -> int:
        return self.covered_count + sum(map(len, self.uncovered.values()))


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
        self.roots = root_modules(self.document, self.code)
        self.graph = CallGraph(self.code, self.roots)

    def report(self) -> DriftReport:
        definitions, bad = documented_definitions(self.document)
        if self.only is None:
            self._missing_roots()
        for fence in bad:
            if self._wanted(fence.entry):
                message = f"entry {fence.entry.id}: the fence is not valid Python: {fence.reason}"
                self._add(fence.entry, fence.line, codes.FENCE, message, "Mend the code; a body may be `...`.")
        pairs = self._pairs([each for each in definitions if self._wanted(each.entry)])
        self._missing_signatures(definitions, {fence.entry.id for fence in bad})
        full = {
            place.full_name for documented, place in pairs if not documented.definition.elided or documented.promises
        }
        for documented, place in pairs:
            for difference in compare(documented.definition, place.definition, Strictness()):
                line = documented.fence_line + difference.line
                self._add(documented.entry, line, difference.code, f"{difference.message} ({place.where})")
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
                    message = f"entry {entry.id}: no Python fence defines `{local}`, so it cannot be compared"
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

    def _errors(self, pairs: list[tuple[Documented, Place]]) -> None:
        by_entry: dict[str, list[tuple[Documented, Place]]] = {}
        for documented, place in pairs:
            by_entry.setdefault(documented.entry.id, []).append((documented, place))
        for entry in self.document.entries:
            for message, fix in error_differences(entry, by_entry.get(entry.id, []), self.graph):
                self._add(entry, _errors_line(entry), codes.RAISE, f"entry {entry.id}: {message}", fix)

    def _coverage(self, pairs: list[tuple[Documented, Place]]) -> Coverage:
        if self.only is not None:
            return Coverage({}, {})
        documented = {place.full_name for _, place in pairs}
        self._constructors(documented, pairs)
        covered: dict[str, tuple[str, ...]] = {}
        uncovered: dict[str, tuple[str, ...]] = {}
        for module in self.roots:
            public = public_callables(module)
            covered[module.name] = tuple(name for name in public if f"{module.name}.{name}" in documented)
            uncovered[module.name] = tuple(name for name in public if f"{module.name}.{name}" not in documented)
            for name in uncovered[module.name]:
                message = f"{module.name}.{name} is public and Section 5 does not define it"
                fix = "Document it, or make it private with a leading underscore."
                line = module.definitions[name].line
                self.findings.append(Finding(module.shown, line, 1, codes.UNDOCUMENTED, message, "error", fix))
        return Coverage(covered, uncovered)

    def _constructors(self, documented: set[str], pairs: list[tuple[Documented, Place]]) -> None:
        for each, place in pairs:
            constructor = place.module.definitions.get(f"{place.definition.name}.__init__")
            if each.definition.kind != "class" or constructor is None or len(constructor.parameters) < 2:
                continue
            if f"{place.module.name}.{constructor.name}" not in documented:
                message = f"{each.definition.name}: its `__init__` takes arguments and is not shown ({place.where})"
                self._add(each.entry, each.line, codes.UNDOCUMENTED, message, "Show `def __init__` in the fence.")


def public_callables(module: Module) -> list[str]:
    """Names of the functions, classes and methods that a module offers, in source order."""
    if not is_public_module(module.name):
        return []
    return [name for name, each in module.definitions.items() if each.is_public]


def root_modules(document: Document, code: Code) -> list[Module]:
    """The modules below a document's roots, in their order; roots without code are left out."""
    roots = [root for root in document.front.roots if has_root(code, root)]
    found = {module.name: module for root in roots for module in code.modules_under(root)}
    return list(found.values())


def has_root(code: Code, root: str) -> bool:
    """Whether there is code at a root yet."""
    return (code.root / root).exists() or (code.root / f"{root}.py").is_file()


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
