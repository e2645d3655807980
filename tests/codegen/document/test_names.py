"""Names are identity: nothing that is inserted, moved, renamed or removed hands a status or an approval on."""

from __future__ import annotations

import random
import re

import pytest

from codegen.diagnostics import UsageError
from codegen.document.edit import set_method_status, set_step_status
from codegen.document.fold import finished_step, folded, long_form, unfolded
from codegen.document.lint import lint
from codegen.document.lint.fixes import fix
from codegen.document.model import Document
from codegen.document.modern import modern
from codegen.document.naming import with_names
from codegen.document.parse import parse_document
from codegen.document.references import References
from codegen.document.renaming import removed, renamed
from codegen.document.review import record, select, subjects
from codegen.document.staleness import statuses
from tests.codegen.document.samples import CLEAN

ALL = ("1", "2", "3", "4", "5")
CLASS = """\
### 5.2 `shop.lost`

#### 5.2.1 `Lost`

Lost things.

- decisions: G-2

```python
class Lost: ...
```

"""


def _done(text: str = CLEAN, step: int = 1) -> Document:
    """The sample, all approved, the methods of a step DONE with their digests."""
    document = parse_document(text)
    document = parse_document(record(document, select(document, ALL), "APPROVED", "Ann", "2026-01-10"))
    for method in document.step_by_number[step].methods:
        digest = document.entry_of(method).digest  # type: ignore[union-attr]
        document = parse_document(set_method_status(document, step, method.name, "DONE", digest))
    return parse_document(set_step_status(document, step, "DONE"))


def _states(document: Document) -> dict[str, tuple[str, str]]:
    judged = subjects(document)
    return {name: (status, judged[name].verdict) for name, status in statuses(document).items() if name in judged}


def _errors(document: Document) -> list[str]:
    return [finding.code for finding in lint(document) if finding.severity == "error"]


@pytest.mark.parametrize("old_form", [True, False])
def test_a_module_put_in_between_takes_nothing_from_its_neighbour(old_form: bool) -> None:
    before = _done(_done().text, 2)
    before = with_names(before if old_form else modern(before))
    text = before.text.replace("### 5.2 `shop.till`", CLASS + "### 5.3 `shop.till`")
    text = re.sub(r"#### 5\.2\.(\d `(?:Till|_check))", r"#### 5.3.\1", text)
    after = _states(parse_document(text))
    assert after.pop("shop.lost.Lost") == ("NOT_STARTED", "NEEDS_REVIEW")
    assert after == _states(before)
    assert set(after.values()) == {("DONE", "APPROVED")}


@pytest.mark.parametrize("old_form", [True, False])
def test_an_entry_put_at_the_top_of_a_module_shifts_nothing(old_form: bool) -> None:
    before = _done(_done().text, 2)
    before = with_names(before if old_form else modern(before))
    entry = "#### 5.2.1 `Cart`\n\nA cart.\n\n- decisions: G-2\n\n```python\nclass Cart: ...\n```\n\n#### 5.2.2 `Till`\n"
    text = before.text.replace("#### 5.2.3 `_check", "#### 5.2.4 `_check").replace(
        "#### 5.2.2 `Till.t", "#### 5.2.3 `Till.t"
    )
    after = _states(parse_document(text.replace("#### 5.2.1 `Till`\n", entry)))
    assert after.pop("shop.till.Cart") == ("NOT_STARTED", "NEEDS_REVIEW")
    assert after == _states(before)


def test_moving_a_document_over_keeps_every_status_digest_and_approval() -> None:
    before = _done()
    after = modern(before)
    assert _states(after) == _states(before)
    assert "Review record" not in after.text and "| Method |" not in after.text
    changed = before.text.replace("    cents: int\n", "    cents: float\n").replace(
        "- outcome: the till", "- outcome: we"
    )
    assert _states(modern(parse_document(changed))) == _states(parse_document(changed))
    assert _states(modern(parse_document(changed)))["shop.money.Money"] == ("STALE", "NEEDS_REVIEW")


def test_folding_changes_no_contract_status_or_approval() -> None:
    before = modern(_done())
    after = parse_document(finished_step(before, 1, "abc1234"))
    assert {name for name in after.entry_by_id if after.entry_by_id[name].folded} == {
        "shop.money.Money",
        "shop.money.Money.plus",
        "shop.money.parse",
    }
    for name in ("shop.money.Money", "shop.money.parse"):
        assert _states(after)[name] == ("DONE", "APPROVED")
        assert after.entry_by_id[name].contracts[name] == before.entry_by_id[name].contracts[name]
    assert _errors(after) == []
    step = after.step_by_number[1]
    assert (step.folded, step.commit, step.names, len(step.methods)) == (True, "abc1234", 3, 3)
    assert "### Step 1" not in after.text and "An amount in cents." not in after.text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("text: str) -> Money:", "texts: str) -> Money:"),
        ("text: str) -> Money:", "text: str = '') -> Money:"),
        ("text: str) -> Money:", "text: str) -> Money | None:"),
        ("def parse", "async def parse"),
        ("    # VAL: VAL_NON_EMPTY\n", ""),
        ("    # VAL: VAL_NON_EMPTY\n", "    # VAL: VAL_NON_EMPTY(text)\n"),
        ("    raise ValueError  # when the text is no amount\n", ""),
        ("raise ValueError  # when the text", "raise TypeError  # when the text"),
        ("def parse", "@staticmethod\ndef parse"),
    ],
)
def test_a_folded_name_is_stale_when_its_contract_changes(old: str, new: str) -> None:
    text = finished_step(_done(), 1)
    assert text.count(old) == 1
    assert statuses(parse_document(text.replace(old, new)))["shop.money.parse"] == "STALE"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# when the text is no amount", "# when it is no amount"),
        ("def parse(text: str) -> Money:", "def parse(\n    text: str,\n) -> Money:"),
        ("- decisions: D-1\n- tests", "- decisions: D-1, G-1\n- tests"),
        ("class Money:\n", "class Money:\n\n"),
    ],
)
def test_a_folded_name_is_not_stale_for_what_no_caller_sees(old: str, new: str) -> None:
    text = finished_step(_done(), 1)
    assert old in text
    assert statuses(parse_document(text.replace(old, new)))["shop.money.parse"] == "DONE"


def test_what_is_not_done_is_not_folded() -> None:
    document = modern(parse_document(CLEAN))
    with pytest.raises(UsageError, match="only what is done is folded"):
        folded(document, ["shop.till.Till"])
    with pytest.raises(UsageError, match="Step 2 is not done"):
        finished_step(document, 2)
    stale = _done().text.replace("    cents: int\n", "    cents: float\n")
    with pytest.raises(UsageError, match=r"Step 1 is not done: shop\.money\.Money"):
        finished_step(parse_document(stale), 1)


def test_unfolding_and_folding_again_comes_back_to_the_same_states() -> None:
    closed = parse_document(finished_step(_done(), 1))
    opened = parse_document(unfolded(closed, ["shop.money.Money"]))
    assert not opened.entry_by_id["shop.money.Money"].folded
    assert _states(opened)["shop.money.Money"] == ("DONE", "APPROVED")
    edited = opened.text.replace(
        "    cents: int\n    def", "    cents: int\n    # the body is another one now\n    def"
    )
    assert statuses(parse_document(edited))["shop.money.Money"] == "STALE"
    assert _states(parse_document(folded(opened))) == _states(closed)


def test_a_folded_name_without_a_row_is_adopted_and_an_open_one_is_not_started() -> None:
    text = finished_step(_done(), 1)
    text = re.sub(r"\| `shop\.money.*\n", "", text).replace("| DONE | a1b2c3d | 3 |", "| DONE | a1b2c3d | - |")
    found = statuses(parse_document(text))
    assert {name: found[name] for name in ("shop.money.parse", "shop.till.Till")} == {
        "shop.money.parse": "ADOPTED",
        "shop.till.Till": "NOT_STARTED",
    }


def test_a_row_that_goes_missing_is_seen() -> None:
    text = finished_step(_done(), 1)
    row = next(line for line in text.split("\n") if line.startswith("| `shop.money.parse`"))
    assert "PLAN014" in _errors(parse_document(text.replace(row + "\n", "")))


@pytest.mark.parametrize(
    ("old", "new"), [("shop.money.parse", "shop.money.read"), ("shop.money.Money", "shop.money.Amount")]
)
@pytest.mark.parametrize("close", [True, False])
def test_a_rename_keeps_status_and_approval_under_the_new_name(old: str, new: str, close: bool) -> None:
    before = parse_document(finished_step(_done(), 1)) if close else modern(_done())
    after = parse_document(renamed(before, old, new))
    assert _states(after) == {name.replace(old, new): state for name, state in _states(before).items()}
    assert old not in after.text
    assert _errors(after) == []


def test_a_rename_by_hand_leaves_an_error_and_not_another_ones_status() -> None:
    text = modern(_done()).text.replace("#### 5.1.2 `parse`", "#### 5.1.2 `read`").replace("def parse", "def read")
    document = parse_document(text)
    assert "REV004" in _errors(document)
    assert _states(document)["shop.money.read"] == ("NOT_STARTED", "NEEDS_REVIEW")


def test_a_rename_to_a_taken_name_or_another_module_is_refused() -> None:
    document = modern(_done())
    for new, why in (
        ("shop.money.Money", "already"),
        ("shop.till.parse", "outside of shop.money"),
        ("1x", "no dotted"),
    ):
        with pytest.raises(UsageError, match=why):
            renamed(document, "shop.money.parse", new)


def test_a_member_is_renamed_in_its_own_class_only() -> None:
    text = CLEAN.replace(
        "class Till:\n    lines", "class Other:\n    def plus(self) -> None: ...\n\n\nclass Till:\n    lines"
    )
    after = renamed(parse_document(text), "shop.money.Money.plus", "shop.money.Money.added")
    assert "def added(self, other: Money)" in after
    assert "class Other:\n    def plus(self)" in after


@pytest.mark.parametrize("close", [True, False])
def test_removing_an_entry_leaves_no_trace_of_it(close: bool) -> None:
    before = parse_document(finished_step(_done(), 1)) if close else modern(_done())
    after = parse_document(removed(before, ["shop.money.parse"]))
    assert "parse" not in after.text.partition("## 5.")[2]
    kept = {name: state for name, state in _states(before).items() if name != "shop.money.parse"}
    assert _states(after) == kept
    assert [code for code in _errors(after) if not code.startswith("REF")] == []


def test_removing_a_class_takes_its_members_along() -> None:
    after = parse_document(removed(parse_document(finished_step(_done(), 1)), ["shop.money.Money"]))
    assert not [name for name in (*after.entry_by_name, *after.record) if name.startswith("shop.money.Money")]


def test_lint_fix_counts_headings_anew_and_names_what_was_numbered() -> None:
    text = modern(_done()).text.replace("### 5.2 `shop.till`", "### 5.7 `shop.till`").replace("#### 5.2.", "#### 5.7.")
    text = text.replace("- deps: 5.2.1,", "- deps: 5.7.1,").replace("- affects: 5.2.2", "- affects: 5.7.2, 4")
    document = fix(parse_document(text))
    assert [entry.number for entry in document.entries] == ["5.1.1", "5.1.2", "5.2.1", "5.2.2", "5.2.3"]
    assert document.entry_by_id["shop.till.Till.total"].deps == ("shop.till.Till", "shop.money.Money")
    assert document.decision_by_id["D-2"].affects == ("shop.till.Till.total", "4")
    assert _states(document) == _states(modern(_done()))
    assert _errors(document) == []


def test_a_reference_by_a_number_that_two_headings_have_is_named_and_left() -> None:
    text = modern(parse_document(CLEAN)).text.replace("#### 5.1.2 `parse`", "#### 5.1.1 `parse`")
    document = fix(parse_document(text))
    assert {"DOC010", "REF009"} <= set(_errors(document))
    assert "- deps: 5.1.1" in document.text


# -- any sequence of changes --------------------------------------------------


class Oracle:
    """What must hold, kept beside the document without reading it: name → its step status and verdict.

    The text is made of blocks of strings, so that moving one needs no parser; the record is the table's own lines.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.fresh = 0
        self.marks: dict[str, int] = {}  # what an entry says, whatever it is called by now
        self.states: dict[str, tuple[str, str]] = {}
        self.modules: list[tuple[str, list[str]]] = []
        self.record: list[str] = []

    def name(self) -> str:
        self.fresh += 1
        self.marks[f"n{self.fresh}"] = self.fresh
        return f"n{self.fresh}"

    def block(self, name: str) -> str:
        """An entry whose contract and text no other has."""
        mark = self.marks[name]
        code = f"def {name}(a: int = {mark}) -> int: ..."
        return f"`{name}`\n\nIt is number {mark}.\n\n- decisions: D-1\n\n```python\n{code}\n```\n"

    def text(self) -> str:
        """The document; numbers are scrambled now and then, as people leave them."""
        lines = [HEAD]
        for at, (module, names) in enumerate(self.modules, 1):
            lines.append(f"### 5.{at} `{module}`\n")
            lines += [
                f"#### 5.{at}.{self.rng.choice((n, n, n, n + 1))} {self.block(name)}" for n, name in enumerate(names, 1)
            ]
        return "\n".join([*lines, "## 6. Plan\n", "## Record\n", *RECORD_HEAD, *self.record]) + "\n"


HEAD = (
    CLEAN[: CLEAN.index("### 5.1")]
    .replace("- affects: 5.1\n", "- affects: -\n")
    .replace("- affects: 5.2.2\n", "- affects: -\n")
)
RECORD_HEAD = [
    "| Item | Status | Step | Digest | Tests | Proof | Verdict | Reviewer | Date | Approved |",
    "|---|---|---|---|---|---|---|---|---|---|",
]


def _start(oracle: Oracle) -> None:
    oracle.modules = [(f"p.m{m}", [oracle.name() for _ in range(oracle.rng.randint(1, 3))]) for m in (1, 2)]
    document = parse_document(oracle.text())
    items = []
    for module, names in oracle.modules:
        for name in names:
            full = f"{module}.{name}"
            entry = document.entry_by_id[full]
            status = oracle.rng.choice(("DONE", "IN_PROGRESS", ""))
            approved = oracle.rng.random() < 0.7
            if status or approved:
                digest = entry.cell(full) if status == "DONE" else "-"
                seal = subjects(document)[full].digest if approved else "-"
                verdict = "APPROVED | Ann | 2026-01-02" if approved else "- | - | -"
                items.append(f"| `{full}` | {status or '-'} | - | {digest} | - | - | {verdict} | {seal} |")
            oracle.states[full] = (status or "NOT_STARTED", "APPROVED" if approved else "NEEDS_REVIEW")
    oracle.record = sorted(items)


def _record_of(text: str) -> list[str]:
    return [line for line in text.partition("## Record")[2].split("\n") if line.startswith("| ")][1:]


def _change(oracle: Oracle) -> None:
    rng = oracle.rng
    at = rng.randrange(len(oracle.modules))
    module, names = oracle.modules[at]
    kind = rng.choice(("insert", "insert", "move", "swap", "module", "rename", "remove", "fix", "decision"))
    if kind == "insert":
        name = oracle.name()
        names.insert(rng.randint(0, len(names)), name)
        oracle.states[f"{module}.{name}"] = ("NOT_STARTED", "NEEDS_REVIEW")
    elif kind == "move":
        rng.shuffle(names)
    elif kind == "swap":
        rng.shuffle(oracle.modules)
    elif kind == "module":
        name = oracle.name()
        oracle.modules.insert(rng.randint(0, len(oracle.modules)), (f"p.x{oracle.fresh}", [name]))
        oracle.states[f"p.x{oracle.fresh}.{name}"] = ("NOT_STARTED", "NEEDS_REVIEW")
    elif kind == "rename" and names:
        old, new = rng.choice(names), oracle.name()
        text = renamed(parse_document(oracle.text()), f"{module}.{old}", f"{module}.{new}")
        assert f"def {new}(a: int = {oracle.marks[old]})" in text
        oracle.marks[new] = oracle.marks.pop(old)
        names[names.index(old)] = new
        oracle.states[f"{module}.{new}"] = oracle.states.pop(f"{module}.{old}")
        assert _seen(text) == oracle.states
        oracle.record = _record_of(text)
    elif kind == "remove" and names:
        gone = rng.choice(names)
        oracle.record = _record_of(removed(parse_document(oracle.text()), [f"{module}.{gone}"]))
        names.remove(gone)
        del oracle.states[f"{module}.{gone}"]
        oracle.name()
    elif kind == "fix":
        oracle.record = _record_of(fix(parse_document(oracle.text())).text)


def _seen(text: str) -> dict[str, tuple[str, str]]:
    document = parse_document(text)
    judged = subjects(document)
    return {name: (status, judged[name].verdict) for name, status in statuses(document).items()}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_no_sequence_of_changes_hands_a_status_or_approval_on(part: int) -> None:
    for seed in range(part * 100, part * 100 + 100):
        oracle = Oracle(random.Random(seed))
        _start(oracle)
        assert _seen(oracle.text()) == oracle.states, seed
        for _ in range(4):
            _change(oracle)
            assert _seen(oracle.text()) == oracle.states, seed


def test_the_long_form_shows_every_folded_name_and_is_not_written() -> None:
    closed = parse_document(finished_step(_done(), 1))
    shown = long_form(closed)
    assert not [entry.id for entry in shown.entries if entry.folded]
    assert "#### 5.1.1 `Money`" in shown.text and "- errors: ValueError when the text is no amount" in shown.text
    assert statuses(shown)["shop.money.parse"] == "DONE"


@pytest.mark.parametrize("name", ["shop.money.Money.plus", "Money.plus"])
def test_a_member_shown_in_its_class_may_be_named_anywhere(name: str) -> None:
    text = CLEAN.replace("- affects: 5.2.2", f"- affects: `{name}`").replace("- deps: `Money`", f"- deps: `{name}`")
    document = parse_document(text)
    assert not [code for code in _errors(document) if code.startswith("REF")]
    assert References(document).deps(document.entry_by_id["shop.till.Till"]) == ("shop.money.Money",)


def test_a_decision_may_affect_another_decision() -> None:
    text = CLEAN.replace("- affects: 5.2.2", "- affects: 5.2.2, D-1")
    assert "REF007" not in _errors(parse_document(text))
    assert "REF007" in _errors(parse_document(text.replace("D-1\n- confirmation", "D-9\n- confirmation")))
