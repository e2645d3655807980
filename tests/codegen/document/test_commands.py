"""The commands as a user types them, from an empty folder on."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path

import pytest

from codegen.cli import main
from codegen.document import document_lock, parse_document, read_document
from codegen.document.lint.fixes import fix
from codegen.document.scaffold import init_project
from tests.codegen.document.samples import CLEAN


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the sample document and its package, under git."""
    monkeypatch.chdir(tmp_path)
    init_project(tmp_path)
    (tmp_path / "design" / "till.md").write_text(CLEAN, encoding="utf-8")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_from_an_empty_folder_to_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "init")[0] == 0
    code, out, _ = run(capsys, "new", "till", "--title", "The till: sums", "--roots", "shop", "--date", "2026-01-02")
    assert (code, out) == (0, "design/till.md\n")
    path = tmp_path / "design" / "till.md"
    code, out, err = run(capsys, "lint")
    assert code == 0
    assert "DOC012" in out
    assert " error " not in out
    entry = (
        "#### 5.1.1 `total`\n\nThe sum.\n\n- decisions: D-1\n\n```python\ndef total() -> int: ...\n```\n\n## 6. Plan"
    )
    replace(path, "## 6. Plan", entry)
    code, _, err = run(capsys, "plan")
    assert code == 2
    assert "not approved: shop.total" in err
    assert run(capsys, "review", "approve", "D-1", "5.1", "--reviewer", "Ann", "--date", "2026-01-03")[0] == 0
    assert run(capsys, "plan")[0] == 0
    document = read_document(path)
    assert [(step.number, step.files) for step in document.steps] == [(1, ("shop.py", "tests/test_shop.py"))]
    assert run(capsys, "plan", "--check")[0] == 0
    assert run(capsys, "lint")[0] == 0


def test_init_overwrites_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".gitignore").write_text("mine\n.codegen_cache/\n", encoding="utf-8")
    run(capsys, "init")
    code, out, _ = run(capsys, "init")
    assert code == 0
    assert "made" not in out
    assert (project / ".gitignore").read_text(encoding="utf-8") == "mine\n.codegen_cache/\n"


def test_new_refuses_to_overwrite_and_to_guess(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "new", "till")
    assert (code, "exists already" in err) == (2, True)
    assert run(capsys, "new", "no/id")[0] == 2
    code, _, err = run(capsys, "new", "cart", "--template", "nowhere")
    assert (code, "shipped: design" in err) == (2, True)
    assert (project / "design" / "till.md").read_text(encoding="utf-8") == CLEAN


def test_a_project_may_bring_its_own_template(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "templates").mkdir()
    template = project / "templates" / "design.md.j2"
    template.write_text("---\nid: {{ id }}\n---\n# {{ title }} for {{ module }}\n", encoding="utf-8")
    assert run(capsys, "new", "cart", "--roots", "src/shop/cart")[0] == 0
    assert (project / "design" / "cart.md").read_text(encoding="utf-8") == "---\nid: cart\n---\n# Cart for shop.cart\n"
    template.write_text("{{ owner }}", encoding="utf-8")
    code, _, err = run(capsys, "new", "lift")
    assert (code, "'owner' is undefined" in err) == (2, True)


def test_lint_says_where_and_exits_with_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replace(project / "design" / "till.md", "- decisions: D-2", "- decisions: D-9")
    code, out, err = run(capsys, "lint")
    assert code == 1
    assert out.startswith(
        "design/till.md:134:1: error REF004 5.2.2 `Till.total`: there is no decision or goal 'D-9'\n    fix:"
    )
    assert err == "1 error\n"
    code, out, _ = run(capsys, "lint", "--json")
    assert [finding["code"] for finding in json.loads(out)] == ["REF004"]
    assert "::error file=design/till.md,line=134" in run(capsys, "lint", "--format", "github")[1]
    assert json.loads(run(capsys, "lint", "--format", "sarif")[1])["runs"][0]["results"][0]["ruleId"] == "REF004"


def test_warnings_fail_only_when_strict(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replace(project / "design" / "till.md", "# The till\n", "# A till\n")
    assert run(capsys, "lint")[0] == 0
    assert run(capsys, "lint", "--strict")[0] == 1


def test_lint_fix_mends_and_diff_only_shows(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "design" / "till.md"
    replace(path, "# The till\n", "# A till\n")
    before = path.read_text(encoding="utf-8")
    code, out, _ = run(capsys, "lint", "--diff")
    assert code == 1
    assert "-# A till\n+# The till\n" in out
    assert path.read_text(encoding="utf-8") == before
    assert run(capsys, "lint", "--fix", "--strict")[0] == 0
    assert path.read_text(encoding="utf-8") == fix(parse_document(CLEAN)).text


def test_lint_looks_into_the_pattern_library(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replace(project / "design" / "till.md", "VAL_NON_EMPTY", "VAL_NON_EMPTI")
    code, out, _ = run(capsys, "lint")
    assert code == 1
    assert "API005" in out
    assert "VAL_NON_EMPTY" in out


def test_unmanaged_checks_are_listed_without_any_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("def f(x):\n    if x < 0:\n        raise ValueError('x')\n", encoding="utf-8")
    code, out, _ = run(capsys, "lint", "--unmanaged", "a.py")
    assert code == 1
    assert "a.py:2" in out
    assert run(capsys, "lint", "--unmanaged", "none.py")[0] == 2


def test_status_for_people_machines_and_ci(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "status")
    assert code == 0
    assert "methods 2/5 DONE, 3 NOT_STARTED; steps 1/2 DONE" in out
    assert "next: Step 2: Till" in out
    [state] = json.loads(run(capsys, "status", "till", "--json")[1])
    assert (state["id"], state["next"], state["counts"]["DONE"], state["done"]) == ("till", 2, 2, False)
    assert run(capsys, "status", "--require", "done")[0] == 1


def test_plan_shows_before_it_writes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "design" / "till.md"
    replace(path, "    cents: int\n", "    cents: float\n")
    before = path.read_text(encoding="utf-8")
    code, out, _ = run(capsys, "plan", "--diff")
    assert (code, "+| `shop.money.Money` | STALE |" in out) == (1, True)
    assert run(capsys, "plan", "--check")[0] == 1
    assert json.loads(run(capsys, "plan", "--check", "--json")[1])["stale"][:1] == [
        {"step": 1, "name": "shop.money.Money"}
    ]
    assert path.read_text(encoding="utf-8") == before
    assert run(capsys, "plan")[0] == 0
    assert run(capsys, "status")[1].count("STALE") >= 2


def test_planning_without_review_is_recorded(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "design" / "till.md"
    entry = (
        "#### 5.2.4 `Till.close`\n\nClose.\n\n- decisions: D-2\n\n```python\ndef close(self): ...\n```\n\n## 6. Plan"
    )
    replace(path, "## 6. Plan", entry)
    assert run(capsys, "plan")[0] == 2
    assert "5.2.4" not in path.read_text(encoding="utf-8").partition("## 6. Plan")[2]
    assert run(capsys, "plan", "--unreviewed")[0] == 0
    assert read_document(path).log[-1].asked == "planned without approval: shop.till.Till.close"


def test_a_wrong_size_or_circle_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "plan", "--size", "11")[0] == 2
    replace(project / "design" / "till.md", "amount in cents.\n\n- deps: -", "amount in cents.\n\n- deps: 5.1.2")
    code, _, err = run(capsys, "plan")
    assert (code, "5.1.1 `Money` → 5.1.2 `parse` → 5.1.1 `Money`" in err) == (2, True)


def test_graph_prints_both_languages(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "graph", "--level", "step")[1].startswith("flowchart LR\n")
    assert run(capsys, "graph", "till", "--format", "dot", "--level", "module")[1].startswith('digraph "till" {')
    assert "nD_1 --> n5_1_1" in run(capsys, "graph", "--level", "decision")[1]


def test_diff_impact_and_bump(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "design" / "till.md"
    assert run(capsys, "diff", "--exit-code")[0] == 0
    assert run(capsys, "bump")[0] == 2
    replace(path, "- outcome: the till", "- outcome: the caller")
    code, out, _ = run(capsys, "diff", "HEAD", "till", "--exit-code")
    assert (code, out) == (1, "decision D-2 changed: The till rounds\n    outcome: the till → the caller\n")
    code, out, _ = run(capsys, "impact", "D-2")
    assert "method 5.2.2 Till.total (D-2)" in out
    assert run(capsys, "impact", "D-7")[0] == 2
    code, out, _ = run(capsys, "bump", "--date", "2026-02-01")
    assert (code, out) == (0, "design/till.md: 0.3: D-2 changed\n")
    document = read_document(path)
    assert (document.front.version, document.history[-1].date) == ("0.3", "2026-02-01")
    assert run(capsys, "bump", "-m", "again", "--to", "0.3")[0] == 2
    assert json.loads(run(capsys, "diff", "0.2", "--json")[1])[0]["details"] == ["version: 0.2 → 0.3"]


def test_review_goes_top_down_until_nothing_is_left(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "review", "next")
    assert (code, out.startswith("design/till.md:31: section 1.1 Problem: NEEDS_REVIEW\n")) == (0, True)
    assert err == "11 to review\n"
    assert run(capsys, "review", "show", "D-2", "Till.total")[1].count("NEEDS_REVIEW") == 2
    assert run(capsys, "review", "reject", "D-2", "--reviewer", "Bob", "--reason", "why there?")[0] == 0
    assert "REJECTED     D-2" in run(capsys, "review", "list")[1]
    assert run(capsys, "review", "approve", "1", "2", "3", "4", "5", "--reviewer", "Ann")[0] == 0
    assert run(capsys, "review", "next", "--json")[1] == "null\n"
    assert run(capsys, "lint", "--strict")[0] == 0
    replace(project / "design" / "till.md", "- outcome: the till", "- outcome: the caller")
    out = run(capsys, "review", "list")[1]
    assert "NEEDS_REVIEW 5.2.2    Till.total (Ann," in out
    assert "APPROVED for an earlier text" in out


def test_a_document_held_by_another_is_not_touched(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    codes: list[int] = []
    with document_lock(project / "design" / "till.md", "step 2 start"):
        worker = threading.Thread(target=lambda: codes.append(main(["bump", "-m", "x"])))
        worker.start()
        worker.join()
    assert codes == [2]
    assert "step 2 start" in capsys.readouterr().err
    assert (project / "design" / "till.md").read_text(encoding="utf-8") == CLEAN


def test_a_document_is_found_by_id_path_or_as_the_only_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replace(project / "design" / "till.md", "id: till", "id: kasse")
    for name in ("kasse", "till", "design/till.md"):
        assert run(capsys, "status", name)[0] == 0
    assert run(capsys, "lint", "design")[0] == 0
    assert run(capsys, "lint", "shop")[0] == 2
    code, _, err = run(capsys, "status", "cart")
    assert (code, "there are: till" in err) == (2, True)
    assert run(capsys, "new", "cart")[0] == 0
    code, _, err = run(capsys, "plan")
    assert (code, "which document? name one of cart, till" in err) == (2, True)
