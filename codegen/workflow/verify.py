"""Whether a step is what Section 5 says and works: drift of its methods, its expansions, its tests."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from codegen.diagnostics import Finding, UsageError
from codegen.drift.code import Code
from codegen.drift.report import drift
from codegen.expand.driver.one_file import Action, Job
from codegen.expand.driver.request import Request
from codegen.expand.driver.settings import read_settings
from codegen.expand.model import Outcome
from codegen.expand.reading.files import read_bytes
from codegen.expand.reading.marks import Marks
from codegen.patterns import load_library
from codegen.workflow.target import Target

_COMMAND = re.compile(r"`([^`]+)`")
_GRACE = 10.0
_MOST_OUTPUT = 1_000_000


@dataclass(frozen=True)
class TestRun:
    """One test command and how it ended; `status` None when it passed its deadline."""

    command: str
    status: int | None

    @property
    def passed(self) -> bool:
        return self.status == 0


@dataclass(frozen=True)
class Verification:
    findings: tuple[Finding, ...]
    tests: tuple[TestRun, ...]

    @property
    def passed(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)


def verify(target: Target, say: Callable[[str], None]) -> Verification:
    """Run all checks of a step; tests only when the cheaper checks pass, their output going through `say`."""
    findings = check(target)
    runs: list[TestRun] = []
    if not any(finding.severity == "error" for finding in findings):
        for command in test_commands(target):
            run = run_tests(target, command, say)
            runs.append(run)
            if not run.passed:
                findings.append(_test_finding(target, run))
        if not runs:
            line = target.step.line or target.step.row_line
            message = f"Step {target.step.number} names no test command"
            fix = "Write it in backticks after `- tests:`."
            findings.append(Finding(target.document_path, line, 1, "STEP013", message, "warning", fix))
    return Verification(tuple(findings), tuple(runs))


def check(target: Target) -> list[Finding]:
    """What can be seen without running anything: missing files, drift of the step's methods, stale expansions."""
    return [*_missing_files(target), *_drift(target), *_expansions(target)]


def test_commands(target: Target) -> list[str]:
    """The commands of the step's `tests:` field: what stands in backticks."""
    return [command.strip() for command in _COMMAND.findall(target.step.tests)]


def run_tests(target: Target, command: str, say: Callable[[str], None]) -> TestRun:
    """Run one command in the project folder, without a shell. `pytest` and `python` are those that run this tool.

    What it leaves running in its process group is ended with it; of a long output the end is kept. UsageError: the
    command does not exist.
    """
    words = shlex.split(command)
    if words[:1] == ["pytest"]:
        words = [sys.executable, "-m", *words]
    elif words[:1] in (["python"], ["python3"]):
        words = [sys.executable, *words[1:]]
    say(f"$ {command}")
    with tempfile.TemporaryFile() as out:  # a pipe would be held open by what a test leaves running
        try:
            process = subprocess.Popen(
                words,
                cwd=target.root,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=code_environment(target.root),
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise UsageError(f"the step's test command does not exist: {words[0]} (in `{command}`)") from error
        status: int | None = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(target.config.test_seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(_GRACE)
        out.seek(max(0, out.seek(0, os.SEEK_END) - _MOST_OUTPUT))
        say(out.read().decode("utf-8", "replace").rstrip())
    return TestRun(command, status)


def code_environment(root: Path) -> dict[str, str]:
    """This process's environment, where Python finds the code of the project at `root` before any other copy of it."""
    folders = [str(root), *([str(root / "src")] if (root / "src").is_dir() else [])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*folders, *filter(None, [os.environ.get("PYTHONPATH")])])}


def python_files(target: Target) -> list[str]:
    """The Python files of the step that exist, relative to the project."""
    found: list[str] = []
    for pattern in target.step.files:
        path = target.root / pattern
        if path.is_dir():
            found += [each.relative_to(target.root).as_posix() for each in sorted(path.rglob("*.py"))]
        elif "*" in pattern:
            found += [each.relative_to(target.root).as_posix() for each in sorted(target.root.glob(pattern))]
        elif path.is_file():
            found.append(pattern)
    return [path for path in dict.fromkeys(found) if path.endswith(".py")]


def expand_bytes(target: Target, path: str, data: bytes, action: Action) -> Outcome:
    """Expand or check one text with the project's library and settings; nothing is written."""
    settings = read_settings(target.root)
    library = load_library(target.root)
    return Job(library, Marks(library.tags()), settings.options, action, dry=True).process(path, data)


def _missing_files(target: Target) -> list[Finding]:
    line = target.step.fields["files"].line if "files" in target.step.fields else target.step.line
    fix = "Write it, or drop it from `files:`."
    return [
        Finding(target.document_path, line, 1, "STEP010", f"{path} does not exist", fix=fix)
        for path in target.step.files
        if "*" not in path and not (target.root / path).exists()
    ]


def _drift(target: Target) -> list[Finding]:
    entries = frozenset(entry.id for entry in target.entries)
    report = drift(target.document, Code(target.root), only=entries, strict_pending=True)
    return list(report.findings)


def _expansions(target: Target) -> list[Finding]:
    request = Request(paths=(), check=True)
    findings: list[Finding] = []
    for path in python_files(target):
        data = read_bytes(str(target.root / path))
        findings += request.findings_of(expand_bytes(target, path, data, "check").report)
    return findings


def _test_finding(target: Target, run: TestRun) -> Finding:
    line = target.step.fields["tests"].line if "tests" in target.step.fields else target.step.line
    if run.status is None:
        message = f"`{run.command}` took more than {target.config.test_seconds:.0f} s"
        fix = "Make it faster, or raise `test-seconds` in [tool.codegen.step]."
        return Finding(target.document_path, line, 1, "STEP012", message, fix=fix)
    message = f"`{run.command}` failed with exit status {run.status}"
    return Finding(target.document_path, line, 1, "STEP011", message, fix="Read its output above.")
