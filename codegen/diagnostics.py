"""One finding type for every command, and its renderings: text, json, github, sarif."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]
FORMATS = ("text", "json", "github", "sarif")


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


def exit_status(findings: Sequence[Finding], strict: bool = False) -> int:
    """1 when there is an error (with `strict` also a warning), else 0. Notes never fail."""
    failing = ("error", "warning") if strict else ("error",)
    return int(any(finding.severity in failing for finding in findings))


def summary(findings: Sequence[Finding]) -> str:
    """ "2 errors, 1 warning", or "no findings"."""
    counts = Counter(finding.severity for finding in findings)
    parts = [f"{n} {word}{'s' * (n > 1)}" for word in ("error", "warning", "note") if (n := counts[word])]
    return ", ".join(parts) or "no findings"


def render(findings: Sequence[Finding], form: str = "text") -> str:
    """The findings in one of FORMATS, each line ended; "" for no findings as text or github."""
    return {"text": _text, "json": _json, "github": _github, "sarif": _sarif}[form](findings)


def _text(findings: Sequence[Finding]) -> str:
    lines: list[str] = []
    for finding in findings:
        place = f"{finding.path}:{finding.line}:{finding.column}"
        lines.append(f"{place}: {finding.severity} {finding.code} {finding.message}")
        if finding.fix:
            lines.append(f"    fix: {finding.fix}")
    return "".join(f"{line}\n" for line in lines)


def _json(findings: Sequence[Finding]) -> str:
    return json.dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False) + "\n"


def _github(findings: Sequence[Finding]) -> str:
    levels = {"error": "error", "warning": "warning", "note": "notice"}
    lines: list[str] = []
    for finding in findings:
        where = f"file={_property(finding.path)},line={finding.line},col={finding.column}"
        title = _property(finding.code)
        text = finding.message if not finding.fix else f"{finding.message}\nFix: {finding.fix}"
        lines.append(f"::{levels[finding.severity]} {where},title={title}::{_data(text)}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sarif(findings: Sequence[Finding]) -> str:
    rules = [{"id": code} for code in sorted({finding.code for finding in findings})]
    driver = {"name": "codegen", "rules": rules}
    run = {"tool": {"driver": driver}, "results": [_sarif_result(finding) for finding in findings]}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return (
        json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)
        + "\n"
    )


def _sarif_result(finding: Finding) -> dict[str, Any]:
    region = {"startLine": max(1, finding.line), "startColumn": max(1, finding.column)}
    location = {"artifactLocation": {"uri": finding.path}, "region": region}
    text = finding.message if not finding.fix else f"{finding.message} Fix: {finding.fix}"
    return {
        "ruleId": finding.code,
        "level": finding.severity,
        "message": {"text": text},
        "locations": [{"physicalLocation": location}],
    }
