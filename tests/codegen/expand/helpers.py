"""Text in, text out: what the tests of the expander share."""

from __future__ import annotations

import textwrap

from codegen.expand.driver.expansion import expand_bytes, strip_bytes
from codegen.expand.model import FileReport, Options
from codegen.expand.reading.marks import Marks
from codegen.patterns import load_library

LIBRARY = load_library(None)
MARKS = Marks(LIBRARY.tags())


def dedent(text: str) -> str:
    """The text without its margin and its first, empty line."""
    return textwrap.dedent(text).lstrip("\n")


def report(text: str, path: str = "sample.py", **options: object) -> FileReport:
    """Expand a text. The `try` around conditions on untyped values is left out: most samples have no types, and are
    about something else; `guard="untyped"` is what users have."""
    options.setdefault("guard", "never")
    return expand_bytes(path, text.encode(), LIBRARY, MARKS, Options(**options))  # type: ignore[arg-type]


def expand(text: str, **options: object) -> str:
    """The expanded text; fails the test when there is none."""
    done = report(text, **options)
    assert done.text is not None, [finding.message for finding in done.findings]
    return done.text


def strip(text: str, **options: object) -> str:
    """The text without generated code."""
    done = strip_bytes("sample.py", text.encode(), MARKS, Options(**options))  # type: ignore[arg-type]
    assert done.text is not None, [finding.message for finding in done.findings]
    return done.text


def states(text: str, **options: object) -> list[str]:
    """State of each site, in order."""
    return [site.state.value for site in report(text, **options).sites]


def problem(text: str, **options: object) -> tuple[int, str, str]:
    """Line, code and message of the only error."""
    errors = [finding for finding in report(text, **options).findings if finding.severity == "error"]
    assert len(errors) == 1, errors
    return errors[0].line, errors[0].code, errors[0].message
