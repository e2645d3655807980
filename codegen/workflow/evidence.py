"""What a step asks the judge, and what the answer means for the step: functions, waivers, findings."""

from __future__ import annotations

import re

from codegen.diagnostics import Finding, Severity
from codegen.document.model import Field
from codegen.drift.code import Code
from codegen.drift.section import documented_definitions, place_of
from codegen.proof.functions import Function
from codegen.proof.judge import Proof, Removal, Run
from codegen.workflow.target import Target

WAIVERS = ("waiver", "waivers")
_WAIVER = re.compile(r"`?(?P<name>[^`\s]+?)`?:\s+(?P<reason>\S.*)$")
_MOST = 8


def functions_of(target: Target) -> list[Function]:
    """The functions and methods that the step's entries define and the code has."""
    code = Code(target.root)
    wanted = {entry.id for entry in target.entries}
    found: dict[Function, None] = {}
    for documented in documented_definitions(target.document)[0]:
        if documented.entry.id in wanted and documented.definition.kind == "function":
            place = place_of(documented, code)
            if place is not None and place.definition.kind == "function":
                found[Function(documented.full_name, place.module.shown, place.definition.name)] = None
    return list(found)


def read_waivers(target: Target) -> tuple[dict[str, str], list[Finding]]:
    """Reasons by name: `- waiver: reason` on an entry, `- waivers:` with `name: reason` items on the step. A name is a
    function's, full or its end, or a test's id. The findings are about what names nothing or gives no reason."""
    reasons: dict[str, str] = {}
    findings: list[Finding] = []
    names = {name for entry in target.entries for name in (entry.id, *entry.contracts)}
    for entry in target.entries:
        for key in WAIVERS:
            if key in entry.fields:
                reason = entry.fields[key].value.strip()
                reasons |= dict.fromkeys((entry.id, *entry.contracts), reason) if reason else {}
                findings += [] if reason else [_unclear(target, entry.fields[key], f"{entry.label}: gives no reason")]
    for field in (target.step.fields[key] for key in WAIVERS if key in target.step.fields):
        for item in field.items or tuple(part for part in field.value.split("; ") if part):
            match = _WAIVER.match(item.strip())
            if match is None:
                findings.append(_unclear(target, field, f"{item!r} is not `name: reason`"))
                continue
            name = match["name"]
            chosen = [name] if "::" in name else [each for each in names if each == name or each.endswith(f".{name}")]
            if not chosen:
                findings.append(_unclear(target, field, f"{name} is no name of Step {target.step.number}"))
            reasons |= dict.fromkeys(chosen, match["reason"])
    return reasons, findings


def proof_findings(target: Target, proof: Proof) -> list[Finding]:
    """What the runs and the removals say against the step."""
    line = target.step.fields["tests"].line if "tests" in target.step.fields else target.step.line
    findings = [finding for run in proof.runs for finding in _run_findings(target, line, run)]
    for each in proof.unmissed:
        entry = target.document.entry_by_name.get(each.function.name)
        place = entry.line if entry is not None else line
        fix = (
            f"Write a test that fails without it, or a waiver: `- waivers: `{each.function.name}`: REASON` in the step."
        )
        findings.append(Finding(target.document_path, place, 1, "STEP014", _nobody(each), fix=fix))
    return findings


def cost(proof: Proof) -> str:
    """One line: how many functions were taken away, and what that took beside the tests."""
    asked = [each for each in proof.removals if each.verdict in ("missed", "survived", "unreached")]
    missed = sum(each.verdict == "missed" for each in asked)
    waived = sum(each.verdict == "waived" for each in proof.removals)
    more = f", {waived} waived" if waived else ""
    times = f"{proof.removal_seconds:.1f} s beside {proof.test_seconds:.1f} s of tests"
    return f"removal: {missed} of {len(asked)} functions are missed{more}; {times}"


def _run_findings(target: Target, line: int, run: Run) -> list[Finding]:
    path = target.document_path
    if run.status is None:
        message = f"`{run.command}` took more than {target.config.test_seconds:.0f} s"
        fix = "Make it faster, or raise `test-seconds` in [tool.codegen.step]."
        return [Finding(path, line, 1, "STEP012", message, fix=fix)]
    findings: list[Finding] = []

    def found(message: str, severity: Severity = "error", fix: str = "Read its output above.") -> None:
        code = "STEP016" if severity == "note" else "STEP011"
        findings.append(Finding(path, line, 1, code, f"`{run.command}` {message}", severity, fix))

    for test, why in run.problems[:_MOST]:
        text = f"{test}: {why}" if test else why
        found(f"proves nothing: {text}" if run.status == 0 else f"failed: {text}")
    if len(run.problems) > _MOST:
        found(f"has {len(run.problems) - _MOST} more such tests")
    if run.status and not run.problems:
        found(f"failed with exit status {run.status}")
    if run.good and run.basis == "exit status":
        fix = "Use pytest, or have it write JUnit XML and name the file as `junit` in [tool.codegen.step]."
        message = "leaves no report, so that how many tests ran is not known: judged by its exit status and by removal"
        found(message, "note", fix)
    return findings


def _nobody(removal: Removal) -> str:
    name = removal.function.name
    if removal.verdict == "unreached":
        return f"`{name}`: no test of the step reaches it"
    what = "raises" if removal.by == "raise" else "does nothing"
    which = "no test of the step fails" if removal.whole else "no test that reaches it fails"
    return f"`{name}`: {which} when its body {what}"


def _unclear(target: Target, field: Field, message: str) -> Finding:
    fix = "Write `- waivers: `NAME`: REASON`."
    return Finding(target.document_path, field.line, 1, "STEP015", f"the waiver {message}", fix=fix)
