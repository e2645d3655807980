"""`codegen refute`: finds the inputs that break wrong claims, none for right ones, and says what it did not search."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from codegen.cli import main
from tests.codegen.refute.planted import HEAD, RIGHT, WRONG

pytest.importorskip("crosshair")
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def searched(capsys: pytest.CaptureFixture[str], name: str, text: str, *options: str) -> dict[str, dict[str, Any]]:
    """What `refute --json` says of each function of a module of that text."""
    Path(name).write_text(text, encoding="utf-8")
    capsys.readouterr()
    main(["refute", name, "--json", *options])
    return {row["function"]: row for row in json.loads(capsys.readouterr().out)}


def breaks(name: str, function: str, arguments: str) -> bool:
    """Whether the function of the expanded file raises AssertionError for these arguments: run apart from the tool."""
    receiver = arguments.partition("self=")[2]
    call = f"m.{function}({arguments})"
    if receiver:
        made = ast.parse(f"f({arguments})", mode="eval").body
        assert isinstance(made, ast.Call)
        given = {k.arg: ast.unparse(k.value) for k in made.keywords}
        rest = ", ".join(f"{key}={value}" for key, value in given.items() if key != "self")
        call = f"m.{given['self']}.{function.partition('.')[2]}({rest})"
    code = f"import {Path(name).stem} as m\ntry:\n    {call}\nexcept AssertionError:\n    print('broken')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout == "broken\n"


def test_the_search_finds_an_input_for_each_of_20_wrong_claims_and_for_none_of_20_right_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wrong = searched(capsys, "wrong.py", HEAD + "\n\n".join(WRONG.values()))
    right = searched(capsys, "right.py", HEAD + "\n\n".join(RIGHT.values()))
    assert len(WRONG) == len(RIGHT) == 20
    assert {name: row["outcome"] for name, row in wrong.items()} == dict.fromkeys(WRONG, "broken")
    assert {name: row["outcome"] for name, row in right.items()} == dict.fromkeys(RIGHT, "none")
    main(["expand", "wrong.py", "--quiet"])
    assert [name for name, row in wrong.items() if not breaks("wrong.py", name, row["input"])] == []


def test_a_finding_is_at_the_annotation_of_the_broken_claim_expanded_or_not(capsys: pytest.CaptureFixture[str]) -> None:
    text = HEAD + WRONG["half"] + "\n" + WRONG["grow"]
    before = searched(capsys, "m.py", text)
    lines = text.splitlines()
    assert "AST_ENSURES" in lines[before["half"]["line"] - 1]
    assert "AST_POSTCONDITION" in lines[before["grow"]["line"] - 1]
    assert Path("m.py").read_text(encoding="utf-8") == text
    main(["expand", "m.py"])
    after = searched(capsys, "m.py", Path("m.py").read_text(encoding="utf-8"))
    lines = Path("m.py").read_text(encoding="utf-8").splitlines()
    assert "AST_ENSURES" in lines[after["half"]["line"] - 1]
    assert (before["grow"]["input"], before["half"]["input"]) == (after["grow"]["input"], after["half"]["input"])


def test_two_runs_find_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    text = HEAD + "\n\n".join(WRONG.values())
    assert searched(capsys, "m.py", text) == searched(capsys, "m.py", text)


@pytest.mark.parametrize(
    ("source", "function", "reason"),
    [
        ("async def f(n: int) -> int:", "f", "it is async"),
        ("def f(n) -> int:", "f", "its parameter n has no type"),
        ("def f(n: int, **rest: int) -> int:", "f", "it takes **rest"),
        ("def f(n: Missing) -> int:", "f", "its types do not resolve: name 'Missing'"),
        ("def f(n: object) -> int:", "f", "its parameter n may be anything"),
        ("@wrapped\ndef f(n: int) -> int:", "f", "it is decorated with wrapped"),
    ],
)
def test_what_cannot_be_searched_is_a_note_with_its_reason(
    capsys: pytest.CaptureFixture[str], source: str, function: str, reason: str
) -> None:
    head = "from __future__ import annotations\n\ndef wrapped(f):\n    return f\n\n"
    body = "    m = 1\n    # AST: AST_POSTCONDITION(m > 0)\n    return m\n"
    row = searched(capsys, "m.py", f"{head}{source}\n{body}")[function]
    assert row["outcome"] == "unsearched" and reason in row["detail"]
    assert main(["refute", "m.py"]) == 0
    assert f"note not-searched {function}: not searched: " in capsys.readouterr().out


def test_a_generator_and_a_nested_function_are_not_searched(capsys: pytest.CaptureFixture[str]) -> None:
    text = """
    def count(n: int):
        m = n
        # AST: AST_POSTCONDITION(m == n)
        yield m

    def outer(n: int) -> int:
        def inner(k: int) -> int:
            m = k
            # AST: AST_POSTCONDITION(m > 0)
            return m
        return inner(n)
    """
    rows = searched(capsys, "m.py", textwrap.dedent(text))
    assert rows["count"]["detail"] == "it is a generator"
    assert rows["outer.inner"]["detail"] == "it is defined inside outer"


def test_a_module_that_does_not_import_is_said_for_each_function(capsys: pytest.CaptureFixture[str]) -> None:
    rows = searched(capsys, "m.py", HEAD + "import no_such_module\n" + WRONG["half"] + "\n" + WRONG["grow"])
    assert set(rows) == {"half", "grow"}
    assert all("does not import: ModuleNotFoundError" in row["detail"] for row in rows.values())
    rows = searched(capsys, "leaving.py", HEAD + "raise SystemExit(4)\n" + WRONG["half"])
    assert "does not import: SystemExit: 4" in rows["half"]["detail"]


def test_a_file_that_cannot_be_expanded_is_said_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    rows = searched(capsys, "m.py", "def f(n: int) -> int:\n    # AST: AST_ENSHURES(result > n)\n    return n + 1\n")
    assert rows["the file"]["outcome"] == "unsearched" and "line 2: " in rows["the file"]["detail"]


def test_an_input_that_the_function_refuses_breaks_no_claim(capsys: pytest.CaptureFixture[str]) -> None:
    text = """
    def f(n: int) -> int:
        # AST: AST_REQUIRES(n > 3)
        # VAL: VAL_INT_RANGE(n, min=5, max=9)
        m = n - 5
        # AST: AST_POSTCONDITION(m >= 0)
        return m

    def calls_with_less(n: int) -> int:
        m = f(n)
        # AST: AST_POSTCONDITION(m <= 4)
        return m

    def recursive(n: int) -> int:
        # AST: AST_REQUIRES(n != 2)
        m = 1 if n <= 0 else recursive(n - 1)
        # AST: AST_POSTCONDITION(m == 1)
        return m
    """
    rows = searched(capsys, "m.py", textwrap.dedent(text))
    assert (rows["f"]["outcome"], rows["calls_with_less"]["outcome"]) == ("none", "none")
    assert rows["recursive"]["outcome"] == "broken", "it calls itself with what it refuses"


def test_the_search_writes_no_files_and_what_the_module_prints_spoils_nothing(
    capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    text = """
    print("hello from the module")

    def f(n: int) -> int:
        print("hello", n)
        with open("trace.txt", "w") as file:
            file.write(str(n))
        m = n + 1
        # AST: AST_POSTCONDITION(m > n)
        return m
    """
    rows = searched(capsys, "m.py", textwrap.dedent(text))
    assert list(rows) == ["f"]
    assert not (project / "trace.txt").exists()
    assert rows["f"]["outcome"] == "unsearched", rows


def test_a_function_that_does_not_end_does_not_stop_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    text = """
    def endless(n: int) -> int:
        while True:
            n += 1
        # AST: AST_POSTCONDITION(n > 0)

    """
    rows = searched(capsys, "m.py", textwrap.dedent(text) + WRONG["half"], "--seconds", "1")
    assert rows["half"]["outcome"] == "broken"
    assert rows.get("endless", {"outcome": "none"})["outcome"] != "broken"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--seconds", "0"], "--seconds is 0"),
        (["--iterations", "0"], "--iterations is 0"),
        (["nowhere.py"], "nowhere.py"),
    ],
)
def test_wrong_use_is_one_line(capsys: pytest.CaptureFixture[str], options: list[str], words: str) -> None:
    Path("m.py").write_text("", encoding="utf-8")
    assert main(["refute", "m.py", *options]) == 2
    assert words in capsys.readouterr().err


def test_without_the_extra_the_command_says_how_to_install_it(
    capsys: pytest.CaptureFixture[str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = project / "hidden" / "crosshair"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('hidden')\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(project / "hidden"))
    Path("m.py").write_text(HEAD + WRONG["half"], encoding="utf-8")
    assert main(["refute", "m.py"]) == 2
    assert "pip install 'roll-ts[refute]'" in capsys.readouterr().err
