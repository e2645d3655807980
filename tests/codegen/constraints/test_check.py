"""Contradictions among decisions, defaults and bounds are named as the smallest set; what can hold gives no finding."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import codegen.constraints.check as checking
from codegen.cli import main
from codegen.constraints.check import check
from codegen.diagnostics import Finding
from codegen.document.model import Document
from codegen.document.parse import parse_document
from codegen.patterns import load_library

LIBRARY = load_library(None)
SETTINGS = """
@dataclass(frozen=True)
class Settings:
    limit: int = 15
    rate: float = 0.5
    mode: Literal["fast", "slow"] = "fast"
    on: bool = True
    name: str | None = None
"""
TOTAL = """
def total(self, bill: int, share: float) -> int:
    # VAL: VAL_INT_RANGE(bill, min=0, max=500)
    # VAL: VAL_POSITIVE(share)
    ...
"""


def document(
    decisions: dict[str, list[str]],
    fences: tuple[str, ...] = (SETTINGS, TOTAL),
    path: str = "design/till.md",
    goals: str = "",
    module: str = "shop.till",
    status: str = "accepted",
) -> Document:
    lines = ["---", "id: till", "title: T", "version: 0.1", "status: draft", "roots: [shop]", "---", "# T", ""]
    lines += ["## 1. Goals and scope", "", goals, "", "## 3. Decisions", ""]
    for name, texts in decisions.items():
        lines += [f"### {name}: about it", "", f"- status: {status}", *(f"- constraint: {text}" for text in texts), ""]
    lines += ["## 5. APIs and implementation", "", f"### 5.1 `{module}`", ""]
    for at, (fence, name) in enumerate(zip(fences, ("Settings", "Till.total"), strict=False), 1):
        lines += [f"#### 5.1.{at} `{name}`", "", "```python", *fence.strip().split("\n"), "```", ""]
    return parse_document("\n".join(lines), Path(path))


def found(*documents: Document) -> list[tuple[str, str]]:
    return [(each.code, each.message) for each in check(documents, LIBRARY)]


def core(finding: tuple[str, str]) -> list[str]:
    """Who is in the set that a finding names."""
    assert finding[0] == "CON004", finding
    return [part.split(": `")[0] for part in finding[1].split(": ", 1)[1].split("; ")]


def test_two_decisions_that_cannot_hold_together_are_named() -> None:
    (finding,) = found(document({"D-1": ["cost <= 500"], "D-2": ["cost > 500"], "D-3": ["cost > 0"]}))
    assert core(finding) == ["D-1", "D-2"]
    assert finding[1].startswith("cannot hold together: D-1: `cost <= 500` (design/till.md:19); D-2: `cost > 500`")


def test_three_decisions_and_a_default_are_named() -> None:
    decisions = {"D-1": ["floor >= 2 * step"], "D-2": ["step >= 10"], "D-3": ["floor <= limit"], "D-4": ["step < 90"]}
    (finding,) = found(document(decisions))
    assert core(finding) == ["D-1", "D-2", "D-3", "default of `shop.till.Settings.limit`"]


def test_a_decision_and_the_bound_of_an_annotation_are_named() -> None:
    (finding,) = found(document({"D-1": ["bill >= 501"], "D-2": ["share < 1"]}))
    assert core(finding) == ["D-1", "`shop.till.Till.total`"]
    assert "VAL: VAL_INT_RANGE(bill, min=0, max=500)" in finding[1]


@pytest.mark.parametrize(
    ("fence", "decision"),
    [
        ("# VAL: VAL_POSITIVE(bill)", "bill <= 0"),
        ("# VAL: VAL_NON_NEGATIVE(bill)", "bill < 0"),
        ("# VAL: VAL_INT_RANGE(bill, min=3)", "bill < 3"),
        ("# VAL: VAL_INT_RANGE(min=3)", "bill < 3"),
        ("# VAL: VAL_FLOAT_RANGE(bill, min=0, max=1, exclude_max=True)", "bill >= 1"),
        ("# VAL: VAL_PROBABILITY(bill)", "bill > 1"),
        ("# VAL: VAL_ONE_OF(bill, {1, 2})", "bill == 3"),
        ("# AST: AST_PRECONDITION(0 < bill < 9)", "bill == 9"),
    ],
)
def test_each_bound_that_is_a_comparison_counts(fence: str, decision: str) -> None:
    total = f"def total(self, bill: int) -> int:\n    {fence}\n    ...\n"
    (finding,) = found(document({"D-1": [decision]}, (SETTINGS, total)))
    assert core(finding) == ["D-1", "`shop.till.Till.total`"]


@pytest.mark.parametrize(
    ("fence", "parameter"),
    [
        ("# VAL: VAL_INT_RANGE(bill, min=3)", "bill: list[int]"),  # each element, not the list
        ("# VAL: VAL_INT_RANGE(bill, min=count)", "bill: int"),  # count is nothing of Section 5
        ("# VAL: VAL_TYPE_CHECK(bill, int)", "bill: int"),
        ("# AST: AST_POSTCONDITION(bill > 3)", "bill: int"),  # afterwards, not before
        ("# VAL: VAL_NON_EMPTY(bill)", "bill: str"),
    ],
)
def test_what_an_annotation_does_not_say_of_the_quantity_itself_is_no_bound(fence: str, parameter: str) -> None:
    total = f"def total(self, {parameter}) -> int:\n    {fence}\n    ...\n"
    decision = "bill == 'x'" if "str" in parameter else "bill == 1"
    assert found(document({"D-1": [decision]}, (SETTINGS, total))) == []


def test_a_field_of_the_class_may_be_bounded_in_a_method_and_in_the_class() -> None:
    settings = "@dataclass\nclass Settings:\n    # VAL: VAL_POSITIVE(self.limit)\n    limit: int = 15\n"
    (finding,) = found(document({"D-1": ["limit <= 0 or limit == 20"]}, (settings,)))
    assert core(finding) == ["D-1", "default of `shop.till.Settings.limit`"]
    assert found(document({"D-1": ["limit >= 15"]}, (settings,))) == []


def test_a_default_outside_of_its_own_bound_is_a_contradiction_without_any_decision() -> None:
    total = "def total(self, bill: int = 900) -> int:\n    # VAL: VAL_INT_RANGE(bill, min=0, max=500)\n    ...\n"
    (finding,) = found(document({}, (SETTINGS, total)))
    assert set(core(finding)) == {"`shop.till.Till.total`", "default of `shop.till.Till.total.bill`"}


def test_a_type_that_lists_its_words_counts() -> None:
    (finding,) = found(document({"D-1": ["mode not in {fast, slow}"]}))
    assert len(core(finding)) == 2 and core(finding)[0] == "D-1"


def test_documents_that_can_hold_have_no_finding() -> None:
    decisions = {
        "D-1": ["limit >= 0 and limit <= 100", "rate in {0.5, 1}"],
        "D-2": ["mode == 'fast'", "on", "cost <= 500"],
        "D-3": ["bill <= 500", "cost >= limit", "share < 1; share > 0.5"],
    }
    assert found(document(decisions)) == []


def test_a_default_of_none_claims_nothing() -> None:
    assert found(document({"D-1": ["name == 'x'"]})) == []


def test_goals_carry_constraints_too() -> None:
    goals = "- G-1: be cheap\n  - constraint: cost <= 5\n- G-2: be good\n  - constraint: cost >= 6\n"
    (finding,) = found(document({}, goals=goals))
    assert core(finding) == ["G-1", "G-2"]
    assert "(design/till.md:13)" in finding[1] and "(design/till.md:15)" in finding[1]


def test_a_list_below_the_field_and_semicolons_part_constraints() -> None:
    text = "\n  - cost <= 5; cost >= 1\n  - `other == 3`"
    for last in ("cost > 5", "cost < 1", "other != 3"):
        (finding,) = found(document({"D-1": [text], "D-2": [last]}))
        assert core(finding) == ["D-1", "D-2"]
    assert found(document({"D-1": [text], "D-2": ["cost == 4 and other == 3"]})) == []


def test_a_field_with_a_text_of_its_own_and_a_list_below_it_says_both() -> None:
    text = "cost <= 5\n  - cost >= 1"
    for last in ("cost > 5", "cost < 1"):
        (finding,) = found(document({"D-1": [text], "D-2": [last]}))
        assert core(finding) == ["D-1", "D-2"]


def test_findings_begin_in_the_first_column() -> None:
    assert [each.column for each in check([document({"D-1": ["what is"]})], LIBRARY)] == [1]


@pytest.mark.parametrize("status", ["rejected", "superseded"])
def test_a_decision_that_is_not_in_force_claims_nothing(status: str) -> None:
    assert found(document({"D-1": ["cost < 1"], "D-2": ["cost > 1", "nonsense here"]}, status=status)) == []


def test_a_line_that_is_no_constraint_is_a_finding_at_its_place() -> None:
    (finding,) = check([document({"D-1": ["cost <= 5"], "D-2": ["cost should be small"]})], LIBRARY)
    assert (finding.code, finding.severity, finding.line) == ("CON001", "error", 24)
    assert finding.message.startswith("D-2: `cost should be small` is no expression")


def test_a_tail_that_several_quantities_have_must_be_written_longer() -> None:
    other = document(
        {}, path="design/bar.md", module="shop.bar", fences=("class Settings(NamedTuple):\n    limit: int\n",)
    )
    first = document({"D-1": ["limit > 1"]})
    ((code, message),) = found(first, other)
    assert code == "CON002" and "`shop.till.Settings.limit` or `shop.bar.Settings.limit`" in message
    assert found(document({"D-1": ["till.Settings.limit > 1"]}), other) == []
    assert len(found(document({"D-1": ["till.Settings.limit > 15"]}), other)) == 1
    assert found(document({"D-1": ["bar.Settings.limit > 15"]}), other) == []


def test_a_field_goes_before_parameters_of_the_same_tail() -> None:
    total = "def total(self, limit: int = 3) -> int: ...\n"
    (finding,) = found(document({"D-1": ["limit < 15"]}, (SETTINGS, total)))
    assert core(finding) == ["D-1", "default of `shop.till.Settings.limit`"]


def test_a_quantity_of_two_kinds_is_named_with_the_line_that_does_not_fit() -> None:
    ((code, message),) = found(document({"D-1": ["mode == 'fast'"], "D-2": ["mode > 3"]}))
    assert code == "CON003" and message.startswith("D-2: ") and "`mode > 3`" in message


def test_two_documents_contradict_each_other() -> None:
    other = document({"D-9": ["cost > 5"]}, fences=(), path="design/bar.md")
    (finding,) = found(document({"D-1": ["cost < 5"]}), other)
    assert "D-1: `cost < 5` (design/till.md:19); D-9: `cost > 5` (design/bar.md:19)" in finding[1]


def test_several_contradictions_are_all_named_and_each_once() -> None:
    decisions = {"D-1": ["a < 1"], "D-2": ["a > 1"], "D-3": ["b < 1"], "D-4": ["b > 1"], "D-5": ["b > 0 or a > 0"]}
    assert sorted(core(each) for each in found(document(decisions))) == [["D-1", "D-2"], ["D-3", "D-4"]]


def test_without_the_solver_lines_are_read_and_the_check_says_that_it_did_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checking, "has_solver", lambda: False)
    contradiction = document({"D-1": ["cost < 5"], "D-2": ["cost > 5", "what is this"]})
    codes = [(each.code, each.severity) for each in check([contradiction], LIBRARY)]
    assert codes == [("CON001", "error"), ("CON005", "note")]
    assert "2 constraints were read and not solved" in found(contradiction)[1][1]
    assert found(document({})) == []


def test_what_is_not_decided_in_time_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    findings: list[Finding] = check([document({"D-1": ["cost < 5"], "D-2": ["cost > 1"]})], LIBRARY, seconds=0.0)
    assert {each.code for each in findings} == {"CON006"} and not [e for e in findings if e.severity == "error"]


def test_the_time_for_all_claims_is_bounded() -> None:
    hard = [f"a{i} * a{i + 1} * a{i + 2} == {1000003 + i}" for i in range(12)]
    begun = time.monotonic()
    check([document({"D-1": hard})], LIBRARY, seconds=1.0)
    assert time.monotonic() - begun < 8.0


def test_lint_names_a_contradiction_and_exits_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "design").mkdir()
    (tmp_path / "design" / "till.md").write_text(document({"D-1": ["cost < 5"]}).text)
    bar = document({"D-9": ["cost > 5"]}, path="design/bar.md", fences=()).text.replace("id: till", "id: bar")
    (tmp_path / "design" / "bar.md").write_text(bar)
    monkeypatch.chdir(tmp_path)
    assert main(["lint", "bar"]) == 1
    assert "CON004" in capsys.readouterr().out


def test_the_reference_lists_the_codes_of_constraints() -> None:
    reference = (Path(__file__).parents[3] / "docs" / "documents.md").read_text(encoding="utf-8")
    rows = reference.partition("| Constraint | Severity | Meaning |\n|---|---|---|\n")[2].partition("\n\n")[0]
    assert rows.splitlines() == [f"| {code} | {sev} | {meaning} |" for code, (sev, meaning) in checking.CODES.items()]
