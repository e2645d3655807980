"""The library: the patterns that ship with the tool, overlaid by the project's own.

A file is read when its pattern is first asked for, so a run pays only for the patterns it uses. A project's
pattern hides the shipped one of the same id, and may extend it by that very id.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from codegen.diagnostics import UsageError
from codegen.patterns.files import FOLDER, Draft, read_draft, shipped_folder
from codegen.patterns.model import Parameter, Pattern, PatternFileError, UnknownPattern

SHIPPED_TAGS = frozenset({"VAL", "AST"})
_INHERITED = (
    "tag", "description", "target", "elementwise", "placement", "error", "message", "template", "imports",
    "builtins", "cost",
)  # fmt: skip


def load_library(project_dir: Path | None = None) -> Library:
    """The shipped library, overlaid by `<project_dir>/validation_patterns/` if that is another folder.

    Raises PatternFileError when two files of one layer share an id.
    """
    shipped = shipped_folder()
    layers = [_index(shipped)]
    if project_dir is not None:
        own = project_dir / FOLDER
        if own.is_dir() and own.resolve() != shipped.resolve():
            layers.append(_index(own))
    return Library(tuple(layers))


@dataclass(frozen=True)
class Library:
    """Patterns by id. `layers` are the indexes id → file, the shipped one first."""

    layers: tuple[dict[str, Path], ...]
    _cache: dict[tuple[str, int], Pattern] = field(default_factory=dict, repr=False, compare=False)

    def get(self, id: str) -> Pattern:
        """The pattern of that id. Raises UnknownPattern, or PatternFileError if its file is broken."""
        for layer in reversed(range(len(self.layers))):
            if id in self.layers[layer]:
                return self._resolve(id, layer, ())
        raise UnknownPattern(id, difflib.get_close_matches(id, self.ids(), n=3, cutoff=0.6))

    __getitem__ = get

    def ids(self) -> list[str]:
        """All ids, sorted; reads no file."""
        return sorted(set().union(*self.layers))

    def tags(self) -> frozenset[str]:
        """All tags in use. Shipped patterns use VAL and AST only; a project's own files are read for theirs."""
        own = {self.get(id).tag for layer in self.layers[1:] for id in layer}
        return SHIPPED_TAGS | own

    def fingerprint(self) -> str:
        """Hash of all files of the library, for callers that cache what they rendered: 64 hex digits."""
        hashed = hashlib.sha256()
        for layer in self.layers:
            for id, path in sorted(layer.items()):
                data = path.read_bytes()
                hashed.update(f"{id} {len(data)}\n".encode() + data)
            hashed.update(b"end of layer\n")
        return hashed.hexdigest()

    def __contains__(self, id: object) -> bool:
        return any(id in layer for layer in self.layers)

    def __len__(self) -> int:
        return len(self.ids())

    def __iter__(self) -> Iterator[Pattern]:
        """All patterns by id. Raises PatternFileError with the findings of all broken files at once."""
        patterns, findings = [], []
        for id in self.ids():
            try:
                patterns.append(self.get(id))
            except PatternFileError as error:
                findings += [f for f in error.findings if f not in findings]
        if findings:
            raise PatternFileError(findings)
        return iter(patterns)

    def _resolve(self, id: str, layer: int, below: tuple[tuple[str, int], ...]) -> Pattern:
        if (id, layer) in self._cache:
            return self._cache[id, layer]
        draft = read_draft(self.layers[layer][id])
        parent = None
        if draft.extends is not None:
            above = self._layer_of(draft.extends, layer - 1 if draft.extends == id else len(self.layers) - 1)
            if above is None:
                raise PatternFileError([draft.finding("extends", f"extends unknown pattern {draft.extends}")])
            if (draft.extends, above) in (*below, (id, layer)):
                raise PatternFileError([draft.finding("extends", f"{id} extends itself through {draft.extends}")])
            parent = self._resolve(draft.extends, above, (*below, (id, layer)))
        pattern = _complete(draft, parent)
        self._cache[id, layer] = pattern
        return pattern

    def _layer_of(self, id: str, top: int) -> int | None:
        return next((n for n in reversed(range(top + 1)) if id in self.layers[n]), None)


def digest(pattern: Pattern) -> str:
    """Hash of all that influences the rendered text: 64 hex digits."""
    kept = asdict(pattern)
    for name in ("summary", "description", "group", "since", "extends", "cost", "examples", "digest", "path"):
        del kept[name]
    for parameter in kept["parameters"]:
        del parameter["help"]
    return hashlib.sha256(json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _complete(draft: Draft, parent: Pattern | None) -> Pattern:
    """Fill in what the file leaves out, from the parent or the model's defaults, and check the whole."""
    given = dict(draft.fields)
    if parent is not None:
        for name in _INHERITED:
            given.setdefault(name, getattr(parent, name))
    for name in ("tag", "message", "template"):
        if name not in given:
            raise PatternFileError([draft.finding("id", f"{draft.id} has no {name!r}", f"Add `{name}:`.")])
    inherited = parent.parameters if parent else ()
    given["parameters"] = _merge(draft, inherited)
    pattern = Pattern(**given)
    findings = draft.problems(pattern)
    if findings:
        raise PatternFileError(findings)
    return replace(pattern, digest=digest(pattern))


def _merge(draft: Draft, inherited: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    merged = {p.name: p for p in inherited}
    for index, changes in enumerate(draft.parameters):
        name = changes["name"]
        if name in merged:
            merged[name] = replace(merged[name], **changes)
        elif "type" not in changes:
            message = f"parameter {name!r} has no type"
            raise PatternFileError([draft.finding(("parameters", index), message, "Add `type:`.")])
        else:
            merged[name] = Parameter(**changes)
    return tuple(merged.values())


def _index(folder: Path) -> dict[str, Path]:
    index: dict[str, Path] = {}
    for path in sorted(folder.rglob("*.yaml")):
        if path.stem in index:
            raise UsageError(f"{path}: {path.stem} is also defined in {index[path.stem]}; keep one of them")
        index[path.stem] = path
    return index
