"""Read one YAML document strictly, keeping the place of each value.

A pattern file must mean the same to its author and to every YAML reader, so what YAML 1.1 and 1.2 read
differently (`NO`, `12:30`, `0777`, `1e3`, `2024-01-01`) is refused unless quoted, and so are duplicate keys,
anchors, aliases, tags, merge keys and further documents. The tree is built from parser events with a depth limit:
no input makes it recurse without bound or grow beyond its own size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

MAX_DEPTH = 12
MAX_BYTES = 256 * 1024

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]*)\.[0-9]+\Z")
_WORDS = {"null": None, "true": True, "false": False}
_AMBIGUOUS = re.compile(
    r"""(y|n|yes|no|on|off|true|false|null)\Z     # words of 1.1, and spellings only one version knows
      | ~\Z | <<\Z | =\Z
      | [-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?\Z   # sexagesimal
      | [-+]?0[0-9_]+\Z | [-+]?0[box][0-9a-f_]+\Z          # octal, binary, hexadecimal
      | [-+]?[0-9][0-9_]*(\.[0-9_]*)?(e[-+]?[0-9]+)?\Z     # floats
      | [-+]?\.[0-9][0-9_]*(e[-+]?[0-9]+)?\Z
      | [-+]?\.(inf|nan)\Z
      | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?\Z         # dates
    """,
    re.VERBOSE | re.IGNORECASE,
)


class YamlError(Exception):
    """The text is not acceptable YAML; line and column start at 1."""

    def __init__(self, message: str, line: int, column: int, fix: str | None = None) -> None:
        super().__init__(f"{line}:{column}: {message}")
        self.message = message
        self.line = line
        self.column = column
        self.fix = fix


@dataclass
class Located:
    """A value with its place. For a mapping, `value` maps each key to a Located and `keys` to the key's place."""

    value: Any
    line: int
    column: int
    keys: dict[str, tuple[int, int]] = field(default_factory=dict)

    def plain(self) -> Any:
        """The value without places."""
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value

    def find(self, path: tuple[str | int, ...]) -> Located:
        """The value at that path; its nearest existing ancestor when there is none."""
        at = self
        for step in path:
            inside = isinstance(at.value, dict) and step in at.value
            if not inside and not (isinstance(at.value, list) and isinstance(step, int) and step < len(at.value)):
                return at
            at = at.value[step]
        return at


def read_yaml(text: str) -> Located:
    """Parse one document. Raises YamlError with line and column."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise YamlError(f"larger than {MAX_BYTES} bytes", 1, 1, "Split the pattern.")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        events = yaml.parse(text, Loader=loader)
        return _document(events)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise YamlError(" ".join(filter(None, [error.context, error.problem])), line, column) from error
    except yaml.reader.ReaderError as error:
        position = error.position if isinstance(error.position, int) else 0
        line = text.count("\n", 0, position) + 1
        raise YamlError(f"character not allowed in YAML: {error.reason}", line, 1) from error
    except RecursionError as error:
        raise YamlError("nested too deeply", 1, 1, "Close the brackets that are open.") from error
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise YamlError("lone surrogate in the text", line, 1) from error


def _document(events: Iterator[yaml.Event]) -> Located:
    root: Located | None = None
    for event in events:
        if isinstance(event, yaml.StreamStartEvent | yaml.DocumentEndEvent | yaml.StreamEndEvent):
            continue
        if isinstance(event, yaml.DocumentStartEvent):
            if root is not None:
                raise YamlError("a second document in the file", *_place(event), "Keep one document per file.")
            if event.tags or event.version:
                raise YamlError("a YAML directive", *_place(event), "Remove the %YAML or %TAG line.")
            continue
        root = _node(event, events, 0)
    if root is None:
        raise YamlError("the file is empty", 1, 1)
    return root


def _node(event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Located:
    line, column = _place(event)
    if depth > MAX_DEPTH:
        raise YamlError(f"nested deeper than {MAX_DEPTH} levels", line, column)
    if isinstance(event, yaml.AliasEvent):
        raise YamlError(f"alias *{event.anchor}", line, column, "Write the value out.")
    anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
    if anchor is not None:
        raise YamlError(f"anchor &{anchor}", line, column, "Write the value out where it is used.")
    if tag is not None:
        raise YamlError(f"tag {tag}", line, column, "Remove the tag.")
    if isinstance(event, yaml.ScalarEvent):
        return Located(_scalar(event, line, column), line, column)
    if isinstance(event, yaml.SequenceStartEvent):
        items: list[Located] = []
        while not isinstance(item := next(events), yaml.SequenceEndEvent):
            items.append(_node(item, events, depth + 1))
        return Located(items, line, column)
    return _mapping(events, line, column, depth)


def _mapping(events: Iterator[yaml.Event], line: int, column: int, depth: int) -> Located:
    result = Located({}, line, column)
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        key = _node(event, events, depth + 1)
        if not isinstance(key.value, str):
            raise YamlError(f"key {key.plain()!r} is not text", key.line, key.column, "Quote the key.")
        if key.value in result.value:
            first = result.keys[key.value][0]
            raise YamlError(
                f"duplicate key {key.value!r}, first on line {first}", key.line, key.column, "Keep one of them."
            )
        result.keys[key.value] = (key.line, key.column)
        result.value[key.value] = _node(next(events), events, depth + 1)
    return result


def _scalar(event: yaml.ScalarEvent, line: int, column: int) -> str | int | float | bool | None:
    text = event.value
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text == "":
        return None
    if _INTEGER.match(text):
        if len(text) > 30:
            raise YamlError("integer of more than 30 digits", line, column, f'Quote it: "{text[:8]}…".')
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    if _AMBIGUOUS.match(text):
        raise YamlError(f"{text} means different things to YAML 1.1 and 1.2", line, column, f'Quote it: "{text}".')
    return text


def _place(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    if mark is None:
        raise ValueError(f"the YAML parser gave {event} no place")
    return mark.line + 1, mark.column + 1
