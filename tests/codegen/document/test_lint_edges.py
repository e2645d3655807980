"""What the linter must not flag, what its fixes must not touch, and the exact words of its findings."""

from __future__ import annotations

import pytest

from codegen.document import parse_document
from codegen.document.lint import lint
from codegen.document.lint.fixes import fix
from tests.codegen.document.samples import CLEAN

FIXED = fix(parse_document(CLEAN)).text
SENTENCE = "Sums drift when every caller rounds."


def found(text: str, code: str) -> list[tuple[int, str]]:
    return [(each.line, each.message) for each in lint(parse_document(text)) if each.code == code]


def line_of(text: str, part: str) -> int:
    return next(at for at, line in enumerate(text.split("\n"), 1) if part in line)


@pytest.mark.parametrize(
    ("ending", "needless"),
    [("", False), (" ", True), ("  ", False), ("   ", True), ("    ", True), ("\t", True), (" \t", True)],
)
def test_two_blanks_behind_a_text_are_a_line_break_and_any_others_are_needless(ending: str, needless: bool) -> None:
    text = CLEAN.replace(SENTENCE, f"{SENTENCE}{ending}")
    assert bool(found(text, "DOC014")) is needless
    assert (fix(parse_document(text)).text == FIXED) is (needless or not ending)


@pytest.mark.parametrize("blanks", ["  ", "\t", " "])
def test_blanks_alone_in_a_line_break_nothing(blanks: str) -> None:
    text = CLEAN.replace(f"{SENTENCE}\n", f"{SENTENCE}\n{blanks}\n")
    assert len(found(text, "DOC014")) == 1


def test_blanks_in_a_fence_are_somebodys_code() -> None:
    assert found(CLEAN.replace("    cents: int\n", "    cents: int   \n"), "DOC014") == []


@pytest.mark.parametrize("mark", ["<<<<<<< ours", ">>>>>>> theirs", "======="])
def test_a_conflict_mark_counts_outside_of_fences_only(mark: str) -> None:
    assert found(CLEAN.replace(SENTENCE, f"{SENTENCE}\n\n{mark}"), "DOC015")
    assert not found(CLEAN.replace("    cents: int\n", f"    cents: int\n{mark}\n"), "DOC015")
    assert not found(CLEAN.replace(SENTENCE, f"{SENTENCE} {mark}"), "DOC015")


@pytest.mark.parametrize(
    ("text", "is_placeholder"),
    [
        ("<who suffers>", True),
        ("`<who suffers>`", False),
        ("a < b and c > d", False),
        ("<!-- a comment -->", False),
        ("<https://example.org>", False),
        ("x <- y", False),
    ],
)
def test_only_angle_brackets_around_words_are_a_placeholder(text: str, is_placeholder: bool) -> None:
    assert bool(found(CLEAN.replace(SENTENCE, f"{SENTENCE} {text}"), "DOC012")) is is_placeholder


def test_a_heading_that_its_fence_does_not_define_is_told_what_the_fence_defines() -> None:
    text = CLEAN.replace("def total(self)", "def sum_up(self)")
    assert any("the fence defines `Till.sum_up`" in message for _, message in found(text, "API002"))
    nothing = CLEAN.replace(CLEAN[CLEAN.index("def total(self)") : CLEAN.index("```", CLEAN.index("def total"))], "3\n")
    assert any("the fence defines nothing" in message for _, message in found(nothing, "API002"))


@pytest.mark.parametrize("column", ["| 2 | Till | 1 | NOT_STARTED", "status: approved "])
def test_a_status_word_in_another_spelling_is_put_right_and_a_foreign_one_is_left(column: str) -> None:
    word = "NOT_STARTED" if "NOT_STARTED" in column else "approved"
    other = CLEAN.replace(column, column.replace(word, word.swapcase().replace("_", "-")))
    assert fix(parse_document(other)).text == FIXED
    foreign = CLEAN.replace(column, column.replace(word, "perhaps"))
    assert "perhaps" in fix(parse_document(foreign)).text


def test_a_step_of_a_row_that_is_missing_is_named_at_its_heading() -> None:
    row = next(line for line in CLEAN.split("\n") if line.startswith("| 2 | Till | 1 |"))
    text = CLEAN.replace(f"{row}\n", "")
    assert (line_of(text, "### Step 2: Till"),) in [(line,) for line, _ in found(text, "PLAN010")]


def test_the_row_of_a_step_is_the_place_of_its_status() -> None:
    text = CLEAN.replace("| 2 | Till | 1 | NOT_STARTED", "| 2 | Till | 1 | perhaps")
    assert [line for line, message in found(text, "DOC006") if "perhaps" in message] == [line_of(text, "| perhaps")]


def test_an_open_to_do_counts_in_a_document_that_is_done_only() -> None:
    assert found(CLEAN, "DOC016") == []
    done = CLEAN.replace("status: approved ", "status: done ")
    assert [line for line, _ in found(done, "DOC016")] == [line_of(done, "- T-1")]


def test_a_method_that_is_no_entry_is_named_with_its_section_and_without_one_so() -> None:
    row = "| `shop.till.Till` | 5.2.1 | NOT_STARTED | - |"
    assert CLEAN.count(row) == 1
    gone = CLEAN.replace(row, "| `shop.till.Tall` | 5.7.1 | NOT_STARTED | - |")
    assert any("`shop.till.Tall` (5.7.1) is not in Section 5" in message for _, message in found(gone, "PLAN002"))
    bare = CLEAN.replace(row, "| `shop.till.Tall` | - | NOT_STARTED | - |")
    assert any("`shop.till.Tall` (no section) is not in Section 5" in message for _, message in found(bare, "PLAN002"))
