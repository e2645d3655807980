"""What the tools see of a document, without where it stands; and a formatter's pass over it."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any

import mdformat

from codegen.document.blocks import split_lines

PLACES = {"line", "line_end", "row_line", "code_line", "lines", "text"}


def view(value: Any) -> Any:
    """The value as plain data without source lines."""
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value) if field.name not in PLACES]
        return {name: view(getattr(value, name)) for name in fields}
    if isinstance(value, dict):
        return {key: view(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [view(item) for item in value]
    return value


def formatted(text: str) -> str:
    """The text after mdformat with its table plugin; the front matter is kept as it is."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    newline = "\r\n" if "\r\n" in text else "\n"
    _, front, body = text.removeprefix(mark).replace("\r\n", "\n").split("---\n", 2)
    body = mdformat.text(body, extensions={"tables"})
    return mark + f"---\n{front}---\n{body}".replace("\n", newline)


def changed_lines(old: str, new: str) -> tuple[list[str], list[str]]:
    """The lines, ends included, that are only in the old and only in the new text."""
    diff = list(difflib.unified_diff(split_lines(old), split_lines(new), n=0))[2:]
    return [d[1:] for d in diff if d.startswith("-")], [d[1:] for d in diff if d.startswith("+")]
