"""Find the documents of a project, and the project of a document."""

from __future__ import annotations

from pathlib import Path

from codegen.diagnostics import UsageError
from codegen.document.model import Document
from codegen.document.parse import read_document

FOLDER = "design"
MARKS = ("pyproject.toml", ".git", FOLDER)


def project_root(start: Path) -> Path:
    """The nearest folder at or above `start` that holds a pyproject.toml, .git or design folder; else `start`."""
    start = start.resolve()
    folder = start if start.is_dir() else start.parent
    for candidate in (folder, *folder.parents):
        if any((candidate / mark).exists() for mark in MARKS):
            return candidate
    return folder


def document_paths(root: Path) -> list[Path]:
    """The documents of a project's design folder, by name."""
    return documents_in(root / FOLDER)


def documents_in(folder: Path) -> list[Path]:
    """The Markdown files of a folder that begin with a front matter, by name."""
    found: list[Path] = []
    for path in sorted(folder.glob("*.md")):
        with path.open("rb") as stream:
            if stream.readline().lstrip(b"\xef\xbb\xbf").rstrip() == b"---":
                found.append(path)
    return found


def find_document(name: str | None, root: Path) -> Path:
    """The document with this path or id; without a name, the only one of the project.

    Raises UsageError when there is none, or more than one to choose from.
    """
    paths = document_paths(root)
    if name is not None:
        for candidate in (Path(name), root / FOLDER / f"{name}.md"):
            if candidate.is_file():
                return candidate
        for path in paths:
            if read_document(path).front.id == name:
                return path
    known = ", ".join(path.stem for path in paths)
    if name is not None:
        raise UsageError(
            f"there is no design document {name!r} (neither a file nor an id); there are: {known or 'none'}"
        )
    if len(paths) == 1:
        return paths[0]
    if not paths:
        raise UsageError(f"{root / FOLDER}: there is no design document; make one with `codegen new ID`")
    raise UsageError(f"which document? name one of {known}")


def find_documents(names: list[str], root: Path) -> list[Document]:
    """The documents named, or all of the project. Raises UsageError when there is none."""
    paths = [find_document(name, root) for name in names] or document_paths(root)
    if not paths:
        find_document(None, root)
    return [read_document(path) for path in paths]
