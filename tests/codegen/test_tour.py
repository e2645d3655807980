"""The worked example, from an empty folder to a step taken back, with the commands a user types."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from codegen.cli import main
from tests.codegen.tour import RECEIPT, brought_files, filled_in


class Shell:
    """A user in a folder: `codegen …` runs here, everything else as a process."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys
        self.typed: list[str] = []

    def run(self, command: str, status: int = 0) -> str:
        """The standard output of a command that ends with `status`."""
        self.typed.append(command)
        words = shlex.split(command)
        if words[0] == "codegen":
            self.capsys.readouterr()
            ended = main(words[1:])
            said = self.capsys.readouterr()
            assert ended == status, f"{command}: {ended}\n{said.out}\n{said.err}"
            return said.out
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def write(self, path: str, text: str) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    def replace(self, path: str, old: str, new: str) -> None:
        text = (self.folder / path).read_text()
        assert text.count(old) == 1, f"{path}: {old!r}"
        (self.folder / path).write_text(text.replace(old, new))


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the shop's tests need none of ours
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.org")
    return Shell(tmp_path, capsys)


def do_step(shell: Shell, number: int) -> None:
    """Start, scaffold, write, verify, review and commit one step."""
    shell.run(f"codegen step start {number}")
    shell.run(f"codegen step scaffold {number}")
    for path, text in brought_files(number).items():
        shell.write(path, text)
    if number == 4:
        shell.run("codegen step done 4", status=1)  # the scaffold raises until it is written
        shell.replace("shop/receipt.py", '    raise NotImplementedError("5.4.2 receipt")\n', RECEIPT)
    finish_step(shell, number)


def finish_step(shell: Shell, number: int) -> None:
    """Verify, review and commit a step that is written."""
    shell.run(f"codegen step done {number}")  # verifies first
    shell.run(f"codegen step commit {number}", status=2)  # not reviewed yet
    shell.run(f"codegen step review {number}")
    shell.run(f"codegen step review {number} --approve Grace")
    shell.run(f"codegen step commit {number}")


@pytest.mark.slow
def test_from_an_empty_folder_to_a_step_taken_back(shell: Shell) -> None:
    # a project and a document
    shell.run("git init --quiet --initial-branch=main .")
    shell.run("codegen init")
    shell.run('codegen new shop --title "A small shop" --roots shop')
    shell.run("codegen lint --strict", status=1)  # the placeholders are still there
    shell.write("design/shop.md", filled_in((shell.folder / "design/shop.md").read_text()))
    assert shell.run("codegen lint --strict") == ""

    # reviewed, then planned
    shell.run("codegen plan", status=2)
    shell.run("codegen review approve 1 2 3 4 5 --reviewer Grace")
    plan = shell.run("codegen plan --size 3")
    assert [line.split(":")[0] for line in plan.splitlines() if line.startswith("Step")] == [
        f"Step {number}" for number in (1, 2, 3, 4)
    ]
    with (shell.folder / ".gitignore").open("a") as ignored:
        ignored.write("__pycache__/\n.pytest_cache/\n")
    shell.run("git add --all")
    shell.run("git commit --quiet -m 'Design of the shop'")

    # Section 5 becomes code, four times
    shell.run("codegen step start 2", status=2)  # it waits for Step 1
    for number in (1, 2, 3, 4):
        assert f"Step {number}:" in shell.run("codegen step next")
        do_step(shell, number)
    shell.run("codegen status --require done")
    shell.run("codegen expand --check shop")
    shell.run("codegen drift")
    shell.run("codegen step log --check")
    shell.run("codegen step brief --check")
    subjects = shell.run("git log --format=%s").splitlines()
    assert [subject.split(":")[0] for subject in subjects] == [
        "Step 4",
        "Step 3",
        "Step 2",
        "Step 1",
        "Design of the shop",
    ]
    assert shell.run("git status --porcelain") == ""

    # a decision at the top changes and is carried down
    shell.replace("design/shop.md", "int cents, at most 1,000,000 a bill", "int cents, at most 50,000 a bill")
    affected = shell.run("codegen impact D-1")
    followers = ("shop.money.Limits", "shop.basket.Basket.total", "shop.receipt.receipt", "Step 1", "Step 4")
    assert all(name in affected for name in followers)
    shell.replace("design/shop.md", "largest_bill: int = 1000000", "largest_bill: int = 50000")
    shell.run("codegen bump -m 'Bills up to 500'")
    assert "STALE" in shell.run("codegen status --require done", status=1)
    shell.run("codegen drift", status=1)
    shell.run("codegen step start 1", status=2)  # the decision, and what follows from it, is to be approved again
    shell.run("codegen review approve 3 5 --reviewer Grace")
    shell.run("codegen plan --size 3")
    shell.run("git commit --quiet -a -m 'Smaller bills'")

    # the stale step is done again
    assert "Step 1:" in shell.run("codegen step next")
    shell.run("codegen step start 1")
    shell.run("codegen step verify 1", status=1)
    shell.replace("shop/money.py", "largest_bill: int = 1_000_000", "largest_bill: int = 50_000")
    finish_step(shell, 1)
    shell.run("codegen status --require done")
    shell.run("codegen drift")

    # the last step is taken back; the first cannot be
    shell.run("codegen step rollback 1", status=2)
    shell.run("codegen step rollback 4")
    assert "Step 4:" in shell.run("codegen step next")
    assert "def receipt" not in (shell.folder / "shop/receipt.py").read_text()
    shell.run("codegen drift")  # what is not started is a note
    shell.run("codegen step log --check")
    assert shell.run("git status --porcelain") == ""

    # the reader of the README types the same
    typed = iter(shell.typed)
    assert [command for command in readme_tour() if command not in typed] == []


def readme_tour() -> list[str]:
    """The commands of the README's tour, without the remarks behind them."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    block = readme.partition("## A document, from an empty folder to a step taken back\n\n```\n")[2].partition("```")[0]
    commands = [line.partition("  #")[0].strip() for line in block.splitlines()]
    assert len(commands) > 15
    return commands


@pytest.mark.slow
def test_code_that_moved_first_is_brought_into_the_document(shell: Shell) -> None:
    shell.write("bank/account.py", '"""Accounts."""\n\n\ndef take(amount: int) -> int:\n    return amount\n')
    shell.run("codegen init")
    shell.run("codegen new bank --roots bank")
    template = (shell.folder / "design/bank.md").read_text()
    section = shell.run("codegen adopt bank")
    start, end = template.index("## 5. APIs"), template.index("## 6. Plan")
    shell.write("design/bank.md", template[:start] + section + "\n" + template[end:])
    shell.run("codegen drift bank")
    moved = "def take(amount: int, *, limit: int = 100) -> int:\n    # VAL: VAL_INT_RANGE(amount, min=1, max=limit)\n"
    shell.replace("bank/account.py", "def take(amount: int) -> int:\n", moved)
    shell.run("codegen expand bank")
    shell.run("codegen drift bank", status=1)
    patch = shell.run("codegen sync-from-code bank")
    assert "+def take(amount: int, *, limit: int = 100) -> int:" in patch
    assert "+    # VAL: VAL_INT_RANGE(amount, min=1, max=limit)" in patch
    shell.run("codegen sync-from-code bank --write")
    shell.run("codegen drift bank")
