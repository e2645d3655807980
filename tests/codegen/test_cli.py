"""The command line as a process: exit statuses and a reader that leaves early."""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from codegen.cli import COMMANDS, _parser, main
from codegen.diagnostics import UsageError
from codegen.expand.driver.settings import read_settings
from codegen.workflow.config import load_config

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
    assert [name for name in modules if name.startswith("codegen.cli.")] == ["codegen.cli.expand", "codegen.cli.naming"]
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("patterns reference folder", "folder: "),
        ("patterns reference bytes.md", "is not UTF-8"),
        ("new other --template bytes.md", "is not UTF-8"),
        ("view -o folder", "is a folder"),
        ("adopt ..", "is not below"),
        ("adopt /etc", "is not below"),
        ("adopt deep.py", "cannot be read as Python"),
        (f"expand --unmanaged {'a' * 300}.py", "a.py: "),
    ],
)
def test_a_file_that_cannot_be_used_is_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0 and main(["new", "shop"]) == 0
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes.md").write_bytes(b"\xff")
    (tmp_path / "deep.py").write_text("x = " + "-" * 20_000 + "1\n")
    capsys.readouterr()
    assert main(words.split()) == 2
    told = capsys.readouterr()
    assert said in told.err and told.err.count("\n") == 1 and told.out == ""


@pytest.mark.parametrize("settings", ["[tool]\ncodegen = [1]\n", "[tool.codegen]\nstep = 7\n"])
def test_settings_of_steps_that_are_no_table_are_named(tmp_path: Path, settings: str) -> None:
    (tmp_path / "pyproject.toml").write_text(settings)
    with pytest.raises(UsageError, match="is a table"):
        load_config(tmp_path)


def test_settings_of_expansion_that_are_no_table_are_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\ncodegen = [1]\n# tool.codegen\n")
    with pytest.raises(UsageError, match="is a table"):
        read_settings(tmp_path)


def test_every_command_that_takes_a_document_takes_it_as_doc_and_the_old_name_names_the_new_one(capsys):
    for command in COMMANDS:
        for path, parser in _parsers_of(command):
            takes = any(action.metavar == "DOC" for action in parser._actions)
            options = parser._option_string_actions
            assert ("--doc" in options) is takes, path
            if takes:
                with pytest.raises(SystemExit) as raised:
                    parser.parse_args(["--document", "x"])
                assert raised.value.code == 2
                assert "--doc" in capsys.readouterr().err


def _parsers_of(command):
    todo = [((command,), _parser(command)._subparsers._group_actions[0].choices[command])]
    for path, parser in todo:
        yield path, parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                todo += [((*path, name), each) for name, each in action.choices.items()]


def test_a_document_given_twice_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["plan", "a", "--doc", "b"]) == 2
    assert "one document, please: a, b" in capsys.readouterr().err
