"""`codegen view` writes the page where it is asked to."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.cli import main


def test_the_page_goes_to_build_or_where_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    assert main(["new", "tea"]) == 0
    assert main(["view"]) == 0
    assert (tmp_path / "build" / "tea.html").read_text().startswith("<!doctype html>")
    assert main(["view", "tea", "-o", "out/page.html"]) == 0
    assert (tmp_path / "out" / "page.html").is_file()
    assert "out/page.html" in capsys.readouterr().out
    assert main(["view", "coffee"]) == 2
