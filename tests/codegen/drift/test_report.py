"""Every kind of difference between Section 5 and the code is found, at its line, and equal things are not."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from codegen.drift import compare as codes
from codegen.drift.code import Code
from codegen.drift.surface import public_callables

if TYPE_CHECKING:
    from pathlib import Path

    from tests.codegen.drift.conftest import Project

PLANTED_IN_CODE = [
    ("put(self, parcel:", "put(self, packet:", codes.PARAMETER, "`parcel` is called `packet`"),
    ("*, label: str", "label: str", codes.PARAMETER, "keyword-only here, positional in the code"),
    ("label: str | None = None", "label: str | None = 'x'", codes.DEFAULT, "defaults to `None` here"),
    ("retries: int = 3)", "retries: int)", codes.DEFAULT, "has no default in the code"),
    ("retries: int = 3)", "retries: float = 3)", codes.TYPE, "`int` here, `float` in the code"),
    ("place: int, retries: int = 3)", "retries: int = 3, place: int = 0)", codes.ORDER, "another order"),
    (", *, label: str | None = None)", ")", codes.PARAMETER, "`label` is not in the code"),
    ("parcels: list[Parcel])", "parcels: list[Parcel], unit: str)", codes.PARAMETER, "`unit` of the code"),
    ("async def send", "def send", codes.ASYNC, "async in the document"),
    ("    @property\n", "", codes.DECORATOR, "@property is in the document"),
    ("(frozen=True)", "", codes.DECORATOR, "@dataclass(frozen=True)"),
    ("-> float:", "-> int:", codes.RETURN, "returns `float` here, `int` in the code"),
    ("    weight: float = 1.0\n", "", codes.FIELD, "field `weight` is not in the code"),
    ("weight: float = 1.0", "weight: float = 2.0", codes.FIELD, "defaults to `1.0` here, defaults to `2.0`"),
    ("weight: float = 1.0", "weight: float = 1.0\n    colour: str = ''", codes.FIELD, "field `colour`"),
    ("def weigh(", "def weight_of(", codes.MISSING, "store.shelf.weigh is in the document, not in the code"),
    ("        # AST: AST_POSTCONDITION(len(self.parcels) > 0)\n", "", codes.VALIDATION, "is promised here"),
    ("min=1)", "min=2)", codes.VALIDATION, "the code carries `VAL: VAL_INT_RANGE(room, min=2)`"),
    ('        """Take a parcel out."""\n', "        # VAL: VAL_NON_EMPTY(place)\n", codes.VALIDATION, "carries"),
    ("raise Full(parcel.name)", "return 0", codes.RAISE, "Full is documented and never raised"),
    ("raise IndexError(place)", "raise Full(place)", codes.RAISE, "Full is raised (store/shelf.py:"),
    ("class Full(Exception):", "def Full() -> None:", codes.KIND, "a class in the document, a function"),
    ("def weigh(", "def heavy() -> None: ...\n\n\ndef weigh(", codes.UNDOCUMENTED, "heavy is public"),
]


def test_documents_that_agree_with_the_code_have_no_findings(project: Project) -> None:
    report = project.report()
    assert report.findings == ()
    assert (report.coverage.covered_count, report.coverage.total, report.compared) == (7, 7, 8)


@pytest.mark.parametrize(("old", "new", "code", "message"), PLANTED_IN_CODE)
def test_a_difference_planted_in_the_code_is_found(
    project: Project, old: str, new: str, code: str, message: str
) -> None:
    found = project.change_code(old, new).found()
    assert any(each == code and message in text for each, text in found), found


def test_a_finding_names_the_line_of_the_document_and_of_the_code(project: Project) -> None:
    finding = project.change_code("put(self, parcel:", "put(self, packet:").report().findings[0]
    line = project.section.split("\n").index("def put(self, parcel: Parcel, *, label: Optional[str] = None) -> int:")
    assert (finding.path, finding.line) == ("design/shelf.md", line + 1)
    assert "store/shelf.py:37" in finding.message


def test_an_uncovered_callable_is_reported_at_its_line_in_the_code(project: Project) -> None:
    report = project.change_code("def weigh(", "def heavy() -> None: ...\n\n\ndef weigh(").report()
    (finding,) = report.findings
    assert (finding.path, finding.line) == ("store/shelf.py", 57)
    assert report.coverage.uncovered["store.shelf"] == ("heavy",)


def test_private_callables_need_no_entry(project: Project) -> None:
    assert project.change_code("def weigh(", "def _heavy() -> None: ...\n\n\ndef weigh(").found() == []


def test_a_constructor_with_arguments_must_be_shown(project: Project) -> None:
    shown = "    def __init__(self, room: int) -> None:\n        # VAL: VAL_INT_RANGE(room, min=1)\n        ...\n\n"
    ((code, message),) = project.change_section(shown, "").found()
    assert code == codes.UNDOCUMENTED and "`__init__` takes arguments" in message


def test_an_entry_that_is_not_started_is_pending_and_no_error(project: Project) -> None:
    project.change_code("def weigh(", "def _weigh(")
    report = project.change_section("| `weigh` | 5.1.5 | DONE", "| `weigh` | 5.1.5 | NOT_STARTED").report()
    assert [(f.code, f.severity) for f in report.findings] == [(codes.PENDING, "note")]
    assert report.is_clean and report.pending == ("store.shelf.weigh",)


def test_an_entry_may_be_named_where_it_is_exported(project: Project) -> None:
    fence = "```python\ndef put(self, it: Parcel) -> int: ...\n```"
    entry = f"### 5.2 `store`\n\n#### 5.2.1 `Shelf.put`\n\n- errors: Full\n\n{fence}\n\n## 6. Plan"
    found = project.change_section("## 6. Plan", entry).found()
    assert {message.split(" (")[0] for _, message in found} == {
        "Shelf.put: parameter `it` is not in the code",
        "Shelf.put: parameter `parcel` of the code is not in the document",
        "Shelf.put: parameter `label` of the code is not in the document",
    }


def test_an_elided_method_beside_its_full_entry_promises_nothing(project: Project) -> None:
    project.change_section(
        "    def free(self) -> int: ...\n",
        "    def free(self) -> int: ...\n\n"
        "    def put(self, parcel: Parcel, *, label: str | None = None) -> int: ...\n",
    )
    # the class entry shows `put` too, so its errors are those of the class entry as well
    project.change_section("Keeps parcels in order.\n\n```", "Keeps parcels in order.\n\n- errors: Full\n\n```")
    assert project.found() == []


def test_an_annotation_in_the_code_needs_a_promise_even_from_an_elided_body(project: Project) -> None:
    project.change_section(
        "    # AST: AST_POSTCONDITION(len(self.parcels)>0)\n    return place\n", "    return place\n"
    )
    ((code, message),) = project.found()
    assert code == codes.VALIDATION and "which the document does not promise" in message


def test_a_fence_that_is_not_python_is_reported_at_its_line(project: Project) -> None:
    report = project.change_section("def weigh(parcels: List[Parcel]) -> float: ...", "def weigh(parcels -> :").report()
    assert report.findings[0].code == codes.FENCE
    assert report.findings[0].line == project.section.split("\n").index("def weigh(parcels -> :") + 1


def test_an_entry_without_a_signature_cannot_be_compared(project: Project) -> None:
    fence = "```python\ndef weigh(parcels: List[Parcel]) -> float: ...\n```\n"
    found = project.change_section(fence, "").found()
    assert (codes.FENCE, "entry 5.1.5: no Python fence defines `weigh`, so it cannot be compared") in found


def test_a_root_that_does_not_exist_is_an_error_once_work_has_begun(project: Project) -> None:
    found = project.change_section("roots: [store]", "roots: [store, shop]").found()
    assert found == [(codes.MISSING, "root shop does not exist")]


@pytest.mark.parametrize("name", ["..", "", "store.", "../store", "a b"])
def test_what_is_no_module_name_is_no_module(tmp_path: Path, name: str) -> None:
    assert Code(tmp_path).module(name) is None


def test_a_raise_that_is_caught_in_the_function_does_not_leave_it(project: Project) -> None:
    project.change_code(
        "    return sum(parcel",
        "    try:\n        raise Full('x')\n    except Full:\n        pass\n    return sum(parcel",
    )
    assert project.found() == []


def test_a_raise_that_its_handler_lets_go_leaves_the_function(project: Project) -> None:
    project.change_code(
        "    return sum(parcel",
        "    try:\n        raise Full('x')\n    except Full:\n        raise\n    return sum(parcel",
    )
    assert [code for code, _ in project.found()] == [codes.RAISE]


def test_a_documented_ancestor_covers_what_is_raised(project: Project) -> None:
    assert project.change_section("- errors: IndexError when", "- errors: LookupError when").found() == []


def test_an_error_may_be_said_to_come_from_a_call(project: Project) -> None:
    project.change_section("- errors: IndexError", "- errors: ValueError from `shelf.parcels.pop` when odd; IndexError")
    assert project.found() == []
    project.change_code("shelf.parcels.pop(place)", "shelf.parcels[place]")
    ((code, message),) = project.found()
    assert code == codes.RAISE and "said to come from `shelf.parcels.pop`" in message


def test_public_callables_are_functions_classes_and_methods_without_a_private_part(project: Project) -> None:
    project.write()
    module = Code(project.root).module("store.shelf")
    assert module is not None
    expected = ["Full", "Parcel", "Shelf", "Shelf.free", "Shelf.put", "Shelf.send", "weigh"]
    assert public_callables(module) == expected
    assert isinstance(module.tree, ast.Module)
