"""One finding type for every command, and its renderings: text, json, github, sarif."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]


class UsageError(Exception):
    """The caller asked for something that cannot be done: wrong flag, missing file, bad configuration. Exit 2."""


@dataclass(frozen=True, order=True)
class Finding:
    """One thing found at one place. `code` is stable; `fix` says what to do, as an imperative sentence."""

    path: str
    line: int
    column: int
    code: str
    message: str
    severity: Severity = "error"
    fix: str | None = None
