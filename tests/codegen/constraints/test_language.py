"""What is a constraint, what is none, and which quantities it is about."""

from __future__ import annotations

import pytest

from codegen.constraints.kinds import Clash, infer
from codegen.constraints.language import NotInLanguage, read_constraint

CONSTRAINTS = [
    ("bill <= 500", ("bill",)),
    ("`bill <= 500`", ("bill",)),
    ("0 <= a.b < c", ("a.b", "c")),
    ("a >= 1 and (b < 2 or not c)", ("a", "b", "c")),
    ("state in {idle, busy}", ("state",)),
    ("state not in {'idle', busy}", ("state",)),
    ("size in {1, 2, -4}", ("size",)),
    ('mode == "fast"', ("mode",)),
    ("on == True", ("on",)),
    ("not on", ("on",)),
    ("2 * a + b / 2 - 1 >= -c", ("a", "b", "c")),
    ("batch % 8 == 0 and batch // 2 > 1", ("batch",)),
    ("min(a, b) <= max(a, 3) and abs(d) < 1", ("a", "b", "d")),
    ("len(a.items) >= 1", ("len(a.items)",)),
    ("a == b", ("a", "b")),
    ("1 < 2", ()),
]

NO_CONSTRAINTS = [
    ("", "there is no constraint behind the colon"),
    ("bill must be small", "`bill must be small` is no expression"),
    ("bill <= ", "is no expression"),
    ("bill + 1", "`bill + 1` is neither true nor false"),
    ("3", "`3` is neither true nor false"),
    ("state in idle", "`idle` is no set: write `in {a, b}`"),
    ("state in {a + 1}", "`a + 1` in the braces is neither a word nor a number"),
    ("bill is None", "`is` compares objects"),
    ("bill == None", "`None` is not in the language"),
    ("f(bill) > 1", "`f(bill)` is not in the language"),
    ("bill ** 2 > 1", "`bill ** 2` is not in the language"),
    ("bills[0] > 1", "`bills[0]` is not in the language"),
    ("a % b == 0", "`a % b` divides by something else than a positive whole number"),
    ("a // 0 == 0", "positive whole number"),
    ("a % -2 == 0", "positive whole number"),
    ("a % 1.5 == 0", "positive whole number"),
    ("a % True == 0", "positive whole number"),
    ("a / 0 == 0", "divides by zero"),
    ("a < 1e999", "is no finite number"),
    ("a < ~3", "`~3` is not in the language"),
    ("min() < 1", "min takes two or more terms"),
    ("min(a) < 1", "min takes two or more terms"),
    ("abs(a, b) < 1", "abs takes one term"),
    ("max(a, key=b) < 1", "max takes two or more terms"),
    ("(a < 1) + 1 > 2", "is not in the language"),
    ("lambda: a < 1", "is neither true nor false"),
    ("a < 1 if b else c", "is neither true nor false"),
    ("len(a, b) > 1", "is not in the language"),
    ("len(len(a)) > 1", "is not in the language"),
    ("(" * 300 + "a" + ")" * 300, "is no expression"),
    ("a < 1 and " * 400 + "a < 1", "longer than 2000 characters"),
]


@pytest.mark.parametrize(("text", "names"), CONSTRAINTS)
def test_a_constraint_is_read_and_knows_its_quantities(text: str, names: tuple[str, ...]) -> None:
    assert read_constraint(text).names == names


@pytest.mark.parametrize(("text", "message"), NO_CONSTRAINTS)
def test_what_is_no_constraint_is_refused_with_the_part_that_is_wrong(text: str, message: str) -> None:
    with pytest.raises(NotInLanguage) as error:
        read_constraint(text)
    assert message in str(error.value)


KINDS = [
    (["a < 1"], {"a": "number"}),
    (["not a"], {"a": "flag"}),
    (["a == 'x'"], {"a": "word"}),
    (["'x' == a"], {"a": "word"}),
    (["a in {x}"], {"a": "word"}),
    (["a in {1}"], {"a": "number"}),
    (["a == b", "b == 'x'"], {"a": "word", "b": "word"}),
    (["a == b", "b == c", "not c"], {"a": "flag", "b": "flag", "c": "flag"}),
    (["a == b + 1"], {"a": "number", "b": "number"}),
    (["a == abs(b)"], {"a": "number", "b": "number"}),
    (["a == -b"], {"a": "number", "b": "number"}),
    (["a == len(b)"], {"a": "number"}),
    (["a == True"], {"a": "flag"}),
]
CLASHES = [
    ["a < 1", "not a"],
    ["a == 'x'", "a > 1"],
    ["a in {x, 1}"],
    ["a == 'x' and a == True"],
    ["not len(a)"],
    ["a + 1 == 'x'"],
    ["a == b", "a < 1", "b == 'x'"],
    ["a == 1 and a == True"],
    ["1 == 'x'"],
]


@pytest.mark.parametrize(("texts", "kinds"), KINDS)
def test_kinds_follow_from_use(texts: list[str], kinds: dict[str, str]) -> None:
    assert infer([read_constraint(text).tree for text in texts], {}) == kinds


@pytest.mark.parametrize("texts", CLASHES)
def test_a_quantity_of_two_kinds_is_a_clash(texts: list[str]) -> None:
    with pytest.raises(Clash):
        infer([read_constraint(text).tree for text in texts], {})


def test_the_type_in_section_5_goes_before_the_use() -> None:
    with pytest.raises(Clash, match="`a` is a word and is used as a number"):
        infer([read_constraint("a > 1").tree], {"a": "word"})
