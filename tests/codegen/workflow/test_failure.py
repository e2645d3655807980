"""A failed step says what must be revised and what is shaken by it, and records it in the ledger."""

from __future__ import annotations

from codegen.document.edit import set_approvals
from codegen.document.parse import parse_document
from codegen.document.review import subjects
from codegen.workflow.failure import diagnose, recorded_failure
from codegen.workflow.ledger import started
from tests.codegen.workflow.conftest import Pantry


def test_a_code_bug_leaves_the_document_alone(pantry: Pantry) -> None:
    failure = diagnose(pantry.target(1), "code-bug", [])
    assert (failure.revise, failure.dependents, failure.stale_steps) == ((), (), ())
    assert "codegen step verify 1" in failure.then


def test_a_document_error_sends_the_entries_back(pantry: Pantry) -> None:
    assert diagnose(pantry.target(1), "doc-error", ["fill"]).revise == ("pantry.jar.fill",)
    assert diagnose(pantry.target(1), "doc-error", []).revise == ("pantry.jar.Jar", "pantry.jar.fill")


def test_a_design_gap_names_decisions_and_the_steps_built_on_it(pantry: Pantry) -> None:
    failure = diagnose(pantry.target(1), "design-gap", ["5.1.1"])
    assert failure.revise == ("D-1", "pantry.jar.Jar")
    assert failure.dependents == (
        "pantry.jar.fill",
        "pantry.shelf.Shelf",
        "pantry.shelf.Shelf.weight",
        "pantry.report.report",
    )
    assert failure.stale_steps == (2, 3)


def test_the_failure_is_in_the_ledger_and_approvals_are_taken_back(pantry: Pantry) -> None:
    document = parse_document(started(pantry.document, 1, unreviewed=True), pantry.document.path)
    known = subjects(document)
    cells = {"verdict": "APPROVED", "reviewer": "Grace", "date": "2026-01-02"}
    rows = {item: {**cells, "digest": known[item].digest} for item in ("D-1", "pantry.jar.Jar", "pantry.jar.fill")}
    document = parse_document(set_approvals(document, rows), document.path)
    failure = diagnose(pantry.target(1), "design-gap", ["5.1.1"])
    new = parse_document(recorded_failure(document, 1, ["5.1.1"], failure, "jars need lids"))
    assert new.step_by_number[1].status == "FAILED"
    assert [method.status for method in new.step_by_number[1].methods] == ["FAILED", "IN_PROGRESS"]
    row = new.log[-1]
    assert (row.asked, row.changed, row.decisions) == (
        "Step 1 failed (design-gap): jars need lids",
        "pantry.jar.Jar",
        "D-1",
    )
    assert {a.item: a.verdict for a in new.approvals} == {
        "D-1": "NEEDS_REVIEW",
        "pantry.jar.Jar": "NEEDS_REVIEW",
        "pantry.jar.fill": "APPROVED",
    }
