from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from codegen.diagnostics import UsageError
from codegen.document import parse_document
from codegen.document.compare import compare, signatures, summary
from codegen.document.review import record, select, subjects, unapproved, withdrawn
from codegen.document.versions import at_revision, raised
from tests.codegen.document.samples import CLEAN
from tests.codegen.document.views import changed_lines, formatted


def _approved(text: str, *items: str) -> str:
    document = parse_document(text)
    return record(document, select(document, items), "APPROVED", "Ann", "2026-01-10")


def test_subjects_come_top_down() -> None:
    ids = list(subjects(parse_document(CLEAN)))
    assert ids == [
        "1 Problem",
        "1 Goals",
        "2",
        "D-1",
        "D-2",
        "4",
        "shop.money.Money",
        "shop.money.parse",
        "shop.till.Till",
        "shop.till.Till.total",
        "shop.till._check_lines",
    ]


def test_an_approval_is_recorded_with_reviewer_date_and_digest() -> None:
    document = parse_document(_approved(CLEAN, "D-1", "5.1.1"))
    rows = {a.item: (a.verdict, a.reviewer, a.date) for a in document.approvals}
    assert rows == {"D-1": ("APPROVED", "Ann", "2026-01-10"), "shop.money.Money": ("APPROVED", "Ann", "2026-01-10")}
    assert [s.id for s in unapproved(document, ["D-1", "shop.money.Money", "shop.money.parse"])] == ["shop.money.parse"]
    last = document.log[-1]
    assert (last.round, last.date, last.asked) == ("2", "2026-01-10", "review by Ann: approved")
    assert (last.changed, last.decisions) == ("shop.money.Money", "D-1")


def test_approvals_of_one_reviewer_and_day_are_one_round() -> None:
    text = _approved(_approved(CLEAN, "D-1"), "D-2", "5.1")
    document = parse_document(text)
    assert len(document.log) == 2
    assert (document.log[-1].changed, document.log[-1].decisions) == ("shop.money.Money, shop.money.parse", "D-1, D-2")


def test_a_changed_decision_takes_back_what_follows_it() -> None:
    text = _approved(CLEAN, "1", "2", "3", "4", "5")
    assert unapproved(parse_document(text)) == []
    changed = text.replace("- outcome: the till", "- outcome: the caller")
    assert [s.id for s in unapproved(parse_document(changed))] == ["D-2", "shop.till.Till.total"]
    marked = withdrawn(parse_document(changed))
    rows = {a.item: a.verdict for a in parse_document(marked).approvals}
    assert [item for item, verdict in rows.items() if verdict == "NEEDS_REVIEW"] == ["D-2", "shop.till.Till.total"]
    assert len(changed_lines(changed, marked)[0]) == 2


def test_affects_alone_is_no_change_of_a_decision() -> None:
    text = _approved(CLEAN, "D-2")
    assert not unapproved(parse_document(text.replace("- affects: 5.2.2", "- affects: 5.2")), ["D-2"])


def test_a_formatter_takes_back_no_approval() -> None:
    text = formatted(_approved(CLEAN, "1", "2", "3", "4", "5"))
    assert unapproved(parse_document(text)) == []


def test_a_verdict_decides_a_proposed_decision() -> None:
    text = CLEAN.replace("- status: accepted\n- drivers: callers", "- status: proposed\n- drivers: callers")
    document = parse_document(_approved(text, "D-2"))
    assert document.decision_by_id["D-2"].status == "accepted"
    assert not unapproved(document, ["D-2"])
    document = parse_document(text)
    rejected = record(document, select(document, ["D-2"]), "REJECTED", "Ann", "2026-01-10", "the caller knows better")
    document = parse_document(rejected)
    assert document.decision_by_id["D-2"].status == "rejected"
    assert document.log[-1].asked == "review by Ann: rejected, the caller knows better"
    assert subjects(document)["D-2"].verdict == "REJECTED"


def test_names_of_subjects() -> None:
    document = parse_document(CLEAN)
    assert [s.id for s in select(document, ["3"])] == ["D-1", "D-2"]
    assert [s.id for s in select(document, ["5.1", "Till.total"])] == [
        "shop.money.Money",
        "shop.money.parse",
        "shop.till.Till.total",
    ]
    with pytest.raises(UsageError, match="'9' is no decision, section or method"):
        select(document, ["9"])


def test_a_comparison_speaks_of_decisions_methods_and_steps() -> None:
    new = CLEAN.replace("version: 0.2", "version: 0.3").replace("Sums drift when", "Totals drift when")
    new = new.replace("- outcome: the till", "- outcome: the caller")
    new = new.replace("def parse(text: str) -> Money:", "def parse(text: str, unit: str = 'EUR') -> Money:")
    new = new.replace("    return sum(self.lines, Money(0))", "    return Money(0)")
    new = new.replace("- deps: `Money`", "- deps: `Money`, 5.1.2")
    new = new.replace("| 2 | Till | 1 | NOT_STARTED", "| 2 | Till | 1 | BLOCKED")
    changes = compare(parse_document(CLEAN), parse_document(new))
    assert [(c.kind, c.id, c.what, c.details) for c in changes] == [
        ("document", "till", "changed", ("version: 0.2 → 0.3",)),
        ("section", "1.1", "changed", ()),
        ("decision", "D-2", "changed", ("outcome: the till → the caller",)),
        (
            "method",
            "5.1.2",
            "changed",
            ("signature: def parse(text: str) -> Money → def parse(text: str, unit: str='EUR') -> Money",),
        ),
        ("method", "5.2.1", "changed", ("deps: +parse",)),
        ("method", "5.2.2", "changed", ("implementation",)),
        ("step", "Step 2", "changed", ("status: NOT_STARTED → BLOCKED",)),
    ]
    assert summary(changes) == "1.1 changed; D-2 changed; 5.1.2 changed; 5.2.1 changed; 5.2.2 changed"


def test_layout_and_renumbering_are_told_as_what_they_are() -> None:
    assert compare(parse_document(CLEAN), parse_document(formatted(CLEAN))) == []
    moved = CLEAN.replace("5.2.2", "5.2.9")
    changes = compare(parse_document(CLEAN), parse_document(moved))
    assert ("method", "5.2.9", ("number: 5.2.2 → 5.2.9",)) in [(c.kind, c.id, c.details) for c in changes]


def test_added_and_removed_things_are_told() -> None:
    cut = CLEAN[CLEAN.index("#### 5.2.3") : CLEAN.index("## 6. Plan")]
    rest = CLEAN.replace(cut, "").replace("| `shop.till._check_lines` | 5.2.3 | NOT_STARTED | - |\n", "")
    forth = {(c.kind, c.id, c.what) for c in compare(parse_document(CLEAN), parse_document(rest))}
    back = {(c.kind, c.id, c.what) for c in compare(parse_document(rest), parse_document(CLEAN))}
    assert ("method", "5.2.3", "removed") in forth
    assert ("method", "5.2.3", "added") in back


def test_signatures_of_a_fence() -> None:
    code = "@dataclass\nclass A(B):\n    x: int\n    async def f(self, /, *a: int) -> None: ...\ndef g(): return 1\n"
    assert signatures(code) == {
        "A": "@dataclass\nclass A(B)",
        "A.f": "async def f(self, /, *a: int) -> None",
        "g": "def g()",
    }
    assert signatures("def (") == {}


@pytest.mark.parametrize(
    ("version", "part", "new"),
    [
        ("0.1", "minor", "0.2"),
        ("0.1", "major", "1.0"),
        ("0.1", "patch", "0.1.1"),
        ("0.1.4", "minor", "0.2.0"),
        ("1.2.9", "patch", "1.2.10"),
        ("3", "minor", "3.1"),
        ("3", "major", "4.0"),
    ],
)
def test_versions_are_raised_part_by_part(version: str, part: str, new: str) -> None:
    assert raised(version, part) == new


@pytest.mark.parametrize("to", ["x", "", "1.2.3.4", "0.1", "v0.3", "0.2.9 "])
def test_a_version_that_is_none_or_an_earlier_one_is_refused(to: str) -> None:
    with pytest.raises(UsageError, match="--to"):
        raised("0.3", "minor", to)


def test_a_version_may_be_named() -> None:
    assert [raised("0.9", "minor", to) for to in ("0.10", "1", "0.9.1")] == ["0.10", "1", "0.9.1"]


def test_a_version_without_numbers_is_refused() -> None:
    with pytest.raises(UsageError, match="--to"):
        raised("next", "minor")


def test_an_earlier_text_is_found_by_revision_and_by_version(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    path = tmp_path / "till.md"
    git("init", "-q")
    for version in ("0.2", "0.3", "0.4"):
        path.write_text(CLEAN.replace("version: 0.2", f"version: {version}"), encoding="utf-8")
        git("add", "till.md")
        git("commit", "-q", "-m", version)
    assert at_revision(path, "HEAD~1").front.version == "0.3"
    assert at_revision(path, "0.2").front.version == "0.2"
    with pytest.raises(UsageError, match="neither a git revision nor a version"):
        at_revision(path, "9.9")
    other = tmp_path / "other.md"
    other.write_text(CLEAN, encoding="utf-8")
    with pytest.raises(UsageError, match="does not exist in HEAD"):
        at_revision(other, "HEAD")
