"""Two documents of one project: names, typos, cycles, impact and readiness across them."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.cli import main
from codegen.document.fold import finished_step
from codegen.document.parse import read_document
from codegen.document.project import project_of
from codegen.plan.impact import impact
from codegen.workflow.ledger import NotReady, started
from tests.codegen.document.samples import CLEAN
from tests.codegen.document.test_names import _done

API = """\
---
id: api
title: The API
version: 0.1
status: draft
roots: [web]
---
# The API

## Version history

| Version | Date | Change |
|---|---|---|
| 0.1 | 2026-01-02 | first draft |

## 1. Goals and scope

- G-1: sums over the wire

## 2. Architecture and integration

Calls the till.

## 3. Decisions

## 4. Flows, states and failures

One request, one sum.

## 5. APIs and implementation

### 5.1 `web.api`

#### 5.1.1 `serve`

Answer one request.

- deps: `shop.money.parse`
- decisions: G-1, till:D-1
- tests: tests/web/test_api.py

```python
def serve(text: str) -> int: ...
```

## 6. Plan

### 6.1 Dependency graph

<!-- codegen:graph -->
<!-- codegen:end -->

### 6.2 Steps

| Step | Title | Depends | Status | Commit | Names |
|---|---|---|---|---|---|
| 1 | The API | - | NOT_STARTED | - | - |

### Step 1: The API

- purpose: serve
- depends: -
- files: web/api.py
- checkpoints: it answers
- tests: `pytest tests/web`
- rollback: revert the commit
- names: `web.api.serve`
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "design").mkdir()
    for package in ("shop", "web"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "design" / "till.md").write_text(CLEAN, encoding="utf-8")
    (tmp_path / "design" / "api.md").write_text(API, encoding="utf-8")
    return tmp_path


def _change(path: Path, *pairs: tuple[str, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def _lint(capsys: pytest.CaptureFixture[str]) -> str:
    main(["lint"])
    return capsys.readouterr().out


def test_names_and_decisions_of_another_document_are_known(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "error" not in _lint(capsys)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("`shop.money.parse`", "`shop.money.prase`", "REF001"),
        ("till:D-1", "till:D-9", "REF004"),
        ("till:D-1", "tell:D-1", "REF004"),
    ],
)
def test_a_typo_in_what_another_document_has_is_found(
    project: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, code: str
) -> None:
    _change(project / "design" / "api.md", (old, new))
    out = _lint(capsys)
    assert f"error {code}" in out
    assert "api.md" in out


def test_a_cycle_through_two_documents_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _change(
        project / "design" / "till.md",
        ("- deps: 5.1.1\n- decisions: D-1, G-1", "- deps: `web.api.serve`\n- decisions: D-1, G-1"),
    )
    out = _lint(capsys)
    assert "error REF002" in out
    assert "api:5.1.1 `serve`" in out and "till:5.1.2 `parse`" in out


def test_impact_goes_on_in_other_documents(project: Path) -> None:
    till = read_document(project / "design" / "till.md")
    found = [(item.kind, item.id, item.path != "") for item in impact(till, "shop.money.Money", project_of(till))]
    assert ("method", "5.1.1", True) in found
    assert ("step", "Step 1", True) in found
    by_decision = [item.why for item in impact(till, "D-1", project_of(till)) if item.path]
    assert "till:D-1" in by_decision


def test_a_step_waits_for_what_is_stale_or_not_done_elsewhere(project: Path) -> None:
    api = project / "design" / "api.md"
    till = project / "design" / "till.md"
    till.write_text(finished_step(_done(), 1), encoding="utf-8")
    assert "IN_PROGRESS" in started(read_document(api), 1, unreviewed=True)
    _change(till, ("def parse(text: str)", "def parse(text: bytes)"))
    with pytest.raises(NotReady, match=r"Step 1 needs till:shop\.money\.parse \(STALE\)"):
        started(read_document(api), 1, unreviewed=True)
    till.write_text(CLEAN.replace("| DONE |", "| NOT_STARTED |"), encoding="utf-8")
    with pytest.raises(NotReady, match=r"\(NOT_STARTED\)"):
        started(read_document(api), 1, unreviewed=True)


def test_what_the_code_of_a_folded_name_uses_is_a_dependency(project: Path) -> None:
    api = API.replace("- deps: `shop.money.parse`\n", "")
    api = api.replace("#### 5.1.1 `serve`\n\nAnswer one request.\n\n", "").replace(
        "- names: `web.api.serve`\n", "- names: -\n"
    )
    (project / "design" / "api.md").write_text(api, encoding="utf-8")
    (project / "web" / "api.py").write_text(
        "from shop.money import parse as read\n\n\ndef _inner(text):\n    return read(text)\n\n\n"
        "def serve(text: str) -> int:\n    return _inner(text)\n",
        encoding="utf-8",
    )
    till = read_document(project / "design" / "till.md")
    found = [item.id for item in impact(till, "shop.money.parse", project_of(till)) if item.path]
    assert "web.api.serve" in found
