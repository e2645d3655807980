"""Findings: text, json, github and sarif."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.diagnostics import FORMATS, Finding, UsageError, exit_status, render, summary

ERROR = Finding("src/a b.py", 3, 5, "stale", "50% of x:\ny", fix="Run it.")
NOTE = Finding("src/c,d.py", 0, 0, "odd", "whole file", "note")


def test_text_is_one_line_and_the_fix_below() -> None:
    assert render([ERROR, NOTE]) == (
        "src/a b.py:3:5: error stale 50% of x:\ny\n    fix: Run it.\nsrc/c,d.py: note odd whole file\n"
    )


def test_github_gets_workflow_commands_with_escapes() -> None:
    assert render([ERROR, NOTE], "github") == (
        "::error file=src/a b.py,line=3,col=5,title=stale::50%25 of x:%0Ay%0AFix: Run it.\n"
        "::notice file=src/c%2Cd.py,title=odd::whole file\n"
    )


def test_json_is_a_list_of_all_fields() -> None:
    assert json.loads(render([ERROR], "json")) == [
        {"path": "src/a b.py", "line": 3, "column": 5, "code": "stale", "message": "50% of x:\ny",
         "severity": "error", "fix": "Run it."}
    ]  # fmt: skip


def test_sarif_has_rules_levels_places_and_relative_uris() -> None:
    run = json.loads(render([ERROR, NOTE, ERROR], "sarif"))["runs"][0]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["stale", "odd"]
    first, second, third = run["results"]
    assert first == third
    assert (first["ruleId"], first["ruleIndex"], first["level"]) == ("stale", 0, "error")
    place = first["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "src/a%20b.py"}, "region": {"startLine": 3, "startColumn": 5}}
    assert "region" not in second["locations"][0]["physicalLocation"]
    assert first["properties"] == {"fix": "Run it."}


def test_sarif_paths_below_the_working_directory_are_relative(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    inside, outside = Finding(str(tmp_path / "m.py"), 1, 1, "c", "m"), Finding("/elsewhere/m.py", 1, 1, "c", "m")
    results = json.loads(render([inside, outside], "sarif"))["runs"][0]["results"]
    uris = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in results]
    assert uris == ["m.py", "file:///elsewhere/m.py"]


def test_no_findings_render_to_valid_documents() -> None:
    assert render([]) == render([], "github") == ""
    assert json.loads(render([], "json")) == []
    assert json.loads(render([], "sarif"))["runs"][0]["results"] == []


_text = st.text(max_size=20)
_finding = st.builds(
    Finding, st.from_regex(r"[a-z/ ,:%]{1,9}", fullmatch=True), st.integers(0, 99), st.integers(0, 99), _text, _text,
    st.sampled_from(["error", "warning", "note"]), st.none() | _text,
)  # fmt: skip


@given(st.lists(_finding, max_size=4))
@settings(deadline=None, derandomize=True, max_examples=60)
def test_every_format_takes_every_finding(findings: list[Finding]) -> None:
    for form in FORMATS:
        render(findings, form)
    assert len(json.loads(render(findings, "sarif"))["runs"][0]["results"]) == len(findings)
    assert sum(line.startswith("::") for line in render(findings, "github").split("\n")) == len(findings)


def test_an_unknown_format_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="'xml'; use one of text, json, github, sarif"):
        render([], "xml")


def test_errors_fail_a_run_and_warnings_when_strict() -> None:
    warning = Finding("a", 1, 1, "c", "m", "warning")
    assert [exit_status(f) for f in ([], [NOTE], [warning], [ERROR])] == [0, 0, 0, 1]
    assert [exit_status(f, strict=True) for f in ([], [NOTE], [warning], [ERROR])] == [0, 0, 1, 1]


def test_a_summary_counts_by_severity() -> None:
    assert summary([ERROR, NOTE, ERROR]) == "2 errors, 1 note"
    assert summary([]) == "no findings"
