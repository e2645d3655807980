"""Binding: which argument is the target, which a parameter, and what is refused."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.patterns import BadArgument, bind, load_library, parse_use, signature
from codegen.patterns.source import BadSource, atom, elements, is_literal, is_simple, operand, parse, tidy

LIBRARY = load_library()


@pytest.mark.parametrize(
    ("use", "target", "values"),
    [
        ("VAL_SUBSET(known)", None, {"of": "known"}),
        ("VAL_SUBSET(ranks, known)", "ranks", {"of": "known"}),
        ("VAL_SUBSET(ranks, of=known)", "ranks", {"of": "known"}),
        ("VAL_SUBSET(known, target=ranks)", "ranks", {"of": "known"}),
        ("VAL_TRANSITION(a, b, C)", "a", {"to": "b", "table": "C"}),
        ("VAL_TRANSITION(a, table=C, to=b)", "a", {"to": "b", "table": "C"}),
        ("VAL_TRANSITION(b, table=C)", None, {"to": "b", "table": "C"}),
        ("VAL_INT_RANGE", None, {"min": "None", "max": "None"}),
        ("VAL_INT_RANGE()", None, {"min": "None", "max": "None"}),
        ("VAL_INT_RANGE(gpus, min=-1, max=-inf)", "gpus", {"min": "-1", "max": "-inf"}),
        ("AST_PRECONDITION(a > 0)", "a > 0", {}),
        ("AST_UNREACHABLE(state)", None, {"seen": "state"}),
    ],
)
def test_arguments_find_their_parameters(use: str, target: str | None, values: dict[str, str]) -> None:
    bound = parse_use(LIBRARY.get(use.partition("(")[0]), use)
    assert (bound.target, dict(bound.values)) == (target, values)


@pytest.mark.parametrize(
    ("use", "message", "fix"),
    [
        ("VAL_SUBSET", "VAL_SUBSET needs of", "Write VAL_SUBSET([target], of)."),
        ("VAL_SUBSET(a, b, c)", "no further argument", "Write VAL_SUBSET"),
        ("VAL_INT_RANGE(mim=0)", "no parameter mim", "Did you mean min=?"),
        ("VAL_INT_RANGE(min='0')", "min is '0', of type str", "Give min a number"),
        ("VAL_INT_RANGE(min=True)", "min is True, of type bool", "Give min a number"),
        ("VAL_INT_RANGE(min=[0])", "min is [0], of type list", "Give min a number"),
        ("VAL_INT_RANGE(min=[x])", "min is [x], not number", "Give min a number"),
        ("VAL_RANK(2.0)", "of type float", "an int"),
        ("VAL_SORTED(strict=flag)", "known before the code runs", "Give strict True or False"),
        ("VAL_TYPE_CHECK(list[int])", "element types", "a class"),
        ("VAL_TYPE_CHECK(3)", "not a class", "a class"),
        ("VAL_MATCHES(x, pattern=3)", "of type int", "a string"),
        ("VAL_ONE_OF('ab')", "of type str", "a container"),
        ("VAL_EXACTLY_ONE(names)", "not a list or tuple written out", "written out"),
        ("VAL_EXACTLY_ONE((a, *b))", "starred", "written out"),
        ("VAL_OFF_LOOP(target=x)", "takes no target", "Write VAL_OFF_LOOP()."),
        ("VAL_NON_EMPTY(each=items)", "as a whole", "Leave each= out."),
        ("VAL_INT_RANGE(each=rows)", "each is rows", "items, keys, values or none"),
        ("VAL_INT_RANGE(error=make())", "not a name", "exception class"),
        ("VAL_INT_RANGE(**limits)", "**arguments", "by its name"),
        ("VAL_INT_RANGE(*limits)", "not an expression", "without side effects"),
        ("VAL_INT_RANGE(min=(n := 3))", "must not assign", "Write VAL_INT_RANGE"),
        ("VAL_INT_RANGE(min=await limit())", "await", "Write VAL_INT_RANGE"),
        ("VAL_INT_RANGE(min=1, min=2)", "min is given twice", "Keep one"),
        ("VAL_OTHER(min=1)", "does not use VAL_INT_RANGE", "Write VAL_INT_RANGE"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_the_fix(use: str, message: str, fix: str) -> None:
    id = use.partition("(")[0] if use.partition("(")[0] in LIBRARY else "VAL_INT_RANGE"
    with pytest.raises(BadArgument) as caught:
        parse_use(LIBRARY.get(id), use)
    assert message in caught.value.message
    assert fix in caught.value.fix


def test_each_true_means_items() -> None:
    assert parse_use(LIBRARY.get("VAL_POSITIVE"), "VAL_POSITIVE(each=True)").each == "items"


def test_a_signature_tells_what_is_required() -> None:
    assert signature(LIBRARY.get("VAL_TYPE_CHECK")) == "VAL_TYPE_CHECK([target], type, allow_bool=False)"


@given(st.text(alphabet="abx01()[]{}.,+-*= '\"\\\n#:not lambdforw", max_size=25))
@settings(deadline=None, derandomize=True, max_examples=400)
def test_any_argument_text_is_bound_to_one_expression_or_refused(text: str) -> None:
    try:
        bound = bind(LIBRARY.get("VAL_SUBSET"), ["ranks", text], {})
    except BadArgument:
        return
    kept = bound.values["of"]
    assert "\n" not in kept
    assert ast.dump(ast.parse(f"g({kept})")) == ast.dump(ast.parse(f"g({text}\n)"))
    assert len(ast.parse(f"g({kept})").body[0].value.args) == 1  # type: ignore[attr-defined]


@given(st.text(alphabet="ab12()[].+*-<= orandnt", max_size=20))
@settings(deadline=None, derandomize=True, max_examples=400)
def test_an_operand_keeps_its_meaning_beside_operators(text: str) -> None:
    try:
        node = parse(text)
    except BadSource:
        return
    text = tidy(text)
    compared = ast.parse(f"0 <= {operand(text)} <= 1", mode="eval").body
    assert isinstance(compared, ast.Compare) and len(compared.ops) == 2
    assert ast.dump(compared.comparators[0]) == ast.dump(node)
    dotted = ast.parse(f"{atom(text)}.shape", mode="eval").body
    assert isinstance(dotted, ast.Attribute) and ast.dump(dotted.value) == ast.dump(node)


@pytest.mark.parametrize("text", ["", " ", "a b", "a, b", "a)(b", "a) + f(b", "*a", "k=1", "x = 1", "yield", "a\x00b"])
def test_text_that_is_not_one_expression_is_refused(text: str) -> None:
    with pytest.raises(BadSource):
        parse(text)


@pytest.mark.parametrize(
    "text", ["-" * 1500 + "x", "x" + "+x" * 900, "(" * 190 + "x" + ")" * 190, "[" * 500, "x" * 9999]
)
def test_deep_and_long_expressions_are_refused_without_a_crash(text: str) -> None:
    if text.startswith("("):
        assert tidy(text)
        return
    with pytest.raises(BadSource):
        parse(text)


def test_comments_and_line_breaks_are_taken_out() -> None:
    assert tidy("[1,  # one\n 2]") == "[1, 2]"
    assert tidy(" {'a': 1} ") == "{'a': 1}"


def test_words_about_source() -> None:
    assert is_literal("(1, 'a', -2)") and not is_literal("(1, a)")
    assert is_simple("self.a[i].b") and not is_simple("f(x).b")
    assert elements("[a, (b, c), 'd']") == ["a", "(b, c)", "'d'"]
