"""One call of `codegen expand`: settings, library and paths in; outcomes out."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from codegen.diagnostics import Finding
from codegen.expand.marks import Marks
from codegen.expand.model import FileReport, SiteReport, State
from codegen.expand.run import Action, Job, Outcome, process, run_files
from codegen.expand.settings import find_project, read_settings
from codegen.expand.source import ending, split_lines
from codegen.patterns import load_library


@dataclass(frozen=True)
class Request:
    """What the caller asked for."""

    paths: tuple[str, ...]
    check: bool = False
    diff: bool = False
    strip: bool = False
    force: bool = False
    exclude: tuple[str, ...] = ()
    stdin_filename: str = "<stdin>"

    @property
    def action(self) -> Action:
        """What to do with each file."""
        if self.strip:
            return "strip"
        return "check" if self.check and not self.diff else "write"

    def findings_of(self, report: FileReport) -> list[Finding]:
        """Findings of a file; in a check each site that is not FRESH is one."""
        found = list(report.findings)
        if self.check and not self.strip:
            known = {(finding.line, finding.code) for finding in found}
            found += [
                _finding(report.path, site)
                for site in report.sites
                if site.state is not State.FRESH and (site.line, site.state.value.lower()) not in known
            ]
        elif self.check and report.changed:
            found.append(Finding(report.path, 1, 1, "generated-code", "holds generated code", fix="Run with --strip."))
        return sorted(found)


def _finding(path: str, site: SiteReport) -> Finding:
    reason = f": {site.reason}" if site.reason else ""
    diff = f"\n{site.diff}" if site.diff else ""
    message = f"{site.state.value} {site.what}{reason}{diff}"
    return Finding(path, site.line, site.column, site.state.value.lower(), message, fix="Run `codegen expand`.")


def execute(request: Request) -> Iterator[Outcome]:
    """Do what was asked, file by file."""
    settings = read_settings(find_project(Path.cwd()))
    library = load_library(settings.folder)
    options = replace(settings.options, force=request.force)
    dry = request.check or request.diff
    job = Job(library, Marks(library.tags()), options, request.action, dry)
    if request.paths == ("-",):
        data = sys.stdin.buffer.read()
        outcome = process(job, request.stdin_filename, data)
        unchanged = outcome.new is None and not outcome.report.refused
        yield replace(outcome, new=data) if unchanged and not dry else outcome
        return
    yield from run_files(job, request.paths, (*settings.exclude, *request.exclude))


def unified_diff(outcome: Outcome) -> str:
    """The change to one file as a patch."""
    assert outcome.new is not None
    path = outcome.report.path
    old = split_lines(outcome.old.decode("utf-8", "replace"))
    new = split_lines(outcome.new.decode("utf-8", "replace"))
    rows = difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")
    return "".join(row if ending(row) else f"{row}\n\\ No newline at end of file\n" for row in rows)
