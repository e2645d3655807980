"""Whether a step is what Section 5 says and works: drift of its methods, its expansions, its tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from codegen.diagnostics import Finding, Severity
from codegen.drift.code import Code
from codegen.drift.report import drift
from codegen.expand.driver.one_file import Action, Job
from codegen.expand.driver.request import Request
from codegen.expand.driver.settings import read_settings
from codegen.expand.model import Outcome
from codegen.expand.reading.files import read_bytes
from codegen.expand.reading.marks import Marks
from codegen.patterns import load_library
from codegen.proof.functions import Function
from codegen.proof.judge import Proof, Question, Run, judge
from codegen.workflow.checkout import checkout
from codegen.workflow.evidence import cost, functions_of, proof_findings, read_waivers, test_commands
from codegen.workflow.target import Target


@dataclass(frozen=True)
class Verification:
    """What was found, and what the tests proved; no proof where they were not run."""

    findings: tuple[Finding, ...]
    proof: Proof | None = None

    @property
    def passed(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)

    @property
    def runs(self) -> tuple[Run, ...]:
        return self.proof.runs if self.proof else ()


def verify(
    target: Target, say: Callable[[str], None], project: Path | None = None, together: Sequence[Target] = ()
) -> Verification:
    """Run all checks of a step; tests only when the cheaper checks pass, their output going through `say`.

    The tests run in a fresh checkout of what would be committed, by the interpreter of the project, which lies in
    `project` where that is not the folder that is judged. What is committed `together` is there together.
    """
    findings = check(target)
    if any(finding.severity == "error" for finding in findings):
        return Verification(tuple(findings))
    waivers, unclear = read_waivers(target)
    functions = functions_of(target)
    commands = test_commands(target)
    if not commands:
        return Verification((*findings, *unclear, _no_command(target, functions)))
    with checkout(target, together) as folder:
        question = Question(
            project or target.root,
            folder,
            tuple(commands),
            tuple(functions),
            waivers,
            target.config.junit,
            target.config.test_seconds,
        )
        proof = judge(question, say)
    if proof.removals:
        say(cost(proof))
    return Verification((*findings, *unclear, *proof_findings(target, proof, waivers)), proof)


def check(target: Target) -> list[Finding]:
    """What can be seen without running anything: missing files, drift of the step's methods, stale expansions."""
    return [*_missing_files(target), *_drift(target), *_expansions(target)]


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


def _no_command(target: Target, functions: list[Function]) -> Finding:
    line = target.step.line or target.step.row_line
    message = f"Step {target.step.number} names no test command"
    severity: Severity = "error" if functions else "warning"
    if functions:
        message += f", and its functions need one that misses them: {', '.join(f.name for f in functions[:5])}"
    fix = "Write it in backticks after `- tests:`."
    return Finding(target.document_path, line, 1, "STEP013", message, severity, fix)
