"""What an agent could reach outside of its tree and must not change: it is looked at before and after, and named."""

from __future__ import annotations

import hashlib
from pathlib import Path

from codegen.agents.guard import printable
from codegen.diagnostics import Finding
from codegen.workflow.git import Git

# Written by whatever tool looks at the project, the person's editor included; `runs` is this tool's own.
_KEPT_BY_TOOLS = frozenset(
    {"runs", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".codegen_cache", ".hypothesis", ".idea"}
)


def surroundings(git: Git) -> dict[str, str]:
    """The project's changes, branches, tags, stash, hooks, git settings and ignored files, by what tells a change."""
    text = git.run("for-each-ref", "--format=ref %(refname) %(objectname)")
    found = dict(line.rsplit(" ", 1) for line in text.splitlines())
    for change in git.changes():
        found[change.path] = _digest(git.root / change.path)
    for path in git.run("ls-files", "--others", "--ignored", "--exclude-standard", "-z").split("\0"):
        if path and not _KEPT_BY_TOOLS.intersection(path.split("/")):
            found[path] = _stamp(git.root / path)
    for name in ("config", "info", "hooks"):
        place = git.root / git.run("rev-parse", "--git-path", name).rstrip("\n")
        if place.is_dir():
            found |= {f"git's {name}/{file.name}": _digest(file) for file in place.iterdir()}
        else:
            found[f"git's {name}"] = _digest(place)
    return found


def moved(before: dict[str, str], after: dict[str, str]) -> list[Finding]:
    """What changed meanwhile, which the run itself did not do."""
    names = sorted({name for name in {*before, *after} if before.get(name) != after.get(name)})
    if not names:
        return []
    shown = ", ".join(map(printable, names[:8]))
    message = f"changed in the project while the agent worked, by it or by somebody else: {shown}"
    return [Finding("(project)", 0, 0, "RUN008", message, "warning", "Look at it.")]


def _stamp(file: Path) -> str:
    """What tells a change of a file that may be one of a hundred thousand; "" for one that went meanwhile."""
    try:
        said = file.lstat()
    except FileNotFoundError:
        return ""
    return f"{said.st_size} {said.st_mtime_ns} {said.st_mode}"


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
