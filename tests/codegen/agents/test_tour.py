"""The ten minutes of docs/agents.md, command by command, with a scripted agent in the place of a real one."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.codegen.test_tour import Shell, shell
from tests.codegen.tour import brought_files, filled_in

__all__ = ["shell"]
DOCS = Path(__file__).parents[3] / "docs" / "agents.md"


@pytest.mark.slow
def test_a_new_document_is_implemented_by_an_agent_as_the_page_says(
    shell: Shell, tmp_path_factory: pytest.TempPathFactory
) -> None:
    agent = tmp_path_factory.mktemp("agent") / "agent.py"
    agent.write_text(
        "import pathlib, sys\n"
        "assert 'Implement the step below' in sys.stdin.read()\n"
        f"for path, text in {brought_files(1)!r}.items():\n"
        "    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)\n"
        "    pathlib.Path(path).write_text(text)\n"
    )
    page = DOCS.read_text(encoding="utf-8")
    commands = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)[0].strip().splitlines()
    for command in commands:
        if command.startswith("codegen lint"):
            shell.write("design/shop.md", filled_in((shell.folder / "design/shop.md").read_text()))
        if command.startswith("git add"):
            shell.write(".gitignore", "__pycache__/\n.codegen_cache/\n.pytest_cache/\n")
        shell.run(command.replace("claude", shlex.quote(f"{sys.executable} {agent}")))
    assert shell.run("git log -1 --format=%s").startswith("Step 1: ")
    assert "Step-Review: Ada" in shell.run("git log -1 --format=%B")
    assert shell.run("git status --porcelain") == ""
    assert "Step 2:" in shell.run("codegen step next")


def test_every_code_of_a_finding_is_on_the_page() -> None:
    source = "".join(path.read_text() for path in (DOCS.parents[1] / "codegen/agents").glob("*.py"))
    codes = set(re.findall(r'"((?:RUN|AUD)\d{3})"', source))
    assert len(codes) > 12
    assert codes <= set(re.findall(r"(?:RUN|AUD)\d{3}", DOCS.read_text(encoding="utf-8")))
