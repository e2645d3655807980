"""What a judged run left behind, read into facts: the pytest plugin's report, or JUnit XML of another runner."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_PHASES = {"setup", "call", "teardown"}


@dataclass(frozen=True)
class Report:
    """Tests that ran to their end and passed, with their seconds, and why the run proves nothing ("" keys: the run)."""

    passed: dict[str, float] = field(default_factory=dict)
    problems: tuple[tuple[str, str], ...] = ()


def read_report(path: Path) -> Report:
    """The facts of one pytest process. Everything that was collected must have ended well, and something must be."""
    events = _events(path)
    if not any(event["event"] == "collected" for event in events):
        uncollected = [_uncollected(event) for event in events if event["event"] == "uncollected"]
        return Report({}, tuple(uncollected) or (("", "the run ended before its tests were collected"),))
    collected: list[str] = []
    problems: list[tuple[str, str]] = []
    phases: dict[str, list[Mapping[str, Any]]] = {}
    finished = False
    for event in events:
        if event["event"] == "collected":
            collected += event["ids"]
            problems += [(each, "was collected and then dropped by a hook") for each in event["dropped"]]
        elif event["event"] == "uncollected":
            problems.append(_uncollected(event))
        elif event["event"] == "hidden":
            problems.append((event["id"], f"raised in its {event['when']} and was reported as passed: {event['why']}"))
        elif event["event"] == "phase":
            phases.setdefault(event["id"], []).append(event)
        elif event["event"] == "finish":
            finished = True
    if not collected and not problems:
        problems.append(("", "no test was collected"))
    passed: dict[str, float] = {}
    blamed = {test for test, _ in problems}
    for test in collected:
        reason = _reason(phases.get(test, []))
        if reason:
            problems.append((test, reason))
        elif test not in blamed:
            passed[test] = sum(event["seconds"] for event in phases[test])
    if not finished:
        problems.append(("", "the run ended before pytest did"))
    return Report(passed, tuple(problems))


def read_junit(path: Path) -> Report:
    """The facts of a JUnit XML file. ValueError: it is not one."""
    try:
        tree = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ValueError(f"{path.name} is not XML: {error}") from error
    if tree.tag not in ("testsuites", "testsuite"):
        raise ValueError(f"{path.name} is no JUnit XML: its root is <{tree.tag}>")
    passed: dict[str, float] = {}
    problems: list[tuple[str, str]] = []
    for case in tree.iter("testcase"):
        name = "::".join(filter(None, [case.get("classname"), case.get("name")]))
        bad = next((each for each in case if each.tag in ("failure", "error", "skipped")), None)
        if bad is not None:
            word = {"failure": "failed", "error": "ended in an error", "skipped": "was skipped"}[bad.tag]
            problems.append((name, f"{word}: {bad.get('message') or (bad.text or '').strip()[:300]}".rstrip(": ")))
        else:
            try:
                passed[name] = float(case.get("time") or 0)
            except ValueError as error:
                raise ValueError(f"{path.name}: time of {name} is no number: {case.get('time')!r}") from error
    if not passed and not problems:
        problems.append(("", "no test was run"))
    return Report(passed, tuple(problems))


def read_answers(path: Path) -> tuple[bool, dict[str, tuple[str, bool]]]:
    """Whether the server could work, and by removal the test that missed it and whether all tests were asked."""
    events = _events(path)
    alone = any(event["event"] == "serving" and event["alone"] for event in events)
    found = {each["remove"]: (each["missed"], each["whole"]) for each in events if each["event"] == "answer"}
    return alone, found


def read_reached(path: Path) -> dict[int, list[str]]:
    """By a function's number the tests that reached it, in order; "" for what happened outside of tests."""
    found: dict[int, dict[str, None]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        number, test = json.loads(line)
        found.setdefault(number, {})[test] = None
    return {number: list(tests) for number, tests in found.items()}


def _reason(phases: list[Mapping[str, Any]]) -> str:
    """Why a collected test proves nothing, "" where it does."""
    for event in phases:
        if event["expected"]:
            return "is marked xfail, so that it says nothing"
        if event["outcome"] == "skipped":
            return f"was skipped: {event['why']}"
        if event["outcome"] != "passed":
            return f"{event['outcome']} in its {event['when']}: {event['why']}"
    missing = _PHASES - {event["when"] for event in phases}
    return "did not run to its end" if missing else ""


def _uncollected(event: Mapping[str, Any]) -> tuple[str, str]:
    word = "was skipped as a whole" if event["outcome"] == "skipped" else "could not be collected"
    return event["id"], f"{word}: {event['why']}"


def _events(path: Path) -> list[Mapping[str, Any]]:
    """The lines of a report; one that was cut short by a kill is left out."""
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n")[:-1] if line]
