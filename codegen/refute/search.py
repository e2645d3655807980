"""Search the functions of files for inputs that break their claims: one process for each file, with a deadline."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import codegen
from codegen.diagnostics import Finding, UsageError
from codegen.expand.driver.expansion import expand_file
from codegen.expand.driver.settings import find_project, read_settings
from codegen.expand.model import Options
from codegen.expand.reading.file import Reading, read_file
from codegen.expand.reading.files import find_files, read_bytes
from codegen.expand.reading.marks import Marks
from codegen.expand.reading.source import Unreadable, read_source
from codegen.patterns import Library, load_library
from codegen.refute.claims import Subject, subjects

SECONDS, ITERATIONS = 2.0, 200
START, MARGIN = 60.0, 30.0
"""Seconds for importing the module; seconds beyond what one function may take, after which its process is given up."""


@dataclass(frozen=True)
class Result:
    """What came of one function. `line` is that of its `def`, or of the broken claim's annotation."""

    path: str
    line: int
    function: str
    outcome: Literal["broken", "none", "unsearched"]
    detail: str
    claim: str = ""
    input: str = ""

    def finding(self) -> Finding:
        """A broken claim is an error; what could not be searched is a note."""
        if self.outcome == "broken":
            message = f"{self.function}: {self.claim} is broken by {self.input}: {self.detail}"
            fix = "Correct the function or the claim, or refuse this input at the function's head."
            return Finding(self.path, self.line, 1, "refuted", message, fix=fix)
        message = f"{self.function}: not searched: {self.detail}"
        return Finding(self.path, self.line, 1, "not-searched", message, "note")


def refute(paths: Sequence[str], seconds: float = SECONDS, iterations: int = ITERATIONS) -> Iterator[Result]:
    """Search all files. Raises UsageError when the extra is missing or a path cannot be read."""
    settings = read_settings(find_project(Path.cwd()))
    library = load_library(settings.folder)
    marks = Marks(library.tags())
    for path in find_files(list(paths), settings.exclude):
        data = read_bytes(path)
        if marks.prefilter.search(data):
            yield from _file(path, data, library, marks, seconds, iterations)


def _file(path: str, data: bytes, library: Library, marks: Marks, seconds: float, iterations: int) -> Iterator[Result]:
    report = expand_file(path, data, library, marks, Options()).report
    if report.text is None:
        first = next((f for f in report.findings if f.severity == "error"), None)
        why = f"line {first.line}: {first.message}" if first else "its annotations cannot be expanded"
        yield Result(path, first.line if first else 1, "the file", "unsearched", why)
        return
    original, expanded = _read(data.decode("utf-8-sig", "surrogateescape"), marks), _read(report.text, marks)
    if original is None or expanded is None:
        return
    found = subjects(expanded, original)
    for subject in found:
        if subject.reason:
            yield Result(path, subject.line, subject.name, "unsearched", subject.reason)
    waiting = [subject for subject in found if not subject.reason]
    while waiting:  # Each round answers at least one function, or gives up on one.
        done = set()
        for result in _process(path, report.text, waiting, seconds, iterations):
            done.add(result.function)
            yield result
        waiting = [subject for subject in waiting if subject.name not in done]


def _read(text: str, marks: Marks) -> Reading | None:
    try:
        return read_file(read_source(text.encode()), marks)
    except (Unreadable, SyntaxError) as error:
        raise UsageError(f"the expanded text is not readable: {error}") from error


def _process(path: str, text: str, waiting: Sequence[Subject], seconds: float, iterations: int) -> Iterator[Result]:
    """One process over the functions; ends early when it dies or one function takes longer than it may."""
    by_name = {subject.name: subject for subject in waiting}
    file = str(Path(path).resolve())
    root, module = _module_of(Path(file))
    with tempfile.TemporaryDirectory() as folder:
        request = {
            "root": root, "module": module, "file": file, "text": text, "folder": folder,
            "seconds": seconds, "iterations": iterations,
            "subjects": [
                {"name": s.name, "path": s.path, "asked": s.asked, "claims": [(c.first, c.last) for c in s.claims]}
                for s in waiting
            ],
        }  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-m", "codegen.refute.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=_environment(),
        )
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(request).encode())
        process.stdin.close()
        current, late = "", False
        try:
            for answer in _answers(process, START, 3 * seconds + MARGIN):
                if "failed" in answer:
                    yield from _all_failed(path, waiting, answer)
                    return
                current = answer.get("begins", "")
                if "outcome" in answer:
                    yield _result(path, by_name[answer["name"]], answer)
        except TimeoutError:
            late = True
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # Its searches run in processes of their own.
            process.wait()
        died = process.returncode != 0 and not late
        if late or died:
            left = current or next(iter(by_name))
            why = f"the search did not answer within {START if not current else 3 * seconds + MARGIN:g} s"
            if died:
                why = f"the search ended with status {process.returncode}"
            yield Result(path, by_name[left].line, left, "unsearched", why)


def _answers(process: subprocess.Popen[bytes], start: float, limit: float) -> Iterator[dict[str, Any]]:
    """The process's lines. Raises TimeoutError when the first, or a later one, does not come within its limit."""
    assert process.stdout is not None
    rest, due = b"", time.monotonic() + start
    while True:
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, due - time.monotonic()))
        if not ready:
            raise TimeoutError
        data = os.read(process.stdout.fileno(), 65_536)
        if not data:
            process.wait(limit)
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            due = time.monotonic() + limit
            yield json.loads(line)


def _result(path: str, subject: Subject, answer: dict[str, Any]) -> Result:
    if answer["outcome"] != "broken":
        return Result(path, subject.line, subject.name, answer["outcome"], answer["detail"])
    claim = next((c for c in subject.claims if [c.first, c.last] == answer["lines"]), None)
    line, text = (claim.line, claim.text) if claim else (subject.line, "what it asks of its callers, by its own call,")
    return Result(path, line, subject.name, "broken", answer["detail"], text, answer["input"])


def _all_failed(path: str, waiting: Sequence[Subject], answer: dict[str, Any]) -> Iterator[Result]:
    if answer["failed"] == "missing":
        raise UsageError("the search needs CrossHair; install the extra: pip install 'roll-ts[refute]'")
    for subject in waiting:
        detail = f"its module does not import: {answer['detail']}"
        yield Result(path, subject.line, subject.name, "unsearched", detail)


def _module_of(file: Path) -> tuple[str, str]:
    """The folder to import from, and the dotted name of the module in it."""
    names, folder = [file.stem], file.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    if names[-1] == "__init__" and len(names) > 1:
        names.pop()
    return str(folder), ".".join(names)


def _environment() -> dict[str, str]:
    """The child's environment: our package on its path, hashes that do not change from run to run."""
    ours = str(Path(codegen.__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
