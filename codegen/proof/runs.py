"""One test command in a checkout: by the project's own interpreter, ended with all it started, watched from outside."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codegen.diagnostics import UsageError
from codegen.proof.functions import Removable

INSIDE = Path(__file__).with_name("inside")
_GRACE = 10.0
_MOST_OUTPUT = 1_000_000
_PROBE = """\
import sys
sys.path[:] = filter(None, sys.path)
import json
found = list(sys.path)
for name, module in list(sys.modules.items()):
    if name.startswith("__editable__"):
        mapping = getattr(module, "MAPPING", {})
        found += [path.replace("\\\\", "/").rpartition("/")[0] for path in mapping.values()]
print(json.dumps([found, sys.prefix]))
"""
_OWN = ("CODEGEN_PROOF", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "PYTEST_", "PYTHONPYCACHEPREFIX")


@dataclass(frozen=True)
class Place:
    """Where commands run: `checkout` holds what would be committed of `project`; the interpreter is the project's, and
    `path` are the folders of the checkout that it finds code in without being asked to."""

    project: Path
    checkout: Path
    python: str
    path: tuple[Path, ...]


@dataclass(frozen=True)
class Ended:
    """How a command ended; `status` None when it passed its deadline. `folder` holds what it left for the judge."""

    command: str
    status: int | None
    seconds: float
    output: str
    folder: Path


def place(project: Path, checkout: Path) -> Place:
    """Ask the project's interpreter where it looks. UsageError: it does not run."""
    project = project.resolve()
    python = _interpreter(project)
    try:
        done = subprocess.run([python, "-c", _PROBE], cwd=project, capture_output=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(f"{python}: the project's interpreter does not run: {error}") from error
    folders, prefix = json.loads(done.stdout)
    found: list[Path] = []
    for each in dict.fromkeys(folders):
        folder = Path(each).resolve()
        if folder.is_relative_to(project) and not folder.is_relative_to(Path(prefix).resolve()):
            found.append(checkout / folder.relative_to(project))
    return Place(project, checkout, python, tuple(found))


def is_pytest(command: str) -> bool:
    """Whether a command says that it runs pytest, so that a report must come of it."""
    words = shlex.split(command)
    return any(Path(word).name in ("pytest", "py.test") for word in words[:4])


def run(
    where: Place,
    command: str,
    folder: Path,
    removables: Sequence[Removable],
    deadline: float,
    remove: str = "",
    serve: dict[str, object] | None = None,
) -> Ended:
    """Run one command, without a shell, its report going to the new `folder`. UsageError: there is no such command."""
    folder.mkdir(parents=True)
    files: dict[str, dict[str, int]] = {}
    for each in removables:
        path = os.path.realpath(where.checkout / each.function.path)
        files.setdefault(path, {})[str(each.line)] = each.number
    (folder / "spec.json").write_text(json.dumps(files), encoding="utf-8")
    if serve is not None:
        (folder / "serve").write_text(json.dumps(serve), encoding="utf-8")
    (folder / "tmp").mkdir()
    words = _words(where, command)
    environment = _environment(where, folder, remove)
    began = time.monotonic()
    with tempfile.TemporaryFile() as out:  # a pipe would be held open by what a test leaves running
        try:
            process = subprocess.Popen(
                words,
                cwd=where.checkout,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
            raise UsageError(f"the step's test command does not exist: {words[0]} (in `{command}`)") from error
        status: int | None = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(deadline)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(_GRACE)
        seconds = time.monotonic() - began
        out.seek(max(0, out.seek(0, os.SEEK_END) - _MOST_OUTPUT))
        output = out.read().decode("utf-8", "replace").rstrip()
    shutil.rmtree(folder / "tmp", ignore_errors=True)
    return Ended(command, status, seconds, output, folder)


def reports(ended: Ended) -> list[Path]:
    """The reports of the pytest processes of a run, oldest first."""
    return sorted(ended.folder.glob("report-*.jsonl"), key=lambda path: path.stat().st_mtime_ns)


def _interpreter(project: Path) -> str:
    """The Python of the project's own environment, else the one that runs this tool. Links are kept: an environment is
    found by the path its interpreter is called by."""
    for name in (".venv", "venv"):
        python = project / name / "bin" / "python"
        if python.is_file():
            return str(python)
    return sys.executable


def _words(where: Place, command: str) -> list[str]:
    """The command's words, its program found: Python and pytest in the project's environment, and a program in a folder
    that git ignores (`.venv/bin/python`) in the project itself."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"the test command `{command}` cannot be read: {error}") from error
    if not words:
        raise UsageError("a test command is empty; write one in backticks after `- tests:`")
    program = words[0]
    if program in ("pytest", "py.test"):
        return [where.python, str(INSIDE / "codegen_proof_pytest.py"), *words[1:]]
    if program in ("python", "python3"):
        return [where.python, *words[1:]]
    if "/" in program and not Path(program).is_absolute():
        here, there = where.checkout / program, where.project / program
        if Path(program).name in ("pytest", "py.test") and there.is_file() and not here.exists():
            return [str(there.with_name("python")), str(INSIDE / "codegen_proof_pytest.py"), *words[1:]]
        return [str(here if here.exists() or not there.exists() else there), *words[1:]]
    return words


def _environment(where: Place, folder: Path, remove: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_OWN)}
    given = [Path(each) for each in kept.pop("PYTHONPATH", "").split(os.pathsep) if each]
    outside = [each for each in given if not each.resolve().is_relative_to(where.project)]
    search = [str(each) for each in (INSIDE, *where.path, *outside)]
    programs = [str(Path(where.python).parent), kept.get("PATH", os.defpath)]
    return {
        **kept,
        "CODEGEN_PROOF": str(folder),
        "CODEGEN_PROOF_REMOVE": remove,
        "PATH": os.pathsep.join(programs),
        "PYTEST_PLUGINS": "codegen_proof_plugin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(search)),
        "TMPDIR": str(folder / "tmp"),
    }
