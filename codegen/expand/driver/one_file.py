"""What is done with one file: expand, check or strip it, prove the new text, write it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from codegen.diagnostics import Finding
from codegen.expand.driver.expansion import expand_file, strip_bytes
from codegen.expand.judging.verify import Expansion, problem_of
from codegen.expand.model import FileReport, Options, Outcome
from codegen.expand.reading.marks import Marks
from codegen.expand.reading.source import read_source
from codegen.expand.writing.replace import NotWritten, replace_file
from codegen.patterns import Library

Action = Literal["write", "check", "strip"]


@dataclass(frozen=True)
class Job:
    """One call's library and options. A `dry` job proves its text, but never writes.

    `unmarked` sends files without any mark through the whole expansion, too.
    """

    library: Library
    marks: Marks
    options: Options
    action: Action = "write"
    dry: bool = False
    unmarked: bool = False

    def run(self, path: str, data: bytes) -> Outcome:
        """Work on one file's bytes, and put the result on disk unless the job is dry."""
        outcome = self.process(path, data)
        if outcome.new is None or self.dry:
            return outcome
        try:
            replace_file(path, outcome.old, outcome.new)
        except NotWritten as error:
            return Outcome(_failed(outcome.report, "not-written", str(error), error.fix), outcome.old)
        return outcome

    def process(self, path: str, data: bytes) -> Outcome:
        """Work on bytes; a changed text is proven before it is handed on."""
        if self.action == "strip":
            done = Expansion(strip_bytes(path, data, self.marks, self.options))
        else:
            done = expand_file(path, data, self.library, self.marks, self.options, self.unmarked)
        report = done.report
        if self.action == "check" or report.text is None or not report.changed:
            return Outcome(report, data)
        new = read_source(data).encode(report.text)
        if self.action == "write":
            calm = replace(self.options, force=False, adopt=False)
            second = expand_file(path, new, self.library, self.marks, calm)
            problem = problem_of(done, second, self.options.adopt)
            if problem:
                return Outcome(_failed(report, "unproven", f"not written: {problem}", "Report this file."), data)
        return Outcome(report, data, new)


def _failed(report: FileReport, code: str, message: str, fix: str) -> FileReport:
    finding = Finding(report.path, 1, 1, code, message, "error", fix)
    return replace(report, findings=(*report.findings, finding), text=None, changed=False, refused=True)
