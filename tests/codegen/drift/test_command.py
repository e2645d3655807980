"""`codegen drift`, `adopt` and `sync-from-code`: the result on standard output, the verdict in the exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from codegen.cli import main

if TYPE_CHECKING:
    from tests.codegen.drift.conftest import Project

Output = pytest.CaptureFixture[str]


def test_no_drift_is_exit_0_with_coverage(project: Project, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    project.write()
    monkeypatch.chdir(project.root)
    assert main(["drift"]) == 0
    assert capsys.readouterr().out == (
        "design/shelf.md: 7/7 public callables covered (100 %), 8 definitions compared\nno findings\n"
    )


def test_a_renamed_parameter_is_exit_1(project: Project, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    project.change_code("put(self, parcel:", "put(self, packet:").write()
    monkeypatch.chdir(project.root)
    assert main(["drift", "shelf"]) == 1
    assert "error DRF004 Shelf.put: parameter `parcel` is called `packet`" in capsys.readouterr().out


def test_json_holds_coverage_and_findings(project: Project, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    project.change_code("def weigh(", "def heavy() -> None: ...\n\n\ndef weigh(").write()
    monkeypatch.chdir(project.root)
    assert main(["drift", "--json"]) == 1
    (document,) = json.loads(capsys.readouterr().out)["documents"]
    assert document["coverage"]["covered"] == 7 and document["coverage"]["total"] == 8
    assert document["coverage"]["modules"]["store.shelf"]["uncovered"] == ["heavy"]
    assert [finding["code"] for finding in document["findings"]] == ["DRF002"]


def test_another_project_is_named_by_root(project: Project, capsys: Output) -> None:
    project.write()
    assert main(["drift", "--root", str(project.root), str(project.root / "design/shelf.md")]) == 0
    assert capsys.readouterr().out.startswith("design/shelf.md: 7/7")


def test_any_markdown_is_compared_with_a_package(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    project.write()
    monkeypatch.chdir(project.root)
    Path("plan.md").write_text("```python\ndef weigh(things): ...\n```\n")
    assert main(["drift", "--any", "plan.md", "--against", "store"]) == 1
    out = capsys.readouterr().out
    assert "plan.md:2:1: error DRF004" in out and "1 Python fences, 1 definitions compared" in out


@pytest.mark.parametrize("words", [["--any", "plan.md"], ["--against", "store"], ["nothing"]])
def test_a_wrong_call_is_exit_2(project: Project, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    project.write()
    monkeypatch.chdir(project.root)
    assert main(["drift", *words]) == 2


def test_adopt_writes_a_new_file_and_never_over_an_old_one(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    project.write()
    monkeypatch.chdir(project.root)
    assert main(["adopt", "store"]) == 0
    printed = capsys.readouterr().out
    assert main(["adopt", "store", "-o", "design/store.md"]) == 0
    assert Path("design/store.md").read_text() == printed
    told = capsys.readouterr().err.splitlines()
    assert told[0] == f"design/store.md: {len(printed.splitlines())} lines for 62 of code"
    assert told[1] == "surface: border, 4 names; 3 more public names cross no border"
    assert main(["adopt", "store", "-o", "design/store.md"]) == 2
    assert Path("design/store.md").read_text() == printed


def test_the_proposed_patch_is_what_write_does(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    project.change_code("retries: int = 3)", "retries: int = 5)").write()
    monkeypatch.chdir(project.root)
    before = Path("design/shelf.md").read_text()
    assert main(["sync-from-code"]) == 0
    patch = capsys.readouterr().out
    assert Path("design/shelf.md").read_text() == before
    assert main(["sync-from-code", "--write"]) == 0
    after = Path("design/shelf.md").read_text()
    added = [line[1:] for line in patch.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert added == ["async def send(self, place: int, retries: int = 5) -> Parcel: ..."]
    assert added[0] in after
    assert main(["drift"]) == 0


def test_what_is_left_to_the_author_is_told(project: Project, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    project.change_code("def weigh(", "def _weigh(").write()
    monkeypatch.chdir(project.root)
    assert main(["sync-from-code"]) == 0
    said = capsys.readouterr()
    assert said.out == "" and "left to you (1 error)" in said.err


def test_a_superseded_document_is_left_out_unless_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.change_code("def weigh(", "def _weigh(")
    project.change_section("status: approved", "status: superseded").write()
    monkeypatch.chdir(project.root)
    assert main(["drift"]) == 0
    assert main(["drift", "shelf"]) == 1
