"""Whether a message that was read back holds what its annotations say: JSON keeps no types, and journals get edited."""

from __future__ import annotations

import types
import typing
from functools import cache
from typing import Any


def misfit(message: Any) -> str:
    """The first field of a dataclass or named tuple whose value is not of its type, with both; empty if all fit."""
    for name, hint in _hints(message.__class__).items():
        value = getattr(message, name)
        if not _fits(value, hint):
            return f"{type(message).__name__}.{name} must be {getattr(hint, '__name__', hint)}, got {value!r:.200}"
    return ""


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _fits(value: Any, hint: Any) -> bool:
    if hint in (int, float, str, bool, type(None)):
        return isinstance(value, int | float if hint is float else hint)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, one) for one in inner)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(item, inner[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(item, inner[1]) for item in value.values())
    return isinstance(value, hint) and not misfit(value)
