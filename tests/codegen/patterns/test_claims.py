"""What a failed claim shows: never a value whose reading could fail."""

from __future__ import annotations

import pytest

from codegen.patterns.claims import empty_check, shown_values


@pytest.mark.parametrize(
    ("claim", "shown"),
    [
        ("a > b", ["a", "b"]),
        ("self.n == len(self.items)", ["self.n", "self.items"]),
        ("self.ready()", ["self"]),
        ("self.lock.locked()", ["self.lock"]),
        ("isinstance(x, int)", ["x"]),
        ("state is State.READY", ["state"]),
        ("x is None or x.n > 0", ["x"]),
        ("model is not None and self.model.ready", ["model"]),
        ("a.n if b else c.n", ["b", "a", "c"]),
        ("0 <= x.n < y.n < z.n", ["x.n", "y", "z"]),
        ("0 <= x.n < y.n", ["x.n", "y"]),
        ("a.n < b.n", ["a.n", "b.n"]),
        ("all(r in known for r in ranks)", ["known", "ranks"]),
        ("sum(g.n for g in self.groups) == n", ["self.groups", "n"]),
        ("table[i] == 3", ["table[i]", "i"]),
        ("any(lambda x: x > y)", ["y"]),
        ("{k: v for k, v in d.items()} == e", ["d", "e"]),
        ("f(a)(b).c == 1", ["a", "b"]),
        ("a + b + c + d + e + f == 0", ["a", "b", "c", "d", "e"]),
        ("True", []),
    ],
)
def test_the_values_shown_are_those_surely_read(claim: str, shown: list[str]) -> None:
    assert sorted(shown_values(claim)) == sorted(shown)


@pytest.mark.parametrize("claim", ["len(xs) > 0", "len(xs) >= 1", "len(xs) != 0"])
def test_a_length_above_zero_is_about_emptiness(claim: str) -> None:
    assert empty_check(claim) == "xs"


@pytest.mark.parametrize(
    "claim", ["len(xs) > 1", "len(f(xs)) > 0", "size(xs) > 0", "len(xs) > 0 > y", "0 < n", "len(xs) > True"]
)
def test_other_comparisons_are_not(claim: str) -> None:
    assert empty_check(claim) is None
