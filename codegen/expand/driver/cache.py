"""Remembers which file contents are known to be FRESH without any finding, so that a warm check only hashes them,
and what each block was made from, so that a stale one can say what changed.

The memory of contents is valid for one tool, one Python, one pattern library and one set of options; anything else
starts it again. It lives in `.codegen_cache/` of the project, which ignores itself for git, and losing it costs time.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path

from codegen.expand.model import Options

FOLDER = ".codegen_cache"
LIBRARY = "validation_patterns"
MAX_ENTRIES = 200_000


class Cache:
    """Known clean contents for one key."""

    def __init__(self, path: Path | None, key: str) -> None:
        self.path, self.key = path, key
        self.tags: list[str] | None = None
        self._clean: dict[str, int] = {}
        self._origins: dict[str, list[str]] = {}
        self._changed = False
        if path is not None:
            self._load(path)

    def _load(self, path: Path) -> None:
        try:
            stored = json.loads(path.read_bytes())
        except (FileNotFoundError, ValueError):
            return
        if not isinstance(stored, dict):
            return
        self._origins = stored.get("origins", {})
        if stored.get("key") == self.key:
            self.tags = stored["tags"]
            self._clean = stored["clean"]

    def sites_of(self, mark: str) -> int | None:
        """How many sites content with that mark has, all FRESH; None when it is not known to be clean."""
        return self._clean.get(mark)

    def add(self, mark: str, sites: int) -> None:
        """Remember content as clean."""
        if mark not in self._clean:
            self._clean[mark] = sites
            self._changed = True

    def learn(self, seal: str, origin: tuple[str, str]) -> None:
        """Remember what a block with that seal was made from."""
        if seal and self._origins.get(seal) != list(origin):
            self._origins[seal] = list(origin)
            self._changed = True

    def change_since(self, seal: str, origin: tuple[str, str]) -> str:
        """What changed since a block was made, in words; "" when that is not remembered."""
        if seal not in self._origins:
            return ""
        items, patterns = self._origins[seal]
        if items != origin[0]:
            return f"the annotation was `{items}`"
        return "its pattern changed" if patterns != origin[1] else "the code around it changed"

    def save(self, tags: frozenset[str]) -> None:
        """Write the memory if it changed. Raises OSError when the folder cannot be written."""
        if self.path is None or not self._changed:
            return
        folder = self.path.parent
        folder.mkdir(exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        clean = dict(list(self._clean.items())[-MAX_ENTRIES:])
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"key": self.key, "tags": sorted(tags), "clean": clean, "origins": self._origins}, file)
        os.replace(temporary, self.path)


def open_cache(project: Path, fingerprint: str, options: Options, enabled: bool = True) -> Cache:
    """The project's memory for this tool, library and options."""
    parts = [_tool(), sys.version, fingerprint, repr(options)]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return Cache(project / FOLDER / "expand.json" if enabled else None, key)


def library_fingerprint(project: Path) -> str:
    """Hash of all pattern files, shipped and the project's own, without parsing one."""
    package = Path(__file__).resolve().parents[2]
    hashed = hashlib.sha256()
    for folder in (package / LIBRARY, package.parent / LIBRARY, project / LIBRARY):
        for root, folders, names in os.walk(folder):
            folders.sort()
            for name in sorted(names):
                if name.endswith((".yaml", ".json")):
                    data = Path(root, name).read_bytes()
                    hashed.update(f"{root}/{name} {len(data)}\n".encode() + data)
    return hashed.hexdigest()


def content_mark(path: str, data: bytes) -> str:
    """What identifies one file's content; stubs are judged differently from other files."""
    return hashlib.blake2b(data, digest_size=16).hexdigest() + (".pyi" if path.endswith(".pyi") else "")


def _tool() -> str:
    """The tool's own state: size and time of its source files, so that a changed tool trusts no old memory."""
    package = Path(__file__).resolve().parents[2]
    stats = []
    for room in ("expand", "patterns"):
        for path in sorted((package / room).rglob("*.py")):
            stat = path.stat()
            stats.append(f"{path.relative_to(package)} {stat.st_size} {stat.st_mtime_ns}")
    return "\n".join(stats)
