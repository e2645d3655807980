"""Replace a file: whole, atomically, and only if it is still what was read."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


class NotWritten(Exception):
    """The file was left as it is; the message says why, `fix` what to do."""

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(reason)
        self.fix = fix


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
