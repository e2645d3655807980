"""The project around the files: its folder, its library, and its `[tool.codegen]` settings."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codegen.diagnostics import UsageError
from codegen.expand.model import Options


@dataclass(frozen=True)
class Settings:
    """What pyproject.toml says under `[tool.codegen]`: `exclude`, `ast-mode`, `guard`, `width`."""

    folder: Path
    exclude: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)


def find_project(start: Path) -> Path:
    """The nearest folder at or above `start` that has a pyproject.toml or a validation_patterns folder."""
    for folder in (start, *start.parents):
        if (folder / "pyproject.toml").is_file() or (folder / "validation_patterns").is_dir():
            return folder
    return start


def read_settings(folder: Path) -> Settings:
    """Read the project's settings. Raises UsageError naming the key that is wrong."""
    path = folder / "pyproject.toml"
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Settings(folder)
    if b"tool" not in data:
        return Settings(folder)
    try:
        whole = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error
    table = whole
    for key in ("tool", "codegen"):
        table = table.get(key, {})
        if not isinstance(table, dict):
            raise UsageError(f"{path}: {key} is {table!r}; [tool.codegen] is a table")
    exclude = table.get("exclude", [])
    if not isinstance(exclude, list) or not all(isinstance(glob, str) for glob in exclude):
        raise UsageError(f"{path}: tool.codegen.exclude is {exclude!r}; give a list of glob patterns")
    mode = table.get("ast-mode", "assert")
    if mode not in ("assert", "raise"):
        raise UsageError(f'{path}: tool.codegen.ast-mode is {mode!r}; give "assert" or "raise"')
    guard = table.get("guard", Options.guard)
    if guard not in ("untyped", "never"):
        raise UsageError(f'{path}: tool.codegen.guard is {guard!r}; give "untyped" or "never"')
    width = table.get("width", Options.width)
    if not isinstance(width, int) or isinstance(width, bool) or not 40 <= width <= 400:
        raise UsageError(f"{path}: tool.codegen.width is {width!r}; give a number from 40 to 400")
    line = None if "width" in table else _formatters_line(whole.get("tool", {}))
    return Settings(folder, tuple(exclude), Options(ast_mode=mode, guard=guard, width=width, line=line))


def _formatters_line(tools: dict[str, Any]) -> int | None:
    """The line length of ruff or black, if the project says one that a block can keep to."""
    for name in ("ruff", "black"):
        table = tools.get(name)
        length = table.get("line-length") if isinstance(table, dict) else None
        if isinstance(length, int) and not isinstance(length, bool) and 40 <= length <= 400:
            return length
    return None
