"""The ten minutes of docs/agents.md, as a reader does them, with a scripted agent in the place of a real one."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.codegen.test_tour import Shell, shell

__all__ = ["shell"]
DOCS = Path(__file__).parents[3] / "docs" / "agents.md"
PAGE = DOCS.read_text(encoding="utf-8")
TOUR = PAGE[PAGE.index("## Ten minutes") : PAGE.index("## `codegen step run N")]
AGENT = """\
import pathlib, sys
assert "Implement the step below" in sys.stdin.read()
code = pathlib.Path("shop/bill.py")
code.write_text(code.read_text().replace('raise NotImplementedError("5.1.1 total")', "return sum(prices)"))
test = pathlib.Path("tests/test_bill.py")
test.parent.mkdir()
test.write_text("from shop.bill import total\\n\\n\\ndef test_prices_add_up():\\n    assert total([1, 2]) == 3\\n")
"""


def commands() -> list[list[str]]:
    """The page's blocks of commands, in order."""
    return [block.strip().splitlines() for block in re.findall(r"^```sh\n(.*?)^```", TOUR, re.DOTALL | re.MULTILINE)]


@pytest.mark.slow
def test_a_new_document_is_implemented_by_an_agent_as_the_page_says(
    shell: Shell, tmp_path_factory: pytest.TempPathFactory
) -> None:
    agent = tmp_path_factory.mktemp("agent") / "agent.py"
    agent.write_text(AGENT)
    _, begin, go_on = commands()
    for command in begin:
        shell.run(command)
    document = (shell.folder / "design/shop.md").read_text()
    [section] = re.findall(r"^````markdown\n(.*?)^````", TOUR, re.DOTALL | re.MULTILINE)
    [place] = re.findall(r"in the place of the line ``(.*?) ``", TOUR)
    assert document.count(f"\n{place}\n") == 1
    document = document.replace(f"\n{place}\n", f"\n{section}")
    shell.write("design/shop.md", re.sub(r"(?<!`)<[a-z][^>\n]*>", "our own words", document))
    shell.write("shop/__pycache__/bill.pyc", "what is left when a reader runs the tests")
    for command in go_on:
        shell.run(command.replace("claude", shlex.quote(f"{sys.executable} {agent}")))
    assert shell.run("git log -1 --format=%s").startswith("Step 1: ")
    assert "Step-Review: Ada" in shell.run("git log -1 --format=%B")
    assert shell.run("git status --porcelain") == ""
    shell.run("codegen status --require done")
    shell.run("codegen drift")


def test_the_page_installs_what_the_tour_needs() -> None:
    install = " ".join(commands()[0])
    assert "pip install" in install and "pytest" in install and "[" not in install


def test_every_code_of_a_finding_is_on_the_page() -> None:
    source = "".join(path.read_text() for path in (DOCS.parents[1] / "codegen/agents").glob("*.py"))
    codes = set(re.findall(r'"((?:RUN|AUD)\d{3})"', source))
    assert len(codes) > 12
    assert codes <= set(re.findall(r"(?:RUN|AUD)\d{3}", PAGE))
