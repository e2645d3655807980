"""The words of a new step: title, purpose, files, tests, checkpoints, taken from its entries."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from codegen.document.model import Entry, Step, StepMethod
from codegen.document.rows import format_row, new_row

SENTENCE = re.compile(r"(.+?[.!?。])(?:\s|$)", re.DOTALL)
TITLE_NAMES = 3
PURPOSE_LENGTH = 200


def new_step(number: int, entries: Sequence[Entry], depends: Sequence[int], module_path: Callable[[str], str]) -> Step:
    """A step that does not exist yet, without line numbers."""
    files: dict[str, None] = {}
    tests: dict[str, None] = {}
    for entry in entries:
        path = module_path(entry.module) if entry.module else ""
        if path:
            files[path] = None
        for test in re.findall(r"[\w./-]+\.py(?:::[\w:\[\]-]+)?", entry.tests) or filter(None, [test_path(path)]):
            tests[test] = None
    for test in tests:
        files[test.split("::")[0]] = None
    checks = "`codegen drift` finds nothing for these methods; `codegen expand --check` passes"
    if any(entry.full_specification for entry in entries):
        checks += "; every rule of the Full Specification has a test"
    return Step(
        number=number,
        title=title(entries),
        depends=tuple(depends),
        status="NOT_STARTED",
        commit="",
        purpose=purpose(entries),
        files=tuple(files),
        checkpoints=checks,
        tests=f"`python -m pytest {' '.join(tests)}`" if tests else "`python -m pytest`",
        rollback="revert the step's commit, after those of the steps that depend on it",
        methods=tuple(method_row(entry) for entry in entries),
        fields={},
        row_line=0,
        line=0,
        line_end=0,
    )


def method_row(entry: Entry) -> StepMethod:
    """An entry as a name of a step, not started."""
    return StepMethod(entry.id, entry.number, "NOT_STARTED", "", 0, recorded=True)


def title(entries: Sequence[Entry]) -> str:
    """ "ranks: Table, Table.release, Table.state and 2 more"; modules only, where there are several."""
    modules = list(dict.fromkeys(entry.module.rpartition(".")[2] for entry in entries))
    names = [entry.name.removeprefix(f"{entry.module}.") or entry.title for entry in entries]
    if len(modules) > 1:
        return _listed([module for module in modules if module])
    return f"{modules[0]}: {_listed(names)}" if modules[0] else _listed(names)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:TITLE_NAMES])
    more = len(names) - TITLE_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def purpose(entries: Sequence[Entry]) -> str:
    """The first sentences of the entries' purposes, as many as fit."""
    found = ""
    for entry in entries:
        match = SENTENCE.match(entry.purpose)
        sentence = " ".join((match.group(1) if match else entry.purpose).split())
        if sentence and len(found) + len(sentence) <= PURPOSE_LENGTH:
            found = f"{found} {sentence}".strip()
    return found or f"build {_listed([entry.name or entry.title for entry in entries])}"


def test_path(module_path: str) -> str:
    """tests/a/b/test_c.py for a/b/c.py."""
    if not module_path:
        return ""
    folder, _, name = module_path.removeprefix("src/").rpartition("/")
    stem = folder.rpartition("/")[2] if name == "__init__.py" else name.removesuffix(".py")
    return "/".join(filter(None, ["tests", folder, f"test_{stem}.py"]))


STEP_COLUMNS = ("Step", "Title", "Depends", "Status", "Commit", "Names")


def step_lines(step: Step) -> list[str]:
    """The heading and fields of an open step."""
    return [
        f"### Step {step.number}: {step.title}",
        "",
        f"- purpose: {step.purpose}",
        f"- depends: {numbers(step.depends)}",
        f"- files: {', '.join(step.files) or '-'}",
        f"- checkpoints: {step.checkpoints}",
        f"- tests: {step.tests}",
        f"- rollback: {step.rollback}",
        f"- names: {listed([method.name for method in step.methods])}",
        "",
    ]


def listed(names: Sequence[str]) -> str:
    """Names as a step lists them: "`a.b`, `a.c`"."""
    return ", ".join(f"`{name}`" for name in names)


def table_head(columns: Sequence[str]) -> list[str]:
    return [format_row(columns), "|" + "---|" * len(columns)]


def numbers(depends: Sequence[int]) -> str:
    """ "1, 2", or "-" for none."""
    return ", ".join(map(str, depends)) or "-"


def step_row(step: Step, columns: Sequence[str] = STEP_COLUMNS) -> str:
    """The row of a step in the table of steps."""
    values = {"step": str(step.number), "title": step.title, "depends": numbers(step.depends)}
    values |= {"status": step.status, "commit": step.commit or "-", "names": str(step.names or "-")}
    return new_row([column.lower() for column in columns], values)
