"""A small package, its tests, and the judge's word on them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from codegen.proof.functions import Function
from codegen.proof.judge import Proof, Question, judge

SHOP = '''
    """Prices."""

    def total(prices):
        """Their sum."""
        return sum(prices)

    def log(text):
        print(text)
'''


class Bench:
    """A project in a folder; what is judged is the folder itself."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.said: list[str] = []
        self.write("shop.py", SHOP)

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(textwrap.dedent(text).lstrip("\n"))

    def judge(self, *names: str, command: str = "python -m pytest -q test_shop.py", **more: object) -> Proof:
        functions = tuple(Function(f"shop.{name}", "shop.py", name) for name in names)
        question = Question(self.root, self.root, (command,), functions, **more)  # type: ignore[arg-type]
        return judge(question, self.said.append)

    def verdicts(self, *names: str, **more: object) -> dict[str, str]:
        proof = self.judge(*names, **more)  # type: ignore[arg-type]
        assert all(run.good for run in proof.runs), (proof.runs, self.said)
        return {each.function.qualname: each.verdict for each in proof.removals}

    def problems(self, **more: object) -> list[str]:
        """Why the run itself proves nothing; at least one reason."""
        proof = self.judge("total", **more)  # type: ignore[arg-type]
        assert not proof.passed and proof.removals == ()
        return [f"{test}: {why}" for run in proof.runs for test, why in run.problems]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)
