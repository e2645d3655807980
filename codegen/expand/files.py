"""Find Python files, and replace one: whole, atomically, and only if it is still what was read."""

from __future__ import annotations

import fnmatch
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from codegen.diagnostics import UsageError

SUFFIXES = (".py", ".pyi")


class NotWritten(Exception):
    """The file was left as it is; the message says why, `fix` what to do."""

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(reason)
        self.fix = fix


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


def replace_file(path: str, old: bytes, new: bytes) -> None:
    """Put `new` in place of `old`. A symbolic link stays one; mode and owner stay. Raises NotWritten."""
    target = Path(path).resolve()
    known = target.stat()
    if not known.st_mode & 0o222 or not os.access(target, os.W_OK):
        raise NotWritten("the file is read-only", "Make it writable.")
    if known.st_nlink > 1:
        fix = "Give this name a copy of its own, or expand where the file comes from."
        raise NotWritten(f"the file has {known.st_nlink} names (hard links), and they would part", fix)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(new)
            file.flush()
            os.fsync(file.fileno())
        made = os.stat(temporary)
        if (made.st_uid, made.st_gid) != (known.st_uid, known.st_gid):
            _give(temporary, known)
        os.chmod(temporary, known.st_mode & 0o7777)
        if target.read_bytes() != old:
            raise NotWritten("the file changed while it was being expanded", "Run the command again.")
        os.replace(temporary, target)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _give(path: str, like: os.stat_result) -> None:
    try:
        os.chown(path, like.st_uid, like.st_gid)
    except PermissionError as error:
        raise NotWritten("the file is another user's or group's, and would change hands", "Be its owner.") from error
