"""`codegen patterns`: results on stdout, talk on stderr, exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codegen.cli import main
from codegen.patterns import load_library
from codegen.patterns.reference import END, START, update_reference
from tests.codegen.patterns.test_library import GOOD, write

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, entered."""
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_list_names_every_pattern(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["patterns", "list"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {id} " in out for id in load_library().ids())
    assert main(["patterns", "list", "tensor", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {"VAL_SHAPE", "VAL_TENSOR_FINITE"} <= {item["id"] for item in listed}
    assert "VAL_MATCHES" not in {item["id"] for item in listed}


def test_show_prints_the_signature_the_expansion_and_the_examples(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["patterns", "show", "VAL_RANK"]) == 0
    out = capsys.readouterr().out
    for expected in (
        "VAL_RANK([target], world_size)",
        "if not 0 <= rank < world_size:",
        "rank must be a rank in [0, 4)",
    ):
        assert expected in out
    assert main(["patterns", "show", "VAL_RANK", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["digest"] == load_library().get("VAL_RANK").digest
    assert shown["expansion"]["code"].startswith("if not 0 <= rank")


def test_an_unknown_id_is_a_usage_error_with_the_nearest(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["patterns", "show", "VAL_RANG"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "did you mean VAL_RANK" in captured.err


def test_a_failing_example_is_a_finding_at_its_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(project, "VAL_EVEN", GOOD.replace("n = 2", "n = 5"))
    assert main(["patterns", "test", "VAL_EVEN"]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith(f"{path}:15:1: error pattern-example VAL_EVEN(n) with n = 5: raised ValueError")
    assert "2 examples of 1 pattern: 1 passed, 1 failed, 0 skipped" in captured.err
    assert main(["patterns", "test", "VAL_EVEN", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["passed"], report["failed"]) == (1, 1)
    assert report["examples"][0]["status"] == "failed"


@pytest.mark.parametrize(
    ("old", "new", "detail"),
    [
        ("n = 2", "n = 5", "expected to pass"),
        ("n = 3:", "n = 4:", "passed; expected ValueError"),
        ("got 3", "got three", "expected 'check: n must be even, got three'"),
        ("n = 3:", "m = 3:", "raised NameError"),
        ("n = 3:", "n = (:", "raised SyntaxError"),
    ],
)
def test_each_way_to_fail_an_example_is_told(
    project: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, detail: str
) -> None:
    write(project, "VAL_EVEN", GOOD.replace(old, new))
    assert main(["patterns", "test", "VAL_EVEN"]) == 1
    assert detail in capsys.readouterr().out


def test_a_broken_file_is_a_finding_of_test(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(project, "VAL_EVEN", GOOD.replace("tag: VAL", "tag: NO"))
    assert main(["patterns", "test", "--format", "github"]) == 1
    assert f"::error file={path},line=4,col=6,title=pattern-syntax::NO means" in capsys.readouterr().out
    assert main(["patterns", "list"]) == 2


def test_new_writes_a_pattern_that_passes_its_examples(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["patterns", "new", "VAL_BATCH", "--tag", "P0"]) == 0
    assert capsys.readouterr().out.strip() == str(project / "validation_patterns" / "project" / "VAL_BATCH.yaml")
    assert main(["patterns", "test", "VAL_BATCH"]) == 0
    assert load_library(project).get("VAL_BATCH").tag == "P0"


@pytest.mark.parametrize("parent", load_library().ids())
def test_new_can_extend_each_shipped_pattern(project: Path, capsys: pytest.CaptureFixture[str], parent: str) -> None:
    id = f"VAL_OWN_{parent}"
    assert main(["patterns", "new", id, "--extends", parent, "--group", "mine", "--json"]) == 0
    path = Path(json.loads(capsys.readouterr().out)["path"])
    assert path == project / "validation_patterns" / "mine" / f"{id}.yaml"
    own, base = load_library(project).get(id), load_library().get(parent)
    assert (own.template, own.tag, own.placement) == (base.template, base.tag, base.placement)
    assert len(own.examples) == len(base.examples)


@pytest.mark.parametrize(
    "arguments",
    [["val_x"], ["VAL-X"], ["../VAL_X"], ["VAL_X", "--group", "../up"], ["VAL_X", "--group", ".."],
     ["VAL_X", "--tag", "p 0"], ["VAL_X", "--extends", "VAL_NOWHERE"]],
)  # fmt: skip
def test_new_refuses_what_cannot_be_a_pattern(project: Path, arguments: list[str]) -> None:
    assert main(["patterns", "new", *arguments]) == 2
    assert not (project / "validation_patterns").exists()


def test_new_overwrites_nothing(project: Path) -> None:
    path = write(project, "VAL_EVEN", GOOD)
    assert main(["patterns", "new", "VAL_EVEN", "--group", "elsewhere"]) == 2
    assert path.read_text(encoding="utf-8") == GOOD


def test_the_reference_page_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "patterns.md").read_text(encoding="utf-8")
    assert update_reference(page, load_library()) == page, "run `codegen patterns reference docs/patterns.md`"


def test_the_reference_keeps_what_is_around_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = project / "page.md"
    page.write_text(f"# Ours\n\n{START}\nold\n{END}\n\n## Below\n", encoding="utf-8")
    assert main(["patterns", "reference", "page.md", "--check"]) == 1
    assert "old" in page.read_text(encoding="utf-8")
    assert main(["patterns", "reference", "page.md"]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# Ours\n\n{START}\n\n| Group") and text.endswith(f"{END}\n\n## Below\n")
    assert main(["patterns", "reference", "page.md", "--check"]) == 0


def test_the_page_mentions_each_word_of_the_template_language() -> None:
    from codegen.patterns.template import FILTERS, MESSAGE_NAMES, STATEMENT_NAMES, TESTS

    page = (ROOT / "docs" / "patterns.md").read_text(encoding="utf-8").partition(START)[0]
    words = {*FILTERS, *TESTS, *MESSAGE_NAMES, *STATEMENT_NAMES}
    assert not {word for word in words if f"`{word}" not in page}


def test_expansion_never_runs_an_example(project: Path) -> None:
    """An example with a side effect leaves no trace when its pattern is only used."""
    write(project, "VAL_EVEN", GOOD.replace("n = 2", "\"n = open('trace', 'w') and 2\""))
    (project / "m.py").write_text("def f(n: int) -> None:\n    # VAL: VAL_EVEN\n    print(n)\n", encoding="utf-8")
    main(["expand", "m.py"])
    assert "% 2 != 0" in (project / "m.py").read_text(encoding="utf-8")
    assert not (project / "trace").exists()
    assert main(["patterns", "test", "VAL_EVEN"]) == 0
    assert (project / "trace").exists()
