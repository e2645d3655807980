"""The settings for ruff that `codegen init` offers: enough, and never at the cost of what a file says."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.cli import main
from codegen.diagnostics import UsageError
from codegen.expand.driver.linters import RULES, offer_settings
from tests.codegen.expand.helpers import expand
from tests.codegen.patterns.test_linters import all_expansions

TAGS = ("AST", "VAL")
PIECES = st.sampled_from(
    [
        "[tool.ruff.lint]", "[ tool . ruff . lint ]", "[lint]", "[tool]", "[tool.ruff]", "[[tool.ruff.lint]]",
        'lint.select = ["E"]', 'select = ["E"]', 'ignore = ["E501"]', 'ignore = ["S", "EM", "TRY003", "PL"]',
        'task-tags = ["VAL", "AST"]', 'x = """', '"""', "[tool.ruff.lint.isort]", "# [tool.ruff.lint]", "", "a = 1",
    ]
)  # fmt: skip
FILE = st.tuples(st.lists(PIECES, max_size=7), st.sampled_from(["\n", "\r\n"]), st.booleans())


def violations(folder: Path, text: str) -> str:
    (folder / "code.py").write_text(text, encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff", "check", "--no-cache", "-q", "code.py"]
    done = subprocess.run(ruff, cwd=folder, capture_output=True, text=True, timeout=60)
    assert not done.stderr, done.stderr
    return done.stdout


def test_generated_code_and_annotations_pass_with_the_offered_settings(tmp_path: Path) -> None:
    text = all_expansions() + expand("def take(x):\n    # VAL: VAL_INT_RANGE(x, min=2)\n    return x\n")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.ruff.lint]\nselect = ["S101", "EM", "TRY003", "PLR2004", "ERA001"]\n'
    )
    said = violations(tmp_path, text)
    assert all(rule in said for rule in RULES)
    assert main(["init", str(tmp_path), "--linter-settings"]) == 0
    assert violations(tmp_path, text) == ""


@settings(max_examples=200, deadline=None, derandomize=True)
@given(FILE, st.sampled_from(["pyproject.toml", "ruff.toml"]))
def test_a_changed_file_says_what_it_said_and_the_settings_besides(
    tmp_path_factory: pytest.TempPathFactory, file: tuple[list[str], str, bool], name: str
) -> None:
    pieces, newline, ended = file
    folder = tmp_path_factory.getbasetemp() / "settings"
    folder.mkdir(exist_ok=True)
    for other in ("pyproject.toml", "ruff.toml"):
        (folder / other).unlink(missing_ok=True)
    text = newline.join(pieces) + newline * ended
    (folder / name).write_bytes(text.encode())
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        with pytest.raises(UsageError, match=f"{name}: .*; correct it"):
            offer_settings(folder, TAGS)
        return
    offer = offer_settings(folder, TAGS)
    assert offer.path == folder / name and (offer.new is None or offer.missing)
    assert bool(offer.toml) == bool(offer.missing)
    if offer.new is None:
        return
    after = tomllib.loads(offer.new.decode())
    (folder / name).write_bytes(offer.new)
    assert offer_settings(folder, TAGS).missing == {}
    lint = after["lint"] if name == "ruff.toml" else after["tool"]["ruff"]["lint"]
    for key, values in offer.missing.items():
        assert tuple(lint.pop(key)) == values
    old = before.get("lint") if name == "ruff.toml" else before.get("tool", {}).get("ruff", {}).get("lint")
    assert lint == (old or {})
    assert all(line in offer.new.decode().splitlines() for line in text.splitlines())


def test_what_cannot_be_changed_safely_is_shown_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ('[tool.ruff.lint]\nignore = ["S101"]\n', '[tool.ruff]\nlint.select = ["E"]\n'):
        (tmp_path / "pyproject.toml").write_text(text)
        assert main(["init", str(tmp_path), "--linter-settings"]) == 1
        kept = (tmp_path / "pyproject.toml").read_text()
        assert tomllib.loads(kept)["tool"]["ruff"] == tomllib.loads(text)["tool"]["ruff"]
        assert kept.startswith(text)
        assert "PLR2004" in capsys.readouterr().err


def test_without_being_asked_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path)]) == 0
    assert list(tomllib.loads((tmp_path / "pyproject.toml").read_text())["tool"]) == ["codegen"], "nothing for ruff"
    assert 'task-tags = ["VAL", "AST"]' in capsys.readouterr().err
    assert main(["init", str(tmp_path), "--linter-settings"]) == 0
    capsys.readouterr()
    assert main(["init", str(tmp_path)]) == 0
    assert "task-tags" not in capsys.readouterr().err


def test_a_file_that_is_not_toml_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool\n")
    assert main(["init", str(tmp_path)]) == 2
    assert "pyproject.toml" in capsys.readouterr().err
