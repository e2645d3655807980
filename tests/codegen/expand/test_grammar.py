"""The notation: what is read, and where errors are pointed at."""

from __future__ import annotations

import re

import pytest

from codegen.expand.reading.grammar import NotationError, parse_notation
from tests.codegen.expand.helpers import dedent, expand, report, strip

TAGS = frozenset({"VAL", "AST", "INV"})


def items(text: str) -> list[tuple[str, str, tuple[str, ...], tuple[tuple[str, str], ...]]]:
    return [(item.tag, item.id, item.positional, item.keywords) for item in parse_notation("VAL", text, TAGS).items]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("VAL_A", [("VAL", "VAL_A", (), ())]),
        ("VAL_A()", [("VAL", "VAL_A", (), ())]),
        ("VAL_A, VAL_B(x)", [("VAL", "VAL_A", (), ()), ("VAL", "VAL_B", ("x",), ())]),
        ("VAL_A(x, min=0, max=7)", [("VAL", "VAL_A", ("x",), (("min", "0"), ("max", "7")))]),
        ("VAL_A(x[1, 2], (a, b), f(',', \")\"))", [("VAL", "VAL_A", ("x[1, 2]", "(a, b)", "f(',', \")\")"), ())]),
        ("VAL_A(x), AST: AST_B(y > 0), VAL: VAL_C", [("VAL", "VAL_A", ("x",), ()), ("AST", "AST_B", ("y > 0",), ()),
                                                     ("VAL", "VAL_C", (), ())]),
        ("LOCKED", [("VAL", "LOCKED", (), ())]),
        ("VAL_A(all(x for x in y))", [("VAL", "VAL_A", ("all(x for x in y)",), ())]),
        ("VAL_A(x for x in y)", [("VAL", "VAL_A", ("(x for x in y)",), ())]),
        ("VAL_A('''a)b''')", [("VAL", "VAL_A", ("'''a)b'''",), ())]),
    ],
)  # fmt: skip
def test_items(text: str, expected: object) -> None:
    assert items(text) == expected


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("VAL_A - a note", "a note"),
        ("VAL_A(x - y)  -  a - b", "a - b"),
        ("VAL_A(x) — why, VAL_B", "why, VAL_B"),
        ("VAL_A", None),
    ],
)
def test_a_note_begins_with_a_dash_between_blanks(text: str, note: str | None) -> None:
    assert parse_notation("VAL", text, TAGS).note == note


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("VAL_A(", "the bracket of VAL_A is not closed", 5),
        ("VAL_A(x", "the bracket of VAL_A is not closed", 5),
        ("VAL_A(x))", "unexpected text ')' after VAL_A", 8),
        ("VAL_A(x y)", "VAL_A: invalid syntax. Perhaps you forgot a comma?", 6),
        ("VAL_A(min=0, exclusive)", "VAL_A: positional argument follows keyword argument", 22),
        ("VAL_A(*x)", "VAL_A: an argument with *", 6),
        ("VAL_A(**x)", "VAL_A: an argument with **", 6),
        ("VAL_A(a=1, a=2)", "VAL_A: a is given twice", 6),
        ("VAL_A extra words", "unexpected text 'extra words' after VAL_A", 6),
        ("VAL_A,", "a pattern id is missing", 6),
        ("VAL_A, val_b", "'val_b' is not a pattern id", 7),
        ("VAL_A(x) (exact match)", "unexpected text '(exact match)' after VAL_A", 9),
    ],
)
def test_errors_say_what_and_where(text: str, message: str, offset: int) -> None:
    with pytest.raises(NotationError) as caught:
        parse_notation("VAL", text, TAGS)
    assert caught.value.message == message and caught.value.offset == offset and caught.value.fix


def test_errors_are_reported_with_line_and_column_of_the_file() -> None:
    (finding,) = report("x = 1\nif x:\n    # VAL: VAL_POSITIVE(x y)\n    x = 2\n").findings
    assert (finding.line, finding.column, finding.code) == (3, 25, "bad-annotation")


def test_prose_after_a_tag_is_a_warning_and_expands_to_nothing() -> None:
    for text in ("# AST: the syntax tree\n", "# AST: State consistency\nx = 1\n", "# VAL: TODO later\n"):
        done = report(text)
        assert [(f.severity, f.code) for f in done.findings] == [("warning", "unexpandable")]
        assert done.text == text and done.clean


def test_comments_that_only_mention_a_tag_are_left_alone() -> None:
    for text in ("# see VAL: VAL_X(\n", "# VAL:: x\n", "# VALUE: VAL_X\n", "#: VAL_X\n", "# AST nodes: x\n"):
        assert report(text).findings == () and report(text).sites == ()


def test_an_annotation_goes_on_while_a_bracket_is_open() -> None:
    text = dedent("""
        def take(x):
            # VAL: VAL_INT_RANGE(
            #     min=0,
            #     max=7,
            # ), VAL_FINITE - why
            return x
    """)
    done = expand(text)
    assert "    # ), VAL_FINITE - why\n    if not 0 <= x <= 7:" in done
    assert strip(done) == text and expand(done) == done


@pytest.mark.parametrize(
    "lines",
    [
        ("VAL: VAL_POSITIVE(x) - it is a size", "  and sizes are positive"),
        ("VAL: VAL_POSITIVE(x)", "     - it is a size and sizes", "     are positive"),
        ("VAL: VAL_POSITIVE(", "  x) - it is a size", "    and sizes", "  are positive"),
        ("VAL: VAL_POSITIVE(x),", "  VAL_FINITE(x)", "  - it is a size and sizes are positive"),
    ],
)
def test_an_annotation_goes_on_in_a_comment_that_hangs_below_it(lines: tuple[str, ...]) -> None:
    comments = "".join(f"    # {line}\n" for line in lines)
    done = expand(f"def take(x):\n{comments}    return x\n")
    assert f"def take(x):\n{comments}    if not" in done.removeprefix("import math  # VAL import\n")
    message = " ".join(re.findall(r'"(.*?)"', done.replace('"\n            "', "")))
    assert "positive, got {x!r} - it is a size and sizes are positive" in message
    assert strip(done) == f"def take(x):\n{comments}    return x\n" and expand(done) == done


def test_a_hanging_comment_that_goes_on_with_nothing_is_an_error_at_its_place() -> None:
    text = "def take(x):\n    # VAL: VAL_POSITIVE(x)\n    #     y = x\n    return x\n"
    (finding,) = report(text).findings
    assert (finding.line, finding.column, finding.code) == (3, 11, "bad-annotation")
    assert "unexpected text 'y = x'" in finding.message and "a blank line" in (finding.fix or "")
    assert expand(text.replace("(x)\n", "(x)\n\n"))


def test_a_comment_below_a_note_that_does_not_hang_is_named() -> None:
    text = "def take(x):\n    # VAL: VAL_POSITIVE(x) - sizes are\n    # positive\n    return x\n"
    (finding,) = report(text).findings
    assert (finding.severity, finding.line, finding.code) == ("warning", 3, "stray-comment")
    done = expand(text)
    assert 'sizes are")' in done and "# END VAL" in done.split("    # positive")[0]
    assert [f.code for f in report(done).findings] == ["stray-comment"] and expand(done) == done
    tools = ("    # unmanaged: theirs", "    # noqa", "    # fmt: off", "    # type: ignore")
    for other in ("\n    # positive", "    # AST: AST_INVARIANT(x)", "  # positive", *tools):
        assert report(text.replace("    # positive", other)).findings == ()
    assert report(text.replace(" - sizes are", "")).findings == ()


def test_a_note_behind_code_does_not_go_on_and_says_so() -> None:
    text = "def take(\n    x,  # VAL: VAL_POSITIVE - sizes are\n        #   positive\n):\n    return x\n"
    (finding,) = report(text).findings
    assert (finding.line, finding.code) == (3, "stray-comment") and "its own line" in (finding.fix or "")
    open_bracket = "def take(x):\n    y = x  # VAL: VAL_EQUAL(y,\n           #        1)\n    return y\n"
    (finding,) = report(open_bracket).findings
    assert (finding.line, finding.code) == (2, "bad-annotation") and "a line of its own" in (finding.fix or "")


def test_a_block_between_an_annotation_and_the_rest_of_its_note_moves_below_both() -> None:
    done = expand("def take(x):\n    # VAL: VAL_POSITIVE(x) - sizes are\n    return x\n")
    torn = done.replace("    return x", "    #   positive\n    return x")
    mended = expand(torn)
    assert mended.startswith("def take(x):\n    # VAL: VAL_POSITIVE(x) - sizes are\n    #   positive\n    if")
    assert "sizes are positive" in mended and expand(mended) == mended


def test_an_open_bracket_does_not_swallow_the_next_annotation() -> None:
    text = "def take(x):\n    # VAL: VAL_INT_RANGE(min=0,\n    # VAL: VAL_POSITIVE\n    return x\n"
    findings = report(text).findings
    assert [(f.line, f.code) for f in findings] == [(2, "bad-annotation")]


@pytest.mark.parametrize(
    ("annotation", "code", "fix"),
    [
        ("VAL: VAL_POSITVE", "unknown-pattern", "Did you mean VAL_POSITIVE"),
        ("AST: VAL_POSITIVE", "wrong-tag", "Write `# VAL: …`."),
        ("VAL: VAL_INT_RANGE(minimum=0)", "bad-argument", "Did you mean min=?"),
        ("VAL: VAL_INT_RANGE(min='a')", "bad-argument", ""),
        ("AST: AST_INVARIANT", "bad-argument", ""),
    ],
)
def test_a_wrong_pattern_or_argument_is_refused_with_the_nearest_name(annotation: str, code: str, fix: str) -> None:
    done = report(f"def take(x):\n    # {annotation}\n    return x\n")
    (finding,) = done.findings
    assert (finding.line, finding.code) == (2, code) and fix in (finding.fix or "")
    assert done.text is None


def test_all_mistakes_of_a_file_are_reported_at_once() -> None:
    text = "def take(x):\n    # VAL: VAL_A\n    # VAL: VAL_B(\n    # AST: AST_C(1)\n    # VAL: VAL_D(,)\n    return x\n"
    assert [finding.line for finding in report(text).findings] == [2, 3, 4, 5]


def test_nothing_in_a_scanned_file_is_executed() -> None:
    text = "def take(x):\n    # VAL: VAL_INT_RANGE(x, min=__import__('os').abort())\n    return x\n"
    assert "__import__('os').abort()" in expand(text)
