"""One call of `codegen expand`: settings, library and paths in; outcomes out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from codegen.diagnostics import Finding, UsageError
from codegen.expand.driver.cache import Cache, library_fingerprint, open_cache
from codegen.expand.driver.many_files import run_files
from codegen.expand.driver.settings import find_project, read_settings
from codegen.expand.model import FileReport, Outcome, SiteReport, State
from codegen.expand.reading.marks import Marks
from codegen.expand.reading.source import ending, split_lines

if TYPE_CHECKING:
    from codegen.expand.driver.one_file import Job
    from codegen.expand.driver.suggest import Suggestion


@dataclass(frozen=True)
class Request:
    """What the caller asked for."""

    paths: tuple[str, ...]
    check: bool = False
    diff: bool = False
    strip: bool = False
    force: bool = False
    adopt: bool = False
    extract: bool = False
    exclude: tuple[str, ...] = ()
    stdin_filename: str = "<stdin>"
    use_cache: bool = True
    prefilter: bool = True

    @property
    def action(self) -> Literal["write", "check", "strip"]:
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
    """Do what was asked, file by file. Raises UsageError."""
    settings = read_settings(find_project(Path.cwd()))
    options = replace(settings.options, force=request.force, adopt=request.adopt, extract=request.extract)
    fingerprint = library_fingerprint(settings.folder)
    memory = open_cache(settings.folder, fingerprint, settings.options, request.use_cache and not request.strip)

    @cache
    def job() -> Job:
        from codegen.expand.driver.one_file import Job
        from codegen.patterns import load_library

        library = load_library(settings.folder)
        dry = request.check or request.diff
        return Job(library, Marks(library.tags()), options, request.action, dry, not request.prefilter)

    if request.paths == ("-",):
        yield _standard_input(request, job())
        return
    marks = Marks(memory.tags) if memory.tags else job().marks
    prefilter = marks.prefilter if request.prefilter else None
    yield from run_files(request.paths, (*settings.exclude, *request.exclude), prefilter, memory, job)
    _save(memory, marks.tags)


def _standard_input(request: Request, job: Job) -> Outcome:
    """The outcome for standard input, whose text goes out even when it stays as it is."""
    data = sys.stdin.buffer.read()
    outcome = job.process(request.stdin_filename, data)
    unchanged = outcome.new is None and not outcome.report.refused
    return replace(outcome, new=data) if unchanged and not job.dry else outcome


def _save(memory: Cache, tags: frozenset[str]) -> None:
    try:
        memory.save(tags)
    except OSError as error:
        print(f"codegen: the cache was not written: {error}", file=sys.stderr)


def suggestions(
    paths: tuple[str, ...], exclude: tuple[str, ...], lines: frozenset[int] | None, write: bool
) -> Iterator[tuple[list[Suggestion], int]]:
    """The proposals of each file, and how many of them were written. Raises UsageError."""
    from codegen.expand.driver.suggest import accept, suggest
    from codegen.expand.reading.files import find_files, read_bytes
    from codegen.expand.writing.replace import NotWritten, replace_file
    from codegen.patterns import load_library

    settings = read_settings(find_project(Path.cwd()))
    library = load_library(settings.folder)
    marks = Marks(library.tags())
    for path in find_files(list(paths), (*settings.exclude, *exclude)):
        data = read_bytes(path)
        found = suggest(path, data, library, marks, settings.options) if marks.prefilter.search(data) else []
        taken = [each for each in found if lines is None or each.first in lines]
        if lines is not None and (missing := sorted(lines - {each.first for each in found})):
            raise UsageError(f"{path}: no proposal on line {', '.join(map(str, missing))}; run --suggest first")
        if write and taken:
            try:
                replace_file(path, data, accept(data, taken))
            except NotWritten as error:
                raise UsageError(f"{path}: {error}; {error.fix}") from error
        if found:
            yield found, len(taken) if write else 0


def unified_diff(outcome: Outcome) -> str:
    """The change to one file as a patch."""
    import difflib

    assert outcome.new is not None
    path = outcome.report.path
    old = split_lines(outcome.old.decode("utf-8", "replace"))
    new = split_lines(outcome.new.decode("utf-8", "replace"))
    rows = difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")
    return "".join(row if ending(row) else f"{row}\n\\ No newline at end of file\n" for row in rows)
