"""A step is verified by drift, by its expansions and by its tests; each of them can fail it."""

from __future__ import annotations

import pytest

from codegen.diagnostics import UsageError
from codegen.workflow.evidence import test_commands
from codegen.workflow.scaffold import scaffold
from codegen.workflow.verify import Verification, verify
from tests.codegen.workflow.conftest import Pantry, implement

test_commands.__test__ = False  # type: ignore[attr-defined]


COMMAND = "python tests/test_jar.py"
WAIVED = f"- waivers: `{COMMAND}`: plain asserts keep these tests fast\n"
TESTED = f"- tests: `{COMMAND}`\n{WAIVED}"


def verified(pantry: Pantry, number: int = 1) -> tuple[Verification, list[str]]:
    said: list[str] = []
    return verify(pantry.target(number), said.append), said


def codes(result: Verification) -> set[str]:
    return {finding.code for finding in result.findings if finding.severity != "note"}


def test_an_implemented_step_verifies(pantry: Pantry) -> None:
    implement(pantry, 1)
    result, said = verified(pantry)
    assert result.passed and [finding.code for finding in result.findings] == ["STEP016"]
    assert [run.status for run in result.runs] == [0]
    assert said[0] == "$ python tests/test_jar.py"


def test_a_command_that_leaves_no_report_proves_nothing(pantry: Pantry) -> None:
    implement(pantry, 1)
    pantry.change("design/pantry.md", WAIVED, "")
    result, _ = verified(pantry)
    [found] = result.findings
    assert not result.passed and result.runs[0].status == 0
    assert (found.code, found.severity) == ("STEP016", "error")
    assert "how many tests ran is not known" in found.message and f"- waivers: `{COMMAND}`: " in str(found.fix)


def test_a_waiver_of_another_command_waives_nothing(pantry: Pantry) -> None:
    implement(pantry, 1)
    pantry.change("design/pantry.md", f"- waivers: `{COMMAND}`", "- waivers: `python tests/test_shelf.py`")
    assert codes(verified(pantry)[0]) == {"STEP015", "STEP016"}


def test_a_waived_command_must_still_miss_the_functions(pantry: Pantry) -> None:
    implement(pantry, 1)
    pantry.write("tests/test_jar.py", "assert True\n")
    assert codes(verified(pantry)[0]) == {"STEP014"}


def test_a_report_that_the_command_writes_needs_no_waiver(pantry: Pantry) -> None:
    implement(pantry, 1)
    pantry.change("design/pantry.md", WAIVED, "")
    pantry.write("pyproject.toml", '[tool.codegen.step]\njunit = "junit.xml"\n')
    report = '<testsuite><testcase classname="jar" name="fill" time="0.1"/></testsuite>'
    pantry.change("tests/test_jar.py", "assert fill", f"open('junit.xml', 'w').write({report!r})\nassert fill")
    result, _ = verified(pantry)
    assert result.passed and result.findings == ()


def test_an_unwritten_step_does_not_verify(pantry: Pantry) -> None:
    result, _ = verified(pantry)
    assert not result.passed
    assert {"STEP010", "DRF001"} <= codes(result)
    assert result.runs == ()


def test_a_scaffolded_body_that_is_not_written_does_not_verify(pantry: Pantry) -> None:
    implement(pantry, 1)
    pantry.change("design/pantry.md", "    jar.grams += grams\n", "    ...\n")
    (pantry.root / "pantry/jar.py").unlink()
    pantry.change("design/pantry.md", "    return jar.grams\n", "    ...\n")
    scaffold(pantry.target(1))
    result, _ = verified(pantry)
    assert any("NotImplementedError is raised" in finding.message for finding in result.findings)


def test_drift_of_its_methods_fails_it(pantry: Pantry) -> None:
    implement(pantry, 1)
    pantry.change("pantry/jar.py", "grams: int) -> int", "weight: int) -> int")
    pantry.change("pantry/jar.py", "jar.grams += grams", "jar.grams += weight")
    result, _ = verified(pantry)
    assert "DRF004" in codes(result)


def test_drift_of_other_steps_does_not(pantry: Pantry) -> None:
    implement(pantry, 1)
    pantry.write("pantry/shelf.py", "def surprise() -> None: ...\n")
    assert verified(pantry)[0].passed


def test_an_edited_expansion_fails_it(pantry: Pantry) -> None:
    implement(pantry, 1)
    pantry.change("pantry/jar.py", "if not 1 <= grams", "if not 0 <= grams")
    result, _ = verified(pantry)
    assert not result.passed and codes(result) == {"edited"}


def test_a_failing_test_fails_it_with_its_output(pantry: Pantry) -> None:
    implement(pantry, 1)
    pantry.change("tests/test_jar.py", "== 5", "== 6")
    result, said = verified(pantry)
    assert codes(result) == {"STEP011"}
    assert "AssertionError" in said[1]


def test_a_test_past_its_deadline_fails_it(pantry: Pantry) -> None:
    implement(pantry, 1)
    pantry.write("pyproject.toml", "[tool.codegen.step]\ntest-seconds = 0.5\n")
    pantry.write("tests/test_jar.py", "import time\n\nprint('waiting', flush=True)\ntime.sleep(30)\n")
    result, _ = verified(pantry)
    assert codes(result) == {"STEP012"}
    assert result.runs[0].status is None


def test_a_step_with_functions_and_no_test_command_does_not_verify(pantry: Pantry) -> None:
    implement(pantry, 1)
    pantry.change("design/pantry.md", TESTED, "- tests: by eye\n")
    result, _ = verified(pantry)
    assert not result.passed and codes(result) == {"STEP013"}


def test_a_step_of_data_alone_without_a_test_command_is_warned_about(pantry: Pantry) -> None:
    implement(pantry, 1)
    pantry.change("design/pantry.md", TESTED, "- tests: by eye\n")
    pantry.change("design/pantry.md", "| `pantry.jar.fill` | 5.1.2 | IN_PROGRESS | - |\n", "")
    result, _ = verified(pantry)
    assert result.passed and codes(result) == {"STEP013"}


def test_a_command_that_does_not_exist_is_a_usage_error(pantry: Pantry) -> None:
    implement(pantry, 1)
    pantry.change("design/pantry.md", "`python tests/test_jar.py`", "`no-such-command`")
    with pytest.raises(UsageError, match="does not exist: no-such-command"):
        verified(pantry)


def test_a_root_that_a_later_step_makes_may_be_missing(pantry: Pantry) -> None:
    pantry.change("design/pantry.md", "roots: [pantry]", "roots: [pantry, cellar]")
    implement(pantry, 1)
    assert verified(pantry)[0].passed
