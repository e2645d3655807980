"""A run proves something only when everything that was collected ran to its end and passed."""

from __future__ import annotations

import pytest

from codegen.proof.report import read_junit, read_report
from tests.codegen.proof.conftest import Bench

TOTAL = "from shop import total\n\n\ndef test_total():\n    assert total([2, 3]) == 5\n"


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("import os\ndef test_a():\n    os._exit(0)\n", "test_shop.py::test_a: did not run to its end"),
        ("import os\nos._exit(0)\n", "the run ended before its tests were collected"),
        ("import os, signal\ndef test_a():\n    os.kill(os.getpid(), signal.SIGKILL)\n", "test_a: did not run to its end"),  # noqa: E501
        ("import pytest\n@pytest.mark.skip(reason='later')\ndef test_a():\n    pass\n", "was skipped: Skipped: later"),
        ("import pytest\npytest.skip('later', allow_module_level=True)\n", "was skipped as a whole"),
        ("import pytest\npytest.importorskip('no_such_module')\n", "was skipped as a whole"),
        ("import pytest\n@pytest.mark.xfail\ndef test_a():\n    assert 0\n", "marked xfail"),
        ("import pytest\n@pytest.mark.xfail\ndef test_a():\n    assert 1\n", "marked xfail"),
        ("import pytest\ndef test_a():\n    pytest.xfail('no')\n", "marked xfail"),
        ("X = 1\n", "no test was collected"),
        ("def test_a():\n    assert 0\n", "failed in its call"),
        ("import pytest\n@pytest.fixture\ndef x():\n    yield\n    1 / 0\ndef test_a(x):\n    pass\n", "failed in its teardown"),  # noqa: E501
        ("import no_such_module\n", "could not be collected"),
        ("import pytest\ndef test_a():\n    pytest.exit('enough', returncode=0)\n", "did not run to its end"),
        ("import unittest\nclass T(unittest.TestCase):\n    @unittest.skip('x')\n    def test_a(self): pass\n", "was skipped"),  # noqa: E501
    ],
)  # fmt: skip
def test_a_run_that_does_not_end_well_says_why(bench: Bench, test: str, reason: str) -> None:
    bench.write("test_shop.py", test)
    assert any(reason in problem for problem in bench.problems())


@pytest.mark.parametrize(
    ("conftest", "reason"),
    [
        ("def pytest_collection_modifyitems(items):\n    del items[0]\n", "collected and then dropped by a hook"),
        (
            "def pytest_collection_modifyitems(items, config):\n"
            "    config.hook.pytest_deselected(items=items[:1])\n    del items[0]\n",
            "test_shop.py::test_a: was collected and then dropped by a hook",
        ),
        (
            "import pytest\n@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
            "    report = yield\n    report.outcome = 'passed'\n    return report\n",
            "test_shop.py::test_a: raised in its call and was reported as passed",
        ),
        ("import os\nos._exit(0)\n", "pytest left no report"),
        ("import os\ndef pytest_sessionfinish():\n    os._exit(0)\n", "the run ended before pytest did"),
        ("def pytest_runtestloop():\n    return True\n", "did not run to its end"),
    ],
    ids=["drops", "deselects", "turns reports", "ends at its start", "ends before the end", "runs nothing"],
)
def test_a_conftest_that_tampers_is_seen(bench: Bench, conftest: str, reason: str) -> None:
    bench.write("test_shop.py", f"def test_a():\n    assert 0\n\n{TOTAL}")
    bench.write("conftest.py", conftest)
    assert any(reason in problem for problem in bench.problems()), bench.problems()


def test_what_the_command_itself_selects_is_judged_and_no_more(bench: Bench) -> None:
    bench.write("test_shop.py", f"def test_a():\n    assert 0\n\n{TOTAL}")
    proof = bench.judge("total", command="python -m pytest test_shop.py -k total")
    assert proof.passed and list(proof.runs[0].passed) == ["test_shop.py::test_total"]
    proof = bench.judge("total", command="python -m pytest test_shop.py --deselect test_shop.py::test_a")
    assert proof.passed


def test_a_waiver_excuses_a_skipped_test(bench: Bench) -> None:
    bench.write("test_shop.py", f"import pytest\n\n@pytest.mark.skip\ndef test_gpu():\n    pass\n\n{TOTAL}")
    assert not bench.judge("total").passed
    assert bench.judge("total", waivers={"test_shop.py::test_gpu": "needs a GPU"}).passed


def test_pytest_by_its_bare_name_finds_what_the_console_script_finds(bench: Bench) -> None:
    bench.write("shop.py", "def total(prices):\n    return sum(prices)\n")
    bench.write("tests/test_shop.py", TOTAL)
    assert any("could not be collected" in each for each in bench.problems(command="pytest tests"))
    assert bench.judge("total", command="python -m pytest tests").passed
    bench.write("pyproject.toml", '[tool.pytest.ini_options]\npythonpath = ["."]\n')
    assert bench.judge("total", command="pytest tests").passed


def test_a_command_that_starts_pytest_is_judged_by_the_same_report(bench: Bench) -> None:
    bench.write("test_shop.py", TOTAL)
    bench.write("check.sh", "python -m pytest test_shop.py\nexit 0\n")
    proof = bench.judge("total", command="sh check.sh")
    assert proof.passed and proof.runs[0].basis == "report"
    bench.write("test_shop.py", TOTAL.replace("== 5", "== 6"))
    assert any("failed in its call" in each for each in bench.problems(command="sh check.sh"))


def test_a_pytest_that_a_test_starts_is_no_part_of_the_report(bench: Bench) -> None:
    bench.write("inner/test_bad.py", "def test_bad():\n    assert 0\n")
    bench.write(
        "test_shop.py",
        f"import subprocess, sys\n{TOTAL}\n"
        "def test_outer():\n"
        "    assert subprocess.run([sys.executable, '-m', 'pytest', 'inner'], capture_output=True).returncode == 1\n",
    )
    proof = bench.judge("total")
    assert proof.passed and len(proof.runs[0].passed) == 2


def test_junit_xml_is_the_report_of_another_runner(bench: Bench) -> None:
    good = '<testsuites><testsuite><testcase classname="a" name="b" time="0.1"/></testsuite></testsuites>'
    bench.write(
        "check.py", f"from shop import total\nassert total([1]) == 1\nopen('out.xml', 'w').write('''{good}''')\n"
    )
    proof = bench.judge("total", command="python check.py", junit="out.xml")
    assert proof.passed and proof.runs[0].basis == "junit" and dict(proof.runs[0].passed) == {"a::b": 0.1}
    bad = good.replace("/></testsuite>", "><skipped message='later'/></testcase></testsuite>")
    bench.write("check.py", f"open('out.xml', 'w').write('''{bad}''')\n")
    assert bench.problems(command="python check.py", junit="out.xml") == ["a::b: was skipped: later"]
    bench.write("check.py", "print('fine')\n")
    assert bench.problems(command="python check.py", junit="out.xml") == [": did not write the report out.xml"]
    bench.write("check.py", "open('out.xml', 'w').write('fine')\n")
    assert "is not XML" in bench.problems(command="python check.py", junit="out.xml")[0]


def test_junit_without_a_test_proves_nothing(tmp_path) -> None:
    (tmp_path / "out.xml").write_text("<testsuite/>")
    assert read_junit(tmp_path / "out.xml").problems == (("", "no test was run"),)


def test_a_report_cut_short_by_a_kill_is_read_up_to_there(tmp_path) -> None:
    path = tmp_path / "report-1.jsonl"
    path.write_text('{"event": "start"}\n{"event": "collected", "ids": ["a"], "dropped": []}\n{"event": "pha')
    assert read_report(path).problems == (("a", "did not run to its end"), ("", "the run ended before pytest did"))


def test_a_run_past_its_deadline_is_no_good(bench: Bench) -> None:
    bench.write("test_shop.py", "import time\n\ndef test_a():\n    time.sleep(60)\n")
    [run] = bench.judge("total", seconds=3.0).runs
    assert run.status is None and not run.good
