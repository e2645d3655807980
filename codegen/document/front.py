"""The YAML head of a document, read as text: no scalar is turned into a number, a date or a truth value."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

import yaml

from codegen.document.model import Front

MARK = "---"
LISTS = ("roots", "supersedes")
SCALARS = ("id", "title", "version", "status")


class FrontError(Exception):
    """The head cannot be read; `line` is the source line of the mistake."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def read_front(lines: list[str]) -> tuple[Front, list[FrontError]]:
    """The head of a document and what is wrong with it. `Front.line_end` is 0 when there is none."""
    if not lines or lines[0].lstrip("\ufeff").rstrip() != MARK:
        return Front(), [FrontError(1, "the document does not begin with a front matter (a line `---`)")]
    end = next((i for i in range(1, len(lines)) if lines[i].rstrip() == MARK), None)
    if end is None:
        return Front(), [FrontError(1, "the front matter is never closed (a second line `---`)")]
    empty = Front(line=1, line_end=end + 1)
    try:
        node = yaml.compose("".join(lines[1:end]).replace("\r\n", "\n"), Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark else 1
        return empty, [FrontError(line, f"the front matter is not YAML: {_problem(error)}")]
    except RecursionError:
        return empty, [FrontError(1, "the front matter is nested too deeply")]
    if node is None:
        return empty, []
    if not isinstance(node, yaml.MappingNode):
        return empty, [FrontError(2, "the front matter is not a mapping of `key: value` lines")]
    return _front(node, empty)


def _problem(error: yaml.YAMLError) -> str:
    return str(getattr(error, "problem", None) or error)


def _front(node: yaml.MappingNode, empty: Front) -> tuple[Front, list[FrontError]]:
    scalars: dict[str, str] = {}
    sequences: dict[str, tuple[str, ...]] = {}
    where: dict[str, int] = {}
    errors: list[FrontError] = []
    for key_node, value in node.value:
        key, line = str(key_node.value), key_node.start_mark.line + 2
        if key in where:
            errors.append(FrontError(line, f"the key `{key}` is given twice (first in line {where[key]})"))
            continue
        where[key] = line
        if isinstance(value, yaml.ScalarNode):
            scalars[key] = value.value
        elif isinstance(value, yaml.SequenceNode):
            sequences[key] = tuple(str(item.value) for item in value.value)
        else:
            errors.append(FrontError(line, f"the value of `{key}` is neither a text nor a list"))
    for key in SCALARS:
        if key in sequences:
            errors.append(FrontError(where[key], f"`{key}` must be one text, not a list"))
    known = (*SCALARS, *LISTS)
    extra = {key: value for key, value in scalars.items() if key not in known}
    extra |= {key: ", ".join(value) for key, value in sequences.items() if key not in known}

    def names(key: str) -> tuple[str, ...]:
        return sequences[key] if key in sequences else tuple(filter(None, [scalars.get(key, "")]))

    roots = names("roots")
    inside = tuple(root for root in roots if root and not PurePath(root).is_absolute() and ".." not in root.split("/"))
    if inside != roots:
        errors.append(FrontError(where["roots"], "`roots` must name folders or files inside the project"))
    front = replace(
        empty,
        id=scalars.get("id", ""),
        title=scalars.get("title", ""),
        version=scalars.get("version", ""),
        status=scalars.get("status", ""),
        roots=inside,
        supersedes=names("supersedes"),
        extra=extra,
        lines=where,
    )
    return front, errors
