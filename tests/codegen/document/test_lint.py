from __future__ import annotations

from pathlib import Path

import pytest

from codegen.cli.annotations import check_annotations
from codegen.diagnostics import Finding
from codegen.document import parse_document
from codegen.document.codebase import Codebase
from codegen.document.lint import CODES, lint
from codegen.document.lint.fixes import FIXED, fix
from codegen.document.review import record, select
from codegen.expand.reading.marks import Marks
from codegen.patterns import load_library
from tests.codegen.document.samples import CLEAN, handmade
from tests.codegen.document.views import changed_lines

STEP = CLEAN[CLEAN.index("### Step 2: Till") :]
OLD_REVIEW = (
    "| Item | Verdict | Reviewer | Date | Digest |\n|---|---|---|---|---|\n| 5.9.9 | APPROVED | Ann | - | 1a2b3c4d |\n"
)
METHOD = "| `shop.till.Till` | 5.2.1 | NOT_STARTED | - |\n"


def _without(text: str, first: str, last: str) -> str:
    return text.replace(text[text.index(first) : text.index(last)], "")


# code → what to do to a clean document, and the text of the line that must be named
BROKEN: dict[str, tuple[list[tuple[str, str]], str]] = {
    "DOC001": ([("id: till\n", "")], "---"),
    "DOC002": ([("    lines: list[Money]\n```\n", "    lines: list[Money]\n")], "```python"),
    "DOC003": ([("| 2 | Till | 1", "| two | Till | 1")], "| two | Till"),
    "DOC004": ([("### Step 2: Till", "### Step 1: Till")], "### Step 1: Till"),
    "DOC005": ([("## 4. Flows", "## 7. Flows")], "## 7. Flows"),
    "DOC006": ([("| 2 | Till | 1 | NOT_STARTED", "| 2 | Till | 1 | todo")], "| 2 | Till | 1 | todo"),
    "DOC007": ([("version: 0.2", "version: 0.3")], "version: 0.3"),
    "DOC008": ([("# The till\n", "# A till\n")], "# A till"),
    "DOC009": ([("commit\n\n| Method", "commit\n| Method")], "| Method"),
    "DOC010": ([("- [x] T-2", "- [x] T-1")], "- [x] T-1"),
    "DOC011": ([("#### 5.2.1 `Till`", "#### 5.3.1 `Till`")], "#### 5.3.1"),
    "DOC012": ([("Sums drift when", "<who suffers> when")], "<who suffers>"),
    "DOC013": ([(CLEAN[CLEAN.index("```mermaid\nflowchart LR\n    a") : CLEAN.index("## 5.")], "")], "## 4."),
    "DOC017": ([("- purpose: sums\n", "- purpose: sums\n- purpose: sums\n")], "- purpose: sums"),
    "DOC014": ([("Sums drift when every caller rounds.", "Sums drift. ")], "Sums drift."),
    "DOC015": ([("Sums drift when", "<<<<<<< ours\nSums drift when")], "<<<<<<< ours"),
    "DOC016": ([("status: approved ", "status: done ")], "- T-1"),
    "REF001": ([("- deps: `Money`", "- deps: `Munny`")], "- deps: `Munny`"),
    "REF002": ([("An amount in cents.\n\n- deps: -", "An amount in cents.\n\n- deps: 5.1.2")], "#### 5.1.1"),
    "REF003": ([("- deps: `Money`", "- deps: `Till`")], "- deps: `Till`"),
    "REF004": ([("- decisions: D-2", "- decisions: D-9")], "- decisions: D-9"),
    "REF005": ([("- affects: 5.2.2", "- affects: -"), ("- decisions: D-2", "- decisions: G-1")], "### D-2"),
    "REF006": ([("`Money`\n- decisions: G-2", "`Money`")], "#### 5.2.1"),
    "REF007": ([("- affects: 5.2.2", "- affects: 5.9")], "- affects: 5.9"),
    "REF008": ([("- deps: 5.2.1, `shop.money.Money`", "- deps: 5.2.1")], "- deps: 5.2.1"),
    "REF009": (
        [
            ("`parse`", "`Till.parse`"),
            ("#### 5.2.2 `Till.total`", "#### 5.2.2 `Cart.parse`"),
            ("- deps: `Money`", "- deps: `parse`"),
        ],
        "- deps: `parse`",
    ),
    "REF010": ([("- confirmation: property test\n", "")], "### D-1"),
    "REF011": (
        [("- status: accepted\n- drivers: callers", "- status: rejected\n- drivers: callers")],
        "- decisions: D-2",
    ),
    "API001": ([("    lines: list[Money]\n", "    lines: list[\n")], "    lines: list["),
    "API002": ([("class Till:", "class Tall:")], "#### 5.2.1"),
    "API003": ([("The open sale.\n\n", "")], "#### 5.2.1"),
    "API004": ([("```python\nclass Till:\n    lines: list[Money]\n```\n", "")], "#### 5.2.1"),
    "API005": ([("VAL_NON_EMPTY", "VAL_NON_EMPTI")], "    # VAL: VAL_NON_EMPTI"),
    "API006": ([("VAL_NON_EMPTY", "VAL_INT_RANGE(minimum=1)")], "    # VAL: VAL_INT_RANGE"),
    "API007": ([("VAL_NON_EMPTY", "it must not be empty")], "    # VAL: it must"),
    "API008": ([("### 5.2 `shop.till`", "### 5.2 The till")], "#### 5.2.1"),
    "API009": ([("#### 5.2.2 `Till.total`", "#### 5.2.2 `Till`")], "#### 5.2.2"),
    "PLAN001": ([(METHOD, "".join(METHOD.replace("Till`", f"Till.m{n}`") for n in range(10)))], "### Step 2"),
    "PLAN002": ([("| `shop.till.Till` | 5.2.1", "| `shop.till.Tall` | 5.9.1")], "| `shop.till.Tall`"),
    "PLAN003": ([(METHOD, "")], "#### 5.2.1"),
    "PLAN004": (
        [
            (
                "| `shop.money.parse` | 5.1.2 | DONE | 67846cd2 |\n",
                f"| `shop.money.parse` | 5.1.2 | DONE | 67846cd2 |\n{METHOD}",
            )
        ],
        METHOD,
    ),
    "PLAN005": ([("| 2 | Till | 1 |", "| 2 | Till | 5 |")], "| 2 | Till | 5"),
    "PLAN006": (
        [
            ("| 2 | Till | 1 |", "| 2 | Till | - |"),
            ("The open sale.\n\n- deps: `Money`", "The open sale.\n\n- deps: -"),
            ("amount in cents.\n\n- deps: -", "amount in cents.\n\n- deps: 5.2.1"),
        ],
        "| `shop.money.Money`",
    ),
    "PLAN007": ([("| 2 | Till | 1 | NOT_STARTED", "| 2 | Till | 1 | DONE")], "| 2 | Till | 1 | DONE"),
    "PLAN008": ([("- purpose: sums\n", "")], "### Step 2"),
    "PLAN009": ([("    cents: int\n", "    cents: float\n")], "| `shop.money.Money`"),
    "PLAN010": ([(STEP, "")], "| 2 | Till"),
    "PLAN011": ([("32dbb969", "-")], "| `shop.money.Money`"),
    "PLAN012": ([("- depends: 1", "- depends: -")], "- depends: -"),
    "PLAN013": ([("| 2 | Till | 1 |", "| 2 | Till | - |"), ("- depends: 1", "- depends: -")], "| `shop.till.Till`"),
    "PLAN014": (
        [
            ("| 1 | Money | - | DONE | a1b2c3d |", "| 1 | Money | - | DONE | a1b2c3d | 3 |"),
            ("| 2 | Till | 1 | NOT_STARTED | - |", "| 2 | Till | 1 | NOT_STARTED | - | - |"),
            ("| Commit |\n|---|---|---|---|---|", "| Commit | Names |\n|---|---|---|---|---|---|"),
            (CLEAN[CLEAN.index("### Step 1") : CLEAN.index("### Step 2")], ""),
            ("| `shop.money.Money` | -", "| `shop.money.Money` | DONE | 1 | 75ce13d6 |\n| `shop.money.Money` | -"),
        ],
        "| 1 | Money | - | DONE",
    ),
    "REV001": ([("- outcome: the till", "- outcome: the caller")], "| D-2 |"),
    "REV002": ([("## 1. Goals", f"## Review record\n\n{OLD_REVIEW}\n## 1. Goals")], "| 5.9.9"),
    "REV003": ([("| D-2 | -", "| D-1 | -")], "| D-1 |"),
    "REV004": ([("| `shop.till.Till.total` | -", "| `shop.till.Till.sum` | -")], "| `shop.till.Till.sum`"),
    "SYM001": ([("`shop/money.py`", "`shop/monny.py`")], "The package `shop/`"),
    "SYM002": ([("`shop.money.Money`.", "`shop.money.Munny`.")], "callers use"),
    "SYM003": ([("roots: [shop]", "roots: [shop, store]")], "roots: [shop, store]"),
}


def _reviewed(text: str) -> str:
    document = parse_document(text)
    chosen = select(document, ["1", "3", "5"])
    return record(document, chosen, "APPROVED", "Ann", "2026-01-10")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    (root / "shop").mkdir()
    (root / "shop" / "__init__.py").write_text("", encoding="utf-8")
    (root / "shop" / "money.py").write_text("class Money:\n    cents: int\n", encoding="utf-8")
    return root


def _lint(text: str, project: Path) -> list[Finding]:
    library = load_library(None)
    marks = Marks(library.tags())
    return lint(
        parse_document(text),
        Codebase(project),
        lambda document: check_annotations(document, library, marks),
    )


def test_a_clean_document_has_no_findings(project: Path) -> None:
    assert _lint(CLEAN, project) == []
    assert _lint(_reviewed(CLEAN), project) == []


@pytest.mark.parametrize("name", [name for name in handmade() if name not in ("padded", "foreign")])
def test_layout_alone_leads_to_no_error(name: str, project: Path) -> None:
    assert [f for f in _lint(handmade()[name], project) if f.severity != "note"] == []


@pytest.mark.parametrize("code", CODES)
def test_each_code_is_found_at_its_line_and_says_how_to_mend_it(code: str, project: Path) -> None:
    text = _reviewed(CLEAN)
    changes, where = BROKEN[code]
    for old, new in changes:
        assert old in text, f"the sample has no {old!r}"
        text = text.replace(old, new, 1)
    found = [finding for finding in _lint(text, project) if finding.code == code]
    assert found
    lines = parse_document(text).lines
    assert any(where.strip() in lines[finding.line - 1] for finding in found), [lines[f.line - 1] for f in found]
    for finding in found:
        assert finding.severity == CODES[code][0]
        assert finding.fix or code in ("DOC013", "DOC016")


def test_every_code_is_tested() -> None:
    assert set(BROKEN) == set(CODES)


@pytest.mark.parametrize("code", [code for code in FIXED])
def test_what_can_be_mended_is_mended_and_nothing_else_changes(code: str, project: Path) -> None:
    text = _reviewed(CLEAN)
    for old, new in BROKEN[code][0]:
        text = text.replace(old, new, 1)
    if code == "DOC006":
        text = text.replace("| todo |", "| not started |").replace(
            "- status: accepted\n- drivers: floats", "- status: Accepted\n- drivers: floats"
        )
    mended = fix(parse_document(text))
    assert code in [finding.code for finding in _lint(text, project)]
    assert code not in [finding.code for finding in _lint(mended.text, project)]
    unbroken = fix(parse_document(_reviewed(CLEAN)))
    assert max(map(len, changed_lines(unbroken.text, mended.text))) <= (5 if code == "REV001" else 2)
    assert fix(mended).text == mended.text


def test_a_clean_document_in_the_present_form_is_not_touched_by_fix() -> None:
    for text in handmade().values():
        document = fix(parse_document(text))
        assert fix(document).text == document.text


def test_a_table_glued_to_a_list_is_parted_by_fix() -> None:
    glued = handmade()["padded"].replace("\n## 1. Goals", "- T-3: x\n| A | B |\n|---|---|\n| 1 | 2 |\n\n## 1. Goals", 1)
    assert [finding for finding in lint(parse_document(glued)) if finding.code == "DOC009"]
    mended = fix(parse_document(glued))
    assert "- T-3: x\n\n| A | B |" in mended.text
    assert not [finding for finding in lint(mended) if finding.code == "DOC009"]


def test_the_nearest_name_is_offered(project: Path) -> None:
    text = CLEAN.replace("- deps: `Money`", "- deps: `Mony`")
    [finding] = [finding for finding in _lint(text, project) if finding.code == "REF001"]
    assert finding.fix == "Did you mean `Money`?"


def test_names_outside_the_document_are_no_findings(project: Path) -> None:
    text = CLEAN.replace("- deps: `Money`", "- deps: `Money`, `decimal.Decimal`, ValueError, `torch.nn.Linear`")
    assert not [finding for finding in _lint(text, project) if finding.code.startswith("REF")]


def test_planned_files_and_apis_may_be_named_before_they_exist(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    assert not [finding for finding in _lint(CLEAN, tmp_path) if finding.code.startswith("SYM")]


def test_findings_come_in_the_order_of_lines(project: Path) -> None:
    text = (
        CLEAN.replace("id: till\n", "")
        .replace("- decisions: D-2", "- decisions: D-9")
        .replace("## 4. Flows", "## 7. Flows")
    )
    lines = [finding.line for finding in _lint(text, project)]
    assert lines == sorted(lines)
    assert len(lines) > 2


def test_an_annotation_before_a_stub_body_is_no_finding(project: Path) -> None:
    text = CLEAN.replace("    return Money(int(float(text) * 100))\n", "    ...\n")
    assert not [finding for finding in _lint(text, project) if finding.code.startswith("API")]


def test_the_reference_lists_every_code() -> None:
    reference = (Path(__file__).parents[3] / "docs" / "documents.md").read_text(encoding="utf-8")
    rows = reference.partition("| Code | Severity | Meaning |\n|---|---|---|\n")[2].splitlines()
    assert rows == [f"| {code} | {severity} | {meaning} |" for code, (severity, meaning) in CODES.items()]
    fixed = reference.partition("`--fix` corrects ")[2].partition("\n\n")[0]
    assert all(code in fixed for code in FIXED)
