"""Impact follows quantities: from a decision to all that constrains or has what it constrains."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.cli import main
from codegen.constraints.links import shared_quantities
from codegen.document.parse import parse_document
from codegen.document.project import Project
from codegen.plan.impact import impact
from tests.codegen.constraints.test_check import document

DECISIONS = {
    "D-1": ["limit <= 100"],
    "D-2": ["limit >= floor"],
    "D-3": ["floor > 0", "this is no constraint"],
    "D-4": ["other == 3"],
    "D-5": ["len(names) > bill"],
}
GOALS = "- G-1: be cheap\n  - constraint: floor <= 7\n"


def found(ident: str, with_quantities: bool = True) -> dict[str, str]:
    """What is affected → why, in the document and another one that constrains `floor`."""
    till = document(DECISIONS, goals=GOALS)
    text = document({"D-9": ["floor < 9"]}, (), "design/bar.md").text.replace("id: till", "id: bar")
    bar = parse_document(text, Path("design/bar.md"))
    shared = shared_quantities([till, bar]) if with_quantities else None
    affected = impact(till, ident, Project([till, bar]), shared)
    return {f"{item.path and 'bar:'}{item.id}": item.why for item in affected}


def test_a_decision_reaches_those_that_constrain_its_quantity_and_the_code_that_has_it() -> None:
    assert found("D-1") == {
        "D-2": "constrains `shop.till.Settings.limit`, like D-1",
        "D-3": "constrains `floor`, like D-2",
        "G-1": "constrains `floor` too",
        "bar:D-9": "constrains `floor` too",
        "5.1.1": "has `shop.till.Settings.limit`, which D-1 constrains",
    }


def test_the_length_of_something_is_a_quantity_of_it() -> None:
    assert found("D-5") == {"5.1.2": "has `shop.till.Till.total.bill`, which D-5 constrains"}


def test_what_shares_nothing_reaches_nothing() -> None:
    assert found("D-4") == {}


def test_a_goal_reaches_the_decisions_of_its_quantity() -> None:
    assert "D-3" in found("G-1") and "bar:D-9" in found("G-1")


def test_an_entry_reaches_the_decisions_that_constrain_what_it_has() -> None:
    assert found("shop.till.Settings") == {
        "D-1": "constrains `shop.till.Settings.limit` too",
        "D-2": "constrains `shop.till.Settings.limit` too",
    }


def test_without_quantities_nothing_of_it_is_said() -> None:
    assert found("D-1", with_quantities=False) == {}


def test_the_command_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "design").mkdir()
    (tmp_path / "design" / "till.md").write_text(document(DECISIONS).text)
    monkeypatch.chdir(tmp_path)
    assert main(["impact", "D-1"]) == 0
    assert "has `shop.till.Settings.limit`, which D-1 constrains" in capsys.readouterr().out
