"""The commands and entry points of a project: `module:name` objects that something outside of Python calls by name.

Read from `pyproject.toml` (PEP 621, Poetry), `setup.cfg`, and the `entry_points.txt` of an installed package.
"""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codegen.diagnostics import UsageError


def entry_points(root: Path) -> dict[str, str]:
    """Full dotted name of each object behind a command → what is called so (`command codegen`).

    UsageError: a file that declares them cannot be read.
    """
    found: dict[str, str] = {}
    for what, target in (*_of_pyproject(root / "pyproject.toml"), *_of_ini_files(root)):
        module, _, name = target.partition("[")[0].partition(":")
        if module.strip() and name.strip():
            found.setdefault(f"{module.strip()}.{name.strip()}", what)
    return found


def _of_pyproject(path: Path) -> Iterator[tuple[str, str]]:
    if not path.is_file():
        return
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: is not TOML: {error}") from error
    project, poetry = _table(content, "project"), _table(content, "tool", "poetry")
    for table in (_table(project, "scripts"), _table(project, "gui-scripts"), _table(poetry, "scripts")):
        yield from ((f"command {name}", value) for name, value in table.items() if isinstance(value, str))
    for groups in (_table(project, "entry-points"), _table(poetry, "plugins")):
        for group in groups:
            for name, value in _table(groups, group).items():
                if isinstance(value, str):
                    yield f"entry point {name}", value


def _table(content: dict[str, Any], *keys: str) -> dict[str, Any]:
    for key in keys:
        inner = content.get(key)
        content = inner if isinstance(inner, dict) else {}
    return content


def _of_ini_files(root: Path) -> Iterator[tuple[str, str]]:
    installed = sorted([*root.glob("*.dist-info/entry_points.txt"), *root.glob("*.egg-info/entry_points.txt")])
    for path in installed:
        parser = _ini(path)
        for group in parser.sections():
            what = "command" if group in ("console_scripts", "gui_scripts") else "entry point"
            yield from ((f"{what} {name}", value) for name, value in parser.items(group))
    setup = root / "setup.cfg"
    if setup.is_file():
        parser = _ini(setup)
        if parser.has_section("options.entry_points"):
            for group, lines in parser.items("options.entry_points"):
                what = "command" if group in ("console_scripts", "gui_scripts") else "entry point"
                for line in lines.splitlines():
                    name, is_given, value = line.partition("=")
                    if is_given:
                        yield f"{what} {name.strip()}", value


def _ini(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), strict=False)
    parser.optionxform = str  # type: ignore[method-assign,assignment]
    try:
        parser.read_string(path.read_text(encoding="utf-8"), str(path))
    except (UnicodeDecodeError, configparser.Error) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    return parser
