"""No `fix:` names a command that does not exist: every text that a finding can offer is read from the sources."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import codegen
from codegen.cli import _parser as parser

ROOT = Path(codegen.__file__).parent
_COMMAND = re.compile(r"`(codegen [^`]+)`")


def texts() -> Iterator[tuple[str, str]]:
    """Every string of the sources with a command in backticks, holes filled with a word that any argument takes."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            found = "".join(
                part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "1"
                for part in parts
                if isinstance(part, (ast.Constant, ast.FormattedValue))
            )
            for command in _COMMAND.findall(found) if isinstance(node, (ast.JoinedStr, ast.Constant)) else ():
                yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}", command


def plain(command: str) -> list[str]:
    return [word for word in shlex.split(command.replace("…", "")) if word not in ("codegen",)]


FOUND = sorted(set(texts()))


def test_there_are_texts_to_look_at() -> None:
    assert len(FOUND) > 30


@pytest.mark.parametrize(("place", "command"), FOUND, ids=[f"{place} {command}" for place, command in FOUND])
def test_a_command_that_a_message_names_exists_with_its_options(place: str, command: str) -> None:
    words = plain(command)
    current: argparse.ArgumentParser = parser(words[0])
    for word in words:
        actions = [each for each in current._actions if isinstance(each, argparse._SubParsersAction)]
        if not actions:
            break
        if word.startswith("-") or "|" in word or not word.islower():
            return
        assert word in actions[0].choices, f"{place}: `{command}`: {word}"
        current = actions[0].choices[word]
    known = {option for action in current._actions for option in action.option_strings}
    for word in words:
        if word.startswith("--"):
            assert word.partition("=")[0] in known, f"{place}: `{command}`: {word}"
