"""One finding type for every command, and its renderings: text, json, github, sarif.

A rendering of no findings is valid too: empty text, an empty list, a SARIF run without results. All renderings
keep the order they are given and end with a newline unless they are empty.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Any, Literal
from urllib.parse import quote

Severity = Literal["error", "warning", "note"]
FORMATS = ("text", "json", "github", "sarif")
SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


class UsageError(Exception):
    """The caller asked for something that cannot be done: wrong flag, missing file, bad configuration. Exit 2."""


@dataclass(frozen=True, order=True)
class Finding:
    """One thing found at one place. `code` is stable; `fix` says what to do, as an imperative sentence.

    Lines and columns start at 1; 0 means that the finding is about the whole file, or the whole line.
    """

    path: str
    line: int
    column: int
    code: str
    message: str
    severity: Severity = "error"
    fix: str | None = None


def exit_status(findings: Iterable[Finding], strict: bool = False) -> int:
    """1 when there is an error (with `strict` also a warning), else 0. Notes never fail."""
    failing = ("error", "warning") if strict else ("error",)
    return int(any(finding.severity in failing for finding in findings))


def summary(findings: Iterable[Finding]) -> str:
    """ "2 errors, 1 warning", or "no findings"."""
    counts = Counter(finding.severity for finding in findings)
    parts = [f"{n} {word}{'s' * (n > 1)}" for word in ("error", "warning", "note") if (n := counts[word])]
    return ", ".join(parts) or "no findings"


def render(findings: Iterable[Finding], form: str = "text") -> str:
    """All findings in one of FORMATS. Raises UsageError for another form."""
    found = list(findings)
    if form == "text":
        return "".join(_text(finding) + "\n" for finding in found)
    if form == "github":
        return "".join(_github(finding) + "\n" for finding in found)
    if form == "json":
        return json.dumps([asdict(finding) for finding in found], indent=2, ensure_ascii=False) + "\n"
    if form == "sarif":
        return json.dumps(_sarif(found), indent=2, ensure_ascii=False) + "\n"
    raise UsageError(f"unknown format {form!r}; use one of {', '.join(FORMATS)}")


def _place(finding: Finding) -> str:
    return ":".join([finding.path, *(str(n) for n in (finding.line, finding.column) if n > 0)])


def _text(finding: Finding) -> str:
    """`path:line:column: severity code message`, and the fix on an indented line."""
    text = f"{_place(finding)}: {finding.severity} {finding.code} {finding.message}"
    return f"{text}\n    fix: {finding.fix}" if finding.fix else text


def _github(finding: Finding) -> str:
    """A workflow command, which GitHub shows beside the line."""
    command = {"error": "error", "warning": "warning", "note": "notice"}[finding.severity]
    properties = [("file", finding.path)]
    if finding.line > 0:
        properties.append(("line", str(finding.line)))
    if finding.line > 0 and finding.column > 0:
        properties.append(("col", str(finding.column)))
    properties.append(("title", finding.code))
    listed = ",".join(f"{name}={_github_property(value)}" for name, value in properties)
    return f"::{command} {listed}::{_github_data(_with_fix(finding))}"


def _github_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _github_property(text: str) -> str:
    return _github_data(text).replace(":", "%3A").replace(",", "%2C")


def _with_fix(finding: Finding) -> str:
    return f"{finding.message}\nFix: {finding.fix}" if finding.fix else finding.message


def _sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    """A SARIF 2.1.0 log with one run. Columns count code points, as Python's do."""
    codes = list(dict.fromkeys(finding.code for finding in findings))
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "codegen", "rules": [{"id": code} for code in codes]}},
                "columnKind": "unicodeCodePoints",
                "results": [_sarif_result(finding, codes.index(finding.code)) for finding in findings],
            }
        ],
    }


def _sarif_result(finding: Finding, rule: int) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": _uri(finding.path)}}
    if finding.line > 0:
        location["region"] = {"startLine": finding.line}
        if finding.column > 0:
            location["region"]["startColumn"] = finding.column
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": _with_fix(finding)},
        "locations": [{"physicalLocation": location}],
    }
    if finding.fix:
        result["properties"] = {"fix": finding.fix}
    return result


def _uri(path: str) -> str:
    """A URI reference: relative to the working directory where the file is under it."""
    pure = PurePath(path)
    if pure.is_absolute():
        here = Path.cwd()
        if not pure.is_relative_to(here):
            return pure.as_uri()
        pure = pure.relative_to(here)
    return quote(pure.as_posix())
