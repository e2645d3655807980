"""The three file formats: TOML commands, Markdown commands, and skills of the Agent Skills form.

A text goes into TOML and YAML as a double-quoted string in JSON's spelling, which both understand, with the characters
that one of them forbids written as escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from codegen.diagnostics import UsageError

# DEL and C1, the line separators of Unicode, the byte order mark and non-characters: YAML or TOML refuse them raw.
_FORBIDDEN = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
SKILL_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\Z")
LONGEST_NAME, LONGEST_DESCRIPTION, MOST_LINES = 64, 1024, 500


def quoted(text: str) -> str:
    """A one-line double-quoted string, the same in TOML, YAML and JSON."""
    return _FORBIDDEN.sub(_escape, json.dumps(text, ensure_ascii=False))


def toml_command(description: str, body: str) -> str:
    """A command file with `description` and `prompt`."""
    text = body.replace("\r\n", "\n").replace("\\", "\\\\").replace('"""', '""\\"')
    text = _CONTROL.sub(_escape, text)
    if text.endswith('"'):
        text = text[:-1] + '\\"'
    return f'description = {quoted(description)}\nprompt = """\n{text}"""\n'


def markdown_command(head: Mapping[str, str | bool], body: str) -> str:
    """A Markdown file with a YAML head; what is empty is left out."""
    lines = [f"{key}: {_scalar(value)}" for key, value in head.items() if value != ""]
    return "\n".join(["---", *lines, "---", "", body.replace("\r\n", "\n")])


def skill(name: str, description: str, body: str, extra: Mapping[str, str | bool] | None = None) -> str:
    """A SKILL.md. UsageError: it is outside of what the Agent Skills form allows."""
    if not SKILL_NAME.match(name) or len(name) > LONGEST_NAME:
        raise UsageError(f"{name!r} is no name for a skill; use at most {LONGEST_NAME} of a-z, 0-9 and single hyphens")
    if not description or len(description) > LONGEST_DESCRIPTION:
        raise UsageError(
            f"skill {name}: its description has {len(description)} of 1 to {LONGEST_DESCRIPTION} characters"
        )
    if body.count("\n") > MOST_LINES:
        raise UsageError(f"skill {name}: its text has more than {MOST_LINES} lines; shorten it")
    return markdown_command({"name": name, "description": description, **(extra or {})}, body)


def _scalar(value: str | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted(value)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"
