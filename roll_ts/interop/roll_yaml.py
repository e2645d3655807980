"""Reads a YAML file of ROLL's agentic pipeline as ROLL itself would: Hydra's `defaults`, interpolations, device lists.

Nothing of the file is evaluated. ROLL evaluates `device_mapping` as Python; here it is parsed, and only lists, ranges
and their sums are understood.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_REFERENCE = re.compile(r"\$\{([^${}]+)\}")
_LARGEST = 100_000


class BadFile(ValueError):
    """The file, or a value of it, cannot be read; the message says which."""


@dataclass(frozen=True)
class RollFile:
    """A file as ROLL would see it. `own`: keys of the top level that the file itself gives; `referred`: those that a
    reference names; `absent`: files that its defaults name and that are not there."""

    data: dict[str, Any]
    own: frozenset[str]
    referred: frozenset[str]
    absent: tuple[str, ...]


def read_roll_yaml(path: Path) -> RollFile:
    """The file with its defaults below it and its references resolved. Raises BadFile.

    A reference to what is not in the files (`${now:…}`) stays as text; `${oc.env:NAME,default}` is its default.
    """
    absent: list[str] = []
    merged = _with_defaults(path, set(), absent)
    merged.pop("defaults", None)
    resolved = _resolved(merged, merged, ())
    referred = frozenset(name.split(".")[0] for name in _REFERENCE.findall(repr(merged)))
    return RollFile(dict(resolved), frozenset(_load(path)), referred, tuple(absent))


def devices_of(value: Any, where: str) -> tuple[int, ...]:
    """The devices that a `device_mapping` names. Raises BadFile for anything but lists and ranges of numbers.

    None is no device.
    """
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        return tuple(value)
    if not isinstance(value, str):  # unmanaged: refuses a file, not a call
        raise BadFile(f"{where} = {value!r:.60}: is no list of devices; write list(range(0, 8))")
    try:
        found = _devices(ast.parse(value.strip(), mode="eval").body)
    except (SyntaxError, _NotUnderstood) as error:
        raise BadFile(f"{where} = {value!r:.60}: only lists, range() and + are understood ({error})") from error
    repeated = sorted({device for device in found if found.count(device) > 1})
    if repeated:  # unmanaged: refuses a file, not a call
        raise BadFile(f"{where} = {value!r:.60}: names devices twice: {repeated}")
    return tuple(found)


class _NotUnderstood(ValueError):
    pass


def _devices(node: ast.expr) -> list[int]:
    match node:
        case ast.Constant(None):
            return []
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_number(item) for item in items]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _devices(left) + _devices(right)
        case ast.Call(func=ast.Name("list"), args=[inner], keywords=[]):
            return _devices(inner)
        case ast.Call(func=ast.Name("range"), args=bounds, keywords=[]) if 1 <= len(bounds) <= 3:
            numbers = range(*map(_number, bounds))
            if len(numbers) > _LARGEST:  # unmanaged: refuses a file, not a call
                raise _NotUnderstood(f"{len(numbers)} devices")
            return list(numbers)
    raise _NotUnderstood(ast.unparse(node))


def _number(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    raise _NotUnderstood(ast.unparse(node))


def _with_defaults(path: Path, seen: set[Path], absent: list[str]) -> dict[str, Any]:
    """The file on top of those that its `defaults` name; those that are not there are added to `absent`."""
    if path.resolve() in seen:  # unmanaged: refuses a file, not a call
        raise BadFile(f"{path}: its defaults lead back to it")
    data = _load(path)
    below: dict[str, Any] = {}
    for entry in data.get("defaults") or ():
        name = str(entry).partition("@")[0]
        if not isinstance(entry, str) or name == "_self_":
            continue
        other = (path.parent / name).with_suffix(".yaml")
        if not other.is_file():
            absent.append(name)
            continue
        below = _merged(below, _with_defaults(other, seen | {path.resolve()}, absent))
    return _merged(below, data)


def _load(path: Path) -> dict[str, Any]:
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadFile(f"{path}: cannot be read: {error}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):  # unmanaged: refuses a file, not a call
        raise BadFile(f"{path}: is no mapping of keys")
    return data


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(below)
    for key, value in above.items():
        old = found.get(key)
        found[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return found


def _resolved(value: Any, root: Mapping[str, Any], chain: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {key: _resolved(item, root, chain) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, root, chain) for item in value]
    if not isinstance(value, str):
        return value
    whole = _REFERENCE.fullmatch(value.strip())
    if whole:
        return _look_up(whole[1], root, chain, value)
    return _REFERENCE.sub(lambda found: str(_look_up(found[1], root, chain, found[0])), value)


def _look_up(name: str, root: Mapping[str, Any], chain: tuple[str, ...], as_written: str) -> Any:
    if name.startswith("oc.env:"):
        variable, _, default = name.removeprefix("oc.env:").partition(",")
        return os.environ.get(variable.strip(), default)
    if ":" in name:
        return as_written
    if name in chain:  # unmanaged: refuses a file, not a call
        raise BadFile(f"${{{name}}} leads back to itself: {' → '.join((*chain, name))}")
    found: Any = root
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:  # unmanaged: refuses a file, not a call
            raise BadFile(f"${{{name}}} is named and nowhere given")
        found = found[part]
    return _resolved(found, root, (*chain, name))
