"""A pytest plugin injected from outside: says what was collected, what ran and how it ended, one JSON value a line.

It is loaded through PYTEST_PLUGINS, so whatever starts pytest loads it, and a pytest that a test starts does not. With
a file `serve` in the folder of the run no test runs in this process: each order in the file is carried out in a forked
child.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Generator
from typing import Any

import codegen_proof_switch as proof
import pytest

_open, _write, _close, _exit, _fork = os.open, os.write, os.close, os._exit, os.fork
_waitpid, _killpg, _clock, _sleep = os.waitpid, os.killpg, time.monotonic, time.sleep
_INSIDE = "CODEGEN_PROOF_INSIDE"
_SELECTS = ("_pytest.mark", "_pytest.main", "_pytest.cacheprovider", "_pytest.stepwise")


class Report:
    """The lines that the judge reads: a file of this process alone."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.path = os.path.join(proof.FOLDER, f"report-{self.owner}.jsonl")

    def say(self, event: str, **values: Any) -> None:
        if os.getpid() != self.owner:
            return
        line = json.dumps({"event": event, **values}) + "\n"
        out = _open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        _write(out, line.encode("utf-8", "backslashreplace"))
        _close(out)


class Witness:
    """Sees a run from its start to its end."""

    def __init__(self) -> None:
        self.report = Report()
        self.collected: list[str] = []
        self.deselected: set[str] = set()
        self.report.say("start")

    def pytest_itemcollected(self, item: Any) -> None:
        self.collected.append(item.nodeid)

    def pytest_deselected(self, items: Any) -> None:
        """What the command line selects by word or mark is no part of the step; what a conftest drops is."""
        frame = sys._getframe()
        while frame is not None:
            if frame.f_globals.get("__name__", "").startswith(_SELECTS[0]) or (
                frame.f_globals.get("__name__") in _SELECTS and frame.f_code.co_name == "pytest_collection_modifyitems"
            ):
                self.deselected |= {item.nodeid for item in items}
                return
            frame = frame.f_back  # type: ignore[assignment]

    def pytest_collectreport(self, report: Any) -> None:
        if report.outcome != "passed":
            self.report.say("uncollected", id=report.nodeid, outcome=report.outcome, why=_short(report.longrepr))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: Any) -> None:
        kept = [item.nodeid for item in session.items]
        dropped = [each for each in self.collected if each not in set(kept) | self.deselected]
        self.report.say("collected", ids=kept, dropped=dropped)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> Generator[None, Any, Any]:
        proof.switch.enter(item.nodeid)
        try:
            return (yield)
        finally:
            proof.switch.enter("")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, Any]:
        raised = call.excinfo is not None
        result = yield
        if raised and result is not None and result.outcome == "passed" and not hasattr(result, "wasxfail"):
            self.report.say("hidden", id=item.nodeid, when=result.when, why=repr(call.excinfo)[:300])
        return result

    def pytest_runtest_logreport(self, report: Any) -> None:
        why = "" if report.outcome == "passed" else _short(report.longrepr)
        expected = getattr(report, "wasxfail", None) is not None
        self.report.say(
            "phase",
            id=report.nodeid,
            when=report.when,
            outcome=report.outcome,
            expected=expected,
            seconds=report.duration,
            why=why,
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool | None:
        path = os.path.join(proof.FOLDER, "serve")
        if not os.path.exists(path) or session.testsfailed or session.config.option.collectonly:
            return None
        with open(path, encoding="utf-8") as stream:
            asked = json.load(stream)
        alone = threading.active_count() == 1  # a thread does not live on in a forked child
        self.report.say("serving", alone=alone)
        if alone:
            server = Server(session, asked["seconds"], asked["budget"])
            for order in asked["orders"]:
                self.report.say("answer", **server.answer(order))
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: Any, exitstatus: Any) -> None:
        self.report.say("finish", status=int(exitstatus))


class Failed:
    """In a child: whether a test has failed."""

    def __init__(self) -> None:
        self.test = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.outcome == "failed" or (report.outcome == "skipped" and report.when == "call"):
            self.test = self.test or report.nodeid


class Server:
    """Carries out orders in forked children. `seconds` says how long each test took, `budget` how long all may take
    before survivors are no longer shown to the tests that did not reach them."""

    def __init__(self, session: Any, seconds: dict[str, float], budget: float) -> None:
        self.session = session
        self.items = {item.nodeid: item for item in session.items}
        self.seconds = seconds
        self.end = _clock() + budget
        self.noticed: dict[int, str] = {}
        self.trusted: dict[str, bool] = {}

    def answer(self, order: dict[str, Any]) -> dict[str, Any]:
        """`missed` is the test that noticed, "" where none did; `whole` whether all tests were asked."""
        number = int(order["remove"].split()[0])
        reached = [each for each in order["tests"] if each in self.items]
        first = self.noticed.get(number)
        if first in reached:
            reached = [first, *(each for each in reached if each != first)]
        missed = self._first(order["remove"], reached)
        whole = True
        if not missed:
            rest = [each for each in self.items if each not in reached]
            whole = _clock() < self.end or not rest
            missed = self._first(order["remove"], rest) if whole else ""
        if missed:
            self.noticed[number] = missed
        return {"remove": order["remove"], "missed": missed, "whole": whole}

    def _first(self, remove: str, tests: list[str]) -> str:
        """The first test that fails with the removal and passes without it, each alone in a child."""
        left = [each for each in tests if self.trusted.get(each, True)]
        while left:
            missed = self._run(remove, left)
            if not missed:
                return ""
            if missed not in self.trusted:
                self.trusted[missed] = not self._run("", [missed])
            if self.trusted[missed]:
                return missed
            left = [each for each in left if each != missed]
        return ""

    def _run(self, remove: str, tests: list[str]) -> str:
        """Run tests in a child until one fails; that one, "" where none does. A child that dies or hangs fails."""
        path = os.path.join(proof.FOLDER, f"child-{os.getpid()}")
        out = _open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC, 0o600)
        sys.stdout.flush()
        sys.stderr.flush()
        child = _fork()
        if child == 0:
            self._run_and_exit(remove, tests, out)
        _close(out)
        self._wait(child, path)
        lines = _lines(path)
        failed = [json.loads(rest) for word, rest in lines if word == "failed"]
        begun = [json.loads(rest) for word, rest in lines if word == "run"]
        if failed:
            return str(failed[0])
        return "" if lines and lines[-1][0] == "end" else str(begun[-1] if begun else tests[0])

    def _run_and_exit(self, remove: str, tests: list[str], out: int) -> None:
        """The child: never comes back."""
        try:
            os.setpgid(0, 0)
            failed = Failed()
            self.session.config.pluginmanager.register(failed, "codegen-proof-failed")
            proof.switch.remove(remove)
            for test, following in zip(tests, [*tests[1:], ""]):  # noqa: B905 - Python 3.9 has no strict
                _write(out, f"run {json.dumps(test)}\n".encode())
                item, after = self.items[test], self.items.get(following)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if failed.test:
                    _write(out, f"failed {json.dumps(failed.test)}\n".encode())
                    break
            _write(out, b"end\n")
        finally:
            _exit(0)

    def _wait(self, child: int, path: str) -> None:
        """Wait for a child, a few times as long for each test as it took, then end what is left of its group."""
        pause, size, until = 0.001, -1, 0.0
        while not _waitpid(child, os.WNOHANG)[0]:
            now = os.stat(path).st_size
            if now != size:
                size = now
                begun = [json.loads(rest) for word, rest in _lines(path) if word == "run"]
                until = _clock() + 3.0 + 4 * self.seconds.get(begun[-1] if begun else "", 5.0)
            if _clock() > until:
                _kill(child)
                _waitpid(child, 0)
                return
            _sleep(pause)
            pause = min(pause * 1.5, 0.02)
        _kill(child)


def _lines(path: str) -> list[tuple[str, str]]:
    """Word and rest of the whole lines of a child's file."""
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in text.split("\n")[:-1])]


def _kill(group: int) -> None:
    try:
        _killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return  # nobody is left


def _short(value: Any) -> str:
    text = str(value[-1] if isinstance(value, tuple) else value).strip()
    return text[-600:]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main(config: Any) -> Generator[None, Any, Any]:
    # one process: what workers run could not be judged here
    for name, value in (("numprocesses", 0), ("dist", "no"), ("tx", [])):
        if hasattr(config.option, name):
            setattr(config.option, name, value)
    return (yield)


def pytest_configure(config: Any) -> None:
    if config.pluginmanager.has_plugin("codegen-proof"):
        return
    if not os.environ.get(_INSIDE):
        os.environ[_INSIDE] = "1"
        config.pluginmanager.register(Witness(), "codegen-proof")
