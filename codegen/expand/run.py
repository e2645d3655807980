"""The use case behind `codegen expand`: many files in, reports out, writing where that is asked and proven safe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from codegen.diagnostics import Finding, UsageError
from codegen.expand.expander import expand_bytes, read_file, strip_bytes
from codegen.expand.files import NotWritten, find_files, replace_file
from codegen.expand.marks import Marks
from codegen.expand.model import FileReport, Options
from codegen.expand.source import read_source
from codegen.expand.verify import problem_of
from codegen.patterns import Library

Action = Literal["write", "check", "strip"]


@dataclass(frozen=True)
class Job:
    """What to do with each file. A `dry` run never writes."""

    library: Library
    marks: Marks
    options: Options
    action: Action = "write"
    dry: bool = False


@dataclass(frozen=True)
class Outcome:
    """One file's report with its bytes before and after; `new` is None when the file stays as it is."""

    report: FileReport
    old: bytes = b""
    new: bytes | None = None


def run_files(job: Job, paths: Sequence[str], exclude: Sequence[str] = ()) -> Iterator[Outcome]:
    """Work through files that hold marks; files without any are skipped unseen."""
    for path in find_files(paths, exclude):
        data = read_bytes(path)
        if job.marks.prefilter.search(data):
            outcome = process(job, path, data)
            yield write(path, outcome) if outcome.new is not None and not job.dry else outcome


def read_bytes(path: str) -> bytes:
    """The file's bytes. Raises UsageError when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def process(job: Job, path: str, data: bytes) -> Outcome:
    """Expand, check or strip one file's bytes; a changed text is proven before it is handed on."""
    if job.action == "strip":
        report = strip_bytes(path, data, job.marks, job.options)
    else:
        report = expand_bytes(path, data, job.library, job.marks, job.options)
    if job.action == "check" or report.text is None or not report.changed:
        return Outcome(report, data)
    source = read_source(data)
    new = source.encode(report.text)
    if job.action == "write":
        calm = replace(job.options, force=False)
        problem = problem_of(
            read_file(source, job.marks),
            read_file(read_source(new), job.marks),
            report,
            lambda: expand_bytes(path, new, job.library, job.marks, calm),
        )
        if problem:
            return Outcome(_failed(report, "unproven", f"not written: {problem}", "Report the file."), data)
    return Outcome(report, data, new)


def write(path: str, outcome: Outcome) -> Outcome:
    """Put the new bytes on disk; a file that cannot be written becomes a finding."""
    assert outcome.new is not None
    try:
        replace_file(path, outcome.old, outcome.new)
    except NotWritten as error:
        return Outcome(_failed(outcome.report, "not-written", str(error), error.fix), outcome.old)
    return outcome


def _failed(report: FileReport, code: str, message: str, fix: str) -> FileReport:
    finding = Finding(report.path, 1, 1, code, message, "error", fix)
    return replace(report, findings=(*report.findings, finding), text=None, changed=False, refused=True)
