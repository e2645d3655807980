"""What was installed, with the digest of each file as it was written: so that edits by a person are recognised.

One JSON file for a project, to be committed with it, and one in the home folder for the user's own.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath

from codegen.diagnostics import UsageError
from codegen.document.store import replace_file

PATH = ".codegen/prompts.json"


@dataclass(frozen=True)
class Block:
    """A managed block: the agents that read the file, its digest, and whether the file was made for it."""

    agents: tuple[str, ...]
    digest: str
    made: bool


@dataclass
class Manifest:
    """Files by agent and path, blocks by path. Paths are relative to the folder the manifest is about."""

    files: dict[str, dict[str, str]] = field(default_factory=dict)
    blocks: dict[str, Block] = field(default_factory=dict)


def digest(text: bytes | str) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8") if isinstance(text, str) else text).hexdigest()


def read_manifest(base: Path) -> Manifest:
    """What is recorded below a folder; nothing where there is no record. UsageError: it cannot be read."""
    path = base / PATH
    if not path.exists():
        return Manifest()
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        blocks = {key: Block(tuple(b["agents"]), b["digest"], b["made"]) for key, b in data["blocks"].items()}
        files = {agent: {str(p): str(d) for p, d in entries.items()} for agent, entries in data["files"].items()}
        for name in (*blocks, *(name for entries in files.values() for name in entries)):
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise ValueError(f"{name!r} leads out of the folder")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        fix = "restore it from version control, or remove it and install again"
        raise UsageError(f"{path}: is not a record of installed prompts ({error}); {fix}") from error
    return Manifest(files, blocks)


def write_manifest(base: Path, manifest: Manifest) -> None:
    """Put the record on disk; an empty one is removed."""
    path = base / PATH
    if not any(manifest.files.values()) and not manifest.blocks:
        path.unlink(missing_ok=True)
        if path.parent.is_dir() and not any(path.parent.iterdir()):
            path.parent.rmdir()
        return
    files = {agent: dict(sorted(entries.items())) for agent, entries in sorted(manifest.files.items()) if entries}
    blocks = {key: asdict(block) for key, block in sorted(manifest.blocks.items())}
    text = json.dumps({"files": files, "blocks": blocks}, indent=2, ensure_ascii=False) + "\n"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode("utf-8"))
