"""A step's state changes in its own rows only, and only when it may."""

from __future__ import annotations

import difflib
import multiprocessing
from pathlib import Path

import pytest

from codegen.document.edit import set_approvals
from codegen.document.parse import parse_document, read_document
from codegen.document.review import subjects
from codegen.document.store import DocumentBusy, update_document
from codegen.workflow.ledger import NotReady, failed, finished, started, with_commits, with_field
from tests.codegen.workflow.conftest import DOCUMENT, Pantry

PLAIN = parse_document(DOCUMENT, Path("design/pantry.md"))


def changed_lines(new: str, old: str = DOCUMENT) -> list[str]:
    diff = difflib.unified_diff(old.split("\n"), new.split("\n"), n=0, lineterm="")
    return [line for line in diff if line[0] in "+-" and not line.startswith(("---", "+++"))]


def approved(document_text: str, *items: str) -> str:
    document = parse_document(document_text, Path("design/pantry.md"))
    known = subjects(document)
    rows = {
        item: {"verdict": "APPROVED", "reviewer": "Grace", "date": "2026-01-02", "digest": known[item].digest}
        for item in items
    }
    return set_approvals(document, rows)


def test_starting_changes_the_rows_of_the_step_only() -> None:
    text = approved(DOCUMENT, "D-1", "pantry.jar.Jar", "pantry.jar.fill")
    assert changed_lines(started(parse_document(text), 1), text) == [
        "-| 1 | Jars | - | NOT_STARTED | - |",
        "+| 1 | Jars | - | IN_PROGRESS | - |",
        "-| `pantry.jar.Jar` | 5.1.1 | NOT_STARTED | - |",
        "-| `pantry.jar.fill` | 5.1.2 | NOT_STARTED | - |",
        "+| `pantry.jar.Jar` | 5.1.1 | IN_PROGRESS | - |",
        "+| `pantry.jar.fill` | 5.1.2 | IN_PROGRESS | - |",
    ]


def test_a_step_that_is_not_approved_is_refused() -> None:
    text = approved(DOCUMENT, "pantry.jar.Jar", "pantry.jar.fill")
    with pytest.raises(NotReady, match="Step 1: not approved: D-1; run `codegen review next`"):
        started(parse_document(text), 1)


def test_starting_unreviewed_is_recorded_in_the_iteration_log() -> None:
    row = parse_document(started(PLAIN, 1, unreviewed=True)).log[-1]
    assert (row.round, row.asked) == ("2", "Step 1 was started before its review")
    assert set(row.changed.split(", ")) == {"D-1", "pantry.jar.Jar", "pantry.jar.fill"}


def test_a_step_waits_for_those_it_depends_on() -> None:
    with pytest.raises(NotReady, match=r"Step 2 depends on Step 1 \(NOT_STARTED\)"):
        started(PLAIN, 2, unreviewed=True)


def test_a_step_is_not_started_twice() -> None:
    document = parse_document(started(PLAIN, 1, unreviewed=True))
    with pytest.raises(NotReady, match="Step 1 is in progress already"):
        started(document, 1, unreviewed=True)


def test_a_done_step_may_start_again_only_when_it_is_stale() -> None:
    done = parse_document(finished(PLAIN, 1))
    with pytest.raises(NotReady, match="Step 1 is done already"):
        started(done, 1, unreviewed=True)
    stale = parse_document(done.text.replace("jar.grams += grams", "jar.grams = jar.grams + grams"))
    again = parse_document(started(stale, 1, unreviewed=True)).step_by_number[1]
    assert [method.status for method in again.methods] == ["DONE", "IN_PROGRESS"]


def test_a_failure_marks_the_methods_named() -> None:
    document = parse_document(started(PLAIN, 1, unreviewed=True))
    step = parse_document(failed(document, 1, ["5.1.2"])).step_by_number[1]
    assert step.status == "FAILED"
    assert [method.status for method in step.methods] == ["IN_PROGRESS", "FAILED"]


def test_two_rows_of_one_section_are_told_apart_by_name() -> None:
    text = DOCUMENT.replace("| `pantry.jar.fill` | 5.1.2 |", "| `pantry.jar.fill` | 5.1.1 |")
    assert [m.status for m in parse_document(finished(parse_document(text), 1)).steps[0].methods] == ["DONE", "DONE"]


def test_commit_cells_are_filled_for_done_steps_only() -> None:
    done = parse_document(finished(PLAIN, 1))
    text = with_commits(done, {1: "abc1234", 2: "def5678"})
    assert changed_lines(text, done.text) == ["-| 1 | Jars | - | DONE | - |", "+| 1 | Jars | - | DONE | abc1234 |"]
    assert with_commits(parse_document(text), {1: "abc1234def"}) == text


def test_a_field_is_added_after_the_last_and_then_changed_in_place() -> None:
    text = with_field(PLAIN, 1, "review", "approved by Grace")
    assert changed_lines(text) == ["+- review: approved by Grace"]
    again = with_field(parse_document(text), 1, "review", "approved by Ada")
    assert changed_lines(again) == ["+- review: approved by Ada"]


def test_other_line_ends_stay_as_they_are() -> None:
    document = parse_document(DOCUMENT.replace("\n", "\r\n"))
    text = with_field(parse_document(started(document, 1, unreviewed=True)), 1, "review", "x")
    assert text.count("\n") == text.count("\r\n")


def _race(path: Path, results: multiprocessing.Queue[str], go: multiprocessing.Event) -> None:  # type: ignore[type-arg]
    go.wait(20)
    try:
        update_document(path, lambda document: started(document, 1, unreviewed=True), "step start 1")
        results.put("won")
    except (NotReady, DocumentBusy) as error:
        results.put(str(error))


def test_of_two_processes_that_start_one_step_one_wins_and_the_other_is_told(pantry: Pantry) -> None:
    context = multiprocessing.get_context("fork")
    results, go = context.Queue(), context.Event()
    path = pantry.root / "design/pantry.md"
    workers = [context.Process(target=_race, args=(path, results, go)) for _ in range(2)]
    for worker in workers:
        worker.start()
    go.set()
    said = sorted(results.get(timeout=20) for _ in workers)
    for worker in workers:
        worker.join(20)
    assert said.count("won") == 1
    other = next(text for text in said if text != "won")
    assert "in progress already" in other or "held by process" in other
    assert read_document(path).step_by_number[1].status == "IN_PROGRESS"


def test_a_step_is_not_done_before_what_it_depends_on(pantry: Pantry) -> None:
    dependent = next(step for step in pantry.document.steps if step.depends)
    with pytest.raises(NotReady, match=f"Step {dependent.number} depends on Step"):
        finished(pantry.document, dependent.number)
