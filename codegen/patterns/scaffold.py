"""The text of a new pattern file: a pattern that works and passes its own examples, ready to be edited."""

from __future__ import annotations

import json
from collections.abc import Iterable

from codegen.patterns.model import Example, Pattern


def new_pattern(id: str, tag: str, parent: Pattern | None = None) -> str:
    """A file for that id. With a parent, everything is inherited and its examples are the starting point."""
    head = [f"id: {id}", "version: 1", 'since: "0.1"']
    if parent is not None:
        head += [f"summary: {json.dumps(parent.summary, ensure_ascii=False)}", f"extends: {parent.id}"]
        if tag != parent.tag:
            head.append(f"tag: {tag}")
        return "\n".join([*head, "examples:", *_examples(parent.id, id, parent.examples)]) + "\n"
    head += [f"tag: {tag}", *_STARTER]
    return "\n".join(head).replace("NEW_PATTERN", id) + "\n"


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
      sizes = [1, 9]: "check: sizes must be at most 8, got 9\"""".split("\n")


def _examples(old: str, new: str, examples: Iterable[Example]) -> list[str]:
    """The parent's examples under the new id, each a group of its own, every text quoted as JSON."""
    lines = []
    for example in examples:
        use = new + example.use[len(old) :]
        lines.append(f"  - use: {_quoted(use)}")
        if example.each != "none":
            lines.append(f"    each: {example.each}")
        if example.is_async:
            lines.append("    async: true")
        if example.needs:
            lines.append(f"    needs: [{', '.join(example.needs)}]")
        for name in ("body", "note"):
            if getattr(example, name):
                lines.append(f"    {name}: {_quoted(getattr(example, name))}")
        if example.message is None:
            lines.append(f"    passes: [{_quoted(example.given)}]")
        else:
            lines += ["    raises:", f"      {_quoted(example.given)}: {_quoted(example.message)}"]
    return lines


def _quoted(text: str) -> str:
    """Double-quoted YAML; JSON strings are a subset of it."""
    return json.dumps(text, ensure_ascii=False)
