"""The wheel holds what the repository holds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MAPPED = "codegen.validation_patterns"


def _settings() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]


def test_the_list_of_packages_is_the_tree() -> None:
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for top in ("codegen", "roll_ts")
        for path in (ROOT / top).rglob("__init__.py")
    }
    listed = set(_settings()["packages"]) - {MAPPED}
    assert listed == found, "write the packages of the tree under [tool.setuptools] packages in pyproject.toml"


def test_the_pattern_library_is_mapped_into_the_package() -> None:
    settings = _settings()
    assert settings["package-dir"][MAPPED] == "validation_patterns"
    folder = ROOT / "validation_patterns"
    shipped = {path for form in settings["package-data"][MAPPED] for path in folder.glob(form)}
    assert shipped == {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_wheel_ships_its_types_and_tests_its_patterns_in_an_empty_folder(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("codegen", "roll_ts", "validation_patterns"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    (source / "README.md").write_text("a readme\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "-w", tmp_path, source], check=True, timeout=200)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        assert {"codegen/py.typed", "roll_ts/py.typed"} <= set(wheel.namelist())
        wheel.extractall(tmp_path / "site")
    empty = tmp_path / "empty"
    empty.mkdir()
    result = subprocess.run(
        [sys.executable, "-P", "-m", "codegen", "patterns", "test", "--json"],
        cwd=empty,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert result.returncode == 0, result.stderr
    assert (
        str(tmp_path / "site")
        in subprocess.run(
            [sys.executable, "-P", "-c", "import codegen.patterns as p; print(p.load_library().get('VAL_RANK').path)"],
            cwd=empty,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout
    )
