"""Real functions of the standard library with annotations: valid calls give what they gave, violations raise."""

from __future__ import annotations

import ast
import copy
import importlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codegen.expand.reading.source import indent_of
from tests.codegen.expand.helpers import expand


@dataclass(frozen=True)
class Case:
    """A function, its annotations, calls that pass, and one call that must raise with its error and message."""

    function: str
    annotations: tuple[str, ...]
    valid: tuple[tuple[Any, ...], ...]
    invalid: tuple[Any, ...]
    error: type[Exception] = ValueError
    message: str = ""


def val(*items: str) -> tuple[str, ...]:
    return tuple(f"# VAL: {item}" for item in items)


def claim(*items: str) -> tuple[str, ...]:
    return tuple(f"# AST: {item}" for item in items)


NON_EMPTY = val("VAL_NON_EMPTY(data)")
DATA = (([1, 2, 3, 4],), ([5],), ([2.5, 2.5, 1.0],))
TEXTS = (("a b c",), ("  x\n  y\n",), ("",))
CASES = [
    Case("textwrap.shorten", val("VAL_INT_RANGE(width, min=8)"),
         (("hello world again", 12),), ("x", 3), message="width"),
    Case("textwrap.dedent", val("VAL_TYPE_CHECK(str)"), TEXTS, (3,), TypeError, "text must be str, got int 3"),
    Case("textwrap.indent", val("VAL_NON_EMPTY(prefix)"), (("a\nb\n", "> "),), ("a", ""), message="prefix"),
    Case("textwrap.fill", claim("AST_ENSURES(len(result) >= 0)") + val("VAL_POSITIVE(width)"),
         (("a b c", 3),), ("a", 0),
         message="width must be positive, got 0"),
    Case("statistics.mean", NON_EMPTY, DATA, ([],), message="data must not be empty"),
    Case("statistics.median", NON_EMPTY, DATA, ([],), message="mean|median"),
    Case("statistics.median_low", NON_EMPTY, DATA, ((),)),
    Case("statistics.median_high", NON_EMPTY, DATA, ((),)),
    Case("statistics.fmean", NON_EMPTY, DATA, ([],)),
    Case("statistics.mode", NON_EMPTY, DATA, ("",)),
    Case("statistics.pvariance", claim("AST_ENSURES(result >= 0 and len(data) < 4)"),
         (([1, 2],),), ([1, 2, 3, 4],), AssertionError),
    Case("statistics.quantiles", val("VAL_INT_RANGE(n, min=2, max=10)"),
         (([1, 2, 3, 4],),), ([1, 2],), message="unused"),
    Case("statistics.geometric_mean", NON_EMPTY, DATA, ([],)),
    Case("statistics.harmonic_mean", val("VAL_NON_EMPTY(data)", "VAL_NO_DUPLICATES(data)"), (([1, 2],),), ([2, 2],),
         message="duplicate"),
    Case("statistics.covariance", val("VAL_EQUAL_LENGTH(x, y)"), (([1, 2], [3, 5]),), ([1], [2, 3]), message="x"),
    Case("statistics.linear_regression", claim("AST_PRECONDITION(len(x) == len(y))"),
         (([1, 2], [3, 5]),), ([1], [2, 3]),
         AssertionError, "Pre-condition: len"),
    Case("calendar.monthrange", val("VAL_INT_RANGE(month, min=1, max=12)"), ((2024, 2), (1900, 2)), (2024, 13),
         message=r"month must lie in \[1, 12\], got 13"),
    Case("calendar.isleap", val("VAL_TYPE_CHECK(int)"), ((2000,), (1900,)), (2.5,), TypeError),
    Case("calendar.leapdays", claim("AST_REQUIRES(y1 <= y2)"), ((1900, 2000),), (2000, 1900), AssertionError),
    Case("calendar.weekday", claim("AST_ENSURES(0 <= result < 3)"), ((2024, 1, 1),), (2024, 1, 6), AssertionError),
    Case("colorsys.rgb_to_hsv", val("VAL_PROBABILITY(r)", "VAL_PROBABILITY(g)", "VAL_PROBABILITY(b)"),
         ((0.2, 0.4, 1.0), (0, 0, 0)), (0.2, 4.0, 1.0), message="g"),
    Case("colorsys.hsv_to_rgb", claim("AST_ENSURES(len(result) == 3 and max(result) <= 1)"),
         ((0.5, 0.5, 0.5),), (0.5, 0, 2),
         AssertionError, "result"),
    Case("colorsys.rgb_to_yiq", val("VAL_FLOAT_RANGE(r, min=0, max=1)"), ((0.2, 0.4, 1.0),), (-1.0, 0, 0)),
    Case("colorsys.hls_to_rgb", val("VAL_FINITE(h)"),
         ((0.5, 0.5, 0.5), (0.1, 0.2, 0)), (float("inf"), 1, 1), message="h"),
    Case("shlex.quote", val("VAL_TYPE_CHECK(str)"), (("a b",), ("",), ("plain",)), (3,), TypeError),
    Case("shlex.join", claim("AST_ENSURES(isinstance(result, str) and len(result) > 0)"),
         ((["a", "b c"],),), ([],), AssertionError),
    Case("shlex.split", val("VAL_NON_BLANK(s)"), (("a 'b c'",),), ("  ",)),
    Case("string.capwords", claim("AST_ENSURES(len(result) == len(s))"), (("ab cd",),), ("ab  cd",), AssertionError),
    Case("html.escape", val("VAL_LENGTH(s, max=20)"), (("<a>",), ("'",)), ("x" * 21,), message="s"),
    Case("base64.b64encode", claim("AST_ENSURES(len(result) % 4 == 0 and len(result) > 0)"),
         ((b"ab",),), (b"",), AssertionError),
    Case("base64.b16encode", val("VAL_TYPE_CHECK((bytes, bytearray))"), ((b"ab",),), ("ab",), TypeError),
    Case("base64.b85encode", claim("AST_ENSURES(result != old(bytes(b)))"), ((b"ab",),), (b"",), AssertionError, "old"),
    Case("difflib.get_close_matches", val("VAL_PROBABILITY(cutoff)", "VAL_INT_RANGE(n, min=1)"), (("ab", ["ac", "b"]),),
         ("a", [], 0), message="n must"),
    Case("fnmatch.translate", claim("AST_ENSURES(result.endswith('Z'))", "AST_INVARIANT(pat != '?')"),
         (("*.py",),), ("?",),
         AssertionError),
    Case("ipaddress.v4_int_to_packed", val("VAL_NON_NEGATIVE"), ((5,),), (-1,), message="address must"),
    Case("posixpath.split", val("VAL_NON_EMPTY(p)"), (("a/b",), ("c",)), ("",), message="p must not be empty"),
    Case("copy.copy", claim("AST_ENSURES(result is not x or type(x) in (int, str))"),
         (([1, 2],), ("a",)), ((),), AssertionError),
    Case("pprint.pformat", claim("AST_ENSURES(old(len(object)) == len(object))", "AST_ENSURES(len(result) < 20)"),
         (([1, 2],),),
         (list(range(99)),), AssertionError),
]  # fmt: skip


def with_annotations(text: str, name: str, annotations: tuple[str, ...]) -> str:
    """The module's text with the annotations above the function."""
    function = next(node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == name)
    lines = text.splitlines(keepends=True)
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)]) - 1
    blanks = indent_of(lines[first])
    lines[first:first] = [f"{blanks}{annotation}\n" for annotation in annotations]
    return "".join(lines)


def executed(module: ModuleType, text: str) -> ModuleType:
    """A copy of a module made from another text."""
    made = ModuleType(module.__name__)
    made.__file__, made.__package__ = module.__file__, module.__package__
    exec(compile(text, str(module.__file__), "exec"), made.__dict__)
    return made


def outcome(function: Any, arguments: tuple[Any, ...]) -> Any:
    return repr(function(*copy.deepcopy(arguments)))


@pytest.mark.parametrize("case", CASES, ids=[case.function for case in CASES])
def test_a_real_function_behaves_as_before_and_checks_what_it_says(case: Case) -> None:
    module_name, _, name = case.function.rpartition(".")
    module = importlib.import_module(module_name)
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    expanded = expand(with_annotations(text, name, case.annotations))
    ours, theirs = getattr(executed(module, expanded), name), getattr(module, name)
    for arguments in case.valid:
        assert outcome(ours, arguments) == outcome(theirs, arguments)
    if case.function == "statistics.quantiles":
        with pytest.raises(ValueError, match=r"n must lie in \[2, 10\], got 11"):
            ours([1, 2], n=11)
        return
    with pytest.raises(case.error, match=case.message):
        ours(*case.invalid)


def test_there_are_thirty_real_functions() -> None:
    assert len(CASES) >= 30
