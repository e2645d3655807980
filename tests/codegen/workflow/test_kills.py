"""Whatever command is killed, and whenever: its document is as it was before or as the command leaves it."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable

import pytest

from codegen.cli import main
from codegen.document.staleness import stale_methods
from tests.codegen.workflow.conftest import DOCUMENT, Pantry, complete, implement
from tests.codegen.workflow.conftest import done as set_done

DOC = "design/pantry.md"
MOMENTS = ("before", "after")


def nothing(pantry: Pantry) -> None:
    """The design as it was committed."""


def written(pantry: Pantry) -> None:
    implement(pantry, 1)


def done(pantry: Pantry) -> None:
    written(pantry)
    set_done(pantry, 1)


def two_committed(pantry: Pantry) -> None:
    complete(pantry, 1, 2)


def stale(pantry: Pantry) -> None:
    two_committed(pantry)
    pantry.change(DOC, "grams: int = 0", "grams: int = 1")
    assert stale_methods(pantry.document)


def moved(pantry: Pantry) -> None:
    two_committed(pantry)
    pantry.change("pantry/jar.py", "grams: int = 0", "grams: int = 1")


def corrected(pantry: Pantry) -> None:
    two_committed(pantry)
    pantry.change("pantry/jar.py", "grams: int = 0", "grams: int = 0  # none yet")


def all_written(pantry: Pantry) -> None:
    """The code of Steps 1 and 2 without their statuses."""
    two_committed(pantry)
    pantry.write(DOC, DOCUMENT)


def untidy(pantry: Pantry) -> None:
    pantry.change(DOC, "- purpose: say it", "- purpose: say it\n- purpose: say it   ")


COMMANDS: dict[str, Callable[[Pantry], None]] = {
    "lint --fix": untidy,
    "bump -m more": nothing,
    "review approve 3 5 --reviewer Grace": nothing,
    "review reject 5.1.1 --reviewer Grace --reason unclear": nothing,
    "step start 1 --unreviewed": nothing,
    "step done 1": written,
    "step adopt 1 2": all_written,
    "step fail 1 --kind design-gap --reason unclear": written,
    "step review 1 --approve Grace": done,
    "step commit 1 --no-review": done,
    "step commit --fix more --no-review": corrected,
    "step rollback 1 --cascade": two_committed,
    "step log --write": two_committed,
    "plan --unreviewed": stale,
    "sync-from-code --write": moved,
}


def killed_at(call: int, moment: str) -> None:
    """Kill this process before or after the `call`-th time that it puts a file in the place of another."""
    replace, calls = os.replace, 0

    def dying(*arguments: str) -> None:
        nonlocal calls
        calls += 1
        if calls == call and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*arguments)
        if calls == call:
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = dying  # type: ignore[assignment]


def in_child(run: Callable[[], int]) -> int:
    child = os.fork()
    if child == 0:
        try:
            os._exit(run())
        finally:
            os._exit(9)
    return os.waitpid(child, 0)[1]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_kill_leaves_the_document_as_before_or_as_after(
    command: str, pantry: Pantry, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.chdir(pantry.root)
    COMMANDS[command](pantry)
    path = pantry.root / DOC
    before, texts = path.read_bytes(), []
    copy = tmp_path_factory.mktemp("copy") / "pantry"
    shutil.copytree(pantry.root, copy)
    kills = 0
    for call in range(1, 30):
        for moment in MOMENTS:
            for child in pantry.root.iterdir():
                shutil.rmtree(child) if child.is_dir() else child.unlink()
            shutil.copytree(copy, pantry.root, dirs_exist_ok=True)

            def run(call: int = call, moment: str = moment) -> int:
                killed_at(call, moment)
                return main(command.split())

            status = in_child(run)
            kills += os.WIFSIGNALED(status)
            texts.append(path.read_bytes())
        if not os.WIFSIGNALED(status):
            break
    after = texts[-1]
    assert kills >= 2
    if "--cascade" in command:  # one commit a step: between two of them the document is that of the first
        assert len(set(texts)) <= 3
    else:
        assert set(texts) <= {before, after}
