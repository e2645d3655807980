"""Functions of every kind with an annotation at every place, as source text, and how to run them.

A function appends to TRACE when it starts and ends, and its consumer what it is given, so the trace shows how far
a call came. Each place says how much of the undisturbed trace is there when its check fails.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.codegen.expand.differential.oracles import Spec

TRACE: list[object] = []
COUNTS: list[object] = []
KINDS = (
    "plain", "method", "async", "generator", "async generator", "property", "classmethod", "nested", "decorated",
    "overloaded", "staticmethod",
)  # fmt: skip
ENTRY = ("above", "parameter", "head", "docstring")
BODY = ("middle", "trailing", "loop", "else")
NAMES = ("x", "a", "b")
HEAD = """\
from __future__ import annotations

import functools
from collections.abc import Generator
from typing import Any, overload

from tests.codegen.expand.differential.functions import COUNTS, TRACE
from tests.codegen.expand.differential.oracles import Grid, Lock


def once(value):
    COUNTS.append(value)
    return value


def traced(function):
    @functools.wraps(function)
    def call(*values):
        return function(*values)

    return call


async def pause():
    return None
"""


@dataclass(frozen=True)
class Case:
    """One function: its name, what it is, where its annotation stands, and which error a failed check raises."""

    name: str
    kind: str
    place: str
    spec: Spec
    form: str
    text: str
    error: type[Exception]

    @property
    def said(self) -> str:
        """What a failure shows."""
        return f"{self.kind}, {self.place}, {self.spec.id}{self.form}\n{self.text}"

    def trace_at_failure(self, whole: list[object]) -> list[object]:
        """How much of the trace of an undisturbed call is there when the check fails."""
        if self.place in ENTRY:
            return []
        return whole[:1] if self.place in BODY else whole


def places_of(spec: Spec, kind: str) -> Iterator[str]:
    """Where an annotation of that pattern may stand in that kind of function."""
    if spec.kinds == ("result",):
        yield from ("result",) if kind != "async generator" else ()
    elif spec.kinds == ("exit",):
        yield from ("exit above", "exit head", "exit middle") if kind != "property" else ()
    elif spec.kinds == ("entry",):
        yield from ("above", "head")
    elif spec.kinds == ("wrap",):
        return
    elif spec.no_target:
        yield from ("above", "head", "docstring", "loop", "else")
    else:
        yield from (*ENTRY, *BODY) if kind != "property" else ("above", "head", "docstring", *BODY)
        if kind != "async generator":
            yield "result"


def cases_of(spec: Spec, every: bool) -> list[Case]:
    """Functions for one pattern: every form, with types and without, in every kind of function at every place; or every
    kind and place, with forms and types in turn."""
    found: list[Case] = []
    ways = [(form, typed) for form in spec.forms for typed in spec.typed]
    turn = 0
    for kind in KINDS:
        for place in places_of(spec, kind):
            possible = [way for way in ways if _case(spec, kind, place, *way, 0)]
            turn += 1
            for form, typed in possible if every or not possible else [possible[turn % len(possible)]]:
                if case := _case(spec, kind, place, form, typed, len(found)):
                    found.append(case)
    return found


def _case(spec: Spec, kind: str, place: str, form: str, typed: bool, number: int) -> Case | None:
    count = len(spec.hints)
    read = [f"self.{name}" if kind == "property" else name for name in NAMES[:count]]
    target = {"middle": "y", "loop": "y", "trailing": "y", "result": "result"}.get(place, read[0])
    bare = place in ("parameter", "trailing")
    if bare and "{t}" not in form:
        return None
    if place == "result" and spec.kinds != ("result",) and "{t}" not in form:
        return None
    given = form.replace("target={t}", "{t}" if bare else "target={t}")
    if bare:
        given = given.replace("({t}, ", "(").replace("({t})", "")
        if "{t}" in given:
            return None
    words = given.format(t=target, **dict(zip(NAMES, read, strict=False)))
    comment = f"# {spec.id[:3]}: {spec.id}{words}"
    name = f"f{number}"
    act = spec.act.format(**dict(zip(NAMES, read, strict=False)))
    body = _body(kind, place, comment, read[0], act, spec.hints[0] if typed else "")
    hints = list(spec.hints)
    given_back = spec.hints[0] if typed else ""
    returns = {"generator": f"Generator[object, None, {given_back}]", "async generator": ""}.get(kind, given_back)
    returns = returns if typed else ""
    text = _function(kind, place, name, comment, body, hints if typed else [""] * count, returns)
    error: type[Exception] = LookupError if "error=LookupError" in form else spec.error
    return Case(name, kind, place, spec, form, text, error)


def _body(kind: str, place: str, comment: str, x: str, act: str, hint: str) -> list[str]:
    declared = f"y: {hint}" if hint else "y"
    rows = ['TRACE.append("start")']
    if place == "docstring":
        rows = ['"""What it does."""', comment, *rows]
    if place in ("head", "exit head"):
        rows = [comment, *rows]
    rows += [act] if act else []
    if place == "loop":
        rows += [declared] if hint else []
        rows += [f"for y in ({x},):", f"    {comment}", "    COUNTS.append"]
    elif place == "else":
        rows += ["if TRACE is None:", "    y = None", f"else:  {comment}", f"    y = {x}"]
    elif place == "trailing":
        rows += [f"{declared} = {x}  {comment}"]
    else:
        rows += [f"{declared} = {x}"] + ([comment] if place in ("middle", "exit middle") else [])
    if kind.startswith("async"):
        rows += ["await pause()"]
    if "generator" in kind:
        rows += ["yield 1"]
    rows += ['TRACE.append("end")']
    if "generator" in kind:
        rows += ["yield y"]
    return rows if kind == "async generator" else [*rows, "return y"]


def _function(kind: str, place: str, name: str, comment: str, body: list[str], hints: list[str], returns: str) -> str:
    first = {"method": ["self"], "property": ["self"], "classmethod": ["cls"]}.get(kind, [])
    names = [] if kind == "property" else [f"{n}: {h}" if h else n for n, h in zip(NAMES, hints, strict=False)]
    parameters = [*first, *names]
    arrow = f" -> {returns}" if returns else ""
    word = "async def" if kind.startswith("async") else "def"
    if place == "parameter":
        rows = [f"    {p},{f'  {comment}' if p == names[0] else ''}" for p in parameters]
        signature = [f"{word} {name}(", *rows, f"){arrow}:"]
    else:
        signature = [f"{word} {name}({', '.join(parameters)}){arrow}:"]
    decorators = {
        "property": ["@property"], "classmethod": ["@classmethod"], "staticmethod": ["@staticmethod"],
        "decorated": ["@traced"],
    }.get(kind, [])  # fmt: skip
    rows = [*decorators, *signature, *(f"    {row}" for row in body)]
    if place in ("above", "result", "exit above"):
        rows = [comment, *rows]
    if kind == "overloaded":
        stub = [f"@overload\ndef {name}({', '.join(NAMES[: len(hints)])}: int): ...", "@overload"]
        rows = [*stub, f"def {name}({', '.join(NAMES[: len(hints)])}: str): ...", *rows]
    if kind in ("method", "property", "classmethod", "staticmethod"):
        attributes: list[str] = []
        if kind == "property":
            attributes = [f"    {n}: {h}" for n, h in zip(NAMES, hints, strict=False) if h]
            names = NAMES[: len(hints)]
            attributes += [f"    def fill(self, {', '.join(names)}):", *(f"        self.{n} = {n}" for n in names)]
        rows = [f"class C{name}:", *attributes, "", *(f"    {row}" for row in "\n".join(rows).split("\n"))]
    if kind == "nested":
        rows = [
            f"def make_{name}():",
            *(f"    {row}" for row in rows),
            f"    return {name}",
            "",
            f"{name} = make_{name}()",
        ]
    return "\n".join(rows)


def module_of(cases: list[Case]) -> str:
    """All functions in one file."""
    return HEAD + "\n\n" + "\n\n\n".join(case.text for case in cases) + "\n"


@dataclass(frozen=True)
class Outcome:
    """How a call ended: what it gave or raised, and its trace."""

    value: object
    raised: BaseException | None
    trace: list[object]
    counted: int


def call(namespace: dict[str, Any], case: Case, values: tuple[Any, ...]) -> Outcome:
    """Run one function on its own copy of the values."""
    values = tuple(copy.copy(value) if isinstance(value, list | dict | set) else value for value in values)
    TRACE.clear()
    COUNTS.clear()
    value: object = None
    raised: BaseException | None = None
    try:
        value = _run(namespace, case, values)
    except (
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        OSError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        raised = error
    return Outcome(value, raised, list(TRACE), len(COUNTS))


def _run(namespace: dict[str, Any], case: Case, values: tuple[Any, ...]) -> object:
    if case.kind == "property":
        made = namespace[f"C{case.name}"]()
        made.fill(*values)
        return getattr(made, case.name)
    owner = namespace.get(f"C{case.name}")
    function: Callable[..., Any] = getattr(owner(), case.name) if owner else namespace[case.name]
    result = function(*values)
    if case.kind == "async":
        return _driven(result)
    if case.kind == "generator":
        return _consumed(result)
    if case.kind == "async generator":
        while True:
            try:
                TRACE.append(_driven(result.__anext__()))
            except StopAsyncIteration:
                return None
    return result


def _driven(coroutine: Any) -> object:
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits for something")


def _consumed(generator: Any) -> object:
    while True:
        try:
            TRACE.append(next(generator))
        except StopIteration as end:
            return end.value
