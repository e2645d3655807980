"""The annotations in the fences of Section 5, judged by the expander itself: what it could not expand is a finding."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from codegen.diagnostics import Finding
from codegen.document.lint.codes import finding
from codegen.document.model import Document
from codegen.expand.expander import expand_bytes
from codegen.expand.marks import Marks
from codegen.expand.settings import read_settings
from codegen.patterns import Library

SILENT = ("syntax", "stub", "visible-name", "bypassed")
CODES = {"unknown-pattern": "API005", "argument": "API006", "bad-argument": "API006", "notation": "API006"}


def check_annotations(document: Document, library: Library, marks: Marks, project: Path) -> Iterator[Finding]:
    """Findings API005 (unknown pattern), API006 (arguments) and API007 (anything else that stops an expansion)."""
    options = read_settings(project).options
    for entry in document.entries:
        for fence in entry.fences:
            if not marks.prefilter.search(fence.code.encode()):
                continue
            code = textwrap.dedent(fence.code)
            report = expand_bytes(str(document.path), code.encode(), library, marks, options)
            for found in report.findings:
                if found.code in SILENT:
                    continue
                yield finding(
                    document,
                    fence.line + found.line,
                    CODES.get(found.code, "API007"),
                    f"{entry.id}: {found.message}",
                    found.fix,
                )
