"""Annotations and defaults are compared by meaning where their texts allow it."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.drift.typeforms import same_annotation, same_value


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("List[int]", "list[int]"),
        ("typing.List[typing.Dict[str, int]]", "list[dict[str, int]]"),
        ("Optional[X]", "X | None"),
        ("Union[A, B, None]", "None | B | A"),
        ("Union[A, Union[B, C]]", "A | B | C"),
        ("'Parcel'", "Parcel"),
        ("list['Parcel']", "List[Parcel]"),
        ("'Optional[Parcel]'", "Parcel | None"),
        ("np.ndarray | None", "ndarray | None"),
        ("collections.abc.Sequence[int]", "Sequence[int]"),
        ("Literal['a', 'b']", "Literal['b', 'a']"),
        ("Callable[[int], str]", "collections.abc.Callable[[int], str]"),
        ("A | A", "A"),
        ("Type[X]", "type[X]"),
    ],
)
def test_two_spellings_of_one_type_are_the_same(left: str, right: str) -> None:
    assert same_annotation(expression(left), expression(right))
    assert same_annotation(expression(right), expression(left))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("list[int]", "list[str]"),
        ("X", "X | None"),
        ("a.Parcel", "b.Parcel"),
        ("Literal['int']", "Literal[int]"),
        ("tuple[int, ...]", "tuple[int]"),
        ("Callable[[int], str]", "Callable[[str], int]"),
        ("Sequence[int]", "list[int]"),
        ("Shelf", "BookShelf"),
    ],
)
def test_two_types_are_not_the_same(left: str, right: str) -> None:
    assert not same_annotation(expression(left), expression(right))
    assert not same_annotation(expression(right), expression(left))


def test_a_missing_annotation_is_only_the_same_as_a_missing_one() -> None:
    assert same_annotation(None, None)
    assert not same_annotation(None, expression("int"))


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("'x'", '"x"', True),
        ("1e3", "1000.0", True),
        ("1", "1.0", False),
        ("...", "{'a': 1}", True),
        ("A.b", "m.A.b", True),
    ],
)
def test_defaults_are_compared_as_values(left: str, right: str, same: bool) -> None:
    assert same_value(expression(left), expression(right)) is same


names = st.sampled_from(["int", "str", "None", "Parcel", "np.ndarray", "'Shelf'"])
types = st.recursive(
    names,
    lambda inner: st.one_of(
        inner.map(lambda t: f"Optional[{t}]"),
        inner.map(lambda t: f"List[{t}]"),
        st.tuples(inner, inner).map(lambda pair: f"Union[{pair[0]}, {pair[1]}]"),
        st.tuples(inner, inner).map(lambda pair: f"Dict[{pair[0]}, {pair[1]}]"),
    ),
    max_leaves=6,
)


@settings(deadline=None, derandomize=True)
@given(types)
def test_every_type_equals_itself_in_modern_spelling(text: str) -> None:
    modern = text.replace("List", "list").replace("Dict", "dict").replace("'", "")
    assert same_annotation(expression(text), expression(modern))


@settings(deadline=None, derandomize=True)
@given(types, types)
def test_sameness_is_symmetric(left: str, right: str) -> None:
    forth = same_annotation(expression(left), expression(right))
    assert forth == same_annotation(expression(right), expression(left))
