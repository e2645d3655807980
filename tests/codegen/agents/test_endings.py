"""Through the command line: how each kind of agent ends, what is said, and that nothing of it is left."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from codegen.cli import main
from tests.codegen.agents.scripted import STEP_1, STEP_2, WEIGHT, Supervised
from tests.codegen.workflow.conftest import complete

OLD_TEST = "from pantry.shelf import Shelf\n\nassert Shelf().weight() == 0\n"
TWICE = STEP_1 + "if number == 1:\n    change('tests/test_jar.py', '== 5', '== 6')\n"
DELETE = (
    "text = pathlib.Path('pantry/jar.py').read_text()\n"
    "start = text.index('    # VAL:'); end = text.index('\\n', text.index('# END VAL')) + 1\n"
    "write('pantry/jar.py', text[:start] + text[end:])\n"
)
# name: step, script, words, exit status, codes by round
AGENTS: dict[str, tuple[int, str, list[str], int, list[list[str]]]] = {
    "good": (1, STEP_1, [], 0, [[]]),
    "needs two rounds": (1, TWICE, [], 0, [["STEP011"], []]),
    "edits foreign files": (1, STEP_1 + "write('pyproject.toml', '')\nwrite('new.py', '')\n", [], 0, [["RUN003"]]),
    "ticks the ledger": (1, STEP_1 + "change('design/pantry.md', 'NOT_STARTED', 'DONE')\n", [], 0, [["RUN004"]]),
    "hangs": (1, STEP_1 + "time.sleep(600)\n", ["--timeout", "3"], 1, [["RUN002"]]),
    "floods": (1, STEP_1 + "while True: print('x' * 1000)\n", ["--output", "50000"], 1, [["RUN006"]]),
    "deletes a validation": (1, STEP_1 + DELETE, ["--rounds", "1"], 1, [["DRF013"]]),
    "crashes half-way": (1, "write('pantry/__init__.py', '')\n1 / 0\n", ["--rounds", "2"], 1, [["RUN001"], ["RUN001"]]),
    "weakens a test": (
        2,
        f"change('pantry/shelf.py', {WEIGHT[0]!r}, 'return 7')\nwrite('tests/test_shelf.py', '')\n",
        ["--rounds", "1"],
        1,
        [["AUD006"]],
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", AGENTS)
def test_each_kind_of_agent_ends_as_specified(
    supervised: Supervised, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    number, script, words, status, codes = AGENTS[kind]
    pantry = supervised.pantry
    if number == 2:
        complete(pantry, 1)
        pantry.write("tests/test_shelf.py", OLD_TEST)
        pantry.commit_all("A test of the shelf")
    before = supervised.state()
    monkeypatch.chdir(pantry.root)
    agent = shlex.join(supervised.command(f"print('I was here', flush=True)\n{script}"))
    assert main(["step", "run", str(number), "--agent", agent, "--unreviewed", "--json", *words]) == status
    said = capsys.readouterr()
    data = json.loads(said.out)
    found = [
        sorted({each["code"] for each in done["findings"] if each["severity"] != "note"}) for done in data["rounds"]
    ]
    assert found == codes
    folder = Path(data["folder"])
    assert json.loads((folder / "run.json").read_text())["outcome"] == data["outcome"]
    assert all((folder / f"round_{at}.txt").read_text().startswith("I was here\n") for at in range(1, len(codes) + 1))
    after = supervised.state()
    if status:
        assert data["outcome"] == "failed" and "the project is as it was" in said.err
        assert f"the end of {data['folder']}/round_{len(codes)}.txt:" in said.err
        assert after == before
        return
    assert data["outcome"] == "review" and "not committed. Review it" in said.err
    files = {"pantry/__init__.py", "pantry/jar.py", "tests/test_jar.py", "design/pantry.md", "steps/pantry/step_01.md"}
    assert {change.path for change in pantry.git.changes()} == files
    assert {**after, "changes": 0, "document": 0} == {**before, "changes": 0, "document": 0}
    assert pantry.statuses() == {1: "DONE", 2: "NOT_STARTED", 3: "NOT_STARTED"}


def test_the_step_after_a_failed_one_can_be_run_at_once(supervised: Supervised) -> None:
    complete(supervised.pantry, 1)
    failed, _ = supervised.run(2, "sys.exit(1)", rounds=1)
    done, _ = supervised.run(2, STEP_2, commit=True)
    assert (failed.outcome, done.outcome) == ("failed", "committed")
