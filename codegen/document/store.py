"""Write a document: whole or not at all, by one writer at a time, and read again.

A write makes a temporary file beside the document, syncs it and renames it over the old one; a kill at any moment
leaves the old text or the new one. A lock file beside the document (`.name.lock`, held with flock, so that a killed
process frees it) keeps a second process out and tells it who holds it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from codegen.diagnostics import UsageError
from codegen.document.model import Document
from codegen.document.parse import read_document, read_text

SIGNING = 1.0
_held: dict[Path, int] = {}


class DocumentBusy(UsageError):
    """Another process (or thread) is changing the document."""


class DocumentChanged(UsageError):
    """The document is no longer the one the edit was made from."""


@contextlib.contextmanager
def document_lock(path: Path, doing: str = "", wait: float = 0.0) -> Iterator[None]:
    """Hold the document for this thread; again inside the same thread is allowed.

    Waits up to `wait` seconds, then raises DocumentBusy naming the process that holds it.
    """
    real = Path(path).resolve()
    thread = threading.get_ident()
    if _held.get(real) == thread:
        yield
        return
    lock = real.with_name(f".{real.name}.lock")
    descriptor = _acquire(lock, real, wait)
    try:
        _held[real] = thread
        who = f"process {os.getpid()} on {socket.gethostname()} ({doing or _command()})\n"
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, who.encode(), 0)
        yield
    finally:
        _held.pop(real, None)
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(lock: Path, document: Path, wait: float) -> int:
    begun = time.monotonic()
    while True:
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UsageError(f"{document}: cannot be locked: {lock}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 400, 0).decode("utf-8", "replace").strip()
            os.close(descriptor)
            # a holder that has just come needs a moment to write down who it is
            if time.monotonic() >= begun + (wait if holder else max(wait, SIGNING)):
                name = holder or "another process"
                raise DocumentBusy(f"{document}: held by {name}; try again when it is done") from None
            time.sleep(0.02)
            continue
        # The holder before us removes the file when it leaves: a lock on a removed file excludes nobody.
        if _is_file(lock, descriptor):
            return descriptor
        os.close(descriptor)


def _is_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _command() -> str:
    return " ".join([Path(sys.argv[0]).name, *sys.argv[1:3]]).strip() or "python"


def write_document(path: Path, text: str, expected_old_text: str | None) -> None:
    """Replace the document's text.

    Raises DocumentChanged when the file does not hold `expected_old_text` any more (None: when it exists), DocumentBusy
    when another process holds it, OSError when the disk refuses; then the old file stands.
    """
    real = Path(path).resolve()
    with document_lock(real):
        _check_unchanged(real, expected_old_text)
        replace_file(real, text.encode("utf-8"))
        if read_text(real) != text:
            raise OSError(f"{real}: what was written does not read back; restore it from version control")


def _check_unchanged(path: Path, expected: str | None) -> None:
    if expected is None:
        if path.exists():
            raise DocumentChanged(f"{path}: exists already; nothing was written")
    elif not path.exists():
        raise DocumentChanged(f"{path}: was removed meanwhile; nothing was written")
    elif read_text(path) != expected:
        raise DocumentChanged(f"{path}: was changed by someone else meanwhile; nothing was written, run again")


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` in the place of a file in one step; its mode is kept. Leftovers of killed writers are removed."""
    for leftover in path.parent.glob(f".{path.name}.*.tmp"):
        leftover.unlink(missing_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    mode = path.stat().st_mode & 0o7777 if path.exists() else None
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if mode is not None:
                os.fchmod(stream.fileno(), mode)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:  # whatever ended it, Ctrl-C included: nothing half-written is left beside the document
        temporary.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def update_document(path: Path, change: Callable[[Document], str], doing: str = "") -> Document:
    """Read, change and write a document under its lock, and return it as read again. No write when nothing changed."""
    with document_lock(path, doing):
        document = read_document(path)
        text = change(document)
        if text != document.text:
            write_document(path, text, document.text)
        return read_document(path)
