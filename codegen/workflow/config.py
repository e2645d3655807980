"""What a project may set about steps, in `[tool.codegen.step]` of its pyproject.toml.

title = "Step {number}: {title}"   # first line of a step's commit
brief-tokens = 6000                # a brief is made to fit
test-seconds = 1800                # deadline of a step's tests
junit = "build/junit.xml"          # the report of a test command that is not pytest
since = "1a2b3c4"                  # commits after this one that touch a document's code roots must belong to a step;
                                   # "first step": all after the first commit of a step
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from codegen.diagnostics import UsageError


@dataclass(frozen=True)
class StepConfig:
    title: str = "Step {number}: {title}"
    brief_tokens: int = 6000
    test_seconds: float = 1800.0
    junit: str = ""
    since: str = ""

    def commit_title(self, numbers: Sequence[int], title: str) -> str:
        """The first line of the commit message of a step, or of a correction that spans several."""
        return self.title.format(number=", ".join(map(str, numbers)), title=title)


def load_config(root: Path) -> StepConfig:
    """The project's settings. UsageError: unknown key, wrong type, or a title that cannot be filled in."""
    path = root / "pyproject.toml"
    if not path.is_file():
        return StepConfig()
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: is not TOML: {error}") from error
    given = table
    for key in ("tool", "codegen", "step"):
        given = given.get(key, {})
        if not isinstance(given, dict):
            raise UsageError(f"{path}: {key} is {given!r}; [tool.codegen.step] is a table")
    known = {field.name.replace("_", "-"): type(field.default) for field in fields(StepConfig)}
    for key, value in given.items():
        if key not in known:
            raise UsageError(f"{path}: [tool.codegen.step] has no key {key!r}; it has {', '.join(known)}")
        kinds = (int, float) if known[key] is float else (known[key],)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise UsageError(f"{path}: [tool.codegen.step] {key} must be {known[key].__name__}, got {value!r}")
    config = StepConfig(**{key.replace("-", "_"): value for key, value in given.items()})
    try:
        config.commit_title([1], "x")
    except (KeyError, IndexError, ValueError) as error:
        message = f"{path}: [tool.codegen.step] title may use {{number}} and {{title}} only: {error}"
        raise UsageError(message) from error
    return config
