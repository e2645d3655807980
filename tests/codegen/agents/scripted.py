"""A scripted agent: a real program that does to its folder what its script says, round by round."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

from codegen.agents.process import MARK, Limits
from codegen.agents.record import Run
from codegen.agents.run import Order, run_step
from tests.codegen.workflow.conftest import Pantry

HEAD = """\
import os, pathlib, subprocess, sys, time
prompt = sys.stdin.read()
number = int(prompt.split("Round ")[1].split()[0]) if prompt.startswith("Round ") else 1
def write(path, text):
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(path).write_text(text)
def change(path, old, new):
    text = pathlib.Path(path).read_text()
    assert old in text, (path, old)
    write(path, text.replace(old, new, 1))
"""
WEIGHT = ('raise NotImplementedError("5.2.2 Shelf.weight")', "return sum(jar.grams for jar in self.jars)")
STEP_1 = """
write("pantry/__init__.py", "")
write("tests/test_jar.py", "from pantry.jar import Jar, fill\\n\\nassert fill(Jar('rice'), 5) == 5\\n")
"""
STEP_2 = f"""
change("pantry/shelf.py", {WEIGHT[0]!r}, {WEIGHT[1]!r})
write("tests/test_shelf.py", "from pantry.jar import Jar\\nfrom pantry.shelf import Shelf\\n\\n"
      "assert Shelf([Jar('rice', 3)]).weight() == 3\\n")
"""
STEP_3 = """
write("tests/test_report.py", "from pantry.jar import Jar\\nfrom pantry.report import report\\n"
      "from pantry.shelf import Shelf\\n\\nassert report(Shelf([Jar('rice', 3)])) == '1 jars, 3 g'\\n")
"""


class Supervised:
    """The pantry and what an agent made of it."""

    def __init__(self, pantry: Pantry, scripts: Path) -> None:
        self.pantry = pantry
        self.scripts = scripts
        self.said: list[str] = []

    def command(self, script: str) -> tuple[str, ...]:
        path = self.scripts / "agent.py"
        path.write_text(HEAD + script)
        return tuple(shlex.split(f"{sys.executable} {path}"))

    def run(self, number: int, script: str, **order: object) -> tuple[Run, Path]:
        options: dict[str, object] = {"unreviewed": True, **order}
        chosen = Order(self.command(script), **options)  # type: ignore[arg-type]
        return run_step(self.pantry.target(number), chosen, self.said.append)

    def codes(self, run: Run) -> list[list[str]]:
        """Codes of the findings that are no notes, by round."""
        return [sorted({f.code for f in each.findings if f.severity != "note"}) for each in run.rounds]

    def state(self) -> dict[str, object]:
        """What a failed attempt must leave as it was."""
        git = self.pantry.git
        return {
            "head": git.head(),
            "changes": git.changes(),
            "refs": git.run("for-each-ref"),
            "worktrees": git.run("worktree", "list").count("\n"),
            "config": (self.pantry.root / ".git/config").read_bytes(),
            "hooks": sorted(path.name for path in (self.pantry.root / ".git/hooks").iterdir()),
            "document": self.pantry.document.text,
            "index": self.pantry.staged(),
        }

    def require_clean(self, temporary: Path) -> None:
        """No process, no folder, no worktree, no lock; a record of each run with all that was said."""
        assert processes(f"{MARK}={temporary}") == []
        assert list(temporary.iterdir()) == []
        git = self.pantry.git
        assert git.run("worktree", "list").count("\n") == 1
        assert not (self.pantry.root / ".git/worktrees").exists() or not any(
            (self.pantry.root / ".git/worktrees").iterdir()
        )
        assert self.pantry.staged() == []
        assert list(self.pantry.root.rglob("*.lock")) == []
        for path in self.pantry.root.glob("runs/pantry/step_*/*/run.json"):
            record = json.loads(path.read_text())
            assert record["outcome"] in ("review", "committed", "held", "failed", "stopped")
            for each in record["rounds"]:
                said, asked = (path.with_name(f"round_{each['number']}.{kind}") for kind in ("txt", "prompt.md"))
                assert said.stat().st_size <= each["output_bytes"]
                assert "# Step" in asked.read_text()


def processes(entry: str) -> list[str]:
    """Commands of the processes, zombies apart, whose environment holds this."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if entry.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text())
        except (PermissionError, FileNotFoundError, ProcessLookupError):
            continue  # another person's, or gone meanwhile
    return found


__all__ = ["HEAD", "STEP_1", "STEP_2", "STEP_3", "WEIGHT", "Limits", "Supervised"]
