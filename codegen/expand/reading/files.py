"""Find Python files, and replace one: whole, atomically, and only if it is still what was read."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Sequence

from codegen.diagnostics import UsageError

SUFFIXES = (".py", ".pyi")


def find_files(paths: Sequence[str], exclude: Sequence[str] = ()) -> Iterator[str]:
    """The named files, and the Python files under the named folders in a fixed order, each once.

    Hidden folders, `__pycache__` and linked folders are not entered. `exclude` holds glob patterns for a path or
    any part of it. Raises UsageError for a path that does not exist.
    """
    seen: set[str] = set()
    for path in paths:
        if os.path.isdir(path):
            found: Iterator[str] = _walk(path, exclude)
        elif os.path.exists(path):
            found = iter([path])
        else:
            raise UsageError(f"{path}: no such file or folder")
        for name in found:
            if name not in seen:
                seen.add(name)
                yield name


def _walk(folder: str, exclude: Sequence[str]) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except PermissionError as error:
        raise UsageError(f"{folder}: {error.strerror}") from error
    for entry in entries:
        if exclude and _excluded(entry.path, entry.name, exclude):
            continue
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith(".") and entry.name != "__pycache__":
                yield from _walk(entry.path, exclude)
        elif entry.name.endswith(SUFFIXES) and entry.is_file():
            yield entry.path


def _excluded(path: str, name: str, exclude: Sequence[str]) -> bool:
    return any(fnmatch.fnmatch(name, glob) or fnmatch.fnmatch(path, glob) for glob in exclude)


def read_bytes(path: str) -> bytes:
    """The file's bytes. Raises UsageError when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
