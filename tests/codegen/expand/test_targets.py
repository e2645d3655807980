"""Which value a check is about, and whether it is about the value or its elements."""

from __future__ import annotations

import pytest

from tests.codegen.expand.helpers import dedent, expand, problem, report


def code_of(text: str) -> str:
    """What was added to the text."""
    before = text.splitlines()
    return "\n".join(line.strip() for line in expand(text).splitlines() if line not in before)


def in_function(parameters: str, annotation: str, returns: str = "0") -> str:
    return f"def take({parameters}):\n    # VAL: {annotation}\n    return {returns}\n"


def test_an_explicit_target_comes_first() -> None:
    assert "if not self.size > 0" in code_of(in_function("self, count", "VAL_POSITIVE(self.size)"))


def test_the_parameter_an_annotation_stands_on_is_its_target() -> None:
    text = dedent("""
        def take(
            count: int,
            # VAL: VAL_POSITIVE
            size: int = 3,
            rate: float = 0.5,  # VAL: VAL_PROBABILITY
        ):
            return count
    """)
    added = code_of(text)
    assert "if not size > 0" in added and "0 <= rate <= 1" in added and "count" not in added


def test_the_only_parameter_besides_self_is_the_target_at_the_head_of_a_body() -> None:
    assert "if not count > 0" in code_of(in_function("self, count", "VAL_POSITIVE"))


@pytest.mark.parametrize(
    ("line", "name"),
    [("size = f()", "size"), ("size: int = 3", "size"), ("size += 1", "size"), ("self.size = 3", "self.size")],
)
def test_in_a_body_the_name_bound_just_above_is_the_target(line: str, name: str) -> None:
    text = f"def take(self, a, b):\n    {line}\n    # VAL: VAL_POSITIVE\n    return a\n"
    assert f"if not {name} > 0" in code_of(text)


@pytest.mark.parametrize(
    ("header", "proposed"),
    [("for size in a:", "size"), ("with a as size:", "size"), ("while a:", "target"), ("try:", "target")],
)
def test_the_head_of_a_block_takes_no_target_from_its_header_but_proposes_it(header: str, proposed: str) -> None:
    tail = "    finally:\n        pass\n" if header == "try:" else ""
    text = f"def take(a, b):\n    {header}\n        # VAL: VAL_POSITIVE\n        b(a)\n{tail}"
    assert problem(text) == (3, "ambiguous-target", "VAL_POSITIVE has no target here")
    assert [f.fix for f in report(text).findings] == [f"Name it: VAL_POSITIVE({proposed}, …)."]


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        (in_function("a, b", "VAL_POSITIVE"), "a or b"),
        ("def take(a, b):\n    x, y = a, b\n    # VAL: VAL_POSITIVE\n    return x\n", "x or y"),
    ],
)
def test_two_candidates_are_refused_and_named(text: str, candidates: str) -> None:
    _, code, message = problem(text)
    assert code == "ambiguous-target" and message == f"VAL_POSITIVE could mean {candidates}"


def test_no_candidate_is_refused() -> None:
    assert problem("def take():\n    # VAL: VAL_POSITIVE\n    return 1\n")[1:] == (
        "ambiguous-target",
        "VAL_POSITIVE has no target here",
    )


@pytest.mark.parametrize(
    ("hint", "loop"),
    [
        ("list[int]", "for _count in counts:"),
        ("Sequence[int]", "for _count in counts:"),
        ("'collections.abc.Sequence[int]'", "for _count in counts:"),
        ("tuple[int, ...]", "for _count in counts:"),
        ("typing.Annotated[list[int], 'positive']", "for _count in counts:"),
        ("list", "for _count in counts:"),
        ("dict[str, int]", "for _count in counts.values():"),
        ("Mapping[int, str]", "for _key in counts:"),
        ("int", "if not counts > 0:"),
        ("np.ndarray", "if not counts > 0:"),
        ("list[int] | int", "if not counts > 0:"),
    ],
)
def test_the_type_annotation_says_whether_elements_are_checked(hint: str, loop: str) -> None:
    assert loop in code_of(in_function(f"counts: {hint}", "VAL_POSITIVE"))


@pytest.mark.parametrize(
    ("hint", "reason"),
    [
        ("dict[str, str]", "a mapping"),
        ("dict", "a mapping"),
        ("Iterator[int]", "annotated Iterator, which a check could use up"),
        ("list[list[int]]", "a container of containers"),
        ("tuple[int, str]", "a tuple of different types"),
    ],
)
def test_elements_that_cannot_be_told_are_refused(hint: str, reason: str) -> None:
    assert problem(in_function(f"counts: {hint}", "VAL_POSITIVE"))[1:] == ("ambiguous-target", f"counts is {reason}")


def test_each_overrules_the_type_annotation() -> None:
    assert "for _key in counts:" in code_of(in_function("counts: dict[Rank, str]", "VAL_POSITIVE(each=keys)"))
    assert "if counts not in" in code_of(in_function("counts: list[int]", "VAL_ONE_OF([[1], [2]], each=none)"))


def test_star_parameters_are_checked_by_element() -> None:
    assert "for _count in counts:" in code_of(in_function("*counts: int", "VAL_POSITIVE"))
    assert "for _count in counts.values():" in code_of(in_function("**counts: int", "VAL_POSITIVE"))


def test_the_annotation_of_a_local_variable_counts() -> None:
    text = "def take(a, b):\n    sizes: list[int] = a\n    # VAL: VAL_POSITIVE\n    return b\n"
    assert "for _size in sizes:" in code_of(text)


@pytest.mark.parametrize("hint", ["Optional[int]", "int | None", "Union[int, None]"])
def test_none_passes_where_the_type_annotation_allows_it(hint: str) -> None:
    namespace: dict[str, object] = {}
    exec("from typing import *\n" + expand(in_function(f"count: {hint} = None", "VAL_POSITIVE")), namespace)
    take = namespace["take"]
    assert take() == 0 and take(3) == 0  # type: ignore[operator]
    with pytest.raises(ValueError, match="count must be positive, got 0"):
        take(0)  # type: ignore[operator]


def test_a_check_for_none_is_about_the_value_unless_elements_may_be_none() -> None:
    assert "if counts is None:" in code_of(in_function("counts: list[int] | None", "VAL_NOT_NONE"))
    assert "for _count in counts:" in code_of(in_function("counts: list[int | None]", "VAL_NOT_NONE"))


def test_a_type_check_is_about_elements_only_when_it_asks_for_their_type() -> None:
    assert "for _count in counts:" in code_of(in_function("counts: list[int]", "VAL_TYPE_CHECK(int)"))
    assert "if not isinstance(counts, list)" in code_of(in_function("counts: list[int]", "VAL_TYPE_CHECK(list)"))


@pytest.mark.parametrize(
    ("annotation", "guarded"),
    [
        ("VAL_NON_EMPTY", True),
        ("VAL_NO_DUPLICATES", True),
        ("VAL_ONE_OF(('a', 'b'))", False),
        ("VAL_STATE_IN(('a',))", False),
        ("VAL_NOT_NONE", False),
    ],
)
def test_none_is_judged_where_the_check_is_defined_for_it(annotation: str, guarded: bool) -> None:
    code = code_of(in_function("x: str | None", annotation))
    assert ("if x is not None:" in code) is guarded
