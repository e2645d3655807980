"""A test may grow and be laid out anew; what checks less than before is weaker, however it came about."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.proof.seal import Seal, is_test_file, read_seal, seal_of

BEFORE = '''
import pytest
from shop import total

def check(prices, expected):
    assert total(prices) == expected

def test_total():
    """Sums."""
    assert total([2, 3]) == 5
    check([1], 1)

class TestErrors:
    def test_words(self):
        with pytest.raises(TypeError):
            total("words")
'''


def seal(tmp_path: Path, text: str, test: str = "") -> Seal:
    path = tmp_path / "test_shop.py"
    path.write_text(text)
    found = seal_of(path, test)
    assert found is not None
    return found


def test_the_counts_are_of_tests_checks_and_their_words(tmp_path: Path) -> None:
    found = seal(tmp_path, BEFORE)
    assert (found.tests, found.checks) == (2, 4)
    assert (seal(tmp_path, BEFORE, "test_total").tests, seal(tmp_path, BEFORE, "test_total").checks) == (1, 2)
    assert seal(tmp_path, BEFORE, "TestErrors::test_words").checks == 1
    assert seal(tmp_path, "def test_a():\n    assert a == 1\n").words == 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('    """Sums."""\n', ""),
        ("def test_total", "# a comment\n\n\ndef test_total"),
        ("    check([1], 1)\n", "    check(\n        [1], 1\n    )\n"),
    ],
)
def test_comments_layout_and_docstrings_change_no_digest(tmp_path: Path, old: str, new: str) -> None:
    assert old in BEFORE
    assert seal(tmp_path, BEFORE.replace(old, new)) == seal(tmp_path, BEFORE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class TestErrors", "def test_more():\n    assert total([]) == 0\n\nclass TestErrors"),
        ("== 5\n", "== 5 and total([1, 2]) == 3\n"),
        ("total([2, 3]) == 5", "total([3, 2]) == 5"),
    ],
)
def test_what_grew_or_was_rewritten_is_not_weaker(tmp_path: Path, old: str, new: str) -> None:
    after = seal(tmp_path, BEFORE.replace(old, new))
    before = seal(tmp_path, BEFORE)
    assert after.digest != before.digest and after.weaker_than(before) == ""


@pytest.mark.parametrize(
    ("old", "new", "less"),
    [
        (BEFORE, "", "2 tests then, 0 now"),
        ("def test_total", "def total_", "2 tests then, 1 now"),
        ("    assert total([2, 3]) == 5\n", "", "4 checks then, 3 now"),
        ("    assert total([2, 3]) == 5\n", "    assert True\n", "4 checks then, 3 now"),
        ("total([2, 3]) == 5", "total([2, 3])", "words of checks then"),
        ("def test_total", "@pytest.mark.skip\ndef test_total", "2 tests then, 1 now"),
        ("def test_total", "@pytest.mark.skipif(True, reason='x')\ndef test_total", "2 tests then, 1 now"),
        ("def test_total", "@pytest.mark.xfail\ndef test_total", "2 tests then, 1 now"),
        ("class TestErrors", "@pytest.mark.skip\nclass TestErrors", "2 tests then, 1 now"),
        ("from shop", "pytestmark = pytest.mark.skip\nfrom shop", "2 tests then, 0 now"),
        ("from shop", "__test__ = False\nfrom shop", "2 tests then, 0 now"),
        ("from shop", "pytest.skip('later', allow_module_level=True)\nfrom shop", "2 tests then, 0 now"),
        ('    """Sums."""\n', "    return\n", "4 checks then, 2 now"),
        ('    """Sums."""\n', "    pytest.skip('later')\n", "4 checks then, 2 now"),
        ("        with pytest.raises(TypeError):\n", "        if True:\n", "4 checks then, 3 now"),
    ],
)
def test_what_checks_less_is_weaker(tmp_path: Path, old: str, new: str, less: str) -> None:
    assert old in BEFORE
    before = seal(tmp_path, BEFORE)
    assert less in seal(tmp_path, BEFORE.replace(old, new, 1)).weaker_than(before)


def test_fewer_parameters_are_weaker(tmp_path: Path) -> None:
    text = "import pytest\n@pytest.mark.parametrize('x', [1, 2, 3])\ndef test_a(x):\n    assert x\n"
    before = seal(tmp_path, text)
    assert "words" in seal(tmp_path, text.replace("[1, 2, 3]", "[1]")).weaker_than(before)


def test_what_is_gone_or_no_python_has_no_seal(tmp_path: Path) -> None:
    assert seal_of(tmp_path / "test_shop.py") is None
    (tmp_path / "test_shop.py").write_text(BEFORE)
    assert seal_of(tmp_path / "test_shop.py", "test_words") is None
    assert seal_of(tmp_path / "test_shop.py", "TestErrors::test_total") is None
    assert seal_of(tmp_path / "test_shop.py", "test_total[5-a]") == seal_of(tmp_path / "test_shop.py", "test_total")
    (tmp_path / "test_shop.py").write_text("def (")
    assert seal_of(tmp_path / "test_shop.py") is None


def test_a_seal_is_read_as_it_was_written() -> None:
    written = Seal(3, 7, 41, "1a2b3c4d")
    assert str(written) == "3/7/41 1a2b3c4d" and read_seal(" 3/7/41 1a2b3c4d ") == written
    assert read_seal("waived: it prints") is None and read_seal("3/7 1a2b3c4d") is None


@pytest.mark.parametrize(
    ("path", "holds"),
    [
        *(("tests/test_a.py", True), ("a/test_a.py", True), ("a_test.py", True), ("conftest.py", True)),
        *(("tests/data.py", True), ("test/helpers.py", True), ("tests/data.json", False), ("contest.py", False)),
        *(("testing/a.py", False), ("tests.py", False)),
    ],
)
def test_tests_are_known_by_name_or_folder(path: str, holds: bool) -> None:
    assert is_test_file(path) is holds


def test_a_test_that_is_skipped_counts_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "test_a.py"
    path.write_text("import pytest\n\n\n@pytest.mark.skip\ndef test_a():\n    assert [1] == [1]\n")
    seal = seal_of(path, "test_a")
    assert seal is not None and (seal.tests, seal.checks, seal.words) == (0, 0, 0)
