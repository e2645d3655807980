"""Version numbers, and the text of a document at an earlier revision (git) or version."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from codegen.diagnostics import UsageError
from codegen.document.blocks import split_lines
from codegen.document.front import read_front
from codegen.document.model import Document
from codegen.document.parse import parse_document

PARTS = ("major", "minor", "patch")
VERSION = re.compile(r"\d+(\.\d+){0,2}$")
SECONDS = 60


def raised(version: str, part: str, to: str | None = None) -> str:
    """The version with one part raised and those after it at zero: 0.1 → 0.2 (minor), 1.0 (major), 0.1.1 (patch).

    With `to` that one, when it is a version and a later one. UsageError: it is not, or there is nothing to count up.
    """
    if to is not None:
        if not VERSION.match(to):
            raise UsageError(f"--to {to}: a version is of the form 1, 1.2 or 1.2.3")
        if VERSION.match(version) and _numbers(to) < _numbers(version):
            raise UsageError(f"--to {to}: earlier than {version}, the version of the document")
        return to
    try:
        numbers = [int(number) for number in version.split(".")]
    except ValueError as error:
        raise UsageError(f"the version {version!r} is not made of numbers; give the new one with --to") from error
    at = PARTS.index(part)
    numbers += [0] * (at + 1 - len(numbers))
    numbers[at] += 1
    raised_to = [*numbers[: at + 1], *([0] * (len(numbers) - at - 1))]
    return ".".join(map(str, raised_to if part != "major" or len(raised_to) > 1 else [*raised_to, 0]))


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def at_revision(path: Path, revision: str) -> Document:
    """The document as it was in a git revision, or at the last commit that had this version of it.

    Raises UsageError when neither exists or the file was not there.
    """
    folder, name = path.resolve().parent, path.name
    known = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    commit = known.strip() if known else _commit_of_version(folder, name, revision)
    if commit is None:
        raise UsageError(f"{path}: {revision!r} is neither a git revision nor a version the document ever had")
    text = _git(folder, "show", f"{commit}:./{name}")
    if text is None:
        raise UsageError(f"{path}: the document does not exist in {revision}")
    return parse_document(text, path)


def merge_sides(path: Path) -> list[Document]:
    """The document on the two branches of the merge that is under way, else of the last one in history; [] for none."""
    folder, name = path.resolve().parent, path.name
    if _git(folder, "rev-parse", "--verify", "--quiet", "MERGE_HEAD"):
        sides = ["HEAD", "MERGE_HEAD"]
    else:
        merges = (_git(folder, "log", "--merges", "-1", "--format=%P") or "").split()
        sides = merges[:2]
    texts = [_git(folder, "show", f"{side}:./{name}") for side in sides]
    return [parse_document(text, path) for text in texts if text is not None]


def conflict_stages(path: Path) -> list[Document]:
    """What git could not merge: the document that both branches come from, ours and theirs; [] where it is merged."""
    folder, name = path.resolve().parent, path.name
    texts = [_git(folder, "show", f":{stage}:./{name}") for stage in (1, 2, 3)]
    return [parse_document(text, path) for text in texts if text is not None] if None not in texts else []


def text_with(path: Path, mark: str) -> list[Document]:
    """The document at the commits that wrote or removed a text such as a digest, oldest first."""
    folder, name = path.resolve().parent, path.name
    commits = (_git(folder, "log", "--reverse", "--format=%H", f"-S{mark}", "--", name) or "").split()
    texts = [_git(folder, "show", f"{commit}:./{name}") for commit in commits]
    return [parse_document(text, path) for text in texts if text is not None]


def _commit_of_version(folder: Path, name: str, version: str) -> str | None:
    for commit in (_git(folder, "log", "--format=%H", "--", name) or "").split():
        text = _git(folder, "show", f"{commit}:./{name}")
        if text is not None and read_front(split_lines(text))[0].version == version:
            return commit
    return None


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints, None when it fails. Raises UsageError when git cannot be run or hangs."""
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, timeout=SECONDS, check=False)
    except FileNotFoundError as error:
        raise UsageError("git is not installed; versions are read from its history") from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"git {arguments[0]} did not answer within {SECONDS} s in {folder}") from error
    return done.stdout.decode("utf-8") if done.returncode == 0 else None
