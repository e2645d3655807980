"""The code that patterns write passes the linter and the type checker of this project."""

from __future__ import annotations

import ast
import builtins
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from codegen.patterns import load_library
from codegen.patterns.examples import render_example

ROOT = Path(__file__).resolve().parents[3]


def all_expansions() -> str:
    """A module with a function for each annotation of the examples."""
    patterns = list(load_library())
    imports = sorted(
        {line for pattern in patterns for line in pattern.imports}, key=lambda s: (s.startswith("from"), s)
    )
    modules = {line.split()[-1] for line in imports}
    functions = []
    for pattern in patterns:
        for example in {(e.use, e.each): e for e in pattern.examples}.values():
            code = render_example(pattern, example)
            names = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
            stored = {node.id for node in names if isinstance(node.ctx, ast.Store)} | {"_expired"}
            free = sorted({node.id for node in names} - stored - modules - set(dir(builtins)))
            start = "async def" if example.is_async else "def"
            head = f"{start} check_{len(functions)}({', '.join(f'{name}: Any' for name in free)}) -> None:"
            functions.append(f"{head}\n{textwrap.indent(code, '    ')}")
    return "\n".join([*imports, "from typing import Any", "", "", *(f"{f}\n" for f in functions)])


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That module, as a file."""
    path = tmp_path_factory.mktemp("expanded") / "expanded.py"
    path.write_text(all_expansions(), encoding="utf-8")
    return path


def test_expansions_pass_ruff(module: Path) -> None:
    ruff = [sys.executable, "-m", "ruff", "check", "--config", ROOT / "pyproject.toml", "--output-format", "concise"]
    result = subprocess.run([*ruff, module], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout


@pytest.mark.slow
def test_expansions_pass_mypy(module: Path) -> None:
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(module.parent)]
    result = subprocess.run([*mypy, module], cwd=module.parent, capture_output=True, text=True, timeout=200)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
def test_expansions_mean_the_same_after_a_formatter(module: Path) -> None:
    pytest.importorskip("black")
    source = module.read_text(encoding="utf-8")
    for formatter in (["ruff", "format", "--config", str(ROOT / "pyproject.toml"), "-"], ["black", "-q", "-"]):
        command = [sys.executable, "-m", *formatter]
        result = subprocess.run(command, input=source, capture_output=True, text=True, timeout=60, check=True)
        assert ast.dump(ast.parse(result.stdout)) == ast.dump(ast.parse(source))
