"""Rendering: golden texts, hygiene, messages, and behaviour at hard targets."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.patterns import Bound, RenderError, Site, load_library, parse_use, render
from codegen.patterns.messages import Field, lines, source
from codegen.patterns.model import Pattern

LIBRARY = load_library()


def rendered(use: str, **site: Any) -> str:
    """The code of an annotation; the target is the one it names unless the site gives another."""
    pattern = LIBRARY.get(use.partition("(")[0])
    bound = parse_use(pattern, use)
    if pattern.target == "expression":
        site = {"expression": bound.target} | site
    elif bound.target is not None:
        site = {"target": bound.target, "label": bound.target} | site
    return render(pattern, bound, Site(**site))


def test_a_range_over_a_list_is_a_loop() -> None:
    code = rendered("VAL_INT_RANGE(target_gpus, min=0, max=7)", function="shrink_sampler", each="items")
    assert code == (
        "for _gpu in target_gpus:\n"
        "    if not 0 <= _gpu <= 7:\n"
        '        raise ValueError(f"shrink_sampler: target_gpus must lie in [0, 7], got {_gpu!r}")\n'
    )


def test_a_postcondition_on_a_length_is_an_assert_about_emptiness() -> None:
    code = rendered("AST_POSTCONDITION(len(offload_ranks) > 0)", function="shrink_sampler")
    expected = 'assert len(offload_ranks) > 0, f"Post-condition: offload_ranks not empty, got {offload_ranks}"\n'
    assert code == expected


def test_a_long_message_is_split_between_words_and_means_the_same() -> None:
    use = "VAL_SUBSET(self.scheduler.target_ranks, of=self.scheduler.known_ranks)"
    short, long = rendered(use, function="shrink", width=70), rendered(use, function="shrink", width=1000)
    assert ast.dump(ast.parse(short)) == ast.dump(ast.parse(long))
    assert max(map(len, short.splitlines()[1:])) <= 70 < max(map(len, long.splitlines()))
    assert short.splitlines()[2:4] == [
        "    raise ValueError(",
        '        "shrink: self.scheduler.target_ranks must be a subset of "',
    ]


def test_a_target_with_a_call_is_evaluated_once() -> None:
    calls: list[int] = []

    def ranks() -> list[int]:
        calls.append(1)
        return []

    with pytest.raises(ValueError, match=r"^ranks\(\) must not be empty, got \[\]$"):
        exec(rendered("VAL_NON_EMPTY(ranks())"), {"ranks": ranks})
    assert calls == [1]


@pytest.mark.parametrize(
    "target", ['d["a\'b"]', "d['{x}']", 'd["\\n"]', "d['#']", "x or y", "(x, y)[0]", "not x", "-x", "[*x]"]
)
@pytest.mark.parametrize("each", ["none", "items"])
def test_any_target_gives_code_that_parses_and_a_message_that_names_it(target: str, each: str) -> None:
    code = rendered("VAL_POSITIVE", target=target, label=target, function="f", each=each)
    tree = ast.parse(code)
    raised = next(node for node in ast.walk(tree) if isinstance(node, ast.Raise))
    assert isinstance(raised.exc, ast.Call)
    message = raised.exc.args[0]
    text = "".join(
        node.value for node in ast.walk(message) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    assert target in text.replace("{{", "{").replace("}}", "}")


def test_values_in_messages_are_cut() -> None:
    with pytest.raises(ValueError) as caught:
        exec(rendered("VAL_ONE_OF(mode, (1, 2))"), {"mode": "x" * 100_000})
    assert len(str(caught.value)) < 300


def test_fresh_names_come_from_the_site_and_stay_the_same_within_a_check() -> None:
    taken = {"_extra"}

    def fresh(stem: str) -> str:
        name = f"_{stem}"
        while name in taken:
            name += "x"
        taken.add(name)
        return name

    code = rendered("VAL_SUBSET(ranks, known)", fresh=fresh)
    assert {n.id for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Name) and n.id.startswith("_")} == {"_extrax"}


@pytest.mark.parametrize(
    ("label", "stem"),
    [("target_gpus", "_gpu"), ("self.batches", "_batch"), ("entries", "_entry"), ("indices", "_index"),
     ("data", "_item"), ("loss", "_item"), ("x2s", "_x2"), ("boxes", "_box"), ("d['k']", "_item")],
)  # fmt: skip
def test_the_loop_variable_is_named_after_the_elements(label: str, stem: str) -> None:
    assert rendered("VAL_POSITIVE", target=label, label=label, each="items").startswith(f"for {stem} in ")


def test_keys_and_values_are_looped_over() -> None:
    assert rendered("VAL_POSITIVE(loads)", each="values").startswith("for _load in loads.values():\n")
    assert rendered("VAL_POSITIVE(loads)", each="keys").startswith("for _key in loads:\n")


def test_tabs_indent_where_the_file_uses_them() -> None:
    assert "\n\tif not _size > 0:\n\t\traise" in rendered("VAL_POSITIVE(sizes)", each="items", indent_unit="\t")


def test_a_named_error_replaces_the_patterns_own() -> None:
    assert "raise errors.Illegal(" in rendered("VAL_STATE_IN(state, (1,), error=errors.Illegal)")
    code = rendered("AST_INVARIANT(a or b, error=errors.Lost)")
    assert code == 'if not (a or b):\n    raise errors.Lost(f"Invariant: a or b, got a={a!r:.200}, b={b!r:.200}")\n'


@pytest.mark.parametrize(
    ("claim", "test"),
    [
        ("not busy", "busy"), ("not (a or b)", "(a or b)"), ("not not a", "not a"), ("(not a)", "a"),
        ("not a or b", "a and not b"), ("a == b", "a != b"), ("a != b", "a == b"),
        ("not a < b", "a < b"), ("not(a)", "(a)"),
        ("a is None", "a is not None"), ("a.b is not None", "a.b is None"),
        ("a in ('x', \"y\")", "a not in ('x', \"y\")"),
        ("(a or b) not in c", "(a or b) in c"), ("a is b is c", "not a is b is c"), ("a <= b", "not a <= b"),
        ("(a) is (b == c)", "a is not (b == c)"), ("a in b and c", "a not in b or not c"), ("a or b", "not (a or b)"),
        ("not a or (b and c)", "a and not (b and c)"),
        ("a is None or (b == c or not d)", "a is not None and (b != c and d)"),
    ],
)  # fmt: skip
def test_a_claim_that_is_a_negation_is_not_negated_twice(claim: str, test: str) -> None:
    assert rendered(f"AST_INVARIANT({claim}, error=OSError)").startswith(f"if {test}:\n")


def test_claims_can_be_rendered_to_stay_under_dash_o() -> None:
    assert rendered("AST_INVARIANT(a > 0)", ast_mode="raise").startswith("if not a > 0:\n    raise AssertionError(")


def test_result_and_old_are_called_so_in_messages() -> None:
    code = rendered("AST_ENSURES(result > old_x)", result="_r", old={"self.x": "old_x"})
    message = "".join(
        n.value for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    )
    assert "result > old(self.x), got result=" in message and "old(self.x)=" in message and "_r" not in message
    other = rendered("VAL_SUBSET(ranks, of=_old)", old={"self.ranks": "_old"}, width=500)
    assert "subset of old(self.ranks), but" in other


def test_a_wrapping_pattern_encloses_its_statement() -> None:
    code = rendered("VAL_DEADLINE(5, waiting_for='x')", body="y = (\n    await z()\n)")
    assert "        y = (\n            await z()\n        )\n" in code
    with pytest.raises(RenderError, match="encloses"):
        rendered("VAL_DEADLINE(5, waiting_for='x')")


def test_a_site_that_lacks_the_target_is_an_error() -> None:
    with pytest.raises(RenderError, match="needs a target"):
        rendered("VAL_POSITIVE")
    with pytest.raises(RenderError, match="needs an expression"):
        rendered("AST_INVARIANT")
    with pytest.raises(RenderError, match="not an expression"):
        rendered("VAL_POSITIVE", target="a b")


def said(use: str, names: dict[str, Any], **site: Any) -> str:
    """The message of the error that the check raises."""
    with pytest.raises(Exception) as caught:
        exec(rendered(use, **site), names)
    return str(caught.value.args[0])


@pytest.mark.parametrize(
    ("use", "message"),
    [
        ("VAL_POSITIVE(size)", "f: size must be positive, got -3"),
        ("VAL_SUBSET(ranks, (1, 2))", "f: ranks must be a subset of (1, 2), but has [5] outside (1, 2)"),
        ("VAL_EMPTY({**{'{': 1}})", "f: {**{'{': 1}} must be empty, got {'{': 1}"),
        ("AST_INVARIANT(size > 0)", "Invariant: size > 0, got size=-3"),
        ("AST_POSTCONDITION(len(none) > 0)", "Post-condition: none not empty, got []"),
        ("AST_INVARIANT(size > 0, error=KeyError)", "Invariant: size > 0, got size=-3"),
        ("AST_MONOTONIC(size, 0)", "Monotonic: size must not fall from 0, got -3"),
        ("AST_UNREACHABLE(size)", "f: Unreachable, got size=-3"),
        ("AST_UNREACHABLE", "f: Unreachable"),
    ],
)
def test_the_note_is_the_last_part_of_every_message(use: str, message: str) -> None:
    names = {"size": -3, "ranks": [5], "none": []}
    assert said(use, names, function="f") == message
    assert said(use, names, function="f", note='see {it}: "a"') == f'{message} - see {{it}}: "a"'
    assert said(
        f"{use.removesuffix(')')}{', ' if '(' in use else '('}about=size)", names, function="f", note="see"
    ) == (f"{message} (size=-3) - see")


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",)), min_size=1), st.integers(20, 200))
@settings(deadline=None, derandomize=True, max_examples=200)
def test_a_note_reaches_the_message_as_it_is_written(note: str, width: int) -> None:
    for use in ("VAL_POSITIVE(size)", "AST_UNREACHABLE", "VAL_EMPTY({'a': '\\n'})"):
        plain = said(use, {"size": 0}, width=width)
        assert said(use, {"size": 0}, width=width, note=note) == f"{plain} - {note}"


def test_what_a_message_is_about_is_read_when_it_fails_and_only_then() -> None:
    names: dict[str, Any] = {"size": 1}
    exec(rendered("VAL_POSITIVE(size, about=(rank, path))"), names)
    names |= {"size": 0, "rank": 3, "path": "a/b"}
    assert said("VAL_POSITIVE(size, about=(rank, path))", names) == (
        "size must be positive, got 0 (rank=3, path='a/b')"
    )
    assert said("VAL_POSITIVE(sizes, about=rank)", {"sizes": [1, 0], "rank": 3}, each="items").endswith("0 (rank=3)")
    assert said("AST_INVARIANT(size, about=path.upper())", names) == ("Invariant: size, got 0 (path.upper()='A/B')")


def test_a_note_that_names_the_result_is_not_reworded() -> None:
    message = said("AST_ENSURES(result > 0)", {"_r": 0}, result="_r", note="_r and result")
    assert message == "Post-condition: result > 0, got result=0 - _r and result"


def test_a_template_that_gives_no_python_is_an_error_of_the_pattern() -> None:
    broken = Pattern(id="VAL_BROKEN", tag="VAL", summary="", message="m", template="if {{ target }}")
    with pytest.raises(RenderError, match="VAL_BROKEN does not render to Python"):
        render(broken, Bound({}, "x"), Site(target="x"))
    empty = Pattern(id="VAL_EMPTY", tag="VAL", summary="", message="m", template="# {{ target }}")
    with pytest.raises(RenderError, match="VAL_EMPTY renders to nothing"):
        render(empty, Bound({}, "x"), Site(target="x"))


_value = st.sampled_from(
    ["name", "name.upper()", "d['k']", 'd["k"]', "{1, 2}", "{1: 2}[1]", "lambda: 0", "a if b else c", "f'{name}'"]
)
_part = st.one_of(st.text(max_size=12), st.builds(Field, _value, st.sampled_from(["!r", "!r:.200", "", "!s:.5"])))


@given(st.lists(_part, max_size=6), st.integers(1, 60))
@settings(deadline=None, derandomize=True, max_examples=300)
def test_a_message_says_exactly_its_text_and_values_however_it_is_split(parts: list[Any], width: int) -> None:
    parts = [part for part in parts if part != ""] or ["empty"]
    names = {"name": "n{}", "d": {"k": "v"}, "a": 1, "b": 0, "c": "see"}
    expected = ""
    for part in parts:
        if isinstance(part, str):
            expected += part
        elif "lambda" in part.source:
            return
        else:
            expected += ("{" + part.conversion + "}").format(eval(part.source, dict(names)))
    assert eval(source(parts), dict(names)) == expected
    assert eval("(" + "\n".join(lines(parts, width)) + "\n)", dict(names)) == expected
