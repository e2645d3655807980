"""The strict YAML reader: what it accepts, what it refuses, and where it says the problem is."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.patterns.yaml_source import YamlError, read_yaml


@pytest.mark.parametrize(
    "scalar",
    ["NO", "no", "Yes", "on", "OFF", "y", "N", "True", "NULL", "~", "12:30", "1:2:3", "0777", "0o17", "0x1F", "0b11",
     "1_000", "1e3", "1.5e3", "5.", ".5", ".inf", "-.INF", ".nan", "2024-01-01", "2024-1-1 10:00:00", "="],
)  # fmt: skip
def test_a_scalar_that_yaml_versions_read_differently_has_to_be_quoted(scalar: str) -> None:
    with pytest.raises(YamlError) as caught:
        read_yaml(f"name: x\nvalue: {scalar}\n")
    assert (caught.value.line, caught.value.column) == (2, 8)
    assert caught.value.fix == f'Quote it: "{scalar}".'
    assert read_yaml(f'value: "{scalar}"').plain() == {"value": scalar}
    assert read_yaml(f"value: '{scalar}'").plain() == {"value": scalar}


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("-3", -3), ("0", 0), ("1.5", 1.5), ("true", True), ("false", False), ("null", None), ("", None),
     ("gpu = 8", "gpu = 8"), ("1.2.3", "1.2.3"), ("e3", "e3"), ("12-13", "12-13"), ("nothing", "nothing")],
)  # fmt: skip
def test_other_scalars_are_read_as_both_versions_read_them(text: str, value: object) -> None:
    assert read_yaml(f"value: {text}").plain() == {"value": value}


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("a: 1\nb: 2\na: 3\n", "duplicate key 'a', first on line 1", 3, 1),
        ("x:\n  - {k: 1, k: 2}\n", "duplicate key 'k'", 2, 12),
        ("a: &x 1\nb: *x\n", "anchor &x", 1, 4),
        ("a: *x\n", "alias *x", 1, 4),
        ("a: !!python/object:os.system x\n", "tag", 1, 4),
        ("a: 1\n---\nb: 2\n", "second document", 2, 1),
        ("%YAML 1.1\n---\na: b\n", "directive", 1, 1),
        ("? [a]\n: b\n", "is not text", 1, 3),
        ("1: b\n", "is not text", 1, 1),
        ("a:\n\tb\n", "cannot start any token", 2, 1),
        ("a: 'x\n", "quoted scalar", 2, 1),
        ("", "empty", 1, 1),
        ("a: b\x01\n", "not allowed", 1, 1),
        ("a: " + "[" * 40 + "]" * 40, "nested deeper", 1, 16),
        ("a: " + "9" * 5000, "more than 30 digits", 1, 4),
    ],
)
def test_what_is_refused_has_its_line_and_column(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(YamlError) as caught:
        read_yaml(text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_huge_file_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(YamlError, match="larger than"):
        read_yaml("a: " + "x" * 300_000)


def test_brackets_without_end_are_refused() -> None:
    with pytest.raises(YamlError):
        read_yaml("[" * 20_000)


def test_each_value_and_key_knows_its_place() -> None:
    tree = read_yaml("a: 1\nb:\n  - x\n  - {c: z}\n")
    found = tree.find(("b", 1, "c"))
    assert (found.value, found.line, found.column) == ("z", 4, 9)
    assert tree.keys["b"] == (2, 1)
    assert tree.find(("b", 7)) is tree.value["b"]


_plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(_plain)
@settings(deadline=None, derandomize=True, max_examples=80)
def test_what_pyyaml_writes_is_read_back_when_text_is_quoted(value: object) -> None:
    text = yaml.safe_dump({"value": value}, allow_unicode=True, default_style='"')
    try:
        read = read_yaml(_untagged(text)).plain()
    except YamlError as error:
        assert "not allowed" in error.message or "nested deeper" in error.message
        return
    assert read == {"value": _as_text(value)}


def _untagged(text: str) -> str:
    for tag in ("!!null ", "!!bool ", "!!int "):
        text = text.replace(tag, "")
    return text


def _as_text(value: object) -> object:
    """What quoting everything makes of a value."""
    if isinstance(value, dict):
        return {key: _as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value
