"""The step that a command is about: its project, document and files."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from pathlib import Path

from codegen.diagnostics import UsageError
from codegen.document.edit import find_step
from codegen.document.locate import find_document, project_root
from codegen.document.model import Document, Entry, Step
from codegen.document.parse import read_document
from codegen.document.staleness import step_status
from codegen.workflow.config import StepConfig, load_config
from codegen.workflow.records import record_path, whole_step


@dataclass(frozen=True)
class Target:
    """One step of one document, as it was when read."""

    root: Path
    document: Document
    step: Step
    config: StepConfig

    @property
    def document_path(self) -> str:
        """Path of the document relative to the project."""
        path = self.document.path.resolve()
        if not path.is_relative_to(self.root):
            raise UsageError(f"{path}: lies outside the project {self.root}")
        return path.relative_to(self.root).as_posix()

    @property
    def brief_path(self) -> str:
        """Path of the step's brief, later of its record, relative to the project."""
        return record_path(self.document, self.step.number)

    @property
    def entries(self) -> list[Entry]:
        """The entries of the step's methods, each once, in order. UsageError: a method has no entry."""
        found: dict[str, Entry] = {}
        for method in self.step.methods:
            entry = self.document.entry_of(method)
            if entry is None:
                place = f"{self.document.path}:{method.line}"
                raise UsageError(f"{place}: `{method.name}` ({method.section}) is not in Section 5; correct the row")
            found[entry.id] = entry
        return list(found.values())

    @property
    def names(self) -> frozenset[str]:
        """Every name that the step's entries define."""
        return frozenset(name for entry in self.entries for name in (entry.id, *entry.contracts))

    @property
    def own_paths(self) -> list[str]:
        """Patterns of what the step's commit may touch: its files, the document, the brief."""
        return [*self.step.files, self.document_path, self.brief_path]

    def again(self) -> Target:
        """The same step, read once more."""
        return target_of(self.root, read_document(self.document.path), self.step.number, self.config)


def find_target(number: int, name: str | None = None, root: Path | None = None) -> Target:
    """Step `number` of the named document, or of the project's only one."""
    root = (root or project_root(Path.cwd())).resolve()
    document = read_document(find_document(name, root))
    return target_of(root, document, number, load_config(root))


def target_of(root: Path, document: Document, number: int, config: StepConfig) -> Target:
    """Step `number` of a document that was read; of a finished one with what its record holds."""
    return Target(root, document, whole_step(root, document, find_step(document, number)), config)


def belongs(path: str, patterns: list[str]) -> bool:
    """Whether a path is one of these files, lies in one of these folders, or matches one of these globs."""
    return any(
        path == pattern or path.startswith(pattern.rstrip("/") + "/") or fnmatch.fnmatchcase(path, pattern)
        for pattern in patterns
    )


def waits_for(document: Document, step: Step) -> list[Step]:
    """The steps that must be done before this one and are not (or no longer)."""
    found = [document.step_by_number[number] for number in step.depends if number in document.step_by_number]
    return [each for each in found if step_status(document, each) != "DONE"]
