"""The text of a new pattern file: a pattern that works and passes its own examples, ready to be edited."""

from __future__ import annotations

import json
import re

from codegen.diagnostics import UsageError
from codegen.patterns.model import Pattern


def new_pattern(id: str, tag: str, parent: Pattern | None = None) -> str:
    """A file for that id. With a parent, everything is inherited and its examples are the starting point."""
    head = [f"id: {id}", "version: 1", 'since: "0.1"']
    if parent is not None:
        head += [f"summary: {json.dumps(parent.summary, ensure_ascii=False)}", f"extends: {parent.id}"]
        if tag != parent.tag:
            head.append(f"tag: {tag}")
        return "\n".join([*head, _examples(parent, id)]) + "\n"
    return "\n".join([*head, f"tag: {tag}", _STARTER.replace("NEW_PATTERN", id)])


_STARTER = """\
summary: The number does not exceed a limit.
description: |
  What a user has to know beyond the summary.
parameters:
  - {name: limit, type: number, positional: true, help: Greatest allowed value.}
target: required
elementwise: true
placement: here
error: ValueError
message: "{{ where }}{{ label }} must be at most {{ show(limit) }}, got {{ value(each) }}"
template: |
  if not {{ each }} <= {{ limit }}:
      raise {{ error }}({{ message }})
imports: []
builtins: []
cost: O(1)
examples:
  - use: NEW_PATTERN(size, 8)
    passes: [size = 8]
    raises:
      size = 9: "check: size must be at most 8, got 9"
  - use: NEW_PATTERN(sizes, limit=top)
    each: items
    given: top = 8
    passes: ["sizes = [1, 8]"]
    raises:
      sizes = [1, 9]: "check: sizes must be at most 8, got 9"
"""


def _examples(parent: Pattern, id: str) -> str:
    """The examples section of the parent's file, as it is written there, under the new id."""
    section = re.search(r"^examples:\n(?:[ \n].*\n?|\n)*", parent.path.read_text(encoding="utf-8"), re.MULTILINE)
    if section is None:
        raise UsageError(f"{parent.path} does not write its examples as a block; copy them by hand")
    return re.sub(rf"\b{parent.id}\b", id, section.group()).rstrip("\n")
