from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codegen.diagnostics import UsageError
from codegen.document import (
    DocumentBusy,
    DocumentChanged,
    document_lock,
    read_document,
    set_step_status,
    update_document,
    write_document,
)
from tests.codegen.document.samples import CLEAN

NEW = CLEAN.replace("| 2 | Till | 1 | NOT_STARTED", "| 2 | Till | 1 | IN_PROGRESS")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "till.md"
    found.write_text(CLEAN, encoding="utf-8")
    return found


def _in_child(run: Callable[[], None]) -> int:
    """Run in a forked process and give its wait status."""
    child = os.fork()
    if child == 0:
        try:
            run()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1]


def _killed_at(call: int) -> None:
    """From now on this process dies without a word at its n-th call that touches the disk."""
    left = [call]

    def hooked(name: str) -> None:
        original = getattr(os, name)

        def dying(*args: object, **kwargs: object) -> object:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        setattr(os, name, dying)

    for name in ("open", "fsync", "replace", "close", "truncate", "pwrite", "unlink", "fchmod"):
        hooked(name)


def test_a_kill_at_any_call_leaves_the_old_text_or_the_new(path: Path) -> None:
    seen = set()
    for call in range(1, 40):
        path.write_text(CLEAN, encoding="utf-8")

        def change(call: int = call) -> None:
            _killed_at(call)
            update_document(path, lambda document: set_step_status(document, 2, "IN_PROGRESS"))

        status = _in_child(change)
        text = path.read_text(encoding="utf-8")
        assert text in (CLEAN, NEW)
        seen.add((os.WIFSIGNALED(status), text == NEW))
        if not os.WIFSIGNALED(status):
            break
    # Killed before the rename, killed after it, and not killed at all: the sweep went through everything.
    assert seen == {(True, False), (True, True), (False, True)}


def test_after_a_kill_the_next_write_works_and_leaves_no_litter(path: Path) -> None:
    def change() -> None:
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        write_document(path, NEW, CLEAN)

    assert os.WIFSIGNALED(_in_child(change))
    assert len(list(path.parent.iterdir())) > 1
    write_document(path, NEW, CLEAN)
    assert [item.name for item in path.parent.iterdir()] == ["till.md"]
    assert path.read_text(encoding="utf-8") == NEW


def test_a_document_that_changed_meanwhile_is_not_overwritten(path: Path) -> None:
    path.write_text(CLEAN + "\nmine\n", encoding="utf-8")
    with pytest.raises(DocumentChanged, match="changed by someone else"):
        write_document(path, NEW, CLEAN)
    assert path.read_text(encoding="utf-8") == CLEAN + "\nmine\n"


def test_a_document_that_must_not_exist_is_not_overwritten(path: Path) -> None:
    with pytest.raises(DocumentChanged, match="exists already"):
        write_document(path, NEW, None)
    path.unlink()
    with pytest.raises(DocumentChanged, match="was removed"):
        write_document(path, NEW, CLEAN)
    write_document(path, NEW, None)
    assert path.read_text(encoding="utf-8") == NEW


def test_mode_and_link_survive_a_write(path: Path) -> None:
    path.chmod(0o640)
    link = path.with_name("link.md")
    link.symlink_to(path)
    write_document(link, NEW, CLEAN)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.read_text(encoding="utf-8") == NEW


def test_line_ends_survive_a_write(path: Path) -> None:
    text = CLEAN.replace("\n", "\r\n")
    path.write_bytes(text.encode())
    update_document(path, lambda document: set_step_status(document, 2, "IN_PROGRESS"))
    assert path.read_bytes() == NEW.replace("\n", "\r\n").encode()


def test_of_two_processes_one_wins_and_the_other_is_told_who(path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from codegen.document import document_lock\n"
        "with document_lock(Path(sys.argv[1]), 'step 2 start'):\n    print('held', flush=True); time.sleep(30)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(DocumentBusy) as refused:
                update_document(path, lambda document: set_step_status(document, 2, "IN_PROGRESS"))
            assert f"process {holder.pid} " in str(refused.value)
            assert "step 2 start" in str(refused.value)
            assert path.read_text(encoding="utf-8") == CLEAN
        finally:
            holder.kill()
    update_document(path, lambda document: set_step_status(document, 2, "IN_PROGRESS"))


def test_a_holder_that_has_not_signed_yet_is_given_a_moment(path: Path) -> None:
    lock = path.with_name(f".{path.name}.lock")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        signing = threading.Timer(0.2, lambda: (held.write("process 7 on here (plan)\n"), held.flush()))
        signing.start()
        with pytest.raises(DocumentBusy, match="held by process 7 on here"), document_lock(path):
            pass
        signing.join()


def test_a_thread_does_not_pass_through_the_lock_of_another(path: Path) -> None:
    refused: list[BaseException] = []

    def other() -> None:
        try:
            write_document(path, NEW, CLEAN)
        except DocumentBusy as error:
            refused.append(error)

    with document_lock(path, "here"):
        with document_lock(path, "again"):
            pass
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(refused) == 1


def test_waiting_for_a_lock_has_an_end(path: Path) -> None:
    entered = threading.Event()

    def hold() -> None:
        with document_lock(path, "slow"):
            entered.set()
            time.sleep(0.4)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    with pytest.raises(DocumentBusy), document_lock(path, wait=0.05):
        pass
    with document_lock(path, wait=5.0):
        pass
    thread.join()


def test_many_writers_lose_no_update(path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from codegen.document import *\n"
        "path = Path(sys.argv[1])\n"
        "for n in range(5):\n"
        "    with document_lock(path, wait=30):\n"
        "        update_document(path, lambda d: add_log_row(d, sys.argv[2], str(n), '-', '2026-01-01'))\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in ("a", "b", "c")]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    rounds = read_document(path).log
    assert sorted((row.asked, row.changed) for row in rounds[1:]) == [(n, str(k)) for n in "abc" for k in range(5)]
    assert [row.round for row in rounds] == [str(n) for n in range(1, 17)]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be locked"):
        write_document(tmp_path / "none" / "x.md", NEW, None)
