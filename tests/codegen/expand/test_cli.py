"""The command: exit status, streams, formats, files written or left alone."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from codegen.cli import main
from codegen.expand.driver import cache
from codegen.expand.driver.settings import read_settings

TEXT = "def take(x: int):\n    # VAL: VAL_POSITIVE\n    return x\n"
DOCUMENT = """\
---
id: sample
title: Sample
version: 0.1
status: draft
roots: [pkg]
---
# Sample
## 5. APIs and implementation
### 5.1 `pkg.pool`
#### 5.1.1 `Pool.take`
Takes.
```python
def take(self, x: int) -> int:
    # VAL: VAL_POSITIVE(x)
    ...
```
#### 5.1.2 `Pool.give`
Gives.
```python
def give(self, y: int) -> int:
    # VAL: VAL_POSITIVE(y), VAL_FINITE(y)
    # AST: AST_INVARINT(y)
    return y
```
"""


@pytest.fixture()
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "a.py").write_text(TEXT)
    (tmp_path / "pkg" / "b.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["expand", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_expand_writes_and_check_agrees(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--check", "pkg")
    assert status == 1 and out.startswith("pkg/a.py:2:5: error unexpanded UNEXPANDED VAL_POSITIVE")
    assert (project / "pkg" / "a.py").read_text() == TEXT
    status, out, err = run(capsys, "pkg")
    assert (status, out, err) == (0, "", "1 site, 1 file changed, no findings\n")
    assert "if not x > 0" in (project / "pkg" / "a.py").read_text()
    before = (project / "pkg" / "a.py").stat().st_mtime_ns
    assert run(capsys, "--check", "pkg")[0] == 0 and run(capsys, "pkg")[0] == 0
    assert (project / "pkg" / "a.py").stat().st_mtime_ns == before
    assert run(capsys, "--strip", "pkg")[0] == 0
    assert (project / "pkg" / "a.py").read_text() == TEXT


def test_diff_prints_a_patch_and_writes_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "--diff", "pkg")
    assert status == 0 and "1 file would change" in err
    assert out.splitlines()[:2] == ["--- a/pkg/a.py", "+++ b/pkg/a.py"] and "+    if not x > 0:" in out
    assert run(capsys, "--check", "--diff", "pkg")[0] == 1
    assert (project / "pkg" / "a.py").read_text() == TEXT


def test_one_bad_file_is_left_alone_and_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = TEXT.replace("VAL_POSITIVE", "VAL_POSITVE")
    (project / "pkg" / "c.py").write_text(bad)
    status, out, _ = run(capsys, "pkg")
    assert status == 1 and "pkg/c.py:2:5: error unknown-pattern" in out and "fix: Did you mean VAL_POSITIVE" in out
    assert (project / "pkg" / "c.py").read_text() == bad
    assert "if not x > 0" in (project / "pkg" / "a.py").read_text()


@pytest.mark.parametrize("form", ["json", "github", "sarif"])
def test_formats_for_machines(project: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    status, out, _ = run(capsys, "--check", "--format", form, "pkg")
    assert status == 1
    if form == "github":
        assert out.startswith("::error file=pkg/a.py,line=2,col=5,title=unexpanded::")
        return
    data: Any = json.loads(out)
    if form == "json":
        assert [(found["path"], found["line"], found["code"]) for found in data] == [("pkg/a.py", 2, "unexpanded")]
    else:
        assert data["version"] == "2.1.0" and data["runs"][0]["results"][0]["ruleId"] == "unexpanded"


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_standard_input_goes_to_standard_output(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    feed(monkeypatch, TEXT.replace("\n", "\r\n").encode())
    assert main(["expand", "-", "--quiet"]) == 0
    out = capfdbinary.readouterr().out
    assert b"    if not x > 0:\r\n" in out
    feed(monkeypatch, b"x = 1")
    assert main(["expand", "-", "--quiet"]) == 0
    assert capfdbinary.readouterr().out == b"x = 1"
    feed(monkeypatch, TEXT.encode())
    assert main(["expand", "-", "--check", "--stdin-filename", "pkg/z.py"]) == 1
    assert capfdbinary.readouterr().out.startswith(b"pkg/z.py:2:5: error unexpanded")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere"],
        ["-", "pkg"],
        ["pkg", "--stdin-filename", "a.py"],
        ["pkg", "--strip", "--adopt"],
        ["pkg", "--section", "5.1"],
        ["pkg", "x.md"],
    ],
)
def test_wrong_use_is_exit_2(project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    status, out, err = run(capsys, *arguments)
    assert status == 2 and out == "" and err.startswith("codegen: ")


def test_hidden_and_excluded_files_are_not_touched(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (".hidden", "__pycache__", "vendored"):
        (project / name).mkdir()
        (project / name / "a.py").write_text(TEXT)
    (project / "pyproject.toml").write_text('[tool.codegen]\nexclude = ["vendored"]\n')
    assert run(capsys, ".", "--exclude", "b.py")[0] == 0
    texts = [(project / name / "a.py").read_text() for name in (".hidden", "__pycache__", "vendored", "pkg")]
    assert [text == TEXT for text in texts] == [True, True, True, False]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('ast-mode = "x"', "ast-mode is 'x'"),
        ("width = 3", "width is 3"),
        ('exclude = "x"', "exclude is 'x'"),
        ("= 3", "Invalid"),
    ],
)
def test_wrong_settings_are_named(project: Path, capsys: pytest.CaptureFixture[str], line: str, message: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.codegen]\n{line}\n")
    status, _, err = run(capsys, "pkg")
    assert status == 2 and message in err


LONG = """
class Store:
    async def put(self, count: int, limit: int | None = None) -> None:
        if count:
            # VAL: VAL_POSITIVE(count) - {note}
            # VAL: VAL_POSITIVE(limit) - {note}
            print(count)
"""


@pytest.mark.parametrize("tool", ["ruff", "black"])
@pytest.mark.parametrize("length", [72, 88, 120, 160])
def test_a_message_is_split_only_where_the_projects_line_is_too_short(
    project: Path, capsys: pytest.CaptureFixture[str], tool: str, length: int
) -> None:
    path = project / "pkg" / "long.py"
    (project / "pyproject.toml").write_text(f"[tool.{tool}]\nline-length = {length}\n")
    whole = set()
    for words in range(1, 16):
        path.write_text(LONG.format(note=" ".join(["word"] * words)))
        assert run(capsys, str(path))[0] == 0
        generated = [line for line in path.read_text().splitlines() if "#" not in line]
        assert max(map(len, generated)) <= length
        whole |= {len(line) for line in generated if line.lstrip().startswith("raise ValueError(f")}
    assert not whole or max(whole) > length - len(" word") - 1


def test_another_line_length_makes_no_block_stale(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "pkg" / "long.py"
    path.write_text(LONG.format(note="a note of some length for this"))
    run(capsys, str(path))
    (project / "pyproject.toml").write_text("[tool.ruff]\nline-length = 140\n")
    assert run(capsys, "--check", str(path))[0] == 0


def test_a_width_of_its_own_goes_before_the_formatters(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.codegen]\nwidth = 60\n[tool.ruff]\nline-length = 140\n")
    options = read_settings(project).options
    assert (options.width, options.line) == (60, None)


def test_a_warm_check_knows_clean_files_by_their_content(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "pkg")
    for _ in range(2):
        assert run(capsys, "--check", "pkg")[2] == "1 site, 0 files would change, no findings\n"
    assert (project / cache.FOLDER / ".gitignore").read_text() == "*\n"
    path = project / "pkg" / "a.py"
    path.write_text(path.read_text().replace("x > 0", "x > 1"))
    assert run(capsys, "--check", "pkg")[0] == 1
    path.write_text(path.read_text().replace("x > 1", "x > 0"))
    (project / "validation_patterns").mkdir()
    assert run(capsys, "--check", "pkg")[0] == 0
    shipped = Path(__file__).parents[3] / "validation_patterns" / "scalars" / "VAL_POSITIVE.yaml"
    changed = shipped.read_text(encoding="utf-8").replace("must be positive", "has to be positive")
    (project / "validation_patterns" / "VAL_POSITIVE.yaml").write_text(changed, encoding="utf-8")
    status, out, _ = run(capsys, "--check", "pkg")
    assert status == 1 and "STALE VAL_POSITIVE" in out and "renders differently now" in out


def test_no_cache_leaves_no_trace(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "--no-cache", "pkg")
    assert run(capsys, "--no-cache", "--check", "pkg")[0] == 0
    assert not (project / cache.FOLDER).exists()


def test_no_prefilter_sends_every_file_all_the_way(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pkg" / "b.py").write_text("x = (\n")
    assert run(capsys, "pkg")[0] == 0
    status, out, _ = run(capsys, "--no-prefilter", "pkg")
    assert status == 1 and "pkg/b.py:1:1: error syntax" in out


def test_a_project_may_bring_its_own_tag(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "validation_patterns").mkdir()
    (project / "validation_patterns" / "INV_EVEN.yaml").write_text(
        'id: INV_EVEN\nversion: 1\nsince: "0.1"\ntag: INV\nsummary: The number is even.\ntarget: required\n'
        'error: ValueError\nmessage: "{{ label }} must be even"\n'
        "template: |\n  if {{ target }} % 2:\n      raise {{ error }}({{ message }})\n"
        'examples:\n  - use: INV_EVEN(x)\n    passes: [x = 2]\n    raises:\n      x = 1: "x must be even"\n'
    )
    (project / "pkg" / "a.py").write_text("def take(x: int):\n    # INV: INV_EVEN\n    return x\n")
    assert run(capsys, "pkg")[0] == 0
    assert "# END INV " in (project / "pkg" / "a.py").read_text()


def test_unmanaged_checks_of_a_folder(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pkg" / "b.py").write_text("def f(x):\n    if x:\n        raise ValueError(x)\n    assert x\n")
    status, out, err = run(capsys, "--unmanaged", "pkg")
    assert status == 1 and [row.split(":")[1] for row in out.splitlines() if row.startswith("pkg")] == ["2", "4"]
    assert err == "2 errors\n"


def test_a_section_of_a_document_is_previewed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "d.md").write_text(DOCUMENT)
    status, out, _ = run(capsys, "d.md", "--section", "5.1.1")
    assert status == 0
    assert out.startswith(
        "#### 5.1.1 `Pool.take`\n```python\ndef take(self, x: int) -> int:\n    # VAL: VAL_POSITIVE(x)\n"
    )
    assert "    if not x > 0:" in out and (project / "d.md").read_text() == DOCUMENT


def test_mistakes_in_a_document_are_reported_by_its_own_lines(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "d.md").write_text(DOCUMENT)
    status, _, err = run(capsys, "d.md")
    line = DOCUMENT.splitlines().index("    # AST: AST_INVARINT(y)") + 1
    assert status == 1 and f"d.md:{line}:5: error unknown-pattern" in err
    status, _, err = run(capsys, "d.md", "--section", "9.9")
    assert status == 2 and "no entry 9.9" in err


def test_the_patterns_of_a_document_are_indexed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "d.md").write_text(DOCUMENT)
    status, out, _ = run(capsys, "d.md", "--index")
    assert status == 0
    rows = [row.split(" | ")[:3] for row in out.splitlines()[2:]]
    assert rows == [
        ["| AST_INVARINT", "1", "5.1.2"],
        ["| VAL_FINITE", "1", "5.1.2"],
        ["| VAL_POSITIVE", "2", "5.1.1, 5.1.2"],
    ]


def test_the_pre_commit_hooks_name_commands_that_exist(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hooks = yaml.safe_load((Path(__file__).parents[3] / ".pre-commit-hooks.yaml").read_text())
    entries = {hook["id"]: hook["entry"].split() for hook in hooks}
    assert {"codegen-expand", "codegen-expand-check"} <= entries.keys()
    for id in ("codegen-expand-check", "codegen-expand"):
        assert entries[id][:2] == ["codegen", "expand"]
        assert run(capsys, *entries[id][2:], "pkg/a.py")[0] == (1 if "check" in id else 0)


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links here")
def test_a_linked_file_is_written_through_its_link(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "link.py").symlink_to(project / "pkg" / "a.py")
    assert run(capsys, "link.py")[0] == 0
    assert (project / "link.py").is_symlink() and "if not x > 0" in (project / "pkg" / "a.py").read_text()


def test_a_stale_site_says_what_changed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "pkg" / "a.py"
    path.write_text("def take(x: int):\n    # VAL: VAL_INT_RANGE(min=0, max=7)\n    return x\n")
    run(capsys, "pkg")
    text = path.read_text()
    path.write_text(text.replace("max=7)", "max=9)"))
    assert "the annotation was `VAL: VAL_INT_RANGE(min=0, max=7)`" in run(capsys, "--check", "pkg")[1]
    path.write_text(text.replace("x: int", "x: list[int]"))
    assert "the code around it changed" in run(capsys, "--check", "pkg")[1]
    path.write_text(text)
    (project / "validation_patterns").mkdir()
    shipped = Path(__file__).parents[3] / "validation_patterns" / "scalars" / "VAL_INT_RANGE.yaml"
    changed = shipped.read_text(encoding="utf-8").replace("}} must {%", "}} has to {%")
    (project / "validation_patterns" / "VAL_INT_RANGE.yaml").write_text(changed, encoding="utf-8")
    assert "its pattern changed" in run(capsys, "--check", "pkg")[1]


def test_lint_asks_for_the_full_specification_of_an_extracted_function(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"  if {{{{ target }}}} == {n}:\n      raise {{{{ error }}}}({{{{ message }}}})\n" for n in range(6))
    (project / "validation_patterns").mkdir()
    (project / "validation_patterns" / "VAL_LONG.yaml").write_text(
        'id: VAL_LONG\nversion: 1\nsince: "0.1"\ntag: VAL\nsummary: The value passes a long test.\n'
        "target: required\nerror: ValueError\n"
        f'message: "{{{{ where }}}}{{{{ label }}}} failed"\ntemplate: |\n{rows}'
        "examples:\n  - use: VAL_LONG(x)\n    passes: [x = 9]\n    raises:\n"
        + "".join(f'      x = {n}: "check: x failed"\n' for n in range(6))
    )
    (project / "pkg" / "pool.py").write_text("def take(x: int):\n    # VAL: VAL_LONG\n    return x\n")
    assert run(capsys, "--extract", "pkg/pool.py") == (0, "", "2 sites, 1 file changed, no findings\n")
    (project / "design").mkdir()
    page = project / "design" / "sample.md"
    page.write_text(DOCUMENT.replace("INVARINT", "INVARIANT"))
    main(["lint", "sample"])
    out = capsys.readouterr().out
    assert "warning EXT001 pkg.pool._validate_take_x is made of a long check" in out
    code = "```python\ndef _validate_take_x(x): ...\n```\n"
    page.write_text(f"{page.read_text()}#### 5.1.3 `_validate_take_x` - Full Specification\nAll six hold.\n{code}")
    main(["lint", "sample"])
    assert "EXT001" not in capsys.readouterr().out
