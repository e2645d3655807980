"""A package's own tests see no difference when checks that never fail are expanded into its functions."""

from __future__ import annotations

import ast
import importlib.util
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from codegen.expand.reading.scopes import own_parameters
from codegen.expand.reading.source import indent_of
from tests.codegen.expand.fuzz import JOB

NEVER = (
    'VAL: VAL_HAS_ATTRIBUTES({}, ("__class__",))',
    "VAL: VAL_TYPE_CHECK({}, object)",
    "VAL: VAL_CALLABLE({}.__class__)",
    "AST: AST_REQUIRES({} is {})",
    "AST: AST_ENSURES(result is result)",
    "AST: AST_ENSURES(result is None or old(id({})) >= 0)",
)


def annotated(text: str, rng: random.Random, share: float) -> list[tuple[int, str]]:
    """(line, comment) above functions of a file, or at the head of their bodies."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or rng.random() > share:
            continue
        names = [parameter.arg for parameter in own_parameters(node)]
        form = rng.choice(NEVER if names else [form for form in NEVER if "{}" not in form])
        head = rng.random() < 0.5 and node.body[0].lineno > node.lineno
        line = node.body[0].lineno if head else min([node.lineno, *(d.lineno for d in node.decorator_list)])
        found.append((line, "# " + form.replace("{}", rng.choice(names or ["none"]))))
    return found


def with_checks(path: Path, rng: random.Random, share: float) -> int:
    """Expand checks into a file; what is refused is left out. Returns how many annotations stand in it."""
    data = path.read_bytes()
    wanted = annotated(data.decode(), rng, share)
    while wanted:
        lines = data.decode().splitlines(keepends=True)
        places: dict[int, int] = {}
        for number, (line, comment) in sorted(enumerate(wanted), key=lambda each: -each[1][0]):
            lines.insert(line - 1, f"{indent_of(lines[line - 1])}{comment}\n")
            places = {at + 1: other for at, other in places.items()} | {line: number}
        outcome = JOB.process(str(path), "".join(lines).encode())
        errors = {finding.line for finding in outcome.report.findings if finding.severity == "error"}
        if not errors:
            assert outcome.new is not None
            path.write_bytes(outcome.new)
            return len(wanted)
        assert "unproven" not in {finding.code for finding in outcome.report.findings}
        bad = {places[line] for line in errors if line in places}
        # An error elsewhere, such as at a return, belongs to the annotation of the function around it.
        bad |= {max((at, n) for at, n in places.items() if at <= line)[1] for line in errors if line not in places}
        wanted = [each for number, each in enumerate(wanted) if number not in bad]
    return 0


def results(folder: Path, package: str, parts: tuple[str, ...]) -> Counter[tuple[str, str]]:
    """Outcome of each of the package's tests, run from that folder."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "--tb=no"]
    where = [str(Path(package, part)) for part in parts]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(
        [*command, "-c", os.devnull, "--rootdir", str(folder), f"--junitxml={report}", *where],
        cwd=folder, env=environment, capture_output=True, check=False, timeout=1_800,
    )  # fmt: skip
    assert (folder / package / "__pycache__").is_dir(), "the tests did not import the copy"
    found: Counter[tuple[str, str]] = Counter()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        outcome = next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")
        found[f"{case.get('classname')}.{case.get('name')}", outcome] += 1
    return found


def compare(tmp_path: Path, package: str, sources: tuple[str, ...], tests: tuple[str, ...], wanted: int) -> None:
    """The tests of a package with checks in `wanted` of its functions give what they give without."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    for name in ("before", "after"):
        shutil.copytree(
            spec.submodule_search_locations[0], tmp_path / name / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    rng, done = random.Random(9), 0
    files = [p for part in sources for p in sorted((tmp_path / "after" / package / part).rglob("*.py"))]
    files = [path for path in files if "tests" not in path.parts]
    total = sum(len(annotated(path.read_text(), random.Random(0), 1.0)) for path in files)
    for path in files:
        done += with_checks(path, rng, min(1.0, 1.4 * wanted / total))
    before = results(tmp_path / "before", package, tests)
    after = results(tmp_path / "after", package, tests)
    print(f"{package}: checks in {done} of {total} functions, {before.total()} tests")
    assert before == after, [*(before - after), *(after - before)][:10]
    assert done >= wanted and sum(count for (_, outcome), count in before.items() if outcome == "passed") > 100


@pytest.mark.slow
def test_the_tests_of_a_package_see_no_checks_in_sixty_of_its_functions(tmp_path: Path) -> None:
    compare(tmp_path, "networkx", ("algorithms/shortest_paths", "classes"), ("algorithms/shortest_paths/tests",), 60)


@pytest.mark.nightly
@pytest.mark.timeout(7_200)
def test_the_tests_of_packages_see_no_checks_in_five_hundred_of_their_functions(tmp_path: Path) -> None:
    compare(
        tmp_path / "networkx", "networkx", ("algorithms", "classes", "utils"), ("algorithms", "classes", "utils"), 500
    )
    compare(tmp_path / "sympy", "sympy", ("ntheory", "sets", "core"), ("ntheory/tests", "sets/tests"), 500)
