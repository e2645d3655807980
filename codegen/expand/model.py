"""What every room of the expander passes around: options, problems, states, reports. It imports no room."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from codegen.diagnostics import Finding


class State(Enum):
    """How a site stands to a fresh expansion. All but FRESH fail a check; EDITED refuses to be written."""

    FRESH = "FRESH"
    STALE = "STALE"
    EDITED = "EDITED"
    MISSING = "MISSING"
    UNEXPANDED = "UNEXPANDED"
    ORPHAN = "ORPHAN"


@dataclass(frozen=True)
class Options:
    """How to expand. `ast_mode` "raise" renders claims that `python -O` keeps. `guard` "untyped": where no type vouches
    for a target, what a check's condition raises ends in the check's own error. `line` is the longest line, in columns,
    that the project's formatter leaves alone; where it is None, lines are at most `width` long, margin not counted.
    """

    force: bool = False
    adopt: bool = False
    extract: bool = False
    ast_mode: Literal["assert", "raise"] = "assert"
    guard: Literal["untyped", "never"] = "untyped"
    width: int = 100
    line: int | None = None


class SiteError(Exception):
    """One annotation cannot be expanded where it is. `fix` is an imperative sentence."""

    def __init__(self, code: str, message: str, fix: str, line: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fix = fix
        self.line = line


@dataclass(frozen=True)
class SiteReport:
    """One site of a file: its state, where, what it is about, and for a difference what stands and what should.

    `seal` is the digest of what stands, `fresh_seal` of what should; `origin` is what the latter was made from: the
    annotation's items and the digests of their patterns.
    """

    line: int
    column: int
    state: State
    what: str
    reason: str = ""
    diff: str = ""
    seal: str = ""
    fresh_seal: str = ""
    origin: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class FileReport:
    """What came of one file. `text` is the expanded text, None when the file must be left alone.

    `known_sites` counts the sites of a file whose content was known to be clean and was not looked at again.
    """

    path: str
    sites: tuple[SiteReport, ...] = ()
    findings: tuple[Finding, ...] = ()
    text: str | None = None
    changed: bool = False
    refused: bool = False
    known_sites: int = 0

    @property
    def clean(self) -> bool:
        """Whether a check of the file passes."""
        return all(site.state is State.FRESH for site in self.sites) and not any(
            finding.severity == "error" for finding in self.findings
        )


@dataclass(frozen=True)
class Outcome:
    """One file's report with its bytes before and after; `new` is None when the file stays as it is."""

    report: FileReport
    old: bytes = b""
    new: bytes | None = None
