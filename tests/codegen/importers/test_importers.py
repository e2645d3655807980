"""Nothing that another tool recorded is lost or made up on the way into a design document."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.cli import main
from codegen.diagnostics import UsageError
from codegen.document.lint import lint
from codegen.document.model import Document
from codegen.document.parse import parse_document, read_document
from codegen.importers.assemble import Decided, Design, document_of
from codegen.importers.openspec import change_folder, read_change
from codegen.importers.prose import prose
from codegen.importers.sections import parts_of, rest_of
from codegen.importers.spec_kit import feature_folder, read_feature
from codegen.importers.tasks import Group, Task, tasks_of
from tests.codegen.importers.folders import change, feature


def document(design: Design) -> Document:
    return parse_document(document_of(design, [], "2026-02-03"), Path("design/x.md"))


def errors(found: Document) -> list[str]:
    return [f"{f.line} {f.code} {f.message}" for f in lint(found, None, lambda document: []) if f.severity == "error"]


def test_a_feature_becomes_a_document_without_errors(tmp_path: Path) -> None:
    found = document(read_feature(feature(tmp_path)))
    assert errors(found) == []
    assert (found.id, found.title, found.front.status) == ("lending_desk", "Lending desk", "draft")
    assert found.front.roots == ("src/desk",)


def test_a_features_numbers_are_kept(tmp_path: Path) -> None:
    found = document(read_feature(feature(tmp_path)))
    assert [(goal.id, goal.text) for goal in found.goals] == [
        ("G-1", "FR-001: The desk MUST refuse a second loan of the same copy."),
        ("G-2", "FR-002: The desk MUST keep loans for [NEEDS CLARIFICATION: how long?]"),
    ]
    assert "- SC-001: a loan takes under 10 seconds" in found.text
    assert [s.title for s in found.sections if s.id.startswith("4.")] == [
        "US1: Borrow a book (Priority: P1)",
        "US2: Return it (Priority: P2)",
        "Edge Cases",
    ]
    assert found.todos[0].text == "clarify: how long?"
    assert "of the comment" not in found.text


def test_a_features_ticks_become_statuses_and_stay_at_their_tasks(tmp_path: Path) -> None:
    found = document(read_feature(feature(tmp_path)))
    assert [(s.number, s.title, s.status, s.depends) for s in found.steps] == [
        (1, "Setup (Shared Infrastructure)", "DONE", ()),
        (2, "Foundational (Blocking Prerequisites)", "IN_PROGRESS", (1,)),
        (3, "User Story 1 - Borrow a book (Priority: P1)", "NOT_STARTED", (2,)),
        (4, "User Story 2 - Return it (Priority: P2)", "NOT_STARTED", (2, 3)),
        (5, "Polish", "NOT_STARTED", (3, 4)),
    ]
    assert found.steps[0].fields["tasks"].items == (
        "[x] T001 Create `pyproject.toml`",
        "[x] T002 [P] Create src/desk/__init__.py",
    )
    assert found.steps[3].files == ("src/desk/give_back.py",)
    assert "  - [ ] T900" not in found.text and found.text.count("T999") == 1


def test_steps_get_their_tests_and_prose_is_no_command(tmp_path: Path) -> None:
    steps = document(read_feature(feature(tmp_path))).steps
    assert steps[1].tests == "`pytest tests/desk/test_ledger.py`"
    assert steps[0].tests == "by hand: the tasks, one by one"
    assert "`lend`" not in steps[2].tests


def test_research_becomes_proposed_decisions(tmp_path: Path) -> None:
    one, two = document(read_feature(feature(tmp_path))).decisions
    assert (one.title, one.status, one.text("outcome")) == ("Where loans live", "proposed", "one SQLite file")
    assert one.text("drivers") == "one desk, one writer"
    assert two.text("drivers") == "readers think in days; tests are simpler"


def test_a_change_becomes_a_document_without_errors(tmp_path: Path) -> None:
    found = document(read_change(change(tmp_path)))
    assert errors(found) == []
    assert [goal.text for goal in found.goals] == [
        "No loan is lost",
        "ADDED lending/Loans have a day: The desk SHALL write the day of each loan.",
        "MODIFIED lending/Listing: The list SHALL show days.",
    ]
    assert [(d.title, d.text("outcome")) for d in found.decisions] == [
        ("Append only", "A loan is never edited."),
        ("Days", "whole days"),
    ]
    assert all(decision.status == "proposed" for decision in found.decisions)
    assert found.todos[0].text == "Who pays?"


def test_a_changes_task_numbers_and_ticks_are_kept(tmp_path: Path) -> None:
    one, two = document(read_change(change(tmp_path))).steps
    assert (one.title, one.status, two.status, two.depends) == ("Ledger", "DONE", "NOT_STARTED", (1,))
    assert one.fields["tasks"].items == (
        "[x] 1.1 Add the day to `src/desk/ledger.py`",
        "[x] 1.1.1 and its test in `tests/desk/test_ledger.py`",
        "[x] 1.2 Migrate",
    )
    assert two.fields["tasks"].items == ("[ ] 2.1 Show it", "[ ] 2.2 Document it")


def test_the_only_feature_and_the_only_open_change_are_found_from_the_project(tmp_path: Path) -> None:
    assert feature_folder(tmp_path.joinpath(feature(tmp_path).parents[1])).name == "003-lending-desk"
    assert change_folder(tmp_path.joinpath(change(tmp_path).parents[2])).name == "add-loan-days"


def test_of_several_the_caller_must_choose(tmp_path: Path) -> None:
    feature(tmp_path)
    other = tmp_path / "specs" / "004-more"
    other.mkdir()
    (other / "spec.md").write_text("# Feature Specification: More\n")
    with pytest.raises(UsageError, match=r"which feature\? name one of .*003-lending-desk, .*004-more"):
        read_feature(tmp_path)
    with pytest.raises(UsageError, match=r"has neither proposal\.md nor tasks\.md"):
        read_change(other)


def test_the_command_writes_a_new_document_and_never_over_an_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    change(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    assert main(["import", "openspec", ".", "--id", "days", "--roots", "src/desk"]) == 0
    assert capsys.readouterr().out.strip() == os.path.join("design", "days.md")
    assert read_document(tmp_path / "design/days.md").front.roots == ("src/desk",)
    before = (tmp_path / "design/days.md").read_bytes()
    assert main(["import", "openspec", ".", "--id", "days"]) == 2
    assert (tmp_path / "design/days.md").read_bytes() == before


def test_an_imported_document_can_be_planned_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    change(tmp_path)
    monkeypatch.chdir(tmp_path)
    main(["import", "openspec", ".", "--id", "days"])
    path = tmp_path / "design/days.md"
    entry = (
        "### 5.1 `desk.days`\n\n#### 5.1.1 `today`\n\nThe day.\n\n- deps: -\n\n"
        "```python\ndef today() -> int:\n    ...\n```\n\n"
    )
    path.write_text(path.read_text().replace("## 6. Plan", entry + "## 6. Plan"))
    assert main(["plan", "--unreviewed"]) == 0
    found = read_document(path)
    assert [step.status for step in found.steps[:2]] == ["DONE", "NOT_STARTED"]
    assert any(method.name == "desk.days.today" for step in found.steps for method in step.methods)
    assert errors(found) == []


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\r\0"), max_size=80)
LINES = st.lists(
    st.one_of(TEXT, st.sampled_from(["# H", "## 5. APIs", "### D-1: x", "- status: accepted", "```", "---", "~~~python",
                                     "- G-1: mine", "| a | b |", "|---|---|", "> q", "<!-- x", "### Step 1: y"])),
    max_size=12,
).map("\n".join)  # fmt: skip


@settings(deadline=None, derandomize=True, max_examples=60)
@given(LINES, TEXT, st.lists(st.tuples(TEXT, st.booleans()), max_size=4))
def test_foreign_text_never_becomes_structure(text: str, line: str, boxes: list[tuple[str, bool]]) -> None:
    tasks = tuple(Task(f"T{at:03}", " ".join(words.split()) or "x", done) for at, (words, done) in enumerate(boxes, 1))
    group = Group(line or "x", line, line, line, tasks)
    design = Design("x", "A title", "elsewhere", problem=text, goals=[line or "x"], context=[("C", text)])
    design.decisions, design.flows, design.groups = [Decided("d", "o", text=text)], [("F", text)], [group]
    found = document(design)
    assert [section.id for section in found.sections if section.level == 2] == ["1", "2", "3", "4", "5", "6"]
    assert (len(found.goals), len(found.decisions), found.decisions[0].status) == (1, 1, "proposed")
    assert ([step.number for step in found.steps], found.steps[0].status) == ([1], group.status)
    assert found.entries == ()


@settings(deadline=None, derandomize=True, max_examples=60)
@given(LINES)
def test_making_prose_of_prose_changes_nothing(text: str) -> None:
    once = prose(text)
    assert prose(once) == once


TRANSLATED = """\
# 기능 명세서: 대출 창구

## 사용자 시나리오 *(필수)*

### 사용자 스토리 1 - 책 빌리기 (Priority: P1)

독자가 책을 빌린다.

### 엣지 케이스 (Edge Cases)

- 책을 잃어버리면?

## 요구사항

### 기능 요구사항

- **FR-001**: 창구는 같은 책을 두 번 빌려주지 않는다.

### 비기능

하루에 천 명.

## 성공 기준 (Success Criteria)

- **SC-001**: 10초 안에
"""


def test_a_translated_feature_keeps_its_numbers_and_its_text(tmp_path: Path) -> None:
    folder = tmp_path / "specs" / "001-desk"
    folder.mkdir(parents=True)
    (folder / "spec.md").write_text(TRANSLATED)
    (folder / "data-model.md").write_text("# Data\n")
    (folder / "contracts").mkdir()
    (folder / "research.md").write_text(
        "# R\n\n## Speed\n\nMeasured twice.\n\n## D\n\n**Decision**: x\n\n```py\ny = 1\n```\n"
    )
    found = document(read_feature(folder))
    assert errors(found) == []
    assert [goal.text for goal in found.goals] == ["FR-001: 창구는 같은 책을 두 번 빌려주지 않는다."]
    assert "- SC-001: 10초 안에" in found.text
    assert [s.title for s in found.sections if s.id.startswith("4.")] == [
        "US1: 사용자 스토리 1 - 책 빌리기 (Priority: P1)",
        "엣지 케이스 (Edge Cases)",
    ]
    assert [s.title for s in found.sections if s.id.startswith("2.")] == ["비기능", "Speed"]
    assert "하루에 천 명." in found.text and "Measured twice." in found.text and "> y = 1" in found.text
    assert found.todos[0].text == "take over what is worth it from contracts/, data-model.md: not imported"


DELTA = """\
# desk Specification Delta

## Purpose

Why the desk is there.

## RENAMED Requirements

- FROM: `### Requirement: Old name`
- TO: `### Requirement: New name`

## REMOVED Requirements

### Requirement: Fines

**Reason**: nobody paid.
"""


def test_a_delta_keeps_what_was_renamed_removed_or_said_beside(tmp_path: Path) -> None:
    folder = tmp_path / "openspec" / "changes" / "no-fines"
    (folder / "specs" / "desk").mkdir(parents=True)
    (folder / "proposal.md").write_text("# No fines\n\n## Why\nThey cost more.\n\n## Alternatives\nHigher fines.\n")
    (folder / "design.md").write_text("## Open Questions\nWho tells the readers?\n\n## Performance\nSame.\n")
    (folder / "specs" / "desk" / "spec.md").write_text(DELTA)
    (folder / "notes.txt").write_text("x")
    found = document(read_change(folder))
    assert errors(found) == []
    assert [goal.text for goal in found.goals] == [
        "RENAMED desk: FROM: Old name; TO: New name",
        "REMOVED desk/Fines: **Reason**: nobody paid.",
    ]
    assert [(s.title) for s in found.sections if s.id.startswith("2.")] == [
        "Alternatives",
        "Performance",
        "desk: Purpose",
        "Open Questions",
    ]
    assert "Higher fines." in found.text and "Who tells the readers?" in found.text and "Why the desk" in found.text
    assert found.todos[0].text.endswith("notes.txt: not imported")


@settings(deadline=None, derandomize=True, max_examples=80)
@given(st.lists(st.tuples(st.integers(1, 4), st.text("abcdef", min_size=1, max_size=6)), max_size=8), st.data())
def test_every_part_is_used_or_left_over_once(headings: list[tuple[int, str]], data: st.DataObject) -> None:
    text = "".join(f"{'#' * level} {name}{at}\n\nbody{at}x\n\n" for at, (level, name) in enumerate(headings))
    parts = parts_of(text)
    used = [part for part in parts if part.level > 1 and data.draw(st.booleans())]
    left = "\n".join(piece for _, piece in rest_of(parts, used))
    for at, part in enumerate(parts[1:]):
        within = any(f"body{at}x" in each.whole for each in used)
        assert left.count(f"body{at}x") == (0 if within or part.level == 1 else 1)


def test_boxes_in_fences_are_no_tasks() -> None:
    assert tasks_of("```\n- [ ] T001 no\n```\n\n- [x] T002 yes\n") == (Task("T002", "yes", True),)


ODD = """- [] no blank in the box
- [?] a mark nobody knows
- [ x] a blank before the x
- [✓] a tick
- no box at all
* [X]no blank behind
1. [ ] numbered
- [-] crossed out
- [P] a label, no mark
- [link](https://example.org) is no box
"""
ODD_TASKS = [
    ("no blank in the box", False),
    ("a mark nobody knows", False),
    ("a blank before the x", True),
    ("a tick", True),
    ("no box at all", False),
    ("no blank behind", True),
    ("numbered", False),
    ("crossed out", False),
    ("[P] a label, no mark", False),
    ("[link](https://example.org) is no box", False),
]


def test_every_item_arrives_and_only_what_is_plainly_done_is_done() -> None:
    assert [(task.text, task.done) for task in tasks_of(ODD)] == ODD_TASKS


@pytest.mark.parametrize("heading", ["## 1. Ledger", "## Phase 1: Setup", "## Tasks", "## User Story 1 - Borrow"])
@pytest.mark.parametrize("box", ["", "[ ] ", "[?] ", "[] "])
def test_one_open_task_of_any_shape_keeps_its_step_open(tmp_path: Path, heading: str, box: str) -> None:
    text = f"# Tasks\n\n{heading}\n\n- [x] one\n- {box}two\n"
    for name, read in (("spec.md", read_feature), ("proposal.md", read_change)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text("# Something\n")
        (folder / "tasks.md").write_text(text)
        [step] = document(read(folder)).steps
        assert step.status == "IN_PROGRESS"
        assert [item[:3] for item in step.fields["tasks"].items] == ["[x]", "[ ]"]


def test_a_phase_without_any_box_is_a_step_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "spec.md").write_text("# Feature Specification: F\n")
    (tmp_path / "tasks.md").write_text("# Tasks\n\n## Phase 1: One\n\n- [x] a\n\n## Phase 2: Two\n\n- b\n- c\n")
    assert [(s.title, s.status) for s in document(read_feature(tmp_path)).steps] == [
        ("One", "DONE"),
        ("Two", "NOT_STARTED"),
    ]


def test_lists_below_other_headings_are_text_and_no_tasks(tmp_path: Path) -> None:
    (tmp_path / "spec.md").write_text("# Feature Specification: F\n")
    (tmp_path / "tasks.md").write_text("# Tasks\n\n## Phase 1: One\n\n- [x] a\n\n## Notes\n\n- commit often\n")
    found = document(read_feature(tmp_path))
    assert [s.status for s in found.steps] == ["DONE"]
    assert "commit often" in found.text


def test_notes_below_a_task_stay_with_it() -> None:
    [task] = tasks_of("- [ ] 1.1 Add it\n  - with a test\n  - and a page\n")
    assert (task.id, task.text) == ("1.1", "Add it; with a test; and a page")


def test_a_task_that_is_no_list_item_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "proposal.md").write_text("# Change: C\n")
    (tmp_path / "tasks.md").write_text(
        "# Tasks\n<!-- one\ntwo -->\n\n## 1. Ledger\n\n- [x] a\n\n[ ] 1.2 forgotten dash\n"
    )
    todos = [todo.text for todo in document(read_change(tmp_path)).todos]
    assert any("tasks.md:9" in text and "forgotten dash" in text for text in todos)
