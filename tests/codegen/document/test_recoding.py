"""Renaming in code: what is certain is changed, what is not is listed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from codegen.cli import main
from codegen.document.fold import finished_step
from codegen.document.recoding import recoded
from tests.codegen.document.test_names import _done

FILES = {
    "shop/__init__.py": "from shop.money import parse\n\n__all__ = ['parse']\n",
    "shop/money.py": (
        "class Money:\n    def plus(self, other: 'Money') -> 'Money':\n        return self.plus(other)\n\n\n"
        "def parse(text: str) -> Money:\n    # VAL: VAL_NON_EMPTY(parse)\n"
        "    return parse(text[1:]) if text else Money()\n"
    ),
    "shop/till.py": (
        "import shop.money\nfrom shop import parse\nfrom shop.money import parse as read, Money\n\n\n"
        "def one(text):\n    return parse(text), read(text), shop.money.parse(text)\n\n\n"
        "def two(item):\n    return item.parse(), Money().plus(item)\n"
    ),
    "shop/other.py": "def parse():\n    return 1\n\n\nparse()\n",
    "shop/hides.py": "from shop.money import parse\n\n\ndef f(parse):\n    return parse\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def _text(project: Path, texts: dict[Path, str], name: str) -> str:
    return texts.get(project / name, FILES[name])


def test_a_function_is_renamed_where_it_is_defined_imported_and_used(project: Path) -> None:
    found = recoded(project, "shop.money", "parse", "take")
    assert _text(project, found.texts, "shop/__init__.py") == "from shop.money import take\n\n__all__ = ['take']\n"
    money = _text(project, found.texts, "shop/money.py")
    assert "def take(text" in money and "VAL_NON_EMPTY(take)" in money and "return take(text[1:])" in money
    till = _text(project, found.texts, "shop/till.py")
    assert "from shop import take\nfrom shop.money import take as read, Money" in till
    assert "return take(text), read(text), shop.money.take(text)" in till


def test_another_thing_of_the_same_name_is_left(project: Path) -> None:
    found = recoded(project, "shop.money", "parse", "take")
    assert project / "shop/other.py" not in found.texts
    assert "item.parse()" in _text(project, found.texts, "shop/till.py")


def test_a_file_where_a_local_name_hides_it_is_left_and_listed(project: Path) -> None:
    found = recoded(project, "shop.money", "parse", "take")
    assert project / "shop/hides.py" not in found.texts
    assert any(line.startswith("shop/hides.py:4:") for line in found.left)


def test_a_method_is_renamed_in_its_class_and_calls_elsewhere_are_listed(project: Path) -> None:
    found = recoded(project, "shop.money", "Money.plus", "added")
    money = _text(project, found.texts, "shop/money.py")
    assert "def added(self" in money and "self.added(other)" in money
    assert found.left == ("shop/till.py:11: return item.parse(), Money().plus(item)",)


def test_a_name_in_quotes_is_listed(project: Path) -> None:
    found = recoded(project, "shop.money", "Money", "Amount")
    assert [line for line in found.left if line.startswith("shop/money.py:2: a text 'Money'")]


def test_renamed_code_still_runs(project: Path) -> None:
    for path, text in recoded(project, "shop.money", "Money", "Amount").texts.items():
        path.write_text(text, encoding="utf-8")
    code = "import shop.till; print(shop.till.one('')[0].__class__.__name__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True)
    assert done.stdout == "Amount\n"


def test_the_command_renames_document_record_and_code(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    (project / "design").mkdir()
    path = project / "design" / "till.md"
    path.write_text(finished_step(_done(), 1), encoding="utf-8")
    before = path.read_text(encoding="utf-8")
    assert main(["rename", "parse", "take", "--diff"]) == 0
    out = capsys.readouterr().out
    assert "+def take(text: str) -> Money" in out
    assert path.read_text(encoding="utf-8") == before
    assert main(["rename", "parse", "take"]) == 0
    out = capsys.readouterr().out
    assert "shop.money.parse → shop.money.take" in out and "look at shop/hides.py:4" in out
    text = path.read_text(encoding="utf-8")
    assert "| `shop.money.take` | DONE" in text and "shop.money.parse" not in text
    assert "def take(" in (project / "shop" / "money.py").read_text(encoding="utf-8")
    assert main(["lint", "--no-code"]) == 0
