"""What each pattern means, in plain Python that was written from its summary and not from its template.

`holds` gets the values of `x`, `a` and `b` and says whether the check has to pass. It may raise on values that nobody
can judge: then the check has to end in its own error. In a form `{t}` is the target and `{a}`, `{b}` the other values.
"""

from __future__ import annotations

import keyword
import math
import os
import re
import string
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

HERE = Path(__file__).parent
INTS = st.integers(-3, 9)
BIG = st.integers(-(10**400), 10**400)
# Bounds and values without order come often, not only when Hypothesis happens to think of them.
FLOATS = st.sampled_from([math.inf, -math.inf, math.nan, 0.0, 1.0]) | st.floats()
NUMBERS = INTS | FLOATS
TEXTS = st.text(string.ascii_lowercase + "_ 1\n", max_size=5) | st.sampled_from(["class", "x1", "", " ", "a-b"])
LISTS = st.lists(INTS, max_size=5)
SETS = st.sets(INTS, max_size=5)
ODD = st.one_of(INTS, FLOATS, TEXTS, LISTS, st.none(), st.complex_numbers(max_magnitude=9), st.binary(max_size=2))
PATHS = st.sampled_from([str(HERE), str(HERE / "oracles.py"), str(HERE / "no such file"), "", "/"])


@dataclass(frozen=True)
class Spec:
    """One pattern with the types of its parameters, values for them, forms of its annotation, and what it means."""

    id: str
    hints: tuple[str, ...]
    values: st.SearchStrategy[tuple[Any, ...]]
    forms: tuple[str, ...]
    holds: Callable[..., bool]
    error: type[Exception] = ValueError
    act: str = ""
    kinds: tuple[str, ...] = ()
    typed: tuple[bool, ...] = (True, False)
    no_target: bool = False

    @property
    def name(self) -> str:
        """What test reports call it."""
        return f"{self.id}-{'-'.join(self.hints)}"


def one(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Values for a single parameter."""
    return values.map(lambda value: (value,))


def between(low: object, high: object, value: Any) -> bool:
    """low <= value <= high; NaN lies nowhere."""
    return bool(value >= low) and bool(value <= high)


class Lock:
    """As much of a lock as is looked at."""

    def __init__(self, held: bool) -> None:
        self.held = held

    def locked(self) -> bool:
        """Whether it is held."""
        return self.held


class Truths(list[bool]):
    """The answer of `isfinite`: a list with `all`, `sum` and `~`."""

    def all(self) -> bool:
        """Whether all are true."""
        return False not in self

    def sum(self) -> int:
        """How many are true."""
        return self.count(True)

    def __invert__(self) -> Truths:
        return Truths(not each for each in self)


class Grid:
    """As much of a tensor as is looked at."""

    def __init__(self, shape: tuple[int, ...], dtype: str = "f4", kind: str = "cpu", cells: Any = ()) -> None:
        self.shape, self.dtype, self.cells = shape, dtype, cells
        self.device = type("Device", (), {"type": kind})()

    def isfinite(self) -> Truths:
        """Which cells are finite."""
        return Truths(math.isfinite(cell) for cell in self.cells)

    def numel(self) -> int:
        """How many cells there are."""
        return len(self.cells)


SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)
GRIDS = st.builds(
    Grid, SHAPES, st.sampled_from(["f4", "i8"]), st.sampled_from(["cpu", "meta"]), st.lists(FLOATS, max_size=3)
)
MAPS = st.dictionaries(INTS, INTS, max_size=4)
OPTIONAL = st.none() | INTS
THREADS = st.sampled_from([threading.get_ident(), 0])


def count_given(*values: object) -> int:
    """How many values are not None."""
    return len([value for value in values if value is not None])


def is_power(value: int) -> bool:
    """Whether the number is one of 1, 2, 4, 8 …"""
    return value in {2**n for n in range(2000)}


def partitions(groups: list[list[int]], whole: list[int]) -> bool:
    """Whether the groups hold each element of the whole as often as it has it."""
    left = list(whole)
    for group in groups:
        for member in group:
            if member not in left:
                return False
            left.remove(member)
    return not left


def ascending(values: list[Any], strict: bool) -> bool:
    """Whether no element is followed by a smaller one, or by an equal one."""
    return all((a < b) if strict else (a <= b) for a, b in pairwise(values))


def inside(path: str, root: str) -> bool:
    """Whether a path leads nowhere out of the root."""
    whole = os.path.realpath(os.path.join(root, path))
    base = os.path.realpath(root)
    return whole == base or whole.startswith(base.rstrip("/") + "/")


def has(value: object, names: list[str]) -> bool:
    """Whether the value has all these attributes."""
    return set(names) <= set(dir(value))


SPECS = (
    Spec(
        "VAL_POSITIVE",
        ("int",),
        one(INTS | BIG),
        ("({t})", "(target={t})", "({t}, error=LookupError)"),
        lambda x: x > 0,
    ),
    Spec("VAL_POSITIVE", ("float",), one(NUMBERS), ("({t})", "({t}, about={t}) - why"), lambda x: x > 0),
    Spec("VAL_POSITIVE", ("",), one(ODD), ("({t})",), lambda x: x > 0, typed=(False,)),
    Spec(
        "VAL_POSITIVE",
        ("list[int]",),
        one(LISTS),
        ("({t})", "({t}, each=items)"),
        lambda x: min(x, default=1) > 0,
        typed=(True,),
    ),
    Spec("VAL_POSITIVE", ("int | None",), one(OPTIONAL), ("({t})",), lambda x: x is None or x > 0, typed=(True,)),
    Spec(
        "VAL_POSITIVE",
        ("dict[str, int]",),
        one(st.dictionaries(TEXTS, INTS, max_size=3)),
        ("({t})", "({t}, each=values)"),
        lambda x: min(x.values(), default=1) > 0,
        typed=(True,),
    ),
    Spec(
        "VAL_POSITIVE",
        ("dict[int, str]",),
        one(st.dictionaries(INTS, TEXTS, max_size=3)),
        ("({t})", "({t}, each=keys)"),
        lambda x: min(x, default=1) > 0,
        typed=(True,),
    ),
    Spec("VAL_NON_NEGATIVE", ("float",), one(NUMBERS), ("({t})",), lambda x: not (x < 0 or x != x)),
    Spec("VAL_NON_NEGATIVE", ("set[int]",), one(SETS), ("({t})",), lambda x: min(x, default=0) >= 0, typed=(True,)),
    Spec(
        "VAL_FINITE",
        ("float",),
        one(st.sampled_from([-math.inf, math.inf]) | NUMBERS | BIG),
        ("({t})",),
        lambda x: isinstance(x, int) or math.isfinite(x),
    ),
    Spec(
        "VAL_INT_RANGE",
        ("int", "int", "int"),
        st.tuples(INTS, INTS, INTS),
        ("({t}, min={a}, max={b})", "({t}, min=once({a}), max={b})", "({t}, max=once({b} + 0), min=int({a}))"),
        lambda x, a, b: between(a, b, x),
    ),
    Spec(
        "VAL_INT_RANGE",
        ("int", "int"),
        st.tuples(INTS, INTS),
        ("({t}, min={a})", "({t}, min=once({a}))"),
        lambda x, a: x >= a,
    ),
    Spec("VAL_INT_RANGE", ("int", "int"), st.tuples(INTS, INTS), ("({t}, max={a})",), lambda x, a: x <= a),
    Spec(
        "VAL_INT_RANGE",
        ("list[int]", "int"),
        st.tuples(LISTS, INTS),
        ("({t}, max=once({a}))", "({t}, max={a})"),
        lambda x, a: max(x, default=a) <= a,
        typed=(True,),
    ),
    Spec("VAL_FLOAT_RANGE", ("float",), one(NUMBERS), ("({t}, min=0, max=1, exclude_min=True)",), lambda x: 0 < x <= 1),
    Spec("VAL_FLOAT_RANGE", ("float",), one(NUMBERS), ("({t}, min=0, max=1, exclude_max=True)",), lambda x: 0 <= x < 1),
    Spec("VAL_FLOAT_RANGE", ("float", "float"), st.tuples(NUMBERS, NUMBERS), ("({t}, min={a})",), lambda x, a: x >= a),
    Spec("VAL_PROBABILITY", ("float",), one(NUMBERS | st.floats(0, 1)), ("({t})",), lambda x: between(0, 1, x)),
    Spec("VAL_POWER_OF_TWO", ("int",), one(INTS | BIG | st.integers(0, 70).map(lambda n: 2**n)), ("({t})",), is_power),
    Spec(
        "VAL_EQUAL",
        ("int", "int"),
        st.tuples(INTS, INTS),
        ("({t}, {a})", "({t}, other=once({a}))"),
        lambda x, a: x == a,
    ),
    Spec(
        "VAL_ONE_OF",
        ("int", "list[int]"),
        st.tuples(INTS, LISTS),
        ("({t}, {a})", "({t}, choices=once({a}))"),
        lambda x, a: a.count(x) > 0,
    ),
    Spec("VAL_ONE_OF", ("int",), one(INTS), ("({t}, (1, 2, 3))",), lambda x: x == 1 or x == 2 or x == 3),
    Spec(
        "VAL_NOT_IN",
        ("int", "list[int]"),
        st.tuples(INTS, LISTS),
        ("({t}, {a})", "({t}, container=once({a}))"),
        lambda x, a: a.count(x) == 0,
    ),
    Spec(
        "VAL_STATE_IN",
        ("int", "list[int]"),
        st.tuples(INTS, LISTS),
        ("({t}, {a})",),
        lambda x, a: a.count(x) > 0,
        RuntimeError,
    ),
    Spec(
        "VAL_STATE_NOT_IN",
        ("int", "list[int]"),
        st.tuples(INTS, LISTS),
        ("({t}, {a})",),
        lambda x, a: a.count(x) == 0,
        RuntimeError,
    ),
    Spec(
        "VAL_TRANSITION",
        ("int", "int", "dict[int, list[int]]"),
        st.tuples(
            st.integers(0, 3), st.integers(0, 3), st.dictionaries(st.integers(0, 3), st.lists(st.integers(0, 3)))
        ),
        ("({t}, to={a}, table={b})",),
        lambda x, a, b: x in b and a in b[x],
        RuntimeError,
    ),
    Spec("VAL_NON_EMPTY", ("list[int]",), one(LISTS), ("({t})",), lambda x: x != []),
    Spec("VAL_NON_EMPTY", ("",), one(ODD), ("({t})",), lambda x: len(x) > 0, typed=(False,)),
    Spec("VAL_EMPTY", ("set[int]",), one(SETS), ("({t})",), lambda x: x == set()),
    Spec("VAL_NO_PROBLEMS", ("list[str]",), one(st.lists(TEXTS, max_size=3)), ("({t})",), lambda x: x == []),
    Spec(
        "VAL_LENGTH",
        ("list[int]", "int", "int"),
        st.tuples(LISTS, st.integers(0, 4), st.integers(0, 4)),
        ("({t}, min={a}, max={b})", "({t}, min=once({a}), max={b})"),
        lambda x, a, b: between(a, b, len(x)),
    ),
    Spec("VAL_LENGTH", ("list[int]",), one(LISTS), ("({t}, min=2)",), lambda x: len(x) > 1),
    Spec("VAL_LENGTH", ("list[int]",), one(LISTS), ("({t}, min=2, max=2)",), lambda x: len(x) == 2),
    Spec(
        "VAL_EQUAL_LENGTH",
        ("list[int]", "list[int]"),
        st.tuples(LISTS, LISTS),
        ("({t}, {a})", "({t}, once({a}))"),
        lambda x, a: len(x) == len(a),
    ),
    Spec("VAL_NO_DUPLICATES", ("list[int]",), one(LISTS), ("({t})",), lambda x: all(x.count(e) == 1 for e in x)),
    Spec("VAL_SORTED", ("list[int]",), one(LISTS), ("({t})",), lambda x: ascending(x, False)),
    Spec("VAL_SORTED", ("",), one(ODD), ("({t}, strict=True)",), lambda x: ascending(list(x), True), typed=(False,)),
    Spec("VAL_SORTED", ("list[int]",), one(LISTS), ("({t}, strict=True)",), lambda x: ascending(x, True)),
    Spec(
        "VAL_SUBSET",
        ("set[int]", "list[int]"),
        st.tuples(SETS, LISTS),
        ("({t}, {a})", "({t}, of=once({a}))"),
        lambda x, a: all(e in a for e in x),
    ),
    Spec(
        "VAL_DISJOINT",
        ("list[int]", "list[int]"),
        st.tuples(LISTS, LISTS),
        ("({t}, {a})",),
        lambda x, a: not any(e in a for e in x),
    ),
    Spec(
        "VAL_SAME_ELEMENTS",
        ("list[int]", "list[int]"),
        st.tuples(LISTS, LISTS),
        ("({t}, {a})", "({t}, other=once({a}))"),
        lambda x, a: all(e in a for e in x) and all(e in x for e in a),
    ),
    Spec(
        "VAL_PARTITION",
        ("list[list[int]]", "list[int]"),
        st.tuples(
            st.lists(st.lists(st.integers(0, 2), max_size=2), max_size=2), st.lists(st.integers(0, 2), max_size=3)
        ),
        ("({t}, of={a})",),
        partitions,
    ),
    Spec(
        "VAL_DIVISIBLE",
        ("int", "int"),
        st.tuples(INTS | BIG, st.integers(1, 4)),
        ("({t}, {a})", "({t}, by=once({a}))"),
        lambda x, a: x == a * (x // a),
    ),
    Spec(
        "VAL_RANK",
        ("int", "int"),
        st.tuples(INTS, INTS),
        ("({t}, {a})", "({t}, world_size=once({a}))"),
        lambda x, a: x in range(a),
    ),
    Spec(
        "VAL_RANK",
        ("list[int]", "int"),
        st.tuples(LISTS, INTS),
        ("({t}, once({a}))",),
        lambda x, a: set(x) <= set(range(a)),
        typed=(True,),
    ),
    Spec(
        "VAL_WORLD_SIZE",
        ("int", "list[int]"),
        st.tuples(st.integers(0, 6), st.lists(st.integers(0, 3), max_size=3)),
        ("({t}, {a})", "({t}, once({a}))"),
        lambda x, a: x == math.prod(a),
    ),
    Spec(
        "VAL_ALLOWED_KEYS",
        ("dict[int, int]", "list[int]"),
        st.tuples(MAPS, LISTS),
        ("({t}, {a})", "({t}, keys=once({a}))"),
        lambda x, a: all(key in a for key in x),
    ),
    Spec(
        "VAL_REQUIRED_KEYS",
        ("dict[int, int]", "list[int]"),
        st.tuples(MAPS, LISTS),
        ("({t}, {a})", "({t}, keys=once({a}))"),
        lambda x, a: all(key in x for key in a),
    ),
    Spec(
        "VAL_KEY_IN",
        ("int", "dict[int, int]"),
        st.tuples(INTS, MAPS),
        ("({t}, {a})", "({t}, mapping=once({a}))"),
        lambda x, a: x in list(a),
    ),
    Spec(
        "VAL_KEY_ABSENT",
        ("int", "dict[int, int]"),
        st.tuples(INTS, MAPS),
        ("({t}, {a})",),
        lambda x, a: x not in list(a),
    ),
    Spec("VAL_NON_BLANK", ("str",), one(TEXTS), ("({t})",), lambda x: re.search(r"\S", x) is not None),
    Spec(
        "VAL_IDENTIFIER",
        ("str",),
        one(TEXTS),
        ("({t})",),
        lambda x: re.fullmatch(r"[^\W\d]\w*", x) is not None and x not in keyword.kwlist,
    ),
    Spec(
        "VAL_MATCHES",
        ("str", "str"),
        st.tuples(TEXTS, st.sampled_from(["[a-z]*", "x.", ""])),
        ("({t}, {a})", "({t}, once({a}))"),
        lambda x, a: re.match(f"(?:{a})\\Z", x) is not None,
    ),
    Spec(
        "VAL_SUFFIX",
        ("str", "str"),
        st.tuples(TEXTS, TEXTS),
        ("({t}, {a})", "({t}, suffix=once({a}))"),
        lambda x, a: x[len(x) - len(a) :] == a if len(a) <= len(x) else False,
    ),
    Spec(
        "VAL_FILE_EXISTS",
        ("str",),
        one(PATHS),
        ("({t})",),
        lambda x: Path(x).is_file() if x else False,
        FileNotFoundError,
    ),
    Spec(
        "VAL_DIRECTORY_EXISTS",
        ("str",),
        one(PATHS),
        ("({t})",),
        lambda x: Path(x).is_dir() if x else False,
        NotADirectoryError,
    ),
    Spec(
        "VAL_PATH_ABSENT",
        ("str",),
        one(PATHS),
        ("({t})",),
        lambda x: not (Path(x).exists() if x else False),
        FileExistsError,
    ),
    Spec(
        "VAL_PATH_INSIDE",
        ("str", "str"),
        st.tuples(st.sampled_from(["a", "../a", "a/../b", "a/../../b", "."]), st.just(str(HERE))),
        ("({t}, {a})", "({t}, root=once({a}))"),
        inside,
    ),
    Spec("VAL_NOT_NONE", ("int | None",), one(OPTIONAL), ("({t})",), lambda x: x is not None),
    Spec(
        "VAL_TYPE_CHECK",
        ("object",),
        one(ODD | st.booleans()),
        ("({t}, int)", "({t}, type=int)"),
        lambda x: type(x) is int,
        TypeError,
    ),
    Spec(
        "VAL_TYPE_CHECK",
        ("object",),
        one(ODD | st.booleans()),
        ("({t}, (int, str), allow_bool=True)",),
        lambda x: type(x) in (int, str, bool),
        TypeError,
    ),
    Spec(
        "VAL_CALLABLE",
        ("object",),
        one(st.sampled_from([len, int, 3, None, lambda: 1])),
        ("({t})",),
        lambda x: type(x).__name__ in ("builtin_function_or_method", "type", "function"),
        TypeError,
    ),
    Spec(
        "VAL_HAS_ATTRIBUTES",
        ("object", "list[str]"),
        st.tuples(ODD, st.lists(st.sampled_from(["real", "strip", "append"]))),
        ("({t}, {a})", "({t}, once({a}))"),
        has,
        TypeError,
    ),
    Spec(
        "VAL_REQUIRES",
        ("int | None", "int | None"),
        st.tuples(OPTIONAL, OPTIONAL),
        ("({t}, {a})", "({t}, once({a}))"),
        lambda x, a: x is None or a is not None,
        TypeError,
    ),
    Spec(
        "VAL_EXACTLY_ONE",
        ("int | None", "int | None"),
        st.tuples(OPTIONAL, OPTIONAL),
        ("(({x}, {a}))", "(names=[{x}, once({a})])"),
        lambda x, a: count_given(x, a) == 1,
        TypeError,
        no_target=True,
    ),
    Spec(
        "VAL_AT_MOST_ONE",
        ("int | None", "int | None"),
        st.tuples(OPTIONAL, OPTIONAL),
        ("(({x}, {a}))",),
        lambda x, a: count_given(x, a) < 2,
        TypeError,
        no_target=True,
    ),
    Spec(
        "VAL_AT_LEAST_ONE",
        ("int | None", "int | None"),
        st.tuples(OPTIONAL, OPTIONAL),
        ("(({x}, once({a})))",),
        lambda x, a: count_given(x, a) > 0,
        TypeError,
        no_target=True,
    ),
    Spec(
        "VAL_ALL_OR_NONE",
        ("int | None", "int | None"),
        st.tuples(OPTIONAL, OPTIONAL),
        ("(({x}, {a}))",),
        lambda x, a: count_given(x, a) != 1,
        TypeError,
        no_target=True,
    ),
    Spec("VAL_LOCK_HELD", ("Lock",), one(st.booleans().map(Lock)), ("({t})",), lambda x: x.held, RuntimeError),
    Spec(
        "VAL_OWNER_THREAD",
        ("int",),
        one(THREADS),
        ("({x})",),
        lambda x: x == threading.get_ident(),
        RuntimeError,
        no_target=True,
    ),
    Spec(
        "VAL_LOOP_THREAD",
        ("object",),
        one(st.none() | INTS),
        ("({x})",),
        lambda x: x is None,
        RuntimeError,
        no_target=True,
    ),
    Spec("VAL_OFF_LOOP", ("int",), one(INTS), ("",), lambda x: True, RuntimeError, no_target=True),
    Spec(
        "VAL_SHAPE",
        ("Grid", "int"),
        st.tuples(GRIDS, st.integers(0, 3)),
        ("({t}, (None, {a}))", "({t}, (None, once({a})))"),
        lambda x, a: len(x.shape) == 2 and x.shape[-1] == a,
    ),
    Spec(
        "VAL_SHAPE",
        ("Grid",),
        one(GRIDS),
        ('({t}, ("n", "n"))',),
        lambda x: len(x.shape) == 2 and len(set(x.shape)) == 1,
    ),
    Spec(
        "VAL_SAME_SHAPE",
        ("Grid", "Grid"),
        st.tuples(GRIDS, GRIDS),
        ("({t}, {a})", "({t}, once({a}))"),
        lambda x, a: x.shape == a.shape,
    ),
    Spec(
        "VAL_DTYPE",
        ("Grid", "str"),
        st.tuples(GRIDS, st.sampled_from(["f4", "i8"])),
        ("({t}, {a})",),
        lambda x, a: x.dtype is a,
        TypeError,
    ),
    Spec(
        "VAL_DEVICE",
        ("Grid", "str"),
        st.tuples(GRIDS, st.sampled_from(["cpu", "meta"])),
        ("({t}, {a})",),
        lambda x, a: x.device.type is a,
    ),
    Spec("VAL_TENSOR_FINITE", ("Grid",), one(GRIDS), ("({t})",), lambda x: all(math.isfinite(c) for c in x.cells)),
    Spec(
        "VAL_DEADLINE",
        ("bool",),
        one(st.booleans()),
        ("(0.001 if {x} else 60, waiting_for='x')",),
        lambda x: not x,
        TimeoutError,
        no_target=True,
        kinds=("wrap",),
    ),
    Spec(
        "AST_PRECONDITION",
        ("int", "int"),
        st.tuples(INTS, INTS),
        ("({t} > {a})", "({t} > once({a}))"),
        lambda x, a: a < x,
        AssertionError,
    ),
    Spec(
        "AST_REQUIRES",
        ("int", "int"),
        st.tuples(INTS, INTS),
        ("({t} > {a} or {t} == 0)",),
        lambda x, a: a < x or x == 0,
        AssertionError,
        kinds=("entry",),
    ),
    Spec(
        "AST_INVARIANT",
        ("list[int]",),
        one(LISTS),
        ("(all(e > 0 for e in {t}))",),
        lambda x: min(x, default=1) > 0,
        AssertionError,
    ),
    Spec(
        "AST_POSTCONDITION",
        ("int", "int"),
        st.tuples(INTS, INTS),
        ("(result > {a})",),
        lambda x, a: a < x,
        AssertionError,
        kinds=("result",),
    ),
    Spec(
        "AST_ENSURES",
        ("int",),
        one(INTS),
        ("(result > 0)", "(result > 0, error=LookupError)"),
        lambda x: x > 0,
        AssertionError,
        kinds=("result",),
    ),
    Spec(
        "AST_RULES",
        ("list[int]", "int"),
        st.tuples(LISTS, INTS),
        ("((('some', len({x}) > 0), ('listed', {a} in {x})))", "(rules=[('listed', {a} in {x})])"),
        lambda x, a: x.count(a) > 0,
        AssertionError,
        no_target=True,
    ),
    Spec("AST_UNREACHABLE", ("int",), one(INTS), ("({x})",), lambda x: False, AssertionError, no_target=True),
    Spec(
        "AST_UNCHANGED",
        ("int", "int"),
        st.tuples(INTS, INTS),
        ("({t}, {a})", "({t}, since=once({a}))"),
        lambda x, a: x == a,
        AssertionError,
    ),
    Spec("AST_MONOTONIC", ("int", "int"), st.tuples(INTS, INTS), ("({t}, {a})",), lambda x, a: x >= a, AssertionError),
    Spec(
        "AST_MONOTONIC",
        ("int", "int"),
        st.tuples(INTS, INTS),
        ("({t}, {a}, strict=True)",),
        lambda x, a: x > a,
        AssertionError,
    ),
    Spec(
        "AST_MONOTONIC",
        ("int", "int"),
        st.tuples(INTS, INTS),
        ("({t}, {a}, falling=True)",),
        lambda x, a: x <= a,
        AssertionError,
    ),
    Spec(
        "AST_MONOTONIC",
        ("int", "int"),
        st.tuples(INTS, INTS),
        ("({t}, {a}, strict=True, falling=True)",),
        lambda x, a: x < a,
        AssertionError,
    ),
    Spec(
        "AST_UNCHANGED",
        ("list[int]", "list[int]"),
        st.tuples(LISTS, LISTS),
        ("(len({x}), old(len({x})))",),
        lambda x, a: len(a) == 0,
        AssertionError,
        act="{x}.extend({a})",
        kinds=("exit",),
        typed=(True,),
    ),
    Spec(
        "AST_ENSURES",
        ("list[int]", "list[int]"),
        st.tuples(LISTS, LISTS),
        ("({x} == old(copy({x})))", "({x} == old(list({x})))"),
        lambda x, a: a == [],
        AssertionError,
        act="{x}.extend({a})",
        kinds=("exit",),
        typed=(True,),
    ),
    Spec(
        "AST_MONOTONIC",
        ("list[int]", "list[int]"),
        st.tuples(LISTS, LISTS),
        ("(sum({x}), old(sum({x})), strict=True)",),
        lambda x, a: sum(a) > 0,
        AssertionError,
        act="{x}.extend({a})",
        kinds=("exit",),
        typed=(True,),
    ),
    Spec(
        "AST_INVARIANT",
        ("list[int]", "list[int]"),
        st.tuples(LISTS, LISTS),
        ("(len({x}) <= old(len({x})) + 1)",),
        lambda x, a: len(a) < 2,
        AssertionError,
        act="{x}.extend({a})",
        kinds=("exit",),
        typed=(True,),
    ),
)
