"""Section 6 against Section 5: steps, their methods, their order and their statuses."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.diagnostics import Finding
from codegen.document.cycles import cycles
from codegen.document.lint.codes import finding
from codegen.document.model import Document, Step, StepMethod
from codegen.document.references import References
from codegen.document.staleness import is_stale, unplanned
from codegen.document.steps import NUMBER

MOST_METHODS = 10
FIELDS = ("purpose", "files", "checkpoints", "tests", "rollback")


def check_steps(document: Document, references: References) -> Iterator[Finding]:
    """Findings PLAN001 to PLAN014."""
    place: dict[tuple[str, str], Step] = {}
    for step in document.steps:
        yield from _shape(document, step)
        yield from _agreement(document, step)
        for method in step.methods:
            yield from _method(document, step, method)
            entry = document.entry_of(method)
            key = (method.name, entry.id if entry else method.section)
            if key in place:
                message = f"`{method.name}` is in Step {place[key].number} and in Step {step.number}"
                yield finding(document, method.line, "PLAN004", message, "Keep it in one of them.")
            place.setdefault(key, step)
    yield from _order(document, references)
    yield from _missing(document)


def _shape(document: Document, step: Step) -> Iterator[Finding]:
    if step.folded:
        if step.status not in ("DONE", "STALE") or (step.names is None and not step.methods):
            message = f"Step {step.number} has a row and no heading, and the record has no name of it"
            yield finding(document, step.row_line, "PLAN010", message, f"Add `### Step {step.number}: {step.title}`.")
        elif step.names is not None and _recorded_names(document, step) != step.names:
            message = (
                f"Step {step.number} had {step.names} names, the record has {_recorded_names(document, step)} of it"
            )
            fix = "Put the rows back, or take the names out with `codegen remove NAME`."
            yield finding(document, step.row_line, "PLAN014", message, fix)
        return
    if not step.row_line:
        message = f"Step {step.number} has a heading and no row in the table of steps"
        yield finding(document, step.line, "PLAN010", message, "Add a row for it.")
    if step.row_line and "depends" in step.fields:
        field = step.fields["depends"]
        numbers = tuple(int(digits) for digits in NUMBER.findall(field.value))
        if set(numbers) != set(step.depends):
            message = f"Step {step.number} depends on {_listed(numbers)}, its row says {_listed(step.depends)}"
            yield finding(document, field.line, "PLAN012", message, "Make both agree; the row is what counts.")
    if len(step.methods) > MOST_METHODS:
        message = f"Step {step.number} has {len(step.methods)} methods, more than {MOST_METHODS}"
        yield finding(document, step.line, "PLAN001", message, "Cut it in two.")
    missing = [name for name in FIELDS if not getattr(step, name)]
    if missing:
        message = f"Step {step.number} lacks {', '.join(f'`{name}:`' for name in missing)}"
        yield finding(document, step.line, "PLAN008", message, f"Add `- {missing[0]}: …`.")


def _recorded_names(document: Document, step: Step) -> int:
    return sum(row.step == str(step.number) for row in document.record_rows)


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers)) or "nothing"


def _agreement(document: Document, step: Step) -> Iterator[Finding]:
    line = step.row_line or step.line
    open_methods = [method for method in step.methods if method.status != "DONE"]
    if step.status == "DONE" and open_methods:
        names = ", ".join(f"`{method.name}` {method.status}" for method in open_methods[:4])
        message = f"Step {step.number} is DONE and these of its methods are not: {names}"
        yield finding(document, line, "PLAN007", message, "Set the step's status to what its methods say.")
    if step.commit and step.status == "NOT_STARTED":
        message = f"Step {step.number} has the commit {step.commit} and is NOT_STARTED"
        yield finding(document, line, "PLAN007", message, "Set its status, or empty the cell.")


def _method(document: Document, step: Step, method: StepMethod) -> Iterator[Finding]:
    entry = document.entry_of(method)
    if entry is None:
        message = f"Step {step.number}: `{method.name}` ({method.section or 'no section'}) is not in Section 5"
        yield finding(document, method.line, "PLAN002", message, "Name an entry of Section 5, or add one.")
        return
    if method.section and method.section != entry.number:
        message = f"Step {step.number}: `{method.name}` is {entry.number}, the row says {method.section}"
        yield finding(document, method.line, "PLAN002", message, f"Write {entry.number}: `codegen lint --fix` does.")
    if is_stale(document, entry, method):
        message = f"`{method.name}` changed after it was done"
        fix = f"Bring its code to it, then run `codegen step done {step.number}`."
        yield finding(document, method.line, "PLAN009", message, fix)
    if method.status == "DONE" and not method.digest:
        message = f"`{method.name}` is DONE without a digest"
        yield finding(
            document,
            method.line,
            "PLAN011",
            message,
            f"Run `codegen step done {step.number}`, which takes it.",
        )


def _order(document: Document, references: References) -> Iterator[Finding]:
    known = document.step_by_number
    for step in document.steps:
        line = step.row_line or step.line
        for number in step.depends:
            if number not in known:
                message = f"Step {step.number} depends on Step {number}, which does not exist"
                yield finding(document, line, "PLAN005", message, "Correct the number.")
    for circle in cycles({str(step.number): [str(n) for n in step.depends] for step in document.steps}):
        first = known[int(circle[0])]
        names = " → ".join(f"Step {number}" for number in [*circle, circle[0]])
        message = f"steps depend on each other in a cycle: {names}"
        yield finding(document, first.row_line or first.line, "PLAN005", message, "Cut it.")
    yield from _needs(document, references)


def _needs(document: Document, references: References) -> Iterator[Finding]:
    position = {step.number: at for at, step in enumerate(document.steps)}
    above = ancestors({step.number: step.depends for step in document.steps})
    step_of: dict[str, Step] = {}
    for step in document.steps:
        for method in step.methods:
            if (entry := document.entry_of(method)) is not None:
                step_of.setdefault(entry.id, step)
    for step in document.steps:
        for method in step.methods:
            entry = document.entry_of(method)
            for ident in references.deps(entry) if entry else ():
                other = step_of.get(ident)
                if other is None or other is step or other.number in above[step.number]:
                    continue
                needed = document.entry_by_id[ident].name
                if position[other.number] > position[step.number]:
                    message = f"`{method.name}` needs `{needed}`, which comes in Step {other.number}"
                    yield finding(document, method.line, "PLAN006", message, "Move one of them: `codegen plan`.")
                elif step.status != "DONE":
                    message = f"`{method.name}` needs `{needed}` of Step {other.number}, which Step {step.number}"
                    message += " does not depend on"
                    yield finding(document, method.line, "PLAN013", message, f"Add {other.number} to its `Depends`.")


def ancestors(depends: dict[int, tuple[int, ...]]) -> dict[int, frozenset[int]]:
    """The steps that each step depends on, directly or not; circles do no harm."""
    found: dict[int, frozenset[int]] = {}
    for number in depends:
        seen: set[int] = set()
        queue = list(depends[number])
        while queue:
            other = queue.pop()
            if other in seen:
                continue
            seen.add(other)
            if other in found:
                seen |= found[other]
            else:
                queue += depends.get(other, ())
        found[number] = frozenset(seen)
    return found


def _missing(document: Document) -> Iterator[Finding]:
    if not document.steps:
        return
    for entry in unplanned(document):
        message = f"{entry.label} is in no step"
        fix = f"Approve it (`codegen review approve {entry.id}`), then run `codegen plan`, which schedules it."
        yield finding(document, entry.line, "PLAN003", message, fix)
