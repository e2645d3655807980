"""What is left of a finished step beside its row: a record of a few lines in `steps/`, written once, by its commit.

The brief it replaces was for work ahead; git keeps it. Files and tests of a finished step are read from here.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from codegen.diagnostics import UsageError
from codegen.document.model import Document, Field, Step, split_names
from codegen.document.store import replace_file

MOST_LINES = 20
_FIELD = re.compile(r"- (?P<name>[a-z]+): (?P<value>.*)$")
_NEXT_WAIVER = re.compile(r";\s+(?=`[^`]+`: )")
_WAIVER = re.compile(r"(?:`(?P<quoted>[^`]+)`|(?P<bare>[^`\s]+?)):\s+(?P<reason>\S.*)$")
_KEPT = ("purpose", "depends", "files", "tests", "names", "proof", "waivers", "review", "proven", "rollback")


def record_path(document: Document, number: int) -> str:
    """Where the brief of an open step and the record of a finished one lie, relative to the project."""
    return f"steps/{document.id}/step_{number:02d}.md"


def record_text(document: Document, step: Step) -> str:
    """The record of an open step that is done, at most `MOST_LINES` lines."""
    rows = [row for name in _names(document, step) if (row := document.record.get(name)) is not None]
    missed = sum("::" in row.proof or row.proof.startswith("exit status") for row in rows)
    waived = sum(row.proof.startswith("waived") for row in rows)
    idle = sum(row.proof == "nothing to remove" for row in rows)
    proof = [f"{missed} missed by a test", f"{waived} waived" if waived else "", f"{idle} with no body" if idle else ""]
    names = ", ".join(f"`{name}`" for name in _names(document, step))
    said = {
        "purpose": step.purpose,
        "depends": ", ".join(map(str, step.depends)),
        "files": ", ".join(step.files),
        "tests": step.tests,
        "names": f"{len(_names(document, step))}: {names}",
        "proof": ", ".join(filter(None, proof)) if missed or waived or idle else "",
        "rollback": step.rollback,
    }
    for key in ("waiver", "waivers"):
        if key in step.fields:
            said["waivers"] = "; ".join(map(_quoted, waiver_items(step.fields[key])))
    said |= {key: step.fields[key].value for key in ("review", "proven") if key in step.fields}
    lines = [f"- {key}: {' '.join(said[key].split())}" for key in _KEPT if said.get(key)]
    return "\n".join([f"# Step {step.number}: {step.title}", "", *lines]) + "\n"


def read_record(text: str) -> dict[str, Field]:
    """The fields of a record by name; empty for a text that is none, such as a brief."""
    lines = text.splitlines()
    if len(lines) > MOST_LINES or not lines or not lines[0].startswith("# Step "):
        return {}
    found = [(at, match) for at, line in enumerate(lines, 1) if (match := _FIELD.match(line))]
    return {match["name"]: Field(match["name"], match["value"], at, at) for at, match in found}


def waiver_items(field: Field) -> list[str]:
    """The waivers of a step, one each: its items, or on one line separated by "; " before a name in backticks."""
    return [item.strip() for item in field.items or _NEXT_WAIVER.split(field.value) if item.strip()]


def read_waiver(item: str) -> tuple[str, str] | None:
    """Name and reason of "`name`: reason"; None where it is no waiver. A command needs the backticks."""
    match = _WAIVER.match(item)
    return (match["quoted"] or match["bare"], match["reason"]) if match else None


def _quoted(item: str) -> str:
    waiver = read_waiver(item)
    return f"`{waiver[0]}`: {waiver[1]}" if waiver else item


def set_record_field(path: Path, name: str, value: str) -> None:
    """Write one field into a record. UsageError: there is no record at `path`."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    fields = read_record(text)
    if not fields:
        raise UsageError(f"{path}: is not the record of a finished step; `git log -- {path.name}` may have it")
    lines = [line for line in text.splitlines() if not line.startswith(f"- {name}: ")]
    later = _KEPT[_KEPT.index(name) + 1 :]
    at = next(
        (n for n, line in enumerate(lines) if line.startswith(tuple(f"- {each}: " for each in later))), len(lines)
    )
    lines.insert(at, f"- {name}: {value}")
    replace_file(path, ("\n".join(lines) + "\n").encode("utf-8"))


def whole_step(root: Path, document: Document, step: Step) -> Step:
    """The step with what its record holds, where only its row is left in the document."""
    path = root / record_path(document, step.number)
    if not step.folded or not path.is_file():
        return step
    return with_record(step, read_record(path.read_text(encoding="utf-8")))


def with_record(step: Step, fields: dict[str, Field]) -> Step:
    """The step with these fields of its record."""

    def text(name: str) -> str:
        return fields[name].value if name in fields else ""

    return replace(
        step,
        purpose=text("purpose"),
        files=split_names(text("files")),
        tests=text("tests"),
        rollback=text("rollback"),
        fields={key: value for key, value in fields.items() if key not in ("proven", "names", "proof")},
    )


def _names(document: Document, step: Step) -> list[str]:
    entries = [entry for method in step.methods if (entry := document.entry_of(method)) is not None]
    return list(dict.fromkeys(name for entry in entries for name in (entry.id, *entry.contracts)))
