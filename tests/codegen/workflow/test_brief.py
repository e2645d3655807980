"""A brief holds what a step needs, follows the document, and fits its budget."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.patterns import load_library
from codegen.workflow.brief import brief, estimate_tokens, stale_briefs
from codegen.workflow.evidence import read_waivers
from tests.codegen.workflow.conftest import Pantry, complete, done, implement

BRIEF = """\
# Step 2: The shelf

Rendered from `design/pantry.md` by `codegen step brief 2`; not edited.

- purpose: jars in a row
- depends: Step 1 (Jars)
- files: `pantry/shelf.py`, `tests/test_shelf.py`
- tests: `python tests/test_shelf.py`

## What it builds on

```python
# pantry.jar
@dataclass
class Jar:
    name: str
    grams: int = 0
```

## Decisions to follow

- D-1: Weights are whole grams. an int everywhere

## What to write

### 5.2.1 `Shelf` (`pantry.shelf`)

Jars side by side.

- deps: `pantry.jar.Jar`

```python
class Shelf:
    def __init__(self, jars: Sequence[Jar] = ()) -> None:
        self.jars = list(jars)
```

### 5.2.2 `Shelf.weight` (`pantry.shelf`)

What all jars weigh.

- deps: `Shelf`

```python
def weight(self) -> int:
    ...
```
"""


def test_a_brief_is_the_part_of_the_document_that_the_step_needs(pantry: Pantry) -> None:
    made = brief(pantry.target(2), load_library(pantry.root))
    assert made.text == BRIEF
    assert made.shortened == "whole" and made.fits


def test_a_brief_explains_the_patterns_it_uses(pantry: Pantry) -> None:
    text = brief(pantry.target(1), load_library(pantry.root)).text
    patterns = text[text.index("## Patterns used") :]
    assert "- VAL_INT_RANGE: " in patterns and "- AST_POSTCONDITION: " in patterns


def test_a_small_budget_shortens_decisions_then_dependencies(pantry: Pantry) -> None:
    library = load_library(pantry.root)
    whole = brief(pantry.target(2), library)
    shorter = brief(pantry.target(2), library, whole.tokens - 1)
    assert shorter.shortened == "decisions by title" and "an int everywhere" not in shorter.text
    shortest = brief(pantry.target(2), library, shorter.tokens - 1)
    assert shortest.shortened == "dependencies by name"
    assert "- 5.1.1 `pantry.jar.Jar`" in shortest.text and "grams: int = 0" not in shortest.text
    assert not brief(pantry.target(2), library, 10).fits


def test_a_method_is_shown_by_its_signature_where_others_build_on_it(pantry: Pantry) -> None:
    text = brief(pantry.target(3), load_library(pantry.root)).text
    assert "def weight(self) -> int: ...  # Shelf.weight" in text


def test_a_status_does_not_change_a_brief(pantry: Pantry) -> None:
    library = load_library(pantry.root)
    before = brief(pantry.target(1), library).text
    implement(pantry, 1)
    done(pantry, 1)
    assert brief(pantry.target(1), library).text == before


def test_the_brief_of_a_finished_step_becomes_a_record_of_a_few_lines(pantry: Pantry) -> None:
    complete(pantry, 1)
    lines = (pantry.root / "steps/pantry/step_01.md").read_text().splitlines()
    assert lines[0] == "# Step 1: Jars" and len(lines) <= 20
    assert [line.partition(":")[0] for line in lines[2:]] == [
        *("- purpose", "- files", "- tests", "- names", "- proof", "- waivers", "- proven", "- rollback")
    ]
    target = pantry.target(1)
    assert target.step.files == ("pantry/__init__.py", "pantry/jar.py", "tests/test_jar.py")
    assert target.step.tests == "`python tests/test_jar.py`"
    assert stale_briefs([target], pantry.root, load_library(pantry.root)) == []


def test_waivers_go_through_the_record_whatever_their_reasons_hold(pantry: Pantry) -> None:
    command = "python tests/test_jar.py"
    said = [f"`{command}`: a script; no more: `make test` has it", "fill: prints only; `x` stays"]
    one_line = f"- waivers: `{command}`: plain asserts keep these tests fast\n"
    pantry.change("design/pantry.md", one_line, "- waivers:\n" + "".join(f"  - {each}\n" for each in said))
    complete(pantry, 1)
    assert pantry.target(1).step.folded
    assert read_waivers(pantry.target(1)) == (
        {command: "a script; no more: `make test` has it", "pantry.jar.fill": "prints only; `x` stays"},
        [],
    )


def test_a_brief_that_says_something_else_is_stale(pantry: Pantry) -> None:
    implement(pantry, 1)
    library = load_library(pantry.root)
    pantry.write("steps/pantry/step_01.md", brief(pantry.target(1), library).text)
    targets = [pantry.target(number) for number in (1, 2, 3)]
    assert stale_briefs(targets, pantry.root, library) == []
    pantry.change("design/pantry.md", "Put more into a jar", "Put something into a jar")
    pantry.write("steps/pantry/step_09.md", "left over")
    found = stale_briefs([pantry.target(number) for number in (1, 2, 3)], pantry.root, library)
    assert [(finding.code, finding.path) for finding in found] == [
        ("STEP002", "steps/pantry/step_01.md"),
        ("STEP003", "steps/pantry/step_09.md"),
    ]


def test_a_begun_step_without_a_brief_is_found(pantry: Pantry) -> None:
    implement(pantry, 1)
    found = stale_briefs([pantry.target(number) for number in (1, 2, 3)], pantry.root, load_library(pantry.root))
    assert [finding.code for finding in found] == ["STEP001"]


@settings(deadline=None, derandomize=True)
@given(st.text(), st.text())
def test_more_text_is_never_fewer_tokens(one: str, other: str) -> None:
    assert estimate_tokens(one + other) >= max(estimate_tokens(one), estimate_tokens(other))


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("设计", 2)])
def test_four_ascii_characters_or_one_other_make_a_token(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens
