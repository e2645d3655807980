from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from codegen.diagnostics import UsageError
from codegen.document import (
    Document,
    EditError,
    add_history_row,
    add_log_row,
    parse_document,
    set_approvals,
    set_front_field,
    set_method_status,
    set_method_statuses,
    set_step_commit,
    set_step_status,
)
from codegen.document.edit import LineEdit, apply_edits, set_decision_status, yaml_scalar
from codegen.document.rows import cell_spans, changed_row, escape_cell
from tests.codegen.document.samples import CLEAN, generated, handmade
from tests.codegen.document.views import changed_lines, formatted, view

TEXTS = handmade() | {f"generated {seed}": generated(seed).text for seed in range(50)}
ROW = {"verdict": "APPROVED", "reviewer": "Ann", "date": "2026-02-03", "digest": "0a1b2c3d"}


def _last(document: Document) -> tuple[int, str]:
    """The last method of the plan: its step and its name."""
    step = next(step for step in reversed(document.steps) if step.methods)
    return step.number, step.methods[-1].name


def _first_step(document: Document) -> int:
    return document.steps[0].number


def _other(status: str) -> str:
    return "FAILED" if status == "BLOCKED" else "BLOCKED"


EDITS: dict[str, tuple[Callable[[Document], str], int, int]] = {
    "method": (lambda d: set_method_status(d, *_last(d), "FAILED", "deadbeef"), 1, 1),
    "step": (lambda d: set_step_status(d, _first_step(d), _other(d.steps[0].status)), 1, 1),
    "commit": (lambda d: set_step_commit(d, _first_step(d), "0123abc"), 1, 1),
    "version": (lambda d: set_front_field(d, "version", "7.7"), 1, 1),
    "status": (lambda d: set_front_field(d, "status", "superseded"), 1, 1),
    "new key": (lambda d: set_front_field(d, "owner", "Ann: the first"), 0, 1),
    "history": (lambda d: add_history_row(d, "7.7", "2026-02-03", "a | b"), 0, 1),
    "log": (lambda d: add_log_row(d, "Why?", "5.1", "D-1", "2026-02-03"), 0, 1),
    "decision": (lambda d: set_decision_status(d, "D-1", "superseded"), 1, 1),
    "approval": (lambda d: set_approvals(d, {"D-1": ROW}), 0, 6),
}


@pytest.mark.parametrize("name", TEXTS)
def test_an_edit_changes_the_lines_it_must_and_no_other(name: str) -> None:
    document = parse_document(TEXTS[name])
    unended = not document.lines[-1].endswith("\n")
    for edit, (change, removed, added) in EDITS.items():
        old_lines, new_lines = changed_lines(document.text, change(document))
        # A row behind a last line without an end gives that line one.
        extra = int(unended and len(old_lines) == removed + 1)
        assert (len(old_lines), len(new_lines)) == (removed + extra, added + extra), edit
        for line in new_lines[:-1]:
            assert line.endswith("\r\n") == (document.newline == "\r\n")


@pytest.mark.parametrize("name", [name for at, name in enumerate(TEXTS) if at <= 11 or at % 5 == 0])
def test_edits_and_formatter_passes_mix(name: str) -> None:
    if name == "padded":
        pytest.skip("a table glued to a list is text for a formatter; `lint --fix` parts them")
    text = TEXTS[name]
    rng = random.Random(name)
    done: list[Callable[[Document], str]] = []
    for edit in rng.sample([key for key in EDITS if key != "approval"], 6):
        document = parse_document(text)
        change = EDITS[edit][0]
        done.append(change)
        text = change(parse_document(formatted(text) if rng.random() < 0.5 else document.text))
    plainly = TEXTS[name]
    for change in done:
        plainly = change(parse_document(plainly))
    assert view(parse_document(text)) == view(parse_document(plainly))


def test_only_the_method_asked_for_changes() -> None:
    document = parse_document(CLEAN)
    new = parse_document(set_method_status(document, 2, "shop.till.Till.total", "DONE", "12345678"))
    statuses = {m.name: (m.status, m.digest) for m in new.step_by_number[2].methods}
    assert statuses == {
        "shop.till.Till": ("NOT_STARTED", ""),
        "shop.till.Till.total": ("DONE", "12345678"),
        "shop.till._check_lines": ("NOT_STARTED", ""),
    }


@pytest.mark.parametrize("name", ["5.2.2", "shop.till.Till.total", "Till.total", "total"])
def test_a_method_is_found_by_section_name_or_tail(name: str) -> None:
    new = parse_document(set_method_status(parse_document(CLEAN), 2, name, "BLOCKED"))
    assert [m.status for m in new.step_by_number[2].methods] == ["NOT_STARTED", "BLOCKED", "NOT_STARTED"]


def test_several_methods_change_at_once() -> None:
    changes = {"Till": ("DONE", "aaaaaaaa"), "total": ("FAILED", None), "_check_lines": ("DONE", "")}
    new = parse_document(set_method_statuses(parse_document(CLEAN), 2, changes))
    assert [(m.status, m.digest) for m in new.step_by_number[2].methods] == [
        ("DONE", "aaaaaaaa"),
        ("FAILED", ""),
        ("DONE", ""),
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda d: set_method_status(d, 2, "Till", "done"),
            "'done' is no method status; it must be one of NOT_STARTED",
        ),
        (
            lambda d: set_method_status(d, 2, "nobody", "DONE"),
            "Step 2 has no method `nobody`; it has: `shop.till.Till`",
        ),
        (lambda d: set_method_status(d, 9, "Till", "DONE"), "there is no Step 9; steps in the document: 1, 2"),
        (lambda d: set_step_status(d, 1, "OK"), "'OK' is no step status"),
        (lambda d: set_front_field(d, "status", "ready"), "'ready' is no document status"),
        (lambda d: set_front_field(d, "roots", "x"), "not a one-line value"),
        (lambda d: set_decision_status(d, "D-7", "accepted"), "there is no decision D-7"),
        (lambda d: set_decision_status(d, "D-1", "fine"), "'fine' is no decision status"),
        (lambda d: set_approvals(d, {"D-1": ROW | {"verdict": "OK"}}), "'OK' is no verdict"),
    ],
)
def test_a_wrong_request_is_refused_with_what_would_be_right(change: Callable[[Document], str], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        change(parse_document(CLEAN))
    assert words in str(refused.value)


def test_a_name_that_may_be_two_methods_is_refused() -> None:
    text = CLEAN.replace("| `shop.till._check_lines` | 5.2.3", "| `shop.cart.total` | 5.2.3")
    with pytest.raises(UsageError, match="may be any of"):
        set_method_status(parse_document(text), 2, "total", "DONE")


def test_a_comment_in_the_front_matter_stays_where_it_was() -> None:
    new = set_front_field(parse_document(CLEAN), "status", "done")
    assert "status: done             # draft | in_review | approved\n" in new


def test_a_padded_table_keeps_its_width_and_a_tight_one_stays_tight() -> None:
    padded = parse_document(formatted(CLEAN))
    new = set_method_status(padded, 2, "Till", "DONE")
    row = next(line for line in new.split("\n") if line.startswith("| `shop.till.Till` "))
    assert len(row) == len(padded.lines[padded.step_by_number[2].methods[0].line - 1].rstrip("\n"))
    assert "| `shop.till.Till` | 5.2.1 | DONE | - |" in set_method_status(parse_document(CLEAN), 2, "Till", "DONE")


def test_a_row_that_is_too_short_gets_the_cell_it_lacks() -> None:
    text = CLEAN.replace("| `shop.till.Till` | 5.2.1 | NOT_STARTED | - |", "| `shop.till.Till` | 5.2.1 |")
    new = parse_document(set_method_status(parse_document(text), 2, "Till", "DONE", "abcdef01"))
    assert new.step_by_number[2].methods[0].digest == "abcdef01"


def test_a_table_without_the_column_is_refused() -> None:
    text = CLEAN.replace(
        "| Method | Section | Status | Digest |\n|---|---|---|---|", "| Method | Section | Status |\n|---|---|---|"
    )
    with pytest.raises(UsageError, match="has no column `Digest`"):
        set_method_status(parse_document(text), 2, "Till", "DONE", "abcdef01")


def test_missing_tables_are_made() -> None:
    bare = CLEAN.replace(CLEAN[CLEAN.index("## Version history") : CLEAN.index("## Open to-dos")], "")
    document = parse_document(add_history_row(parse_document(bare), "0.3", "2026-03-01", "back"))
    document = parse_document(add_log_row(document, "Who?", "-", "-", "2026-03-01"))
    assert [row.version for row in document.history] == ["0.3"]
    assert [row.round for row in document.log] == ["1"]
    headings = [heading.text for heading in document.headings if heading.level == 2]
    assert headings.index("Version history") < headings.index("1. Goals and scope")


def test_an_approval_is_changed_in_place_the_second_time() -> None:
    first = parse_document(set_approvals(parse_document(CLEAN), {"D-1": ROW, "D-2": ROW}))
    second = set_approvals(first, {"D-1": ROW | {"verdict": "REJECTED"}})
    assert len(changed_lines(first.text, second)[1]) == 1
    assert [a.verdict for a in parse_document(second).approvals] == ["REJECTED", "APPROVED"]


def test_pipes_in_cells_are_escaped_once() -> None:
    assert escape_cell("a | b") == r"a \| b"
    assert escape_cell(r"a \| b") == r"a \| b"
    assert escape_cell("two\nlines") == "two lines"


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ("| a | b |", [" a ", " b "]),
        ("a | b", ["a ", " b"]),
        (r"| a \| b | `c\|d` |  ", [r" a \| b ", r" `c\|d` "]),
        ("  | a || c |", [" a ", "", " c "]),
    ],
)
def test_cells_stand_between_unescaped_pipes(row: str, cells: list[str]) -> None:
    assert [row[start:end] for start, end in cell_spans(row)] == cells


def test_a_line_that_is_no_row_is_refused() -> None:
    with pytest.raises(EditError):
        changed_row(parse_document(CLEAN), 2, {"status": "DONE"})


def test_line_edits_keep_line_ends_and_order() -> None:
    document = parse_document("a\r\nb\r\nc")
    edits = [LineEdit(2, 2, ("B",)), LineEdit(2, 1, ("x",)), LineEdit(2, 1, ("y",)), LineEdit(4, 3, ("d",))]
    assert apply_edits(document, edits) == "a\r\nx\r\ny\r\nB\r\nc\r\nd\r\n"
    assert apply_edits(document, [LineEdit(3, 3, ("C",))]) == "a\r\nb\r\nC"
    assert apply_edits(document, [LineEdit(1, 2, ())]) == "c"


@pytest.mark.parametrize(
    "value", ["plain", "a: b", "- x", "yes", '"q"', "tail:", "x # y", "  pad ", "a\\b", "{x}", "0.10"]
)
def test_yaml_values_read_back_as_they_were(value: str) -> None:
    new = set_front_field(parse_document(CLEAN), "owner", value)
    assert parse_document(new).front.extra["owner"] == value
    assert "\n" not in yaml_scalar(value)
