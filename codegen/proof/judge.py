"""The judgement: do these commands pass, by a report of what ran, and does a test miss each function taken away?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from codegen.proof.functions import Function, Removable, removables
from codegen.proof.report import Report, read_answers, read_junit, read_reached, read_report
from codegen.proof.runs import Ended, Place, is_pytest, place, reports, run

Basis = Literal["report", "junit", "exit status"]
Verdict = Literal["missed", "survived", "unreached", "waived", "nothing to remove"]
HOWS = ("raise", "nothing")
_TIMES = 3.0


@dataclass(frozen=True)
class Run:
    """One test command. `basis` says what it was judged by; `passed` are its tests with their seconds; `problems` are
    pairs of a test ("" for the run) and why it proves nothing. `status` None when it passed its deadline."""

    command: str
    status: int | None
    basis: Basis
    passed: Mapping[str, float]
    problems: tuple[tuple[str, str], ...]
    seconds: float

    @property
    def good(self) -> bool:
        return self.status == 0 and not self.problems


@dataclass(frozen=True)
class Removal:
    """What became of a function that was taken away. `by` is the test (or command) that missed it, the reason of a
    waiver, or how it was removed when nobody did ("raise", "nothing"); `whole` whether every test was asked."""

    function: Function
    verdict: Verdict
    by: str = ""
    whole: bool = True


@dataclass(frozen=True)
class Proof:
    """All runs, one removal a function, and what the removals cost beside the tests, in seconds."""

    runs: tuple[Run, ...]
    removals: tuple[Removal, ...] = ()
    test_seconds: float = 0.0
    removal_seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return all(run.good for run in self.runs) and not self.unmissed

    @property
    def unmissed(self) -> list[Removal]:
        """The functions that nobody misses."""
        return [each for each in self.removals if each.verdict in ("survived", "unreached")]


@dataclass(frozen=True)
class Question:
    """What is judged: `commands` run in `checkout`, which holds what would be committed of `project`; `functions` must
    be missed. `waivers` give the reason why nobody misses a function, or why a test may be skipped, by name. `junit` is
    the report, relative to the project, that a command which is not pytest writes; `seconds` a run's deadline."""

    project: Path
    checkout: Path
    commands: tuple[str, ...]
    functions: tuple[Function, ...] = ()
    waivers: Mapping[str, str] = field(default_factory=dict)
    junit: str = ""
    seconds: float = 1800.0


def judge(question: Question, say: Callable[[str], None]) -> Proof:
    """Run the commands, and when all are good take the functions away. Output goes through `say`.

    UsageError: a command does not exist, or the project's interpreter does not run.
    """
    found = removables(question.checkout, list(question.functions))
    asked = [each for each in found if each.function.name not in question.waivers]
    where = place(question.project, question.checkout)
    with tempfile.TemporaryDirectory(prefix="proof-") as name:
        bench = _Bench(question, where, Path(name), asked)
        runs: list[Run] = []
        for command in question.commands:
            say(f"$ {command}")
            runs.append(bench.judged(command, say))
        seconds = sum(each.seconds for each in runs)
        if not runs or not all(each.good for each in runs):
            return Proof(tuple(runs), (), seconds)
        removed = bench.removed(runs)
        spent = bench.spent - seconds
    return Proof(tuple(runs), tuple(_removals(question, found, removed)), seconds, spent)


@dataclass
class _Bench:
    """The runs of one judgement, each in a folder of its own."""

    question: Question
    where: Place
    folder: Path
    asked: list[Removable]
    count: int = 0
    spent: float = 0.0
    reached: dict[str, dict[int, list[str]]] = field(default_factory=dict)

    def run(self, command: str, deadline: float, remove: str = "", serve: dict[str, object] | None = None) -> Ended:
        self.count += 1
        folder = self.folder / f"{self.count}"
        ended = run(self.where, command, folder, self.asked, deadline, remove, serve)
        self.spent += ended.seconds
        return ended

    def judged(self, command: str, say: Callable[[str], None]) -> Run:
        """A run as it is, with what it reached."""
        junit = self.where.checkout / self.question.junit if self.question.junit else None
        if junit is not None:
            junit.unlink(missing_ok=True)
        ended = self.run(command, self.question.seconds)
        say(ended.output)
        self.reached[command] = read_reached(ended.folder / "reached")
        basis, report = _report(ended, junit)
        problems = [each for each in report.problems if each[0] not in self.question.waivers]
        return Run(command, ended.status, basis, report.passed, tuple(problems), ended.seconds)

    def removed(self, runs: Sequence[Run]) -> dict[int, Removal]:
        """By number what became of each body that was taken away; the first command that misses it decides."""
        found: dict[int, Removal] = {}
        for each in runs:
            left = [one for one in self.asked if one.number not in found or found[one.number].verdict != "missed"]
            reached = self.reached[each.command]
            orders = [one for one in left if one.number in reached]
            answers = self._served(each, orders)
            for one in left:
                verdict = self._verdict(each, one, answers) if one in orders else Removal(one.function, "unreached")
                if one.number not in found or verdict.verdict != "unreached":
                    found[one.number] = verdict
        return found

    def _served(self, judged: Run, orders: Sequence[Removable]) -> dict[str, tuple[str, bool]]:
        """Answers of one process that collects the tests once and forks for each removal; empty where it cannot."""
        if judged.basis != "report" or not orders:
            return {}
        reached = self.reached[judged.command]
        asked = []
        for one in orders:
            tests = sorted((test for test in reached[one.number] if test), key=lambda t: judged.passed.get(t, 0.0))
            asked += [{"remove": f"{one.number} {how}", "tests": tests} for how in HOWS]
        serve = {"orders": asked, "seconds": dict(judged.passed), "budget": max(_TIMES * judged.seconds, 5.0)}
        ended = self.run(judged.command, self.question.seconds, serve=serve)
        paths = reports(ended)
        alone, answers = read_answers(paths[0]) if len(paths) == 1 else (False, {})
        return answers if alone else {}

    def _verdict(self, judged: Run, one: Removable, answers: Mapping[str, tuple[str, bool]]) -> Removal:
        by, whole = "", True
        for how in HOWS:
            missed, asked_all = answers.get(f"{one.number} {how}", ("", False))
            at_import = "" in self.reached[judged.command][one.number]
            if not missed and (at_import or f"{one.number} {how}" not in answers):
                missed, asked_all = self._cold(judged, f"{one.number} {how}"), True
            if not missed:
                return Removal(one.function, "survived", how, asked_all)
            by, whole = missed, whole and asked_all
        return Removal(one.function, "missed", by, True)

    def _cold(self, judged: Run, remove: str) -> str:
        """Run the whole command with the removal from its start; what missed it, "" when nothing did."""
        ended = self.run(judged.command, min(self.question.seconds, 5.0 + _TIMES * judged.seconds), remove)
        _, report = _report(ended, None)
        failed = next((test for test, _ in report.problems if test), "")
        return failed or (judged.command if ended.status != 0 else "")


def _report(ended: Ended, junit: Path | None) -> tuple[Basis, Report]:
    """What a run says of itself, and on which basis it is believed."""
    paths = reports(ended)
    if paths:
        all_of_it = [read_report(path) for path in paths]
        passed = {test: seconds for each in all_of_it for test, seconds in each.passed.items()}
        return "report", Report(passed, tuple(problem for each in all_of_it for problem in each.problems))
    if is_pytest(ended.command):
        return "report", Report({}, (("", "pytest left no report: it did not start, or was ended before it began"),))
    if junit is not None:
        if not junit.is_file():
            return "junit", Report({}, (("", f"did not write the report {junit.name}"),))
        try:
            return "junit", read_junit(junit)
        except ValueError as error:
            return "junit", Report({}, (("", str(error)),))
    return "exit status", Report()


def _removals(question: Question, found: Sequence[Removable], removed: Mapping[int, Removal]) -> list[Removal]:
    """One verdict a function: the worst of its bodies."""
    rank = ("missed", "waived", "survived", "unreached")
    verdicts: list[Removal] = []
    for function in dict.fromkeys(question.functions):
        bodies = [each for each in found if each.function == function]
        if not bodies:
            verdicts.append(Removal(function, "nothing to remove"))
        elif function.name in question.waivers:
            verdicts.append(Removal(function, "waived", question.waivers[function.name]))
        else:
            verdicts.append(max((removed[each.number] for each in bodies), key=lambda one: rank.index(one.verdict)))
    return verdicts
