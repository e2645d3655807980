"""The environment of an agent's program: whatever tells a program where it is points at the tree.

Some programs trust `PWD`, or a variable of a tool that knows the project, over the folder they were started in, and
would work in the person's own files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

# Where programs and modules are found: the project's own interpreter and packages may lie in the project.
_SEARCHED = frozenset(
    {"PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT", "LD_LIBRARY_PATH"}
)


def in_tree(environment: Mapping[str, str], project: Path, tree: Path) -> dict[str, str]:
    """The environment with each path into `project` made one into `tree`, and without git's own variables."""
    found: dict[str, str] = {}
    for name, value in environment.items():
        if name.startswith("GIT_"):
            continue
        inside = _below(value, project) if name not in _SEARCHED else None
        found[name] = value if inside is None else str(tree / inside)
    return {**found, "PWD": str(tree), "OLDPWD": str(tree)}


def _below(value: str, project: Path) -> Path | None:
    """The path relative to the project that a value names, followed through links."""
    if not os.path.isabs(value):
        return None
    for place, root in ((Path(value), project), (Path(os.path.realpath(value)), project.resolve())):
        if place.is_relative_to(root):
            return place.relative_to(root)
    return None
