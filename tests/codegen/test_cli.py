"""The command line as a process: exit statuses and a reader that leaves early."""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from types import SimpleNamespace

import pytest

from codegen.cli import COMMANDS, main

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


def test_the_table_of_commands_equals_what_the_modules_register():
    registered = {}
    for module in dict.fromkeys(module for module, _ in COMMANDS.values()):
        subparsers = argparse.ArgumentParser().add_subparsers()
        importlib.import_module(f"codegen.cli.{module}").register(subparsers)
        assert set(subparsers.choices) == {choice.dest for choice in subparsers._choices_actions}
        registered |= {choice.dest: (module, choice.help) for choice in subparsers._choices_actions}
    assert registered == COMMANDS


def test_the_help_lists_every_command_with_its_summary(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    places = [said.index(f" {name} {summary[:40]}") for name, (_, summary) in COMMANDS.items()]
    assert places == sorted(places)


def test_a_command_imports_no_module_of_another():
    code = "import sys; from codegen.cli import main; main(sys.argv[1:]); print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code, "expand", "-"], input="", capture_output=True, text=True)
    modules = done.stdout.split()
    assert [name for name in modules if name.startswith("codegen.cli.")] == ["codegen.cli.expand"]
    assert not [name for name in modules if name.startswith(("codegen.document", "codegen.plan", "markdown_it"))]


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
