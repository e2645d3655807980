"""A pattern that captures names, binds loosely, or relies on what it does not declare is found when it is tested."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codegen.cli import main
from tests.codegen.patterns.test_fuzz import FILES, damaged
from tests.codegen.patterns.test_library import GOOD, write

BAD_WORDS = """\
id: VAL_CLEAN
version: 1
since: "0.1"
tag: VAL
summary: No character is a bad one.
parameters:
  - {name: bad, type: expression, positional: true}
target: required
error: ValueError
message: "{{ where }}{{ label }} holds one of {{ show(bad) }}, got {{ value(target) }}"
template: |
  if any(c in {{ bad }} for c in {{ target }}):
      raise {{ error }}({{ message }})
builtins: [any]
examples:
  - use: VAL_CLEAN(text, forbidden)
    given: forbidden = "!?"
    passes: [text = "a"]
    raises:
      text = "a!": "check: text holds one of '!?', got 'a!'"
"""
FRESH = "{% set c = fresh('c') %}\n  if any({{ c }} in {{ bad }} for {{ c }} in {{ target }}):"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def outcome_of(folder: Path, text: str, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, Path]:
    """Exit status and output of `patterns test` on a file of that text, and its path."""
    path = write(folder, text.partition("\n")[0].removeprefix("id: "), text)
    capsys.readouterr()
    status = main(["patterns", "test", path.stem, *options])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return status, captured.out, path


def test_X21_a_template_without_its_colon_is_a_finding_with_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, path = outcome_of(tmp_path, GOOD.replace("% 2 != 0:", "% 2 != 0"), capsys)
    assert status == 1
    assert out.startswith(f"{path}:10:1: error pattern-render VAL_EVEN does not render to Python: expected ':'")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("      raise", "    raise x\n      raise", "does not render to Python"),
        ("if {{ each }}", "{% if each is string %}if {{ each }}{% endif %} {{ each }}", "does not render to Python"),
        ("  if {{ each }} % 2 != 0:\n      raise {{ error }}({{ message }})", "  # nothing", "renders to nothing"),
    ],
)
def test_X21_each_template_that_gives_no_python_is_a_finding_of_test_and_a_plain_error_of_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, words: str
) -> None:
    status, out, path = outcome_of(tmp_path, GOOD.replace(old, new), capsys)
    assert status == 1
    assert out.startswith(f"{path}:10:1: error pattern-render") and words in out
    assert main(["patterns", "show", "VAL_EVEN"]) == 2
    assert words in capsys.readouterr().err


def test_X22_a_comprehension_variable_that_an_argument_may_use_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, path = outcome_of(tmp_path, BAD_WORDS, capsys)
    assert status == 1
    assert out.startswith(f"{path}:11:1: error pattern-trial the template binds c around bad")
    assert "{% set c = fresh('c') %}" in out


def test_X22_the_same_pattern_with_a_fresh_name_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = BAD_WORDS.replace("if any(c in {{ bad }} for c in {{ target }}):", FRESH)
    assert outcome_of(tmp_path, text, capsys)[:2] == (0, "")


def test_X22_a_lambda_that_captures_is_a_finding_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = BAD_WORDS.replace(
        "any(c in {{ bad }} for c in {{ target }})", "any(map(lambda c: c in {{ bad }}, {{ target }}))"
    ).replace("[any]", "[any, map]")
    status, out, _ = outcome_of(tmp_path, text, capsys)
    assert status == 1 and "binds c around bad" in out


def test_X22_an_assignment_that_overwrites_a_variable_of_the_caller_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = BAD_WORDS.replace("  if any(", "  found = [x for x in {{ target }}]\n  if any(")
    status, out, _ = outcome_of(tmp_path, text, capsys)
    assert status == 1 and "the template assigns found" in out


def test_a_fixed_name_that_no_argument_can_see_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = BAD_WORDS.replace("c in {{ bad }} for c", "c == '!' for c")
    status, out, _ = outcome_of(tmp_path, text, capsys)
    assert (status, out) == (0, "")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("error: ValueError", "imports: [import math]\nerror: ValueError", "no example's code uses math"),
        ("error: ValueError", "builtins: [len]\nerror: ValueError", "no example's code uses the built-in len"),
        ("if {{ each }}", "if int({{ each }}) and len([{{ each }}]) and {{ each }}", "the built-in len, which"),
        ("if {{ each }}", "if even_mode and {{ each }}", "reads even_mode, which is no argument"),
        (
            "target: required",
            "parameters: [{name: spare, type: int, default: '3'}]\ntarget: required",
            "uses the parameter spare",
        ),
    ],
)
def test_what_a_pattern_declares_and_what_it_uses_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, words: str
) -> None:
    status, out, _ = outcome_of(tmp_path, GOOD.replace(old, new), capsys)
    assert status == 1
    assert "error pattern-trial" in out and words in out


def test_an_argument_that_falls_apart_beside_an_operator_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = GOOD.replace("target: required", "parameters: [{name: by, type: int, default: '2'}]\ntarget: required")
    status, out, _ = outcome_of(tmp_path, text.replace("% 2", "% {{ by }}"), capsys)
    assert status == 1 and "the by `n - 1` means another thing" in out
    assert outcome_of(tmp_path, text.replace("{{ each }} % 2", "{{ each|atom }} % {{ by|atom }}"), capsys)[:2] == (
        0,
        "",
    )


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "import sys; sys.exit()", "raise GeneratorExit"])
def test_an_example_that_leaves_the_program_is_a_failed_example(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    text = GOOD.replace("passes: [n = 2]", f"passes: ['n = 2; {code}']")
    status, out, _ = outcome_of(tmp_path, text, capsys)
    assert status == 1 and "expected to pass" in out


def test_an_example_that_does_not_end_is_a_failed_example(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codegen.patterns.examples.MAX_SECONDS", 0.2)
    text = GOOD.replace("passes: [n = 2]", 'passes: ["n = 2\\nwhile True:\\n    pass"]')
    status, out, _ = outcome_of(tmp_path, text, capsys)
    assert status == 1 and "did not end within 0.2 s" in out


def test_findings_of_trials_are_in_the_json_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, path = outcome_of(tmp_path, BAD_WORDS, capsys, "--json")
    report = json.loads(out)
    assert report["passed"] == 2
    assert [(f["path"], f["line"], f["code"]) for f in report["findings"]] == [(str(path), 11, "pattern-trial")]


def damaged_runs(folder: Path, capsys: pytest.CaptureFixture[str], rounds: int, seed: int) -> dict[int, int]:
    """Run `patterns test --mutate` on damaged files; counts by exit status. A crash is an exception here."""
    import random

    rng = random.Random(seed)
    safe = [text for text in FILES if "path" not in text.lower()]  # A damaged example must not touch the disk.
    counts: dict[int, int] = {}
    path = write(folder, "VAL_DAMAGED", "")
    for _ in range(rounds):
        path.write_bytes(damaged(rng.choice(safe), rng).encode())
        status = main(["patterns", "test", "VAL_DAMAGED", "--mutate"])
        captured = capsys.readouterr()
        assert status in (0, 1), captured.err
        assert (status == 1) == bool(captured.out), captured.err
        counts[status] = counts.get(status, 0) + 1
    return counts


def test_no_damaged_file_gives_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert damaged_runs(tmp_path, capsys, 250, seed=4)[1] > 200


@pytest.mark.nightly
@pytest.mark.timeout(1500)
def test_no_damaged_file_of_many_gives_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert damaged_runs(tmp_path, capsys, 6_000, seed=5)[1] > 5_000
