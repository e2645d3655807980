"""Each example of docs/expansion.md is run."""

from __future__ import annotations

import ast
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


def table(header: str) -> list[list[str]]:
    """Rows of the table whose header begins with these words."""
    rows = PAGE.partition(f"| {header} |")[2].partition("\n\n")[0].split("\n")[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def target_of(text: str) -> str:
    """The name that the expanded check is about; "nothing" when the annotation is refused for want of a target."""
    done = report(text)
    if done.text is None:
        assert {finding.code for finding in done.findings} == {"ambiguous-target"}
        return "nothing"
    return re.findall(r"if not (\S+) > 0", done.text)[0]


BARE = {
    "on a parameter in a signature": ("def f(\n    a,\n    b,  # VAL: VAL_POSITIVE\n):\n    return a\n", "b"),
    "above a `def`, or at the head of its body": ("# VAL: VAL_POSITIVE\ndef f(self, a):\n    return a\n", "a"),
    "below an assignment, in the same block": ("def f(a):\n    c = a\n    # VAL: VAL_POSITIVE\n    return a\n", "c"),
    "at the head of a block, such as that of a `for`": (
        "def f(a):\n    for c in a:\n        # VAL: VAL_POSITIVE\n        print(c)\n",
        "nothing",
    ),
    "anywhere else": ("def f(a):\n    print(a)\n    # VAL: VAL_POSITIVE\n    return a\n", "nothing"),
}
PLACES = {
    "on its own line before a statement": ("def f(a):\n    g = a\n    # VAL: VAL_POSITIVE(a)\n    return g\n", 4),
    "behind a statement": ("def f(a):\n    g = a  # VAL: VAL_POSITIVE(a)\n    return g\n", 3),
    "at the end of a suite": ("def f(a):\n    if a:\n        a = 1\n        # VAL: VAL_POSITIVE(a)\n    return a\n", 5),
    "above a `def` or its decorators, in its signature, on its line": (
        '# VAL: VAL_POSITIVE(a)\ndef f(a):\n    """Doc."""\n    return a\n',
        5,
    ),
    "above or behind `else:`, `except:`, `case:` …": (
        "def f(a):\n    if a:\n        a = 1\n    else:  # VAL: VAL_POSITIVE(a)\n        a = 2\n    return a\n",
        5,
    ),
    "inside brackets, on a class, below a `return`": ("def f(a):\n    return a\n    # VAL: VAL_POSITIVE(a)\n", 0),
}


def test_the_rules_of_the_page_are_the_rules_of_the_code() -> None:
    rows = table("The annotation is | A bare annotation checks")
    assert [where for where, _ in rows] == list(BARE)
    for where, checks in rows:
        text, name = BARE[where]
        assert target_of(text) == name, where
        assert (checks == "nothing") is (name == "nothing"), where
    head = "def f(self, a):\n    # VAL: VAL_POSITIVE\n    return a\n"
    assert target_of(head) == "a" and target_of(head.replace("self, a", "a, b")) == "nothing"


def test_the_places_of_the_page_are_the_places_of_the_code() -> None:
    rows = table("The annotation is | The check goes")
    assert [where for where, _ in rows] == list(PLACES)
    for where, goes in rows:
        text, line = PLACES[where]
        done = report(text)
        assert (done.text is None) is goes.startswith("nowhere"), where
        if done.text is not None:
            found = next(n for n, row in enumerate(done.text.splitlines(), 1) if "if not a > 0" in row)
            assert found == line, (where, done.text)


def codes_in_code() -> set[str]:
    """Codes of findings that the expander's source gives."""
    places = {"SiteError": 0, "report": 2, "warn_once": 1, "Finding": 3, "_refuse": 2, "_failed": 1}
    found: set[str] = set()
    for path in (Path(__file__).parents[3] / "codegen" / "expand").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "code":
                values = [n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant)]
                found.update(value for value in values if re.fullmatch(r"[a-z]+(-[a-z]+)*", str(value)))
            name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
            if name in places:
                values = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                found.update(value for value in values if re.fullmatch(r"[a-z]+(-[a-z]+)*", value))
    return found - {"error", "warning", "note"}


def test_every_code_that_the_expander_gives_is_explained_on_the_page() -> None:
    explained = [code for row in table("Code | Means") for code in re.findall(r"`([a-z-]+)`", row[0])]
    assert sorted(explained) == sorted(codes_in_code())
