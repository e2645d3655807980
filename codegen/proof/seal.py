"""What a test file, or one test in it, checks: a digest, and a floor below which it must not fall.

The digest is over the syntax without docstrings, so that comments and layout are free. The floor counts tests that run
(none that is skipped or expected to fail), checks in them, and words of checks: names, values and operators. Another
digest with no lower count is a test that grew or was rewritten; a lower one was weakened.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)
_CELL = re.compile(r"(?P<tests>\d+)/(?P<checks>\d+)/(?P<words>\d+) (?P<digest>[0-9a-f]{8})$")
_HIDES = re.compile(r"\b(skip|skipif|skipIf|skipUnless|xfail|expectedFailure)\b")
_ENDS = re.compile(r"^(pytest\.)?(skip|xfail|exit|importorskip)\(|^(os\._exit|sys\.exit|exit|quit)\(")


@dataclass(frozen=True)
class Seal:
    """Counts and digest of one text; written "3/7/41 1a2b3c4d" (tests, checks, words)."""

    tests: int
    checks: int
    words: int
    digest: str

    def __str__(self) -> str:
        return f"{self.tests}/{self.checks}/{self.words} {self.digest}"

    def weaker_than(self, before: Seal) -> str:
        """What there is less of than `before`, "" for nothing."""
        if self.digest == before.digest:
            return ""
        for name in ("tests", "checks", "words"):
            now, then = getattr(self, name), getattr(before, name)
            if now < then:
                return f"{then} {'words of checks' if name == 'words' else name} then, {now} now"
        return ""


def read_seal(text: str) -> Seal | None:
    """A seal as it was written, None when it is none."""
    match = _CELL.match(text.strip())
    if match is None:
        return None
    return Seal(int(match["tests"]), int(match["checks"]), int(match["words"]), match["digest"])


def seal_of(path: Path, test: str = "") -> Seal | None:
    """The seal of a file, or of one test in it ("test_a", "TestB::test_c"; parameters are left out). None when there is
    no such file or test, or it is not Python any more."""
    try:
        tree = ast.parse(path.read_bytes())
    except (FileNotFoundError, IsADirectoryError, SyntaxError, ValueError):
        return None
    body = tree.body
    if test:
        found = _find(body, test.partition("[")[0].split("::"))
        if found is None:
            return None
        body = [found]
    counts = [_count(node) for node in _units(body)]
    hidden = any(_hides_all(node) for node in tree.body)
    tests, checks, words = (sum(each[at] for each in counts) for at in range(3))
    shape = "\n".join(_shape(node) for node in body)
    digest = hashlib.sha256(shape.encode()).hexdigest()[:8]
    return Seal(0 if hidden else tests, 0 if hidden else checks, 0 if hidden else words, digest)


def is_test_file(path: str) -> bool:
    """Whether a path is of tests, by its name or its folder."""
    pure = PurePosixPath(path)
    named = pure.name.startswith("test_") or pure.name.endswith("_test.py") or pure.name == "conftest.py"
    return pure.suffix == ".py" and (named or bool({"tests", "test"} & set(pure.parts[:-1])))


def _find(body: list[ast.stmt], names: list[str]) -> ast.stmt | None:
    for node in reversed(body):  # the last definition of a name is the one that runs
        if isinstance(node, (*_DEFS, ast.ClassDef)) and node.name == names[0]:
            if len(names) == 1:
                return node
            return _find(node.body, names[1:]) if isinstance(node, ast.ClassDef) else None
    return None


def _units(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Functions, those of classes too, and loose statements. A class that is skipped has none."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            if not any(_HIDES.search(ast.unparse(each)) for each in node.decorator_list):
                yield from _units(node.body)
        else:
            yield node


def _count(node: ast.stmt) -> tuple[int, int, int]:
    """Tests, checks and words of checks of one function or loose statement."""
    is_function = isinstance(node, _DEFS)
    heads = list(node.decorator_list) if isinstance(node, _DEFS) else []
    if any(_HIDES.search(ast.unparse(each)) for each in heads):
        return 0, 0, 0
    body = _live(node.body) if isinstance(node, _DEFS) else [node]
    checks = [check for each in body for check in _checks(each)]
    words = sum(_words(each) for each in [*checks, *heads])
    is_test = is_function and node.name.startswith("test")  # type: ignore[attr-defined]
    return int(is_test), len(checks), words


def _live(body: list[ast.stmt]) -> list[ast.stmt]:
    """What comes before a statement that ends the test whatever happened."""
    for at, node in enumerate(body):
        ends = isinstance(node, (ast.Return, ast.Raise)) or (isinstance(node, ast.Expr) and _ENDS.match(_text(node)))
        if ends:
            return body[:at]
    return body


def _checks(node: ast.AST) -> Iterator[ast.AST]:
    """Asserts that are not constant, and calls that check, such as `pytest.raises(…)` and `self.assertEqual(…)`."""
    for each in ast.walk(node):
        if isinstance(each, ast.Assert):
            if not isinstance(each.test, ast.Constant):
                yield each.test
        elif isinstance(each, ast.Call):
            name = ast.unparse(each.func).rpartition(".")[2].lower()
            if name.startswith(("assert", "raises", "warns", "fail", "check", "expect")):
                yield each


def _words(node: ast.AST) -> int:
    return sum(isinstance(each, (ast.Name, ast.Attribute, ast.Constant, ast.cmpop)) for each in ast.walk(node))


def _hides_all(node: ast.stmt) -> bool:
    """Whether a loose statement keeps the whole file from being run."""
    if isinstance(node, ast.Assign):
        names = {each.id for each in node.targets if isinstance(each, ast.Name)}
        value = _text(node.value)
        return ("pytestmark" in names and bool(_HIDES.search(value))) or ("__test__" in names and value == "False")
    return isinstance(node, ast.Expr) and bool(_ENDS.match(_text(node)))


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def _shape(node: ast.stmt) -> str:
    copy = ast.parse(ast.unparse(node))
    for each in ast.walk(copy):
        if isinstance(each, (*_DEFS, ast.ClassDef)) and ast.get_docstring(each, clean=False) is not None:
            each.body = each.body[1:] or [ast.Pass()]
    return ast.dump(copy)
