"""Install, upgrade, check and remove an agent's files: a plan of changes first, which a caller may print or carry out.

A file that is not as it was written is somebody's work: it is kept and named. So is a file that was there before.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from codegen.diagnostics import Finding, UsageError
from codegen.document.store import replace_file
from codegen.prompts.agents import Agent
from codegen.prompts.context import block_of, with_block, without_block
from codegen.prompts.library import Prompt, context_text
from codegen.prompts.manifest import Block, Manifest, digest, read_manifest, write_manifest

Action = Literal["write", "restore", "upgrade", "same", "keep", "remove", "forget"]


@dataclass(frozen=True)
class Place:
    """Where prompts go: a project, or with `user` the home folder."""

    base: Path
    user: bool = False

    def context(self, agent: Agent) -> str:
        """Path of the agent's context file below `base`."""
        return agent.user_context if self.user else agent.context


@dataclass(frozen=True)
class Change:
    """What happens to one file. `new` None removes it; `why` says why a file is kept."""

    path: str
    action: Action
    old: bytes | None
    new: bytes | None
    why: str = ""

    @property
    def writes(self) -> bool:
        return self.action in ("write", "restore", "upgrade", "remove")

    def diff(self) -> str:
        """The change as a patch."""
        old = (self.old or b"").decode("utf-8", "replace").splitlines(keepends=True)
        new = (self.new or b"").decode("utf-8", "replace").splitlines(keepends=True)
        before = "/dev/null" if self.old is None else f"a/{self.path}"
        after = "/dev/null" if self.new is None else f"b/{self.path}"
        return "".join(difflib.unified_diff(old, new, before, after))

    def counted(self) -> str:
        """ "+3 -1", the lines that change."""
        lines = self.diff().splitlines()[2:]
        return f"+{sum(line[:1] == '+' for line in lines)} -{sum(line[:1] == '-' for line in lines)}"


@dataclass(frozen=True)
class Plan:
    """All changes for some agents, and the record as it will be afterwards."""

    place: Place
    changes: tuple[Change, ...]
    manifest: Manifest

    def carry_out(self) -> None:
        """Write and remove, the record last: a kill in between leaves files that the next call takes for its own."""
        for change in self.changes:
            path = self.place.base / change.path
            if change.action == "remove" and change.new is None:
                path.unlink(missing_ok=True)
                _remove_empty_folders(path.parent, self.place.base)
            elif change.writes and change.new is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(path, change.new)
        write_manifest(self.place.base, self.manifest)


def plan_install(place: Place, agents: Sequence[Agent], prompts: Sequence[Prompt]) -> Plan:
    """What installing or upgrading these agents' files would do.

    UsageError: a folder is in the way of a file, or the marks of a managed block do not pair.
    """
    manifest = read_manifest(place.base)
    changes: list[Change] = []
    for agent in agents:
        recorded = manifest.files.get(agent.key, {})
        wanted = {agent.file(prompt, place.user): agent.content(prompt).encode("utf-8") for prompt in prompts}
        found = [_install(place, path, new, recorded.get(path)) for path, new in wanted.items()]
        found += [_withdraw(place, path, recorded[path]) for path in recorded if path not in wanted]
        entries = dict(recorded)
        for change in found:
            if change.action in ("remove", "forget"):
                entries.pop(change.path, None)
            elif change.action != "keep" and change.new is not None:
                entries[change.path] = digest(change.new)
        manifest.files[agent.key] = entries
        changes += found
    for path, readers in _by_context(place, agents).items():
        changes.append(_install_block(place, path, readers, manifest))
    return Plan(place, tuple(changes), manifest)


def plan_uninstall(place: Place, agents: Sequence[Agent]) -> Plan:
    """What removing these agents' files would do: all that are as they were written."""
    manifest = read_manifest(place.base)
    changes: list[Change] = []
    for agent in agents:
        for path, recorded in manifest.files.pop(agent.key, {}).items():
            changes.append(_withdraw(place, path, recorded))
    for path in list(manifest.blocks):
        change = _remove_block(place, path, agents, manifest)
        changes += [change] if change else []
    return Plan(place, tuple(changes), manifest)


def check(place: Place, agents: Sequence[Agent], prompts: Sequence[Prompt]) -> list[Finding]:
    """How what is installed differs from what this version would write. Agents that are not installed are left out."""
    manifest = read_manifest(place.base)
    installed = [agent for agent in agents if manifest.files.get(agent.key)]
    plan = plan_install(place, installed, prompts)
    findings: list[Finding] = []
    for change in plan.changes:
        fix = "Run `codegen prompts install` again."
        if change.action in ("write", "restore"):
            findings.append(Finding(change.path, 0, 0, "PRM001", "is not there", fix=fix))
        elif change.action == "upgrade":
            message = f"is not what this version writes ({change.counted()})"
            findings.append(Finding(change.path, 0, 0, "PRM002", message, fix=fix))
        elif change.action == "remove":
            findings.append(Finding(change.path, 0, 0, "PRM002", "belongs to no prompt any more", fix=fix))
        elif change.action == "keep":
            findings.append(Finding(change.path, 0, 0, "PRM003", change.why, "note"))
    return findings


def _install(place: Place, path: str, new: bytes, recorded: str | None) -> Change:
    file = place.base / path
    if file.is_symlink():
        return Change(path, "keep", None, None, "is a link that somebody made; it is left alone")
    _require_room(file)
    if not file.exists():
        return Change(path, "write" if recorded is None else "restore", None, new)
    old = file.read_bytes()
    if _with_lf(old) == new:
        return Change(path, "same", old, new)
    if recorded is None:
        return Change(path, "keep", old, new, "was there before and is not ours")
    if digest(_with_lf(old)) != recorded:
        return Change(path, "keep", old, new, "was edited since it was installed; remove it to get the new one")
    return Change(path, "upgrade", old, new)


def _withdraw(place: Place, path: str, recorded: str) -> Change:
    file = place.base / path
    if not file.is_file() or file.is_symlink():
        return Change(path, "forget", None, None, "is gone already")
    old = file.read_bytes()
    if digest(_with_lf(old)) != recorded:
        return Change(path, "keep", old, None, "was edited since it was installed")
    return Change(path, "remove", old, None)


def _by_context(place: Place, agents: Sequence[Agent]) -> dict[str, list[Agent]]:
    """The agents by their context file; where one is a link to another, by what it leads to."""
    found: dict[str, list[Agent]] = {}
    base = place.base.resolve()
    for agent in agents:
        path = place.context(agent)
        file = (base / path).resolve()
        if (base / path).is_symlink() and file.is_relative_to(base):
            path = file.relative_to(base).as_posix()
        found.setdefault(path, []).append(agent)
    return found


def _require_room(file: Path) -> None:
    """UsageError: something else has the place of a file, or of a folder above it."""
    if file.is_dir():
        raise UsageError(f"{file}: is a folder where a file belongs; move it")
    blocked = next((each for each in file.parents if each.exists() and not each.is_dir()), None)
    if blocked:
        raise UsageError(f"{blocked}: is a file where a folder belongs; move it")


def _with_lf(content: bytes) -> bytes:
    """Git may check files out with other line ends; that is no edit."""
    return content.replace(b"\r\n", b"\n")


def _read(file: Path) -> str | None:
    _require_room(file)
    try:
        return file.read_bytes().decode("utf-8") if file.exists() else None
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: byte {error.start} is not UTF-8; save it as UTF-8") from error


def _install_block(place: Place, path: str, readers: Sequence[Agent], manifest: Manifest) -> Change:
    file = place.base / path
    if file.is_symlink():
        return Change(path, "keep", None, None, "is a link out of this folder; it is left alone")
    old_text = _read(file)
    recorded = manifest.blocks.get(path)
    keys = tuple(dict.fromkeys([*(recorded.agents if recorded else ()), *(agent.key for agent in readers)]))
    block = context_text()
    new = with_block(old_text or "", block, file).encode("utf-8")
    old = None if old_text is None else old_text.encode("utf-8")
    current = None if old_text is None else block_of(old_text, file)
    if current is not None and current != block and (recorded is None or digest(current) != recorded.digest):
        if recorded is not None:
            manifest.blocks[path] = replace(recorded, agents=keys)
        return Change(path, "keep", old, new, "its managed block was edited; remove the block to get the new one")
    made = recorded.made if recorded else old is None
    manifest.blocks[path] = Block(keys, digest(block), made)
    if current == block:
        return Change(path, "same", old, old)
    action: Action = "write" if old is None else "upgrade"
    return Change(path, action, old, new)


def _remove_block(place: Place, path: str, leaving: Sequence[Agent], manifest: Manifest) -> Change | None:
    recorded = manifest.blocks.get(path)
    if recorded is None:
        return None
    left = tuple(key for key in recorded.agents if key not in {agent.key for agent in leaving})
    if left == recorded.agents:
        return None
    if left:
        manifest.blocks[path] = replace(recorded, agents=left)
        return None
    del manifest.blocks[path]
    file = place.base / path
    if file.is_symlink():
        return Change(path, "forget", None, None, "became a link, which is left alone")
    text = _read(file)
    current = None if text is None else block_of(text, file)
    if text is None or current is None:
        return Change(path, "forget", None, None, "has no managed block any more")
    old = text.encode("utf-8")
    if digest(current) != recorded.digest:
        return Change(path, "keep", old, None, "its managed block was edited since it was installed")
    rest = without_block(text, file)
    if recorded.made and not rest.strip():
        return Change(path, "remove", old, None)
    return Change(path, "upgrade", old, rest.encode("utf-8"))


def _remove_empty_folders(folder: Path, base: Path) -> None:
    while folder != base and not folder.is_symlink() and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
