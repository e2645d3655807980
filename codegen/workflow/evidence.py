"""What a step asks the judge, and what the answer means for the step: functions, waivers, findings."""

from __future__ import annotations

import re
from collections.abc import Mapping

from codegen.diagnostics import Finding
from codegen.document.model import Field
from codegen.drift.code import Code
from codegen.drift.section import documented_definitions, place_of
from codegen.proof.functions import Function
from codegen.proof.judge import Proof, Removal, Run
from codegen.workflow.records import read_waiver, waiver_items
from codegen.workflow.target import Target

WAIVERS = ("waiver", "waivers")
_COMMAND = re.compile(r"`([^`]+)`")
_MOST = 8


def test_commands(target: Target) -> list[str]:
    """The commands of the step's `tests:` field: what stands in backticks."""
    return [command.strip() for command in _COMMAND.findall(target.step.tests)]


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
    function's, full or its end, a test's id, or one of the step's test commands.

    The findings are about names that do not exist, or what gives no reason.
    """
    reasons: dict[str, str] = {}
    findings: list[Finding] = []
    commands = test_commands(target)
    names = {name for entry in target.entries for name in (entry.id, *entry.contracts)}
    for entry in target.entries:
        for key in WAIVERS:
            if key in entry.fields:
                reason = entry.fields[key].value.strip()
                reasons |= dict.fromkeys((entry.id, *entry.contracts), reason) if reason else {}
                findings += [] if reason else [_unclear(target, entry.fields[key], f"{entry.label}: gives no reason")]
    for field in (target.step.fields[key] for key in WAIVERS if key in target.step.fields):
        for item in waiver_items(field):
            waiver = read_waiver(item)
            if waiver is None:
                findings.append(_unclear(target, field, f"{item!r} is not `name: reason`"))
                continue
            name, reason = waiver
            whole = "::" in name or name in commands
            chosen = [name] if whole else [each for each in names if each == name or each.endswith(f".{name}")]
            if not chosen:
                findings.append(
                    _unclear(target, field, f"{name} is no name and no test command of Step {target.step.number}")
                )
            reasons |= dict.fromkeys(chosen, reason)
    return reasons, findings


def proof_findings(target: Target, proof: Proof, waivers: Mapping[str, str]) -> list[Finding]:
    """What the runs and the removals say against the step.

    A command that leaves no report proves nothing, unless one of the `waivers` names it.
    """
    line = target.step.fields["tests"].line if "tests" in target.step.fields else target.step.line
    findings = [finding for run in proof.runs for finding in _run_findings(target, line, run)]
    findings += [_unreported(target, line, run.command, waivers.get(run.command)) for run in proof.runs if _mute(run)]
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

    def found(message: str) -> None:
        findings.append(Finding(path, line, 1, "STEP011", f"`{run.command}` {message}", fix="Read its output above."))

    for test, why in run.problems[:_MOST]:
        text = f"{test}: {why}" if test else why
        found(f"proves nothing: {text}" if run.status == 0 else f"failed: {text}")
    if len(run.problems) > _MOST:
        found(f"has {len(run.problems) - _MOST} more such tests")
    if run.status and not run.problems:
        found(f"failed with exit status {run.status}")
    return findings


def _mute(run: Run) -> bool:
    return run.good and run.basis == "exit status"


def _unreported(target: Target, line: int, command: str, reason: str | None) -> Finding:
    message = f"`{command}` leaves no report, so that how many tests ran is not known"
    if reason is not None:
        note = f"{message}; waived: {reason}"
        return Finding(target.document_path, line, 1, "STEP016", note, "note")
    fix = (
        "Run pytest, have it write JUnit XML and name that file as `junit` in [tool.codegen.step], or write a waiver: "
        f"`- waivers: `{command}`: REASON` in the step."
    )
    return Finding(target.document_path, line, 1, "STEP016", message, fix=fix)


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
