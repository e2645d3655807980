"""The command line as a process: exit statuses and a reader that leaves early."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from codegen.cli import main

CODEGEN = [sys.executable, "-m", "codegen"]


def test_a_reader_that_leaves_early_is_no_error():
    with subprocess.Popen([*CODEGEN, "patterns", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        talk = process.stderr.read().decode()
    assert process.returncode == 141
    assert "Traceback" not in talk and "BrokenPipe" not in talk


def test_a_fault_of_the_tool_is_shown_whole_and_has_status_3(monkeypatch, capsys):
    def fault(args):
        raise RuntimeError("planted")

    monkeypatch.setattr("argparse.ArgumentParser.parse_args", lambda self, argv=None: SimpleNamespace(run=fault))
    assert main([]) == 3
    assert "planted" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["--help"], ["expand", "--help"]])
def test_help_is_status_0(argv, capsys):
    with pytest.raises(SystemExit) as end:
        main(argv)
    assert end.value.code == 0
    assert "usage: codegen" in capsys.readouterr().out


def test_an_unknown_command_is_status_2():
    with pytest.raises(SystemExit) as end:
        main(["conjure"])
    assert end.value.code == 2
