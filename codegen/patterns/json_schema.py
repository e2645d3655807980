"""Check a located YAML tree against a JSON Schema, so that each violation has its line.

Covers the keywords that the library's schema uses (`KEYWORDS`) with their JSON Schema 2020-12 meaning, and
refuses a schema with any other: a rule that is not checked must not look as if it were.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from codegen.patterns.yaml_source import Located

KEYWORDS = frozenset(
    {
        "$schema", "title", "description", "type", "enum", "pattern", "minLength", "maxLength", "minimum",
        "items", "minItems", "properties", "required", "additionalProperties", "minProperties",
    }
)  # fmt: skip
_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
    "null": type(None),
}  # fmt: skip


@dataclass(frozen=True)
class Violation:
    """One rule of the schema that the value at that place breaks."""

    message: str
    line: int
    column: int
    fix: str | None = None


def violations(node: Located, schema: dict[str, Any], where: str = "") -> Iterator[Violation]:
    """All violations, in the order of the text within each mapping. ValueError for a keyword not covered."""
    if unknown := sorted(set(schema) - KEYWORDS):
        raise ValueError(f"schema keywords not covered: {', '.join(unknown)}")
    name = where or "the file"
    value = node.value
    if "type" in schema and not _has_type(value, schema["type"]):
        fix = f'Quote it: "{value}".' if schema["type"] == "string" and isinstance(value, int | float) else None
        yield Violation(f"{name} must be {_article(schema['type'])}, not {_kind(value)}", node.line, node.column, fix)
        return
    if "enum" in schema and value not in schema["enum"]:
        choices = ", ".join(str(choice) for choice in schema["enum"])
        yield Violation(f"{name} is {node.plain()!r:.60}; it must be one of {choices}", node.line, node.column)
    if isinstance(value, str):
        yield from _text(node, schema, name)
    elif isinstance(value, dict):
        yield from _object(node, schema, where)
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield Violation(f"{name} needs at least {schema['minItems']} entries", node.line, node.column)
        if "items" in schema:
            for index, item in enumerate(value):
                yield from violations(item, schema["items"], f"{where}[{index}]")
    elif isinstance(value, int | float) and not isinstance(value, bool) and value < schema.get("minimum", value):
        yield Violation(f"{name} is {value}; it must be at least {schema['minimum']}", node.line, node.column)


def _text(node: Located, schema: dict[str, Any], name: str) -> Iterator[Violation]:
    text = node.value
    if len(text) < schema.get("minLength", 0):
        yield Violation(f"{name} needs at least {schema['minLength']} characters", node.line, node.column)
    if len(text) > schema.get("maxLength", len(text)):
        yield Violation(f"{name} is longer than {schema['maxLength']} characters", node.line, node.column)
    if "pattern" in schema and not re.search(schema["pattern"], text):
        yield Violation(f"{name} is {text!r:.60}; it must match {schema['pattern']}", node.line, node.column)


def _object(node: Located, schema: dict[str, Any], where: str) -> Iterator[Violation]:
    name = where or "the file"
    properties = schema.get("properties", {})
    if len(node.value) < schema.get("minProperties", 0):
        yield Violation(f"{name} needs at least {schema['minProperties']} entries", node.line, node.column)
    for key in schema.get("required", ()):
        if key not in node.value:
            yield Violation(f"{name} has no {key!r}", node.line, node.column, f"Add `{key}:`.")
    rest = schema.get("additionalProperties", True)
    for key, item in node.value.items():
        at = f"{where}.{key}" if where else key
        if key in properties:
            yield from violations(item, properties[key], at)
        elif rest is False:
            line, column = node.keys[key]
            known = ", ".join(sorted(properties))
            yield Violation(f"{name} has an unknown key {key!r}", line, column, f"Use one of: {known}.")
        elif isinstance(rest, dict):
            yield from violations(item, rest, at)


def _has_type(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name])


def _kind(value: Any) -> str:
    if value is None:
        return "empty"
    for name in ("object", "array", "string", "boolean", "integer", "number"):
        if _has_type(value, name):
            return _article(name)
    raise ValueError(f"no JSON type for {type(value)}")


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"
