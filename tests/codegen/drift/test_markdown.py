"""Any Markdown file with fenced signatures can be compared with a package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codegen.drift import compare as codes
from codegen.drift.code import Code
from codegen.drift.markdown import AnyReport, drift_any

if TYPE_CHECKING:
    from tests.codegen.drift.conftest import Project

PLAN = """\
# Shelf plan

### Task 1: the shelf

**Files:** create `store/shelf.py`, test `tests/test_shelf.py`

- [ ] Write the test

```python
def test_put() -> None:
    assert Shelf(room=2).put(Parcel("a")) == 0
```

- [ ] Write `Shelf.put`

```python
class Shelf:
    def put(self, parcel, *, label=None):
        ...
```

### Task 2: weights

```python
# store/shelf.py
def weigh(parcels: list[Parcel]) -> float:
    return sum(parcel.weight for parcel in parcels)
```

Use it:

```python
print(weigh([Parcel("a")]))
```
"""


def compared(project: Project, text: str) -> AnyReport:
    project.write()
    path = project.root / "plan.md"
    path.write_text(text)
    return drift_any(path, Code(project.root), "store")


def test_a_plan_that_the_code_follows_has_no_findings(project: Project) -> None:
    report = compared(project, PLAN)
    assert report.findings == ()
    assert (report.fences, report.compared) == (4, 3)


def test_a_renamed_parameter_is_found_at_its_line(project: Project) -> None:
    report = compared(project, PLAN.replace("def weigh(parcels:", "def weigh(things:"))
    (finding,) = report.findings
    assert (finding.code, finding.line) == (codes.PARAMETER, PLAN.split("\n").index("# store/shelf.py") + 2)


def test_what_the_package_lacks_is_missing(project: Project) -> None:
    report = compared(project, PLAN + "\n```python\ndef burn(): ...\n```\n")
    assert [(finding.code, finding.message) for finding in report.findings] == [
        (codes.MISSING, "burn is in the document, not in store")
    ]


def test_a_name_of_two_modules_is_compared_with_the_one_the_text_names(project: Project) -> None:
    project.write()
    (project.root / "store" / "scale.py").write_text("def weigh(grams: int) -> int: ...\n")
    assert compared(project, PLAN).findings == ()
    (finding,) = compared(project, PLAN.replace("# store/shelf.py", "# store/scale.py")).findings[:1]
    assert finding.code == codes.PARAMETER


def test_a_name_of_two_modules_without_a_hint_is_ambiguous(project: Project) -> None:
    project.write()
    (project.root / "store" / "scale.py").write_text("def weigh(grams: int) -> int: ...\n")
    (finding,) = compared(project, "```python\ndef weigh(grams): ...\n```\n").findings
    assert (finding.code, finding.severity) == (codes.AMBIGUOUS, "note")
    assert "store.scale.weigh (store/scale.py:1), store.shelf.weigh (store/shelf.py:" in finding.message


def test_a_method_shown_alone_finds_its_class(project: Project) -> None:
    text = "## `Shelf.put`\n\n```python\ndef put(self, parcel, label=None): ...\n```\n"
    (finding,) = compared(project, text).findings
    assert "`label` is positional here, keyword-only in the code" in finding.message


def test_a_fence_that_is_not_python_is_passed_over_with_a_note(project: Project) -> None:
    (finding,) = compared(project, "```python\ndef put(self ...\n```\n").findings
    assert (finding.code, finding.severity, finding.line) == (codes.FENCE, "note", 2)


def test_of_two_fences_of_one_name_the_last_counts(project: Project) -> None:
    first = "```python\n# store/shelf.py\ndef weigh(kilos): ...\n```\n\n"
    assert compared(project, first + PLAN).findings == ()


def test_a_promised_validation_must_be_in_the_code(project: Project) -> None:
    body = "    # VAL: VAL_NON_EMPTY(parcels)\n    ..."
    (finding,) = compared(project, f"```python\ndef weigh(parcels):\n{body}\n```\n").findings
    assert finding.code == codes.VALIDATION
