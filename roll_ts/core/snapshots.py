"""The whole state of a scheduler as plain data, and back (R27, R28).

What is saved is the graph of the core's own objects, every attribute of each: nothing can be forgotten that a later
change adds. `schema` names each class with its attributes; a state is restored only into the same classes.

Form: {"format", "schema": {class: [attribute]}, "policy": name, "root": value, "objects": [object]}. A value is null, a
bool, a number, a text, or one of {"ref": i} (objects[i]), {"enum": class, "is": value}, {"float": "inf"},
{"frozenset": [...]}, {"method": value, "name"}. An object is {"tuple"|"list"|"set"|"deque": [...]}, {"named": class,
"of": [...]}, {"dict": [[key, value]], "class"} or {"class", "has": {attribute: value}}. Tuples are objects, because a
queue may know its entry by identity.
"""

from __future__ import annotations

import importlib
import math
import types
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from enum import Enum
from typing import Any

FORMAT = 1
_DICTS: dict[str, type] = {"dict": dict, "Counter": Counter, "OrderedDict": OrderedDict}


class SnapshotError(ValueError):
    """The state cannot be saved, or what was saved does not fit; the message says which class and why."""


def save(root: Any, policy: type) -> dict[str, Any]:
    """The object graph from `root` on. Raises SnapshotError for an object of a class that is neither the core's nor
    `policy`."""
    writer = _Writer(policy)
    value = writer.value(root)
    return {"format": FORMAT, "schema": writer.schema, "root": value, "objects": writer.objects}


def restore(saved: dict[str, Any], policy: type, schema: dict[str, list[str]]) -> Any:
    """The root of the graph. `schema` is that of a fresh one. Raises SnapshotError for another format or class, and for
    what is no saved state."""
    found = saved.get("format") if isinstance(saved, dict) else None
    # VAL: VAL_EQUAL(found, FORMAT, error=SnapshotError) - no saved state that this version can read
    if found != FORMAT:
        raise SnapshotError(
            f"restore: found must equal FORMAT ({FORMAT!r:.200}), got {found!r:.200} - no saved state "
            "that this version can read"
        )
    # END VAL a2bc2d
    for name, attributes in saved["schema"].items():
        change = sorted(set(schema.get(name, attributes)) ^ set(attributes))
        # VAL: VAL_EMPTY(change, error=SnapshotError, about=name) - the state was saved by another version
        if len(change) != 0:
            raise SnapshotError(
                f"restore: change must be empty, got {change!r:.200} (name={name!r:.200}) - the state was "
                "saved by another version"
            )
        # END VAL d13a6e
    try:
        return _Reader(saved["objects"], policy).value(saved["root"])
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise SnapshotError(f"the saved state is damaged: {error!r}") from error


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _allowed(name: str, policy: type) -> bool:
    return name.startswith("roll_ts.core.") or name == _name(policy)


def attributes_of(item: Any) -> Iterator[tuple[str, Any]]:
    """Every attribute that the object holds, by name."""
    names = {name for kind in type(item).__mro__ for name in getattr(kind, "__slots__", ())}
    names |= set(getattr(item, "__dict__", {}))
    for name in sorted(names):
        if hasattr(item, name):
            yield name, getattr(item, name)


class _Writer:
    """Turns a graph into plain data; `_kept` keeps temporary objects alive, so that no id is used twice."""

    def __init__(self, policy: type) -> None:
        self.policy = policy
        self.objects: list[Any] = []
        self.schema: dict[str, list[str]] = {}
        self._index: dict[int, int] = {}
        self._kept: list[Any] = []

    def value(self, item: Any) -> Any:
        """The item as a value."""
        if isinstance(item, Enum):
            return {"enum": self._class(item), "is": item.value}
        if item is None or isinstance(item, bool | int | str):
            return item
        if isinstance(item, float):
            return item if math.isfinite(item) else {"float": repr(item)}
        if isinstance(item, frozenset):
            return {"frozenset": self._sorted(item)}
        if isinstance(item, types.MethodType):
            return {"method": self.value(item.__self__), "name": item.__name__}
        return {"ref": self._object(item)}

    def _object(self, item: Any) -> int:
        if id(item) in self._index:
            return self._index[id(item)]
        index = self._index[id(item)] = len(self.objects)
        self._kept.append(item)
        self.objects.append(None)
        self.objects[index] = self._parts(item)
        return index

    def _parts(self, item: Any) -> dict[str, Any]:
        if isinstance(item, tuple):
            parts = [self.value(part) for part in item]
            return {"tuple": parts} if type(item) is tuple else {"named": self._class(item), "of": parts}
        if type(item) is list:
            return {"list": [self.value(part) for part in item]}
        if type(item) is set:
            return {"set": self._sorted(item)}
        if type(item) is deque:
            return {"deque": [self.value(part) for part in item], "most": item.maxlen}
        if isinstance(item, dict) and type(item) in _DICTS.values():
            pairs = [[self.value(key), self.value(part)] for key, part in item.items()]
            return {"dict": pairs, "class": type(item).__name__}
        name, has = self._class(item), {key: self.value(part) for key, part in attributes_of(item)}
        self.schema[name] = list(has)
        return {"class": name, "has": has}

    def _sorted(self, items: Any) -> list[Any]:
        return sorted((self.value(part) for part in items), key=repr)

    def _class(self, item: Any) -> str:
        name = _name(type(item))
        plain = _allowed(name, self.policy)
        # AST: AST_PRECONDITION(plain, error=SnapshotError, about=name) - it cannot be saved; keep plain data alone
        if not plain:
            raise SnapshotError(
                f"Pre-condition: plain, got {plain!r:.200} (name={name!r:.200}) - it cannot be saved; keep "
                "plain data alone"
            )
        # END AST 372533
        return name


class _Reader:
    """Makes the graph again: first every object, then what they hold, so that cycles close. Tuples, which are made
    with what they hold, are made when they are first asked for."""

    def __init__(self, objects: list[dict[str, Any]], policy: type) -> None:
        self.policy = policy
        self._parts = objects
        self._made = [self._empty(parts) for parts in objects]
        for item, parts in zip(self._made, objects, strict=True):
            self._fill(item, parts)

    def value(self, saved: Any) -> Any:
        """The item that the value means."""
        if not isinstance(saved, dict):
            return saved
        if "ref" in saved:
            return self._item(saved["ref"])
        if "enum" in saved:
            return self._class(saved["enum"])(saved["is"])
        if "float" in saved:
            return float(saved["float"])
        if "frozenset" in saved:
            return frozenset(self.value(part) for part in saved["frozenset"])
        return getattr(self.value(saved["method"]), saved["name"])

    def _item(self, index: int) -> Any:
        if self._made[index] is None:
            parts = self._parts[index]
            if "tuple" in parts:
                self._made[index] = tuple(self.value(part) for part in parts["tuple"])
            else:
                self._made[index] = self._class(parts["named"])(*(self.value(part) for part in parts["of"]))
        return self._made[index]

    def _empty(self, parts: dict[str, Any]) -> Any:
        if "tuple" in parts or "named" in parts:
            return None
        if "list" in parts:
            return []
        if "set" in parts:
            return set()
        if "deque" in parts:
            return deque(maxlen=parts["most"])
        if "dict" in parts:
            return _DICTS[parts["class"]]()
        kind = self._class(parts["class"])
        return kind.__new__(kind)

    def _fill(self, item: Any, parts: dict[str, Any]) -> None:
        if "tuple" in parts or "named" in parts:
            return
        if "list" in parts:
            item.extend(self.value(part) for part in parts["list"])
        elif "set" in parts:
            item.update(self.value(part) for part in parts["set"])
        elif "deque" in parts:
            item.extend(self.value(part) for part in parts["deque"])
        elif "dict" in parts:
            for key, part in parts["dict"]:
                item[self.value(key)] = self.value(part)
        else:
            for name, part in parts["has"].items():
                object.__setattr__(item, name, self.value(part))

    def _class(self, name: str) -> Any:
        known = _allowed(name, self.policy)
        # AST: AST_PRECONDITION(known, error=SnapshotError, about=name) - no class of the core, and not the policy's
        if not known:
            raise SnapshotError(
                f"Pre-condition: known, got {known!r:.200} (name={name!r:.200}) - no class of the core, "
                "and not the policy's"
            )
        # END AST 0255fd
        module, _, qualified = name.partition(":")
        found: Any = importlib.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
        return found
