"""Settings with which ruff accepts annotations and generated code: what a project lacks, and its file with them.

Ruff cannot leave rules out of single blocks, so these hold for the whole project; that is the project's to decide, and
nothing is written unasked. A file is only changed where its TOML then says what it said, and the settings besides.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codegen.diagnostics import UsageError

RULES = {
    "S101": "claims are asserts",
    "EM101": "messages are written where they are raised",
    "EM102": "messages are written where they are raised",
    "EM103": "messages are written where they are raised",
    "TRY003": "messages say which rule was broken",
    "PLR2004": "bounds are written in the check",
}
_OWN_FILES = (".ruff.toml", "ruff.toml")


@dataclass(frozen=True)
class Offer:
    """What a project's linter settings lack: `missing` by key, `toml` to paste, `new` the whole file with them.

    `new` is None when the file cannot be changed safely, or lacks nothing.
    """

    path: Path
    missing: Mapping[str, tuple[str, ...]]
    toml: str
    old: bytes
    new: bytes | None


def offer_settings(folder: Path, tags: Iterable[str]) -> Offer:
    """Compare the project's settings with those that annotations need. Raises UsageError where it is not TOML."""
    path = next((folder / name for name in _OWN_FILES if (folder / name).is_file()), folder / "pyproject.toml")
    table = ("lint",) if path.name in _OWN_FILES else ("tool", "ruff", "lint")
    old = path.read_bytes() if path.is_file() else b""
    try:
        text = old.decode("utf-8")
        before = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {error}; correct it, then ask again") from error
    now = _at(before, table)
    missing = {
        key: found
        for key, values in (("task-tags", sorted(tags, reverse=True)), ("ignore", list(RULES)))
        if (found := tuple(value for value in values if not _holds(now.get(key, ()), value)))
    }
    lines = [f"{key} = {json.dumps(values)}" for key, values in missing.items()]
    toml = "".join(f"{line}\n" for line in [f"[{'.'.join(table)}]", *lines]) if missing else ""
    new = _with_lines(text, table, lines) if missing and not missing.keys() & now.keys() else None
    safe = new is not None and _says(new, before, table, missing)
    return Offer(path, missing, toml, old, new.encode("utf-8") if new is not None and safe else None)


def _at(data: Any, table: tuple[str, ...]) -> dict[str, Any]:
    for name in table:
        data = data.get(name) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def _holds(values: Any, wanted: str) -> bool:
    """Whether a list of rules or tags holds one; a rule's prefix means all rules that begin with it."""
    letters = wanted.rstrip("0123456789")
    return isinstance(values, list | tuple) and any(
        value == "ALL"
        or (value == "PL" and letters == "PLR")
        or (wanted.startswith(value) and len(value) >= len(letters))
        for value in map(str, values)
    )


def _with_lines(text: str, table: tuple[str, ...], lines: list[str]) -> str:
    """The file with the lines below the table's header, or with the table at its end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    added = "".join(line + newline for line in lines)
    name = r"[ \t]*\.[ \t]*".join(table)
    header = re.search(rf"^[ \t]*\[[ \t]*{name}[ \t]*\][^\n]*\n", text, re.MULTILINE)
    if header:
        return text[: header.end()] + added + text[header.end() :]
    gap = "" if not text else newline if text.endswith("\n") else 2 * newline
    return f"{text}{gap}[{'.'.join(table)}]{newline}{added}"


def _says(text: str, before: dict[str, Any], table: tuple[str, ...], missing: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a text says what the file said, and the missing settings besides."""
    try:
        after = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    added = _at(after, table)
    if any(added.pop(key, None) != list(values) for key, values in missing.items()):
        return False
    return _pruned(after) == _pruned(before)


def _pruned(data: Any) -> Any:
    """The data without empty tables."""
    if not isinstance(data, dict):
        return data
    kept = {key: _pruned(value) for key, value in data.items()}
    return {key: value for key, value in kept.items() if value != {}}
