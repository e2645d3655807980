"""Each example of docs/expansion.md is run."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from codegen.cli import expand as command
from codegen.expand.driver.settings import read_settings
from codegen.expand.model import State
from codegen.expand.reading.marks import REMOTE_PLACES
from tests.codegen.expand.helpers import expand, problem, report, strip

PAGE = (Path(__file__).parents[3] / "docs" / "expansion.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCES = list(FENCE.finditer(PAGE))


def pairs(words: str, language: str) -> list[tuple[str, str]]:
    """Fences with nothing but these words between them."""
    return [
        (first[2], second[2])
        for first, second in pairwise(FENCES)
        if PAGE[first.end() : second.start()].strip() == words and second[1] == language
    ]


@pytest.mark.parametrize(("before", "after"), pairs("expands to", "python"))
def test_an_example_expands_to_the_text_on_the_page(before: str, after: str) -> None:
    assert expand(before, guard="untyped") == after
    assert report(after, guard="untyped").clean and strip(after) == before


@pytest.mark.parametrize(("before", "message"), pairs("is refused with", "text"))
def test_an_example_is_refused_with_the_message_on_the_page(before: str, message: str) -> None:
    line, code, said = problem(before, guard="untyped")
    fix = next(finding.fix for finding in report(before, guard="untyped").findings if finding.code == code)
    assert message == f"line {line}: {code}: {said}\nfix: {fix}\n"


def test_every_python_fence_belongs_to_an_example() -> None:
    used = [text for pair in pairs("expands to", "python") for text in pair]
    used += [before for before, _ in pairs("is refused with", "text")]
    assert [fence[2] for fence in FENCES if fence[1] == "python" and fence[2] not in used] == []
    assert len(used) >= 10


def test_the_grammar_is_the_same_in_the_design_and_names_every_place() -> None:
    grammar = next(fence[2] for fence in FENCES if fence[1] == "text" and fence[2].startswith("annotation = "))
    design = (Path(__file__).parents[3] / "design" / "expansion.md").read_text(encoding="utf-8")
    assert f"```text\n{grammar}```\n" in design
    assert re.findall(r'"(\w+)"', grammar.partition("PLACE      =")[2]) == list(REMOTE_PLACES)


def test_the_settings_on_the_page_are_read(tmp_path: Path) -> None:
    (text,) = [fence[2] for fence in FENCES if fence[1] == "toml" and "tool.codegen" in fence[2]]
    (tmp_path / "pyproject.toml").write_text(text)
    settings = read_settings(tmp_path)
    assert settings.exclude == ("vendored",) and settings.options.width == 100 and settings.options.guard == "untyped"
    for fence in FENCES:
        if fence[1] == "toml":
            tomllib.loads(fence[2])


def test_states_and_options_are_all_on_the_page() -> None:
    import argparse

    parser = argparse.ArgumentParser()
    command.register(parser.add_subparsers())
    source = Path(str(command.__file__)).read_text(encoding="utf-8")
    for option in re.findall(r'"(--[a-z-]+)"', source):
        assert option in PAGE or option == "--json", option
    for state in State:
        assert f"| {state.value} |" in PAGE
