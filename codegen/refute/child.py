"""The process that searches: it imports the module, and calls its functions with symbolic values.

Reads one JSON object from standard input and writes one JSON line for each function to the descriptor that was
standard output: what the module prints goes to standard error. Run as `python -m codegen.refute.child`.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import os
import random
import select
import signal
import sys
import time
import types
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

SEED = 20_240
GRACE = 5.0
"""Seconds beyond three budgets that one search has: the budget is checked only between paths."""


class Expanded(importlib.machinery.SourceFileLoader):
    """Loads one file from its expanded text, which need not be what is on the disk."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self.text = text

    def get_data(self, path: str) -> bytes:
        """The expanded text for the file itself."""
        return self.text.encode() if path == self.path else super().get_data(path)

    def path_stats(self, path: str) -> typing.Any:
        """Refused, so that no compiled file of another text is read or written."""
        raise OSError(f"{path} is loaded from its expanded text")


class Finder(importlib.abc.MetaPathFinder):
    """Finds the searched module for whoever imports it first."""

    def __init__(self, name: str, path: str, text: str) -> None:
        self.loader = Expanded(name, path, text)
        self.name, self.path = name, path

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        """The spec of the searched module; None for any other."""
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self.loader)


class Refused(Exception):
    """The function cannot be searched; the text says why."""


class Search:
    """One function: what it asks of its callers, what it claims, and how it is called."""

    def __init__(self, module: ModuleType, file: str, subject: dict[str, Any], folder: Path) -> None:
        self.file = file
        self.asked = [tuple(lines) for lines in subject["asked"]]
        self.claims = [tuple(lines) for lines in subject["claims"]]
        self.names = vars(module)
        self.finished = 0
        self.last_error = ""
        self.walled = ""
        self.called, self.owner = _resolve(module, subject["path"])
        self.explore = self._explorer(folder, subject["path"])

    def _explorer(self, folder: Path, path: Sequence[str]) -> Callable[..., bool]:
        """A function of the same parameters that says whether the claims held."""
        raw = inspect.unwrap(self.called)
        try:
            hints = typing.get_type_hints(raw, include_extras=True)
        except (NameError, TypeError, AttributeError, SyntaxError) as error:
            raise Refused(f"its types do not resolve: {error}") from error
        heads: list[str] = []
        arguments: list[str] = []
        kinds: dict[str, Any] = {}
        for index, parameter in enumerate(inspect.signature(raw).parameters.values()):
            name = parameter.name
            if index == 0 and self.owner is not None and name == "self":
                kinds[name] = self.owner
            elif index == 0 and self.owner is not None and name == "cls":
                arguments.append("_owner")
                continue
            else:
                kinds[name] = hints[name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                kinds[name] = types.GenericAlias(tuple, (hints[name], ...))
                arguments.append(f"*{name}")
            else:
                arguments.append(f"{name}={name}" if parameter.kind is parameter.KEYWORD_ONLY else name)
            heads.append(name)
        for name, kind in kinds.items():
            if kind is typing.Any or kind is object:
                raise Refused(f"its parameter {name} may be anything")
        if not heads:
            raise Refused("it takes no argument, so there is nothing to search")
        target = folder / f"explore_{len(list(folder.iterdir()))}.py"
        target.write_text(
            f"def explore({', '.join(heads)}):\n"
            '    """post: __return__"""\n'
            f"    return _held(lambda: _called({', '.join(arguments)}))\n"
        )
        spec = importlib.util.spec_from_file_location(target.stem, target)
        assert spec is not None and spec.loader is not None
        explorer = importlib.util.module_from_spec(spec)
        vars(explorer).update(_held=self.held, _called=self.called, _owner=self.owner)
        sys.modules[target.stem] = explorer
        spec.loader.exec_module(explorer)
        explorer.explore.__annotations__ = {**kinds, "return": bool}
        return typing.cast(Callable[..., bool], explorer.explore)

    def held(self, call: Callable[[], object]) -> bool:
        """Whether the call kept the claims. An input that the function refuses, or fails on, broke none."""
        return self.broken(call) is None

    def broken(self, call: Callable[[], object]) -> tuple[tuple[int, int], str] | None:
        """The claim's lines and its message, when the call broke one."""
        from crosshair.auditwall import SideEffectDetected

        try:
            call()
        except SideEffectDetected as error:
            self.walled = str(error)
            return None
        except Exception as error:  # noqa: BLE001 - whatever the searched code raises is judged by the line it comes from
            self.last_error = type(error).__name__
            frames = _frames(error, self.file)
            if not frames:
                return None
            depth, line = len(frames), frames[-1]
            for lines in self.claims:
                if lines[0] <= line <= lines[1]:
                    return lines, f"{type(error).__name__}: {error}"
            asked = any(first <= line <= last for first, last in self.asked)
            if asked and depth > 1:  # It called itself with what it refuses.
                return (frames[0], frames[0]), f"{type(error).__name__}: {error}"
            return None
        self.finished += 1
        return None


def _frames(error: BaseException, file: str) -> list[int]:
    """Lines of the file that the error passed, outermost first; empty when it was not raised in the file itself."""
    lines, last = [], ""
    at = error.__traceback__
    while at is not None:
        frame: FrameType = at.tb_frame
        last = frame.f_code.co_filename
        if last == file:
            lines.append(at.tb_lineno)
        at = at.tb_next
    return lines if last == file else []


def _resolve(module: ModuleType, path: Sequence[str]) -> tuple[Callable[..., Any], type | None]:
    """The function, and the class that it is a method of."""
    owner: Any = module
    for name in path[:-1]:
        owner = getattr(owner, name)
    found = inspect.getattr_static(owner, path[-1])
    if isinstance(found, property):
        found = found.fget
    static = isinstance(found, staticmethod)
    if isinstance(found, staticmethod | classmethod):
        found = found.__func__
    if not callable(found):
        raise Refused("the module holds another thing under its name")
    return found, (owner if isinstance(owner, type) and not static else None)


def search(one: Search, seconds: float, iterations: int) -> dict[str, Any]:
    """Look for an input, and run the function with it to be sure."""
    from crosshair.core_and_libs import AnalysisKind, MessageType, analyze_function, run_checkables
    from crosshair.options import AnalysisOptionSet

    options = AnalysisOptionSet(
        analysis_kind=[AnalysisKind.PEP316],
        per_condition_timeout=seconds,
        per_path_timeout=max(seconds / 3, 1.0),
        max_iterations=iterations,
        max_uninteresting_iterations=iterations,
        report_all=True,
    )
    random.seed(SEED)
    messages = run_checkables(analyze_function(one.explore, options))
    states = {message.state for message in messages}
    for message in messages:
        if message.state is MessageType.POST_FAIL:
            return _replayed(one, message.message)
        if message.state in (MessageType.EXEC_ERR, MessageType.POST_ERR, MessageType.SYNTAX_ERR):
            return {"outcome": "unsearched", "detail": f"the search failed: {message.message}"}
    if one.walled:
        return {"outcome": "unsearched", "detail": f"it reaches outside of the process: {one.walled}"}
    if not one.finished and one.last_error:
        return {"outcome": "unsearched", "detail": f"each input that was tried ended in {one.last_error}"}
    if states == {MessageType.CONFIRMED}:
        return {"outcome": "none", "detail": "every path was followed"}
    if MessageType.PRE_UNSAT in states:
        return {"outcome": "unsearched", "detail": "no value of its parameters' types could be made"}
    return {"outcome": "none", "detail": "not every path was followed"}


def _replayed(one: Search, message: str) -> dict[str, Any]:
    """The finding, after the function was run with the very input; the search's own values are symbolic."""
    text = message.partition("when calling ")[2]
    for end in range(len(text), 0, -1):
        try:
            call = ast.parse(text[:end].strip(), mode="eval").body
        except SyntaxError:
            continue
        if isinstance(call, ast.Call):
            break
    else:
        return {"outcome": "unsearched", "detail": f"an input was found that cannot be written down: {message}"}
    names = {**vars(typing), **one.names}
    values = {}
    try:
        signature = inspect.signature(one.explore)
        written = {name: ast.unparse(a) for name, a in zip(signature.parameters, call.args, strict=False)}
        written |= {k.arg: ast.unparse(k.value) for k in call.keywords if k.arg}
        values = {name: eval(source, names) for name, source in written.items()}
        broken = one.broken(lambda: _bound(one, values))
    except Exception as error:  # noqa: BLE001 - the text is of the searcher's making; that it fails is said
        detail = f"an input was found that cannot be built again: {text[:end]}: {error}"
        return {"outcome": "unsearched", "detail": detail}
    shown = ", ".join(f"{name}={source}" for name, source in written.items())
    if broken is None:
        return {"outcome": "unsearched", "detail": f"an input was found, {shown}, that breaks nothing when it is run"}
    return {"outcome": "broken", "input": shown, "lines": list(broken[0]), "detail": broken[1]}


def _bound(one: Search, values: dict[str, Any]) -> object:
    """Call the searched function as its explorer does."""
    namespace: dict[str, Any] = {}
    held = vars(sys.modules[one.explore.__module__])

    def run(call: Callable[[], object]) -> bool:
        namespace["result"] = call()
        return True

    before = held["_held"]
    held["_held"] = run
    try:
        one.explore(**values)
    finally:
        held["_held"] = before
    return namespace.get("result")


def main() -> int:
    """Search each function that the request names."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    request = json.load(sys.stdin)

    def say(**answer: object) -> None:
        out.write(json.dumps(answer) + "\n")
        out.flush()

    try:
        import crosshair.core_and_libs  # noqa: F401
    except ImportError:
        say(failed="missing")
        return 0
    sys.path.insert(0, request["root"])
    sys.meta_path.insert(0, Finder(request["module"], request["file"], request["text"]))
    try:
        module = importlib.import_module(request["module"])
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a module may raise anything while it is imported
        say(failed="import", detail=f"{type(error).__name__}: {error}")
        return 0
    ready: list[Search | None] = []
    for subject in request["subjects"]:
        try:
            ready.append(Search(module, request["file"], subject, Path(request["folder"])))
        except (Refused, AttributeError) as error:
            ready.append(None)
            say(name=subject["name"], outcome="unsearched", detail=str(error))
    say(ready=True)
    for one, subject in zip(ready, request["subjects"], strict=True):
        if one is not None:
            say(begins=subject["name"])
            say(name=subject["name"], **_apart(one, request["seconds"], request["iterations"]))
    return 0


def _apart(one: Search, seconds: float, iterations: int) -> dict[str, Any]:
    """Search in a copy of this process: each begins in the same state, so its answer does not depend on the others, and
    one that crashes or does not end takes nothing with it."""
    from crosshair.auditwall import engage_auditwall

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            engage_auditwall()  # From here on the searched code can neither write files nor reach the network.
            answer = json.dumps(search(one, seconds, iterations)).encode()
            while answer:
                answer = answer[os.write(writer, answer) :]
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    limit = 3 * seconds + GRACE
    try:
        text = _read(reader, limit)
    except TimeoutError:
        return {"outcome": "unsearched", "detail": f"the search did not end within {limit:g} s"}
    finally:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(reader)
    if not text:
        code = os.waitstatus_to_exitcode(status)
        return {"outcome": "unsearched", "detail": f"the search ended with status {code}"}
    return typing.cast(dict[str, Any], json.loads(text))


def _read(reader: int, limit: float) -> bytes:
    """All that comes through the pipe. Raises TimeoutError."""
    due, found = time.monotonic() + limit, b""
    while select.select([reader], [], [], max(0.0, due - time.monotonic()))[0]:
        data = os.read(reader, 65_536)
        if not data:
            return found
        found += data
    raise TimeoutError


if __name__ == "__main__":
    sys.exit(main())
