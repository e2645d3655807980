"""A prompt names only commands that the command line has."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex

import pytest

from codegen.cli import COMMANDS
from codegen.prompts.library import context_text, load_prompts

TEXTS = {**{name: prompt.render("7") for name, prompt in load_prompts().items()}, "context": context_text()}
VALUES = {"N": "3", "ID": "D-1", "TEXT": "text", "PATH": "code.py", "DOC": "design", "FILE": "code.py"}


@pytest.fixture(scope="module")
def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="codegen")
    subparsers = parser.add_subparsers(dest="command", required=True)
    for name in dict.fromkeys(module for module, _ in COMMANDS.values()):
        importlib.import_module(f"codegen.cli.{name}").register(subparsers)
    return parser


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_each_command_that_a_prompt_names_parses(name: str, parser: argparse.ArgumentParser) -> None:
    commands = re.findall(r"`codegen ([^`]+)`", " ".join(TEXTS[name].split()))
    assert commands
    for command in commands:
        words = [VALUES.get(word, word) for word in shlex.split(command)]
        parser.parse_args(words)
