"""Two branches that each add an entry, a decision and a step: git merges them, and what is doubled is repaired."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from codegen.cli import main
from codegen.document.lint import lint
from codegen.document.lint.fixes import fix
from codegen.document.model import Document
from codegen.document.modern import modern
from codegen.document.parse import parse_document, read_document
from codegen.document.recording import set_record
from codegen.document.review import record, select, subjects
from codegen.document.staleness import statuses
from codegen.document.words import word_diff
from tests.codegen.document.test_names import _done, _states


def _git(root: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *identity, *arguments], cwd=root, check=check, capture_output=True, text=True)


def _branch(text: str, name: str, title: str) -> str:
    """The document with one more decision, an entry that follows it, a step with that entry and their approvals."""
    decision = (
        f"### D-3: {title}\n\n- status: accepted\n- drivers: x\n- options: a; b\n- outcome: {title}\n"
        f"- consequences: y\n- affects: `shop.{name}`\n- confirmation: z\n\n"
    )
    text = text.replace("## 4. Flows", decision + "## 4. Flows")
    code = f"def {name}_total(a: int = {len(title)}) -> int: ..."
    entry = (
        f"### 5.3 `shop.{name}`\n\n#### 5.3.1 `{name}_total`\n\n{title}.\n\n- deps: `shop.money.Money`\n"
        f"- decisions: D-3\n- errors: -\n- tests: tests/shop/test_{name}.py\n\n```python\n{code}\n```\n\n"
    )
    text = text.replace("## 6. Plan", entry + "## 6. Plan")
    text = re.sub(r"(\| 2 \| Till .*\n)", rf"\1| 3 | {title} | 1 | NOT_STARTED | - |\n", text)
    step = (
        f"### Step 3: {title}\n\n- purpose: {title}\n- depends: 1\n- files: shop/{name}.py\n- checkpoints: c\n"
        f"- tests: `pytest tests/shop/test_{name}.py`\n- rollback: revert\n- names: `shop.{name}.{name}_total`\n\n"
    )
    document = parse_document(text.replace("## Record", step + "## Record"))
    return record(document, select(document, ["D-3", f"shop.{name}.{name}_total"]), "APPROVED", name, "2026-02-01")


def _without_log(text: str) -> str:
    """The iteration log is a diary in order, so that two branches conflict there; that is not asked here."""
    return re.sub(r"\n\| \d+ \| 2026-02-01 .*", "", text)


def _merge(base: str) -> tuple[str, list[Document]]:
    """What a person has after taking both sides of every conflict, block by block, and the two sides."""
    sides = [
        _without_log(_branch(base, *pair)) for pair in (("cart", "Carts are summed"), ("vat", "Taxes are added last"))
    ]
    text = base
    for start, end in (("### D-3", "## 4. Flows"), ("### 5.3", "## 6. Plan"), ("### Step 3", "## Record")):
        blocks = [side[side.index(start) : side.index(end)] for side in sides]
        text = text.replace(end, "".join(blocks) + end)
    rows = [re.findall(r"^\| 3 \| [^0-9].*\n", side, re.MULTILINE)[0] for side in sides]
    text = re.sub(r"(\| 2 \| Till .*\n)", lambda found: found[0] + "".join(rows), text)
    both = dict.fromkeys(line for side in sides for line in side.partition("## Record")[2].split("\n") if line)
    return text.partition("## Record")[0] + "## Record\n\n" + "\n".join(both) + "\n", [parse_document(s) for s in sides]


def test_doubled_decisions_and_steps_are_repaired_by_what_each_side_meant() -> None:
    base = modern(_done()).text
    text, sides = _merge(base)
    codes = {finding.code for finding in lint(parse_document(text)) if finding.severity == "error"}
    assert {"DOC010", "DOC004", "REV003"} <= codes
    document = fix(parse_document(text), sides)
    titles = {decision.title: decision.id for decision in document.decisions}
    assert (titles["Carts are summed"], titles["Taxes are added last"]) == ("D-3", "D-4")
    assert document.entry_by_id["shop.cart.cart_total"].decisions == ("D-3",)
    assert document.entry_by_id["shop.vat.vat_total"].decisions == ("D-4",)
    steps = {step.title: [method.name for method in step.methods] for step in document.steps}
    assert steps["Carts are summed"] == ["shop.cart.cart_total"]
    assert steps["Taxes are added last"] == ["shop.vat.vat_total"]
    numbers = [entry.number for entry in document.entries]
    assert len(numbers) == len(set(numbers))
    assert _states(document)["shop.money.Money"] == ("DONE", "APPROVED")
    assert _states(document)["shop.cart.cart_total"] == ("NOT_STARTED", "APPROVED")
    assert not {"DOC010", "DOC004"} & {finding.code for finding in lint(document)}


def test_what_no_side_tells_is_left_and_named() -> None:
    text, _ = _merge(modern(_done()).text)
    document = fix(parse_document(text))
    assert [decision.id for decision in document.decisions].count("D-3") == 2
    assert "DOC010" in {finding.code for finding in lint(document)}


def test_rows_that_two_branches_add_merge_without_a_conflict(tmp_path: Path) -> None:
    base = modern(_done())
    (tmp_path / "till.md").write_text(base.text, encoding="utf-8")
    _git(tmp_path, "init", "-q", "-b", "main")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-q", "-m", "base")
    for branch, name in (("one", "shop.money.aaa"), ("two", "shop.till.zzz")):
        _git(tmp_path, "checkout", "-q", "-b", branch, "main")
        text = set_record(base, {name: {"verdict": "NEEDS_REVIEW", "reviewer": "Ann", "date": "2026-02-01"}})
        (tmp_path / "till.md").write_text(text, encoding="utf-8")
        _git(tmp_path, "commit", "-q", "-a", "-m", branch)
    assert _git(tmp_path, "merge", "-q", "-m", "both", "one", check=False).returncode == 0
    document = read_document(tmp_path / "till.md")
    assert {"shop.money.aaa", "shop.till.zzz"} <= set(document.record)
    assert statuses(document) == statuses(base)


def test_of_two_rows_the_one_that_is_of_the_present_text_stays() -> None:
    base = fix(_done())
    row = next(line for line in base.lines if line.startswith("| `shop.money.parse`"))
    old = re.sub(r"\| DONE \| - \| [0-9a-f.]+", "| DONE | - | 11111111.22222222", row)
    document = fix(parse_document(base.text.replace(row, old + row)))
    assert document.text == base.text


def test_an_approval_that_holds_is_not_overwritten_by_another_reviewer() -> None:
    base = modern(_done())
    changed = parse_document(base.text.replace("text is no amount", "text is nothing"))
    text = record(changed, select(changed, ["3", "5"]), "APPROVED", "Bob", "2026-03-01")
    reviewers = {approval.item: approval.reviewer for approval in parse_document(text).approvals}
    assert {item for item, reviewer in reviewers.items() if reviewer == "Bob"} == {"shop.money.parse"}
    assert reviewers["shop.money.Money"] == reviewers["D-1"] == "Ann"


def test_approving_a_proposed_decision_approves_what_follows_it_in_the_same_call() -> None:
    base = modern(_done())
    text = base.text.replace("- status: accepted\n- drivers: callers", "- status: proposed\n- drivers: callers")
    document = parse_document(text)
    document = parse_document(record(document, select(document, ["3", "5"]), "APPROVED", "Bob", "2026-03-01"))
    judged = subjects(document)
    assert judged["D-2"].verdict == judged["shop.till.Till.total"].verdict == "APPROVED"


def test_review_next_shows_what_changed_word_by_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "design" / "till.md"
    path.parent.mkdir()
    path.write_text(modern(_done()).text, encoding="utf-8")
    _git(tmp_path, "init", "-q", "-b", "main")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-q", "-m", "approved")
    text = path.read_text(encoding="utf-8").replace("- outcome: the till\n", "- outcome: the caller\n")
    path.write_text(text, encoding="utf-8")
    assert main(["review", "next"]) == 0
    out = capsys.readouterr().out
    assert "- outcome: the [-till-]{+caller+}" in out
    assert "- status: accepted" not in out  # what did not change is left out
    assert main(["review", "show", "Till.total"]) == 0
    out = capsys.readouterr().out
    assert "D-2:" in out and "[-till-]{+caller+}" in out and "def total" not in out


def test_a_word_diff_marks_words_and_leaves_the_rest_out() -> None:
    old = "a\nb\nc one two\nd\ne\nf\n"
    assert word_diff(old, old.replace("two", "three")) == ["…", "b", "c one [-two-]{+three+}", "d", "…"]
    assert word_diff("same\n", "same\n") == ["…"]
    assert word_diff("a\n", "a\nnew line\n") == ["a", "{+new line+}", ""]
