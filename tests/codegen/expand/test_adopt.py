"""Hand-written checks that say the same in other words are adopted; those that say nearly the same are shown."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from tests.codegen.expand.helpers import dedent, expand, problem, report, strip

WRITTEN = {
    "X17 not xs": ("VAL_NON_EMPTY(xs)", "if not xs:\n    raise ValueError('no xs')"),
    "X17 length below one": ("VAL_NON_EMPTY(xs)", "if len(xs) < 1:\n    raise ValueError('no xs')"),
    "X17 zero first": ("VAL_NON_EMPTY(xs)", "if 0 == len(xs):\n    raise ValueError('no xs')"),
    "X17 no length": ("VAL_NON_EMPTY(xs)", "if not len(xs):\n    raise ValueError('no xs')"),
    "X17 passes else raises": ("VAL_NON_EMPTY(xs)", "if xs:\n    pass\nelse:\n    raise ValueError('no xs')"),
    "X17 empty": ("VAL_EMPTY(xs)", "if xs:\n    raise ValueError('some xs')"),
    "X18 duplicates": ("VAL_NO_DUPLICATES(xs)", "if len(xs) != len(set(xs)):\n    raise ValueError('twice')"),
    "X18 fewer in the set": ("VAL_NO_DUPLICATES(xs)", "if len(set(xs)) < len(xs):\n    raise ValueError('twice')"),
    "X18 two bounds": ("VAL_RANK(a, b)", "if a < 0 or a >= b:\n    raise ValueError('rank')"),
    "X18 swapped bounds": ("VAL_RANK(a, b)", "if b <= a or 0 > a:\n    raise ValueError('rank')"),
    "X18 De Morgan": ("VAL_RANK(a, b)", "if not (a >= 0 and a < b):\n    raise ValueError('rank')"),
    "X18 one after the other": (
        "VAL_RANK(a, b)",
        "if a < 0:\n    raise ValueError('low')\nif a >= b:\n    raise ValueError('high')",
    ),
    "X18 loop": ("VAL_POSITIVE(xs, each=items)", "for x in xs:\n    if x <= 0:\n        raise ValueError('low')"),
    "X18 any": ("VAL_POSITIVE(xs, each=items)", "if any(x <= 0 for x in xs):\n    raise ValueError('low')"),
    "X18 not all": ("VAL_POSITIVE(xs, each=items)", "if not all(x > 0 for x in xs):\n    raise ValueError('low')"),
    "X18 a temporary": ("VAL_NON_EMPTY(xs)", "size = len(xs)\nif size == 0:\n    raise ValueError('no xs')"),
    "positive, swapped": ("VAL_POSITIVE(a)", "if 0 >= a:\n    raise ValueError('low')"),
    "is not None": ("VAL_NOT_NONE(a)", "if not (a is not None):\n    raise ValueError('none')"),
    "assert": ("AST_PRECONDITION(a < b)", "assert b > a, 'order'"),
}
LOOKING_ALIKE = {
    "off by one": ("VAL_RANK(a, b)", "if a < 0 or a > b:\n    raise ValueError('rank')"),
    "another error": ("VAL_POSITIVE(a)", "if a <= 0:\n    raise TypeError('low')"),
    "an assert for a raise": ("VAL_POSITIVE(a)", "assert a > 0, 'low'"),
    "zero passes": ("VAL_POSITIVE(a)", "if a < 0:\n    raise ValueError('low')"),
    "all for any": ("VAL_POSITIVE(xs, each=items)", "if all(x <= 0 for x in xs):\n    raise ValueError('low')"),
    "truth of a number": ("VAL_POSITIVE(a)", "if not a:\n    raise ValueError('low')"),
}
MORE_THAN_A_CHECK = {
    "an else": ("VAL_POSITIVE(a)", "if a <= 0:\n    raise ValueError('low')\nelse:\n    print(a)"),
    "a print": ("VAL_POSITIVE(a)", "if a <= 0:\n    print(a)\n    raise ValueError('low')"),
    "a cause": ("VAL_POSITIVE(a)", "if a <= 0:\n    raise ValueError('low') from None"),
    "a loop with an else": (
        "VAL_POSITIVE(xs, each=items)",
        "for x in xs:\n    if x <= 0:\n        raise ValueError('low')\nelse:\n    print(xs)",
    ),
    "a name that is read below": (
        "VAL_NON_EMPTY(xs)",
        "size = len(xs)\nif size == 0:\n    raise ValueError('x')\nprint(size)",
    ),
    "other names": ("VAL_POSITIVE(a)", "if b <= 0:\n    raise ValueError('low')"),
}


def function(use: str, written: str, head: str = "def f(xs, a, b):", after: str = "return None") -> str:
    tag = use.partition("_")[0]
    body = "".join(f"    {line}\n" for line in written.splitlines())
    return f"{head}\n    # {tag}: {use}\n{body}    {after}\n"


@pytest.mark.parametrize("name", WRITTEN)
def test_a_check_in_other_words_is_not_written_twice_and_is_adopted_with_its_message(name: str) -> None:
    use, written = WRITTEN[name]
    text = function(use, written)
    assert problem(text)[:2] == (2, "already-checked")
    adopted = expand(text, adopt=True)
    said = written.split("('")[-1].partition("'")[0] if "assert" not in written else "order"
    said = "low" if name == "X18 one after the other" else said
    assert f"- {said}" in adopted.splitlines()[1]
    assert expand(adopted) == adopted
    assert adopted.count("raise ValueError") + adopted.count("assert ") == 1


@pytest.mark.parametrize("name", WRITTEN)
def test_an_adopted_check_fails_on_exactly_the_values_that_the_hand_written_one_failed_on(name: str) -> None:
    text = function(*WRITTEN[name])
    by_hand, adopted = _compiled(text), _compiled(expand(text, adopt=True))
    lists = [[], [1], [0], [-1], [1, 1], [2, 1, -3], [1, 2, 3]]
    numbers = [-2, -1, 0, 1, 2, 3, None] if name == "is not None" else [-2, -1, 0, 1, 2, 3]
    for xs, a, b in itertools.product(lists, numbers, numbers):
        assert _outcome(by_hand, xs, a, b) == _outcome(adopted, xs, a, b), (xs, a, b)


def _compiled(text: str) -> Any:
    space: dict[str, Any] = {}
    exec(compile(text, "<m>", "exec"), space)
    return space["f"]


def _outcome(function: Any, *arguments: object) -> str:
    try:
        function(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it raises is the outcome
        return type(error).__name__
    return "passed"


@pytest.mark.parametrize("name", LOOKING_ALIKE)
def test_what_is_close_but_not_equal_stays_and_is_shown_with_the_difference(name: str) -> None:
    use, written = LOOKING_ALIKE[name]
    text = function(use, written)
    done = report(text, adopt=True)
    assert done.text is not None and strip(done.text) == text
    near = [finding for finding in done.findings if finding.code == "nearly-checked"]
    assert [finding.line for finding in near] == [2]
    assert "line 3 checks nearly the same by hand: it " in near[0].message


def test_X20_all_messages_of_checks_that_become_one_are_kept() -> None:
    text = dedent("""
        def f(n: int):
            # VAL: VAL_INT_RANGE(n, min=1, max=7)
            if n < 1:
                raise ValueError("too small")
            if n > 7:
                raise ValueError(f"too big: {n}")
            return n
    """)
    done = expand(text, adopt=True)
    assert "# VAL: VAL_INT_RANGE(n, min=1, max=7) - too small; too big: n\n" in done and done.count("raise") == 1


def test_a_range_in_other_words_is_shown_and_not_written_twice_in_silence() -> None:
    text = "def f(n: int):\n    # VAL: VAL_INT_RANGE(n, min=1, max=7)\n    if n not in range(1, 8):\n"
    text += "        raise ValueError(n)\n    return n\n"
    (near,) = report(text).findings
    assert near.code == "nearly-checked" and "n not in range(1, 8)" in near.message


def test_the_difference_names_both_conditions_and_the_error_that_would_make_them_equal() -> None:
    near = report(function(*LOOKING_ALIKE["off by one"])).findings[0].message
    assert "it fails if `a < 0 or a > b`, the annotation if `not 0 <= a < b`" in near
    near = report(function(*LOOKING_ALIKE["another error"])).findings[0].message
    assert "(error=TypeError says the same)" in near


def test_an_assert_is_adopted_where_the_annotation_asks_for_assertion_errors_only_as_an_assert() -> None:
    text = function("AST_PRECONDITION(a > 0)", "if not a > 0:\n    raise AssertionError('low')")
    assert strip(expand(text, adopt=True)) == text


@pytest.mark.parametrize("name", MORE_THAN_A_CHECK)
def test_code_that_does_more_than_check_stays(name: str) -> None:
    text = function(*MORE_THAN_A_CHECK[name])
    assert strip(expand(text, adopt=True)) == text


def test_a_float_is_not_adopted_by_the_opposite_comparison_because_of_nan() -> None:
    written = "if a <= 0:\n    raise ValueError('low')"
    text = function("VAL_POSITIVE(a)", written, "def f(xs, a: float, b):")
    assert strip(expand(text, adopt=True)) == text
    assert _outcome(_compiled(text.replace("# VAL: VAL_POSITIVE(a)", "pass")), [], math.nan, 0) == "passed"
    same = function("VAL_POSITIVE(a)", "if not a > 0:\n    raise ValueError('low')", "def f(xs, a: float, b):")
    assert problem(same)[1] == "already-checked"


@pytest.mark.parametrize(
    "text",
    [
        "def f(xs):\n    # VAL: VAL_NON_EMPTY(xs)\n    if not xs:\n        raise ValueError('no xs')\n",
        "def f(xs):\n    '''Say.'''\n    # VAL: VAL_NON_EMPTY(xs)\n    if not xs:\n        raise ValueError('no xs')\n",
        "class C:\n    def f(s, xs):\n"
        "        # VAL: VAL_NON_EMPTY(xs)\n        if not xs:\n            raise ValueError\n",
        "def f(xs):\n    # VAL: VAL_NON_EMPTY(xs)\n    if not xs:\n        raise ValueError('no xs')\n"
        "    # VAL: VAL_NO_DUPLICATES(xs)\n    if len(set(xs)) != len(xs):\n        raise ValueError('twice')\n",
    ],
)
def test_X19_a_function_whose_whole_body_is_the_check_is_adopted(text: str) -> None:
    adopted = expand(text, adopt=True)
    assert adopted.count("# END VAL") == text.count("# VAL")
    assert expand(adopted) == adopted
    compile(strip(adopted), "<m>", "exec")
    assert "raise" not in strip(adopted)


def test_X18_a_loop_whose_variable_occurs_elsewhere_in_the_module_is_adopted() -> None:
    loop = "for x in xs:\n    if x <= 0:\n        raise ValueError('low')"
    text = function("VAL_POSITIVE(xs, each=items)", loop) + "\n\ndef g(x):\n    return x\n"
    assert problem(text)[1] == "already-checked"
    text = function("VAL_POSITIVE(xs, each=items)", loop, after="return [x for x in xs]")
    assert problem(text)[1] == "already-checked"
    text = function("VAL_POSITIVE(xs, each=items)", loop, after="return x")
    assert strip(expand(text, adopt=True)) == text


@pytest.mark.parametrize(
    ("raised", "note"),
    [
        ("ValueError('the pool is empty')", "the pool is empty"),
        ("ValueError(f'no rank for {a} of {b + 1}')", "no rank for a of b + 1"),
        ("ValueError('no rank for %s of %d' % (a, b))", "no rank for a of b"),
        ("ValueError('no rank for {} of {:>3}'.format(a, b))", "no rank for a of b"),
    ],
)
def test_X20_the_authors_message_survives_as_the_note(raised: str, note: str) -> None:
    adopted = expand(function("VAL_NON_EMPTY(xs)", f"if not xs:\n    raise {raised}"), adopt=True)
    assert adopted.splitlines()[1] == f"    # VAL: VAL_NON_EMPTY(xs) - {note}"
    with pytest.raises(ValueError, match=rf"must not be empty, got \[\] - {note.replace('+', '.')}$"):
        _compiled(adopted)([], 1, 2)


def test_X20_a_note_of_the_annotations_own_is_kept_and_a_long_message_hangs() -> None:
    text = function("VAL_NON_EMPTY(xs)", "if not xs:\n    raise ValueError('no xs')").replace(
        "(xs)\n", "(xs) - mine\n", 1
    )
    assert "# VAL: VAL_NON_EMPTY(xs) - mine\n" in expand(text, adopt=True)
    words = "because " * 20
    adopted = expand(function("VAL_NON_EMPTY(xs)", f"if not xs:\n    raise ValueError('{words}')"), adopt=True)
    assert max(len(row) for row in adopted.splitlines() if "#" in row) <= 100 and "    #   because" in adopted
    with pytest.raises(ValueError, match=f"- {words.strip()}$"):
        _compiled(adopted)([], 1, 2)


def test_several_checks_of_one_annotation_are_adopted_together() -> None:
    text = function(
        "VAL_NON_EMPTY(xs), VAL_NO_DUPLICATES(xs)",
        "if not xs:\n    raise ValueError('none')\nif len(set(xs)) != len(xs):\n    raise ValueError('twice')",
    )
    assert problem(text)[1] == "already-checked"
    assert expand(text, adopt=True).count("raise") == 2
