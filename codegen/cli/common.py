"""What several commands need: documents by name, diffs, the date."""

from __future__ import annotations

import datetime
import difflib
from pathlib import Path

from codegen.document.blocks import split_lines
from codegen.document.locate import document_paths, documents_in, find_document
from codegen.document.model import Document


def chosen(names: list[str], root: Path, one: bool = False) -> list[Path]:
    """The paths of the documents named, or of all in the project; with `one` there must be a single one."""
    paths = [path for name in names for path in _named(name, root)] if names else document_paths(root)
    if not paths or (one and not names):
        paths = [find_document(None, root)]
    return [shown(path) for path in paths]


def _named(name: str, root: Path) -> list[Path]:
    """The document of that name, or those of a folder; a folder without documents may still be the id of one."""
    folder = Path(name)
    return (documents_in(folder) if folder.is_dir() else []) or [find_document(name, root)]


def shown(path: Path) -> Path:
    """The path as a person in this folder would write it."""
    absolute = path.resolve()
    return absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else path


def difference(document: Document, text: str) -> list[str]:
    """A unified diff from a document to a new text, one string a line."""
    name = str(document.path)
    old, new = split_lines(document.text), split_lines(text)
    return list(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"))


def today() -> str:
    """The date here, as 2026-01-31."""
    return datetime.date.today().isoformat()
