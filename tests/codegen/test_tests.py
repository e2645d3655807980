"""What a test of this repository may not do: then it could not fail."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
_EDITS = {"replace", "change", "sub"}


def no_edits(source: str) -> Iterator[int]:
    """Lines of edits that put a text in its own place, and of checks that are constant."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _EDITS:
            texts = [ast.dump(each) for each in node.args if isinstance(each, (ast.Constant, ast.JoinedStr))]
            if len(texts) > 1 and texts[-2] == texts[-1]:
                yield node.lineno
        elif isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant) and node.test.value:
            yield node.lineno


@pytest.mark.parametrize(
    "line", ['text.replace("a", "a")', 'pantry.change("f", "a\\n", "a\\n")', "assert True", "assert 'x'"]
)
def test_what_changes_or_checks_nothing_is_found(line: str) -> None:
    assert list(no_edits(f"x = 1\n{line}\n")) == [2]


@pytest.mark.parametrize("line", ['text.replace("a", "b")', "text.replace(a, b)", "assert False", "assert x"])
def test_what_changes_or_checks_something_is_not(line: str) -> None:
    assert list(no_edits(line)) == []


def test_no_test_puts_a_text_in_its_own_place() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        for line in no_edits(path.read_text())
    ]
    assert found == []
