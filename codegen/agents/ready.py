"""What must hold before an agent is started: it costs time and money, so nothing is left to be found out afterwards."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil

from codegen.diagnostics import UsageError
from codegen.workflow.evidence import test_commands
from codegen.workflow.git import Git
from codegen.workflow.target import Target, belongs

_ASTRAY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE")


def require_untouched(target: Target, git: Git) -> str:
    """The commit to work from. UsageError: the step's files or the document have changes that are not committed."""
    if astray := [name for name in _ASTRAY if name in os.environ]:
        raise UsageError(f"{astray[0]} is set, so git would not look where it runs; unset it")
    git.require()
    head = git.head()
    if head is None:
        raise UsageError(f"{target.root}: has no commit yet; commit the design document first")
    dirty = [change.path for change in git.changes() if belongs(change.path, target.own_paths)]
    if dirty:
        raise UsageError(
            f"Step {target.step.number}: not committed: {', '.join(dirty[:8])}; commit or discard these. An agent "
            "works from the last commit, and the run starts the step itself"
        )
    return head


def require_tests(target: Target) -> None:
    """UsageError: a test command of the step cannot run here, so no work of an agent could verify."""
    step = target.step.number
    for command in test_commands(target):
        words = shlex.split(command)
        program = words[0] if words else ""
        if program == "pytest" or words[1:3] == ["-m", "pytest"]:
            if importlib.util.find_spec("pytest") is None:
                fix = "it is not installed beside codegen; run `pip install pytest` there"
                raise UsageError(f"Step {step} is tested with pytest (`{command}`), and {fix}")
        elif program not in ("python", "python3") and "/" not in program and shutil.which(program) is None:
            raise UsageError(f"Step {step} is tested with `{command}`, and there is no {program!r} here")
