"""Whether claims can hold together, and which smallest set cannot, against trying all values and all sets."""

from __future__ import annotations

import importlib
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.constraints.kinds import infer
from codegen.constraints.language import read_constraint
from codegen.constraints.solve import Solver, Verdict

importlib.import_module("z3")
VALUES = range(-3, 4)
DOMAIN = "-3 <= {} <= 3"


def judge(texts: list[str], whole: str = "", seconds: float = 10.0) -> Verdict:
    trees = [read_constraint(text).tree for text in texts]
    return Solver(infer(trees, {}), frozenset(whole.split()), seconds).judge(trees)


POSSIBLE = [
    ["a > 1", "a < 1.5"],
    ["a >= 3 and a <= 3"],
    ["s in {x, y}", "s != 'x'"],
    ["s == t", "t == 'x'"],
    ["not on or a > 3", "on", "a > 4"],
    ["a / 2 == 1.5"],
    ["a == 0.1 + 0.2", "a == 0.3"],
    ["max(a, b) == 3", "min(a, b) == 1"],
    ["a * b == 6", "a == 2", "b == 3"],
    ["len(x) == 0"],
    ["1 < 2"],
    [],
]
IMPOSSIBLE = [
    (["bill <= 500", "bill >= 600"], (0, 1)),
    (["a > 1 and a < 1"], (0,)),
    (["a < b", "b < c", "d > 0", "c < a"], (0, 1, 3)),
    (["s in {x, y}", "s != 'x'", "s != 'y'"], (0, 1, 2)),
    (["s == 'x'", "s == 't'"], (0, 1)),
    (["on", "not on"], (0, 1)),
    (["on == True", "on == False", "a < 1"], (0, 1)),
    (["abs(a) < 0"], (0,)),
    (["min(a, b) > max(a, b)"], (0,)),
    (["len(x) < 0"], (0,)),
    (["a == 0.1", "a * 10 != 1"], (0, 1)),
    (["2 < 1"], (0,)),
    (["s not in {x}", "s == 'x'"], (0, 1)),
    # three claims cannot hold, but two of them alone cannot either: the pair is the smallest set
    (["a >= 1", "a + b <= 0", "b >= 0", "b >= 5", "b <= 4"], (3, 4)),
    (["a == b", "b == c", "a == 1", "c == 2", "a == 5", "a != 5"], (2, 4)),
]


@pytest.mark.parametrize("texts", POSSIBLE)
def test_claims_that_can_hold_have_no_core(texts: list[str]) -> None:
    assert judge(texts) == Verdict()


@pytest.mark.parametrize(("texts", "core"), IMPOSSIBLE)
def test_the_smallest_set_that_cannot_hold_is_found(texts: list[str], core: tuple[int, ...]) -> None:
    found = judge(texts).core
    assert len(found) == len(core) and judge([texts[at] for at in found]) != Verdict()


@pytest.mark.parametrize(
    ("texts", "whole", "can"),
    [
        (["a > 1", "a < 2"], "", True),
        (["a > 1", "a < 2"], "a", False),
        (["a / 2 == 1.5"], "a", True),
        (["a // 2 == -2", "a == -3"], "a", True),
        (["a // 2 == -1", "a == -3"], "a", False),
        (["a % 4 == 1", "a == -3"], "a", True),
        (["a % 4 == 3", "a == -3"], "a", False),
        (["a % 2 == 0.5", "a == 4.5"], "", True),
        (["len(x) > 1", "len(x) < 2"], "", False),
    ],
)
def test_whole_numbers_are_whole_and_division_is_pythons(texts: list[str], whole: str, can: bool) -> None:
    assert (judge(texts, whole) == Verdict()) is can


def test_what_cannot_be_decided_in_time_is_not_called_possible() -> None:
    assert judge(["a < 1"], seconds=0.0) == Verdict(decided=False)


TERM = st.sampled_from(["a", "b", "c", "-2", "-1", "0", "1", "2", "a + b", "b - c", "abs(a)", "min(b, c)", "2 * c"])
PLAIN = st.builds("{} {} {}".format, TERM, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), TERM)
CHAIN = st.builds("{} <= {} < {}".format, TERM, TERM, TERM)
SIMPLE = PLAIN | CHAIN
CLAIM = SIMPLE | st.builds("({}) or ({})".format, SIMPLE, SIMPLE) | st.builds("not ({})".format, SIMPLE)


def holds_somewhere(texts: list[str]) -> bool:
    """The oracle: Python itself, at every point."""
    claim = compile(" and ".join(f"({text})" for text in texts) or "True", "claims", "eval")
    return any(eval(claim, {"a": a, "b": b, "c": c}) for a, b, c in product(VALUES, repeat=3))


@settings(max_examples=150, deadline=None)
@given(st.lists(CLAIM, min_size=1, max_size=6))
def test_verdict_and_size_are_those_of_trying_everything(texts: list[str]) -> None:
    domain = [DOMAIN.format(name) for name in "abc"]
    found = judge([*texts, *domain], whole="a b c")
    assert found.decided
    if holds_somewhere(texts):
        assert found.core == ()
        return
    core = [([*texts, *domain])[at] for at in found.core]
    # with the domains as claims like the others, the smallest set is found by trying sets in the order of their size
    everything = [*texts, *domain]
    wider = range(-40, 41)

    def can(claims: tuple[str, ...]) -> bool:
        names = [name for name in "abc" if DOMAIN.format(name) not in claims]
        points = product(*[wider if name in names and len(names) < 2 else range(-8, 9) for name in "abc"])
        claim = compile(" and ".join(f"({text})" for text in claims), "claims", "eval")
        return any(eval(claim, {"a": a, "b": b, "c": c}) for a, b, c in points)

    assert not can(tuple(core))
    for size in range(1, len(core)):
        for smaller in combinations(everything, size):
            assert can(smaller), (smaller, core)
