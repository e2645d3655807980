"""Reads YAML into frozen dataclasses and tells everything that is wrong, not only the first thing.

The dataclasses are the schema: field names are the allowed keys, annotations the allowed values, fields without a
default are required. Each mistake becomes a `Problem` with its dotted key. Two traps of YAML are closed: a key given
twice in one mapping is a problem, and `1e-3` is a number.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, NoReturn, TypeVar, Union

import yaml

from roll_ts.core.settings import Problem

T = TypeVar("T")

_GUESSES = range(3)
_TOP = "(top)"
_SHOWN = 60


class _Loader(yaml.SafeLoader):
    """Safe YAML with numbers like 1e-3, with a memory of keys that came twice, and with a line in every error."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.doubled: list[tuple[str, int, int]] = []

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=True)  # deep: a node that contains itself is refused
        except (ValueError, LookupError, AttributeError) as error:  # what constructors of scalars let through
            wrong = f"{str(node.value)[:_SHOWN]!r} is no value of its kind ({error})"
            raise yaml.constructor.ConstructorError(None, None, wrong, node.start_mark) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        first: dict[Any, int] = {}
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if first.setdefault(str(key), line) != line:
                self.doubled.append((str(key), first[str(key)], line))
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+0123456789."),
)


def parse_yaml(text: str, where: str) -> tuple[Any, list[Problem]]:
    """The plain data of `text`, and what is wrong with it as YAML. `where` names the source in the problems."""
    try:
        loader = _Loader(text)
        try:
            data = loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}:{mark.line + 1}" if mark else where
        said = getattr(error, "problem", None) or str(error).partition("\n")[0]
        return None, [Problem(place, "", f"is not YAML: {said}", "correct the syntax at this line")]
    except RecursionError:
        return None, [Problem(where, "", "is nested too deeply", "close the brackets that are open")]
    return data, [
        Problem(key, f"lines {one} and {two}", "is given twice; YAML would silently keep the last", "keep one of them")
        for key, one, two in loader.doubled
    ]


def read_checked(schema: type[T], data: Any, check: Callable[[T], list[Problem]]) -> tuple[T, list[Problem]]:
    """`data` as a `schema`, and every problem: those met while reading, and those `check` finds in what could be read.

    What could not be read is guessed for `check`, in several ways; a finding that depends on the guess is left out, and
    so is one about a key that has been reported already.
    """
    reader = _Reader(0)
    value = reader.read(schema, data, "")
    found = check(value)
    if reader.problems:
        others = [set(check(_Reader(guess).read(schema, data, ""))) for guess in _GUESSES[1:]]
        reported = tuple(problem.key for problem in reader.problems)
        found = [p for p in found if all(p in other for other in others) and not _is_reported(p.key, reported)]
    return value, reader.problems + found


def _is_reported(key: str, reported: tuple[str, ...]) -> bool:
    return _TOP in reported or any(key == k or key.startswith((f"{k}.", f"{k}[")) for k in reported)


class _Unusable(Exception):
    """The value at this place cannot be used; its problem is noted."""


class _Reader:
    """Builds dataclasses from plain data; `problems` collects what is wrong on the way. A bad value is replaced by the
    field's default, or, where there is none, by the `guess`-th stand-in of its type."""

    def __init__(self, guess: int) -> None:
        self.problems: list[Problem] = []
        self._guess = guess

    def read(self, schema: Any, data: Any, key: str) -> Any:
        """`data` as a value of `schema`."""
        try:
            return self._read(schema, data, key)
        except _Unusable:
            return _stand_in(schema, self._guess)

    def _read(self, schema: Any, data: Any, key: str) -> Any:
        if dataclasses.is_dataclass(schema):
            return self._dataclass(schema, data, key)
        origin, inner = typing.get_origin(schema), typing.get_args(schema)
        if origin in (Union, types.UnionType):
            return None if data is None else self._read(next(a for a in inner if a is not type(None)), data, key)
        if origin is Literal:
            return self._choice(inner, data, key)
        if origin is tuple:
            return self._list(inner[0], data, key)
        if origin is Mapping or origin is dict:
            return self._mapping(inner[1], data, key)
        return self._scalar(schema, data, key)

    def _note(self, key: str, value: Any, wrong: str, fix: str) -> None:
        shown = "" if value is dataclasses.MISSING else repr(value)
        self.problems.append(Problem(key, shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…", wrong, fix))

    def _refuse(self, key: str, value: Any, wrong: str, fix: str) -> NoReturn:
        self._note(key, value, wrong, fix)
        raise _Unusable

    def _dataclass(self, schema: Any, data: Any, key: str) -> Any:
        if not isinstance(data, Mapping):
            self._refuse(key or _TOP, data, "must be a mapping of keys to values", "indent its keys below it")
        hints = typing.get_type_hints(schema)
        fields = {f.name: f for f in dataclasses.fields(schema) if f.init}
        for name in data:
            if name not in fields:
                near = difflib.get_close_matches(str(name), fields, n=1)
                fix = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(fields)}"
                self._note(_join(key, name), data[name], "is not a known key", fix)
        return schema(**{name: self._field(spec, hints[name], data, _join(key, name)) for name, spec in fields.items()})

    def _field(self, spec: dataclasses.Field[Any], schema: Any, data: Mapping[str, Any], key: str) -> Any:
        default = spec.default
        if default is dataclasses.MISSING and spec.default_factory is not dataclasses.MISSING:
            default = spec.default_factory()
        if spec.name not in data:
            if default is not dataclasses.MISSING:
                return default
            self._note(key, dataclasses.MISSING, "is missing", f"add {spec.name}: {_example(schema)}")
            return _stand_in(schema, self._guess)
        if default is dataclasses.MISSING:
            return self.read(schema, data[spec.name], key)
        try:
            return self._read(schema, data[spec.name], key)
        except _Unusable:
            return default

    def _choice(self, allowed: tuple[Any, ...], data: Any, key: str) -> Any:
        if data in allowed and type(data) in {type(a) for a in allowed}:
            return data
        near = difflib.get_close_matches(str(data), [str(a) for a in allowed], n=1)
        fix = f"did you mean {near[0]!r}?" if near else "choose one of them"
        self._refuse(key, data, f"is none of {', '.join(map(str, allowed))}", fix)

    def _list(self, item: Any, data: Any, key: str) -> Any:
        if not isinstance(data, list | tuple):
            fix = "write it in [ ]" if isinstance(data, Mapping) else f"write [{data}]"
            self._refuse(key, data, "must be a list", fix)
        return tuple(self._read(item, value, f"{key}[{i}]") for i, value in enumerate(data))

    def _mapping(self, value: Any, data: Any, key: str) -> Any:
        if not isinstance(data, Mapping):
            self._refuse(key, data, "must be a mapping of keys to values", "indent its keys below it")
        return {str(name): self._read(value, item, _join(key, name)) for name, item in data.items()}

    def _scalar(self, schema: Any, data: Any, key: str) -> Any:
        if schema is Any:
            return data
        if schema is float and isinstance(data, int) and not isinstance(data, bool):
            return float(data)
        if schema is float and isinstance(data, float) and not math.isfinite(data):
            self._refuse(key, data, "is not a finite number", "give a finite number")
        if isinstance(data, schema) and (schema is bool or not isinstance(data, bool)):
            return data
        hint = "put it in quotes" if schema is str else f"write it like {_example(schema)}"
        if isinstance(data, bool) and schema is str:
            hint += " (YAML reads yes, no, on and off as true and false)"
        self._refuse(key, data, f"must be {_NAMES[schema]}", hint)


_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
_EXAMPLES = {int: "8", float: "0.5", str: "name", bool: "true"}


def _example(schema: Any) -> str:
    if typing.get_origin(schema) is Literal:
        return str(typing.get_args(schema)[0])
    return _EXAMPLES.get(schema, "…")


def _stand_in(schema: Any, guess: int) -> Any:
    """Some value of the type, a different one for each of the guesses where the type has so many."""
    if dataclasses.is_dataclass(schema):
        hints = typing.get_type_hints(schema)
        required = [
            f.name
            for f in dataclasses.fields(schema)
            if f.init and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        ]
        return schema(**{name: _stand_in(hints[name], guess) for name in required})  # type: ignore[operator]
    origin = typing.get_origin(schema)
    if origin is Literal:
        allowed = typing.get_args(schema)
        return allowed[guess % len(allowed)]
    if origin in (Union, types.UnionType):
        return None
    if origin is tuple:
        return (_stand_in(typing.get_args(schema)[0], guess),) if guess else ()
    if origin in (Mapping, dict):
        return {}
    return {int: (0, 1, 1 << 16), float: (0.0, 1.0, 1e6), bool: (False, True, False), str: ("", "a", "b")}[schema][
        guess
    ]


def _join(key: str, name: Any) -> str:
    return f"{key}.{name}" if key else str(name)
