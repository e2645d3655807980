"""Schema checks with places, compared with a full JSON Schema implementation."""

from __future__ import annotations

import json

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.patterns.files import shipped_folder
from codegen.patterns.json_schema import violations
from codegen.patterns.yaml_source import Located, read_yaml

SCHEMA = json.loads((shipped_folder() / "schema.json").read_text(encoding="utf-8"))

WHOLE = jsonschema.Draft202012Validator(SCHEMA)
EXAMPLES = jsonschema.Draft202012Validator(SCHEMA["properties"]["examples"])


def _located(value: object) -> Located:
    if isinstance(value, dict):
        return Located({k: _located(v) for k, v in value.items()}, 1, 1, dict.fromkeys(value, (1, 1)))
    if isinstance(value, list):
        return Located([_located(v) for v in value], 1, 1)
    return Located(value, 1, 1)


def test_the_shipped_schema_is_valid_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


_names = st.sampled_from([*sorted(SCHEMA["properties"]), "extra"])
_words = ["VAL_X", "VAL", "0.1", "", "none", "items", "O(1)", "import os", "here", "a text of some length"]
_keys = ["name", "type", "use", "passes", "raises", "positional", "z"]
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats(0, 2, allow_nan=False) | st.sampled_from(_words),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(_keys), inner, max_size=3),
    max_leaves=6,
)
_files = st.dictionaries(_names, _values, max_size=6)


@given(_files)
@settings(deadline=None, derandomize=True, max_examples=150)
def test_a_file_is_refused_exactly_when_a_full_validator_refuses_it(value: dict) -> None:
    ours = bool(list(violations(_located(value), SCHEMA)))
    assert ours == (not WHOLE.is_valid(value))


@given(_values)
@settings(deadline=None, derandomize=True, max_examples=100)
def test_an_example_is_refused_exactly_when_a_full_validator_refuses_it(value: object) -> None:
    ours = bool(list(violations(_located([value]), EXAMPLES.schema)))
    assert ours == (not EXAMPLES.is_valid([value]))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("id: VAL_A\nversion: 1\nsince: 0.1\n", 3, "since must be a string, not a number"),
        ("id: VAL_A\nversion: 0\n", 2, "version is 0; it must be at least 1"),
        ("id: val_a\n", 1, "id is 'val_a'; it must match"),
        ("id: VAL_A\nplacment: here\n", 2, "unknown key 'placment'"),
        ("id: VAL_A\nplacement: there\n", 2, "must be one of here, on_entry, on_return, wrap"),
        ("id: VAL_A\nparameters:\n  - name: a\n    typ: int\n", 4, "parameters[0] has an unknown key 'typ'"),
        ("id: VAL_A\nexamples: []\n", 2, "examples needs at least 1 entries"),
        ("id: VAL_A\n", 1, "the file has no 'version'"),
        ("id: VAL_A\nelementwise: 1\n", 2, "elementwise must be a boolean, not an integer"),
        ("- a\n", 1, "the file must be an object, not an array"),
    ],
)
def test_a_violation_names_the_key_and_the_line(text: str, line: int, message: str) -> None:
    found = [(v.line, v.message) for v in violations(read_yaml(text), SCHEMA)]
    assert any(at == line and message in said for at, said in found), found


def test_a_number_where_text_is_wanted_is_to_be_quoted() -> None:
    found = list(violations(read_yaml("since: 0.1"), SCHEMA))
    assert 'Quote it: "0.1".' in [v.fix for v in found]


def test_a_schema_with_a_keyword_that_is_not_covered_is_refused() -> None:
    with pytest.raises(ValueError, match="oneOf"):
        list(violations(read_yaml("a"), {"oneOf": []}))
