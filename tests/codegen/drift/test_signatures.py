"""Definitions and annotations are read alike from a module and from a fence."""

from __future__ import annotations

import ast

from codegen.drift.promises import read_promises
from codegen.drift.section import DocumentedError, parse_error, top_prefix
from codegen.drift.signatures import Definition, read_definitions

SOURCE = """\
from typing import overload

if True:
    def either() -> None: ...
else:
    def either(x: int) -> None: ...

try:
    class Tried: ...
except ImportError:
    Tried = None

@overload
def many(x: int) -> int: ...
@overload
def many(x: str) -> str: ...
def many(x): return x

class Box:
    size: int = 1

    def f(self, a, /, b, *args, c=1, **rest): ...

    @property
    def w(self) -> int: ...

    @w.setter
    def w(self, value: int) -> None: ...

    class Inner:
        def g(self): ...

def outer():
    def local(): ...
"""


def read(source: str) -> dict[str, Definition]:
    return read_definitions(ast.parse(source))


def test_conditional_nested_and_overloaded_definitions_are_seen_once() -> None:
    found = read(SOURCE)
    assert list(found) == ["either", "Tried", "many", "Box", "Box.f", "Box.w", "Box.Inner", "Box.Inner.g", "outer"]
    assert found["either"].parameters == ()
    assert found["many"].decorators == frozenset()
    assert found["Box.w"].decorators == {"property", "setter"}


def test_every_kind_of_parameter_is_told_apart() -> None:
    parameters = read(SOURCE)["Box.f"].parameters
    assert [(p.name, p.kind) for p in parameters] == [
        ("self", "positional-only"),
        ("a", "positional-only"),
        ("b", "positional"),
        ("args", "*args"),
        ("c", "keyword-only"),
        ("rest", "**kwargs"),
    ]


def test_fields_are_those_of_data_classes_only() -> None:
    assert read(SOURCE)["Box"].fields == ()
    data = read("@dataclass(frozen=True, slots=False)\nclass A:\n    x: int\n    y: str = ''\n    def f(self): ...\n")[
        "A"
    ]
    assert [field.name for field in data.fields] == ["x", "y"]
    assert data.decorators == {"dataclass", "dataclass(frozen=True)", "dataclass(slots=False)"}
    colour = read("class Colour(Enum):\n    RED = 1\n    BLUE = 2\n")["Colour"]
    assert [field.name for field in colour.fields] == ["RED", "BLUE"]


ANNOTATED = """\
# VAL: VAL_NON_EMPTY(above)
def above(above): ...

def inside(x):
    # VAL: VAL_INT_RANGE(min=0,max = 7), VAL_TYPE_CHECK(x, int) - a note
    # prose that says VAL: nothing
    text = "# VAL: VAL_NON_EMPTY(text)"
    # AST: AST_PRECONDITION(
    #   x > 0)
    assert x > 0
    # END AST 123abc
    # AST on return: AST_POSTCONDITION(x)
    return x
    # VAL: VAL_NON_EMPTY(x)

class Box:
    # AST: AST_INVARIANT(self.size > 0)

    def f(self): ...
"""


def test_annotations_belong_to_the_definition_around_or_below_them() -> None:
    annotated = read_promises(ANNOTATED, read(ANNOTATED).values())
    assert {name: [promise.text for promise in found] for name, found in annotated.promises.items()} == {
        "above": ["VAL: VAL_NON_EMPTY(above)"],
        "inside": [
            "VAL: VAL_INT_RANGE(min=0, max=7)",
            "VAL: VAL_TYPE_CHECK(x, int)",
            "AST: AST_PRECONDITION(x > 0)",
            "VAL: VAL_NON_EMPTY(x)",
        ],
        "Box": ["AST: AST_INVARIANT(self.size > 0)"],
    }


def test_a_managed_block_stands_between_annotation_and_mark() -> None:
    annotated = read_promises(ANNOTATED, read(ANNOTATED).values())
    line = ANNOTATED.split("\n").index("    assert x > 0") + 1
    assert annotated.is_managed(line) and not annotated.is_managed(line + 2)


def test_documented_errors_are_read_from_prose() -> None:
    def errors(text: str) -> list[DocumentedError]:
        return list(parse_error(text))

    assert errors("ValueError when it is negative") == [DocumentedError("ValueError", None)]
    assert errors("`KeyError` or IndexError when missing") == [
        DocumentedError("KeyError", None),
        DocumentedError("IndexError", None),
    ]
    assert errors("errors.Full from `shelf.put()` when full") == [DocumentedError("errors.Full", "shelf.put")]
    assert errors("none") == []


def only(source: str) -> Definition:
    return next(iter(read(source).values()))


def test_only_members_of_data_classes_and_enumerations_are_fields() -> None:
    assert [each.name for each in only("class A:\n    x = 1\n    y: int = 2\n").fields] == []
    assert [each.name for each in only("@dataclass\nclass A:\n    x = 1\n    y: int = 2\n").fields] == ["y"]
    assert [each.name for each in only("class A(Enum):\n    x = 1\n    y: int\n    z = w = 2\n").fields] == [
        "x",
        "z",
        "w",
    ]
    assert [each.name for each in only("class A(NamedTuple):\n    x: int\n    y = 1\n").fields] == ["x"]
    assert [each.name for each in only("class A(Base):\n    x: int\n").fields] == []
    assert [each.name for each in only("@x.dataclass(frozen=True)\nclass A:\n    a.b: int\n    c: int\n").fields] == [
        "c"
    ]


def test_a_body_of_an_ellipsis_after_a_docstring_at_most_is_elided() -> None:
    elided = {
        "def f(): ...": True,
        "def f():\n    'text'\n    ...": True,
        "def f():\n    'text'": True,
        "def f():\n    3\n    ...": False,
        "def f():\n    ...\n    'text'": False,
        "def f(): pass": False,
        "def f(): return ...": False,
    }
    assert {source: only(source).elided for source in elided} == elided


def test_a_definition_of_a_fence_belongs_to_the_class_that_the_heading_gives_it() -> None:
    method, free = only("def total(self): ..."), only("def total(): ...")
    assert top_prefix(method, ["Till.total"]) == "Till."
    assert top_prefix(method, ["total"]) == ""
    assert top_prefix(method, ["Cart.add", "Till.total"]) == "Till."
    assert top_prefix(method, ["Till"]) == "Till."
    assert top_prefix(method, ["Till.add"]) == "Till."
    assert top_prefix(free, ["Till"]) == ""
    assert top_prefix(free, ["Till.add"]) == ""
    assert top_prefix(only("@staticmethod\ndef total(): ..."), ["Till"]) == "Till."
    assert top_prefix(only("class Inner: ..."), ["Till"]) == ""
