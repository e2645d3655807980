"""Run the examples of a pattern: they are its tests.

An example is code, so only `codegen patterns test` and this project's tests run it; expansion never does. Each
case runs in a function of its own, in a fresh namespace.
"""

from __future__ import annotations

import contextlib
import importlib.util
import signal
import textwrap
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from codegen.patterns.arguments import parse_use
from codegen.patterns.model import Bound, Example, ExampleResult, Pattern, Site
from codegen.patterns.render import render

FUNCTION = "check"
MAX_SECONDS = 10.0


class Overdue(BaseException):
    """An example ran for longer than MAX_SECONDS. No Exception, so that no `except` of an example swallows it."""


def run_examples(pattern: Pattern) -> list[ExampleResult]:
    """Render the pattern into each example and run it."""
    return [run_example(pattern, example) for example in pattern.examples]


def example_site(pattern: Pattern, bound: Bound, example: Example) -> Site:
    """The site that an example describes: a function called `check`."""
    is_expression = pattern.target == "expression"
    return Site(
        target=None if is_expression else bound.target,
        label="" if is_expression else (bound.target or ""),
        function=FUNCTION,
        each=bound.each or example.each,
        result="result" if pattern.placement == "on_return" else None,
        expression=bound.target if is_expression else None,
        note=example.note,
        body=example.body,
    )


def render_example(pattern: Pattern, example: Example) -> str:
    """The statements that the example's use of the pattern gives."""
    bound = parse_use(pattern, example.use)
    return render(pattern, bound, example_site(pattern, bound, example))


def run_example(pattern: Pattern, example: Example, rendered: str | None = None) -> ExampleResult:
    """Run one case; `rendered` replaces what the pattern gives, so that a test can try a wrong check.

    Raises RenderError when the pattern gives no code.
    """
    missing = [name for name in example.needs if importlib.util.find_spec(name) is None]
    if missing:
        return ExampleResult(pattern.id, example, "skipped", f"{', '.join(missing)} is not installed")
    code = program(pattern, example, rendered if rendered is not None else render_example(pattern, example))
    import asyncio  # Here, since most runs of the tool execute no example.

    namespace: dict[str, Any] = {"__name__": f"example_of_{pattern.id}"}
    try:
        with _deadline(MAX_SECONDS):
            exec(compile(code, f"<{pattern.id}, line {example.line}>", "exec"), namespace)
            outcome = namespace[FUNCTION]()
            if example.is_async:
                asyncio.run(outcome)
    except Overdue:
        return ExampleResult(pattern.id, example, "failed", f"did not end within {MAX_SECONDS:g} s")
    except (Exception, SystemExit, GeneratorExit) as error:  # noqa: BLE001 - an example may raise anything; the judge says what
        return _judge(pattern, example, error)
    return _judge(pattern, example, None)


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Interrupt the code inside after that time. Only a main thread can be interrupted; elsewhere there is no limit."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Overdue

    before = signal.signal(signal.SIGALRM, interrupt)
    rest, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, rest, interval)
        signal.signal(signal.SIGALRM, before)


def program(pattern: Pattern, example: Example, rendered: str) -> str:
    """The module that an example runs as."""
    start = "async def" if example.is_async else "def"
    body = "\n".join(part for part in (example.given.rstrip("\n"), rendered.rstrip("\n")) if part)
    return "\n".join([*pattern.imports, f"{start} {FUNCTION}():", textwrap.indent(body, "    "), ""])


def _judge(pattern: Pattern, example: Example, error: BaseException | None) -> ExampleResult:
    bound = parse_use(pattern, example.use)
    wanted = (bound.error or pattern.error).rpartition(".")[2]
    detail = ""
    if error is None and example.message is not None:
        detail = f"passed; expected {wanted}: {example.message}"
    elif error is not None and example.message is None:
        detail = f"raised {type(error).__name__}: {error}; expected to pass"
    elif error is not None and type(error).__name__ != wanted:
        detail = f"raised {type(error).__name__}: {error}; expected {wanted}"
    elif error is not None and _text(error) != example.message:
        detail = f"message {_text(error)!r}; expected {example.message!r}"
    return ExampleResult(pattern.id, example, "failed" if detail else "passed", detail)


def _text(error: BaseException) -> str:
    """The message as raised; `str` would quote that of a KeyError."""
    return str(error.args[0]) if len(error.args) == 1 else str(error)
