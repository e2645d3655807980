"""What an environment says is converted where it can mean one thing only, and refused with a sentence where not."""

from __future__ import annotations

import os
from collections import UserDict
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from roll_ts.envs.answers import Answer, BadAnswer, read_reset, read_step

INFO = {"success": False}


def step(text: Any = "go on", reward: Any = 0.5, terminated: Any = False, truncated: Any = False, info: Any = INFO):
    return read_step((text, reward, terminated, truncated, info))


def test_an_answer_of_the_expected_types_is_taken_as_it_is():
    assert step() == Answer("go on", 0.5, False, False, False, ())
    assert read_reset(("begin", {"success": True})) == Answer("begin", success=True)


@pytest.mark.parametrize(
    ("reward", "expected"),
    [(np.float32(0.5), 0.5), (np.array(2), 2.0), (True, 1.0), (3, 3.0), (np.bool_(True), 1.0), (np.int64(-1), -1.0)],
)
def test_a_reward_of_a_number_type_is_a_plain_float(reward, expected):
    answer = step(reward=reward)
    assert type(answer.reward) is float
    assert answer.reward == expected


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), -np.inf, np.float32("nan"), 10**400])
def test_a_reward_that_is_not_finite_is_refused(reward):
    with pytest.raises(BadAnswer, match="finite"):
        step(reward=reward)


@pytest.mark.parametrize("reward", [None, "1.0", [1.0], np.array([1.0]), 1j, Decimal(1), {}])
def test_a_reward_that_is_no_number_is_refused(reward):
    with pytest.raises(BadAnswer, match="reward must be a number"):
        step(reward=reward)


@pytest.mark.parametrize(("value", "expected"), [(np.bool_(True), True), (1, True), (0, False), (np.int8(1), True)])
def test_a_truth_value_of_a_library_is_a_plain_bool(value, expected):
    answer = step(terminated=value, truncated=value, info={"success": value})
    assert (answer.terminated, answer.truncated, answer.success) == (expected,) * 3
    assert {type(x) for x in (answer.terminated, answer.truncated, answer.success)} == {bool}


@pytest.mark.parametrize("value", [None, "yes", 2, 0.5, [], np.array([True])])
def test_a_truth_value_that_may_mean_something_else_is_refused(value):
    with pytest.raises(BadAnswer, match="terminated must be bool"):
        step(terminated=value)


@pytest.mark.parametrize(("text", "expected"), [(b"caf\xc3\xa9", "café"), (7, "7"), (np.int64(7), "7"), (2.5, "2.5")])
def test_a_text_of_bytes_or_a_number_is_written_out_and_noted(text, expected):
    answer = step(text=text)
    assert answer.text == expected
    assert answer.converted


@pytest.mark.parametrize("text", [None, [], {"content": "x"}, b"\xff\xfe", object()])
def test_a_text_that_is_none_is_refused(text):
    with pytest.raises(BadAnswer, match="text must be str"):
        step(text=text)


def test_a_lone_surrogate_is_replaced_for_no_file_can_hold_it():
    answer = step(text=os.fsdecode(b"a\xffb"))
    assert answer.text == "a?b"
    assert answer.text.encode()
    assert "surrogates" in answer.converted[0]


@pytest.mark.parametrize("said", [None, "text", ("text", 1.0, True, {}), ("text", {}), 5])
def test_a_step_that_is_not_five_values_is_refused(said):
    with pytest.raises(BadAnswer, match=r"step must return \(text, reward, terminated, truncated, info\)"):
        read_step(said)


@pytest.mark.parametrize("said", ["prompt", None, ("prompt", INFO, 3)])
def test_a_reset_that_is_not_two_values_is_refused(said):
    with pytest.raises(BadAnswer, match=r"reset must return \(text, info\)"):
        read_reset(said)


@pytest.mark.parametrize("info", [None, [], "success", {}, {"succes": True}])
def test_an_info_without_a_verdict_is_refused(info):
    with pytest.raises(BadAnswer, match="success"):
        step(info=info)


def test_any_mapping_is_an_info():
    assert step(info=UserDict(success=True)).success
