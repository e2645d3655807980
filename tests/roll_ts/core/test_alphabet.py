"""The alphabet survives JSON exactly."""

from __future__ import annotations

import dataclasses
import json

import pytest

from roll_ts.core import alphabet as a

VALUES = {
    "int": 7,
    "float": 0.1 + 0.2,
    "str": "x",
    "bool": True,
    "int | None": None,
    "float | None": 1 / 3,
    "str | None": "rank 1",
    "AttemptId": a.AttemptId(1, 2, 3),
    "tuple[int, ...]": (0, 2),
    "tuple[str, ...]": ("rank:1", "trainer"),
    "tuple[Assignment, ...]": (a.Assignment(1, 0, 9),),
    "dict[str, float]": {"loss": 1e-17},
}


@pytest.mark.parametrize("message", [*a.EVENTS.values(), *a.COMMANDS.values()], ids=lambda cls: cls.__name__)
def test_every_word_survives_json_to_the_last_digit(message):
    word = message(**{field.name: VALUES[field.type] for field in dataclasses.fields(message)})
    assert a.decode(json.loads(json.dumps(a.encode(word)))) == word


def test_an_unknown_word_is_refused():
    with pytest.raises(KeyError, match="Sing"):
        a.decode({"type": "Sing"})
