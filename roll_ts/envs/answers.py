"""What an environment said, made into what a run can use: text, a finite reward, plain truth values.

Environments are other people's code and answer with what their libraries give them: numpy scalars, bytes, numbers. A
value that can mean one thing only is converted, and the conversion is noted, so that a report can show it. A value that
could mean two things, or nothing, is a `BadAnswer`: the episode is void, never a reward that nobody meant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RESET = "(text, info)"
STEP = "(text, reward, terminated, truncated, info)"


class BadAnswer(Exception):
    """The environment's answer cannot be used; the message says what came and what was expected."""


@dataclass(frozen=True)
class Answer:
    """One answer. `reward` is of this turn; `converted` names each value that was not of the expected type."""

    text: str
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    success: bool = False
    converted: tuple[str, ...] = ()


def read_reset(said: Any) -> Answer:
    """The answer of `reset`. Raises BadAnswer."""
    text, info = _fields(said, 2, "reset", RESET)
    notes: list[str] = []
    return Answer(_text(text, notes), success=_success(info, notes), converted=tuple(notes))


def read_step(said: Any) -> Answer:
    """The answer of `step`. Raises BadAnswer."""
    text, reward, terminated, truncated, info = _fields(said, 5, "step", STEP)
    notes: list[str] = []
    return Answer(
        _text(text, notes),
        _reward(reward, notes),
        _truth(terminated, "terminated", notes),
        _truth(truncated, "truncated", notes),
        _success(info, notes),
        tuple(notes),
    )


def _fields(said: Any, count: int, method: str, form: str) -> tuple[Any, ...]:
    if isinstance(said, tuple | list) and len(said) == count:
        return tuple(said)
    got = f"{len(said)} values" if isinstance(said, tuple | list) else _show(said)
    raise BadAnswer(f"{method} must return {form}, got {got}")


def _text(value: Any, notes: list[str]) -> str:
    value = _scalar(value, "text", notes)
    if isinstance(value, bytes | bytearray):
        notes.append(f"text: {type(value).__name__} read as UTF-8")
        try:
            value = bytes(value).decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadAnswer(f"the text must be str, got bytes that are not UTF-8 ({error.reason})") from error
    elif isinstance(value, int | float):
        notes.append(f"text: {type(value).__name__} written out")
        value = str(value)
    if not isinstance(value, str):  # unmanaged: refuses an answer, not a call
        raise BadAnswer(f"the text must be str, got {_show(value)}")
    # A lone surrogate (from os.fsdecode, say) is no character: no tokenizer and no file can express it.
    clean = value.encode("utf-8", "replace").decode("utf-8")
    if clean != value:
        notes.append("text: lone surrogates replaced")
    return clean


def _reward(value: Any, notes: list[str]) -> float:
    value = _scalar(value, "reward", notes)
    if not isinstance(value, int | float):  # unmanaged: refuses an answer, not a call
        raise BadAnswer(f"the reward must be a number, got {_show(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):  # unmanaged: refuses an answer, not a call
        raise BadAnswer(f"the reward must be finite, got {value!r:.60}")
    return number


def _truth(value: Any, name: str, notes: list[str]) -> bool:
    value = _scalar(value, name, notes)
    # 0 and 1 are how C libraries say it; any other number is more likely a value in the wrong place of the tuple.
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise BadAnswer(f"{name} must be bool, got {_show(value)}")


def _success(info: Any, notes: list[str]) -> bool:
    if not isinstance(info, Mapping):  # unmanaged: refuses an answer, not a call
        raise BadAnswer(f"info must be a mapping with the key 'success', got {_show(info)}")
    if "success" not in info:  # unmanaged: refuses an answer, not a call
        raise BadAnswer(f"info must have the key 'success', got the keys {sorted(map(str, info))!r:.80}")
    return _truth(info["success"], "info['success']", notes)


def _scalar(value: Any, name: str, notes: list[str]) -> Any:
    """A numpy or torch scalar as Python's own; anything else as it is."""
    if getattr(value, "shape", None) == () and callable(getattr(value, "item", None)):
        notes.append(f"{name}: {type(value).__module__.split('.')[0]}.{type(value).__name__} as a plain value")
        return value.item()
    return value


def _show(value: Any) -> str:
    return "None" if value is None else f"{type(value).__name__} {value!r:.60}"
