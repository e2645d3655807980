"""How many small errors in the scheduler's core the tests see: `python bench/mutation.py [--count 200] [--by-hand]`.

Drawn mutants change one operator, constant, condition or statement of `roll_ts/core`, chosen by a fixed seed; expanded
validation blocks are left out, because `codegen expand --check` refuses any change of them. The ones by hand, in
`bench/_broken_rules.py`, break each rule of the scheduler once. Each runs against a copy of the sources, with the tests
that `make test` runs for the core, the quick ones first. The last line is JSON: drawn, killed, share, survivors.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "roll_ts" / "core"
ROOMS = ("core", "outside", "sim", "observe")
SECONDS = 300

PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not nightly and not slow")
SUITE: tuple[tuple[str, ...], ...] = (
    ("-m", "tests.roll_ts.outside", "--seed", "0", "--events", "12000"),
    (*PYTEST, "tests/roll_ts/core"),
    ("-m", "tests.roll_ts.outside", "--seed", "5000", "--events", "80000"),
    (*PYTEST, "tests/roll_ts/sim", "tests/roll_ts/observe"),
)
"""What kills, quick ones first; all of it, and more of it, is part of `make test`."""

COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in",
    ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.BitOr: "&", ast.BitAnd: "|"}


@dataclass(frozen=True)
class Mutant:
    """One small error: `new` replaces the characters from `start` to `end` of `file` (relative to the root)."""

    name: str
    file: str
    line: int
    start: int
    end: int
    new: str


class Sites(ast.NodeVisitor):
    """All places of one file where a small error can be made."""

    def __init__(self, file: str, source: str) -> None:
        self.file = file
        self.source = source
        self.found: list[Mutant] = []
        self._offsets = [0]
        for line in source.splitlines(keepends=True):
            self._offsets.append(self._offsets[-1] + len(line))
        self._closed = generated_lines(source)

    def place(self, line: int, column: int) -> int:
        """The character of a line and a column in bytes."""
        text = self.source[self._offsets[line - 1] : self._offsets[line]]
        return self._offsets[line - 1] + len(text.encode()[:column].decode())

    def add(self, what: str, node: ast.expr | ast.stmt, new: str) -> None:
        """Replace a whole node."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        start, end = self.place(node.lineno, node.col_offset), self.place(node.end_lineno, node.end_col_offset)
        self.between(what, node.lineno, start, end, new)

    def between(self, what: str, line: int, start: int, end: int, new: str) -> None:
        """Replace the characters between two places."""
        if line not in self._closed and self.source[start:end] != new:
            self.found.append(Mutant(f"{self.file}:{line} {what}", self.file, line, start, end, new))

    def text(self, node: ast.expr) -> str:
        """The source of an expression."""
        return ast.get_source_segment(self.source, node) or ast.unparse(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        for child in body:
            self.visit(child)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for child in node.body:
            if isinstance(child, ast.FunctionDef):
                self.visit(child)

    def visit_Compare(self, node: ast.Compare) -> None:
        if len(node.ops) == 1 and type(node.ops[0]) in COMPARE:
            new = COMPARE[type(node.ops[0])]
            left, right = self.text(node.left), self.text(node.comparators[0])
            self.add(f"compares with {new}", node, f"({left} {new} {right})")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        new = ARITHMETIC.get(type(node.op))
        if new is not None and not isinstance(node.left, ast.JoinedStr) and not isinstance(node.right, ast.JoinedStr):
            self.add(f"calculates with {new}", node, f"({self.text(node.left)} {new} {self.text(node.right)})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        new = " or " if isinstance(node.op, ast.And) else " and "
        self.add(
            f"joins with{new.rstrip()}", node, "(" + new.join(f"({self.text(value)})" for value in node.values) + ")"
        )
        for number, value in enumerate(node.values):
            rest = [f"({self.text(other)})" for place, other in enumerate(node.values) if place != number]
            joined = (" and " if isinstance(node.op, ast.And) else " or ").join(rest)
            self.add(f"leaves out `{self.text(value)[:40]}`", node, f"({joined})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.add("leaves out not", node, f"bool({self.text(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.add(f"says {not node.value}", node, str(not node.value))
        elif isinstance(node.value, int | float):
            self.add("is one more", node, f"({node.value} + 1)")

    def visit_If(self, node: ast.If) -> None:
        self.add("is never so", node.test, "False")
        self.add("is always so", node.test, "True")
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self.add("is never so", node.test, "False")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.add(f"does not do `{self.text(node.value)[:40]}`", node, "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self.add("is not noted", node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.add("is not counted", node, "pass")
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        self.add("is not deleted", node, "pass")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self.add("returns nothing", node.value, "None")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self.add("breaks", node, "break")

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts are for people."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """Refusals are expanded validations."""


def generated_lines(source: str) -> set[int]:
    """The numbers of lines that lie in expanded validation blocks."""
    inside, found = False, set[int]()
    for number, line in enumerate(source.splitlines(), start=1):
        if re.match(r"\s*# (VAL|AST): ", line):
            inside = True
        if inside:
            found.add(number)
        if re.match(r"\s*# END (VAL|AST)", line):
            inside = False
    return found


def drawn(count: int, seed: int) -> list[Mutant]:
    """`count` mutants of the core, by a fixed seed; as many from a file as it has places, in proportion."""
    sites: list[Mutant] = []
    for path in sorted(CORE.rglob("*.py")):
        if path.name in ("invariants.py", "errors.py"):
            continue  # the white-box help itself is no part of the scheduler
        source = path.read_text()
        visitor = Sites(str(path.relative_to(ROOT)), source)
        visitor.visit(ast.parse(source))
        sites += visitor.found
    return random.Random(seed).sample(sites, min(count, len(sites)))


def by_hand() -> list[Mutant]:
    """The rules of the scheduler, each broken once. Raises ValueError when a text is not found exactly once."""
    from _broken_rules import BROKEN

    found = []
    for rule, file, old, new in BROKEN:
        source = (CORE / file).read_text()
        if source.count(old) != 1:
            raise ValueError(
                f"{rule}: {file} has {source.count(old)} times {old!r}: write the mutant for the present text"
            )
        start = source.index(old)
        line = source.count("\n", 0, start) + 1
        name = f"{rule} broken: roll_ts/core/{file}:{line}"
        found.append(Mutant(name, f"roll_ts/core/{file}", line, start, start + len(old), new))
    return found


def copy_of_the_sources(folder: Path) -> None:
    """What the tests of the core need, in a folder of its own."""
    (folder / "tests" / "roll_ts").mkdir(parents=True)
    shutil.copytree(ROOT / "roll_ts", folder / "roll_ts", ignore=shutil.ignore_patterns("__pycache__"))
    for room in ROOMS:
        shutil.copytree(
            ROOT / "tests" / "roll_ts" / room,
            folder / "tests" / "roll_ts" / room,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    for name in ("tests/__init__.py", "tests/roll_ts/__init__.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    for name in ("examples", "bench"):
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)


def killer(folder: Path, mutant: Mutant | None, suite: tuple[tuple[str, ...], ...]) -> str:
    """The name of what kills the mutant; empty when it survives. Without a mutant: what is red anyway."""
    whole = ""
    if mutant is not None:
        whole = (folder / mutant.file).read_text()
        (folder / mutant.file).write_text(whole[: mutant.start] + mutant.new + whole[mutant.end :])
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        for stage in suite:
            try:
                done = subprocess.run(
                    [sys.executable, *stage],
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=SECONDS,
                )
            except subprocess.TimeoutExpired:
                return f"no end within {SECONDS} s"
            if done.returncode != 0:
                last = (done.stdout.strip() or done.stderr.strip()).splitlines()
                words = [line for line in last if line.startswith(("FAILED", "ERROR", "seed"))] or last[-1:] or ["?"]
                return words[0][:160]
        return ""
    finally:
        if mutant is not None:
            (folder / mutant.file).write_text(whole)


def tried(mutants: list[Mutant], jobs: int, suite: tuple[tuple[str, ...], ...]) -> Iterator[tuple[Mutant, str]]:
    """Each mutant with what killed it, in order; `jobs` at once, each in its own copy of the sources."""
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(jobs) as pool:
        free = []
        for job in range(jobs):
            folder = Path(place) / str(job)
            copy_of_the_sources(folder)
            free.append(folder)
        red = killer(free[0], None, suite)
        if red:
            raise SystemExit(f"without any mutant the tests are red: {red}")

        def one(mutant: Mutant) -> str:
            folder = free.pop()
            try:
                return killer(folder, mutant, suite)
            finally:
                free.append(folder)

        yield from zip(mutants, pool.map(one, mutants), strict=True)


def main() -> int:
    """The command. Exit 0 when at least `--share` of the mutants are killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=200, help="how many mutants are drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--by-hand", action="store_true", help="only the broken rules")
    parser.add_argument("--drawn", action="store_true", help="only the drawn ones")
    parser.add_argument("--jobs", type=int, default=1, help="how many at once")
    parser.add_argument("--share", type=float, default=0.9, help="the least share that must be killed")
    parser.add_argument("--quick", action="store_true", help="only with the first of the tests: a lower bound")
    parser.add_argument("--list", action="store_true", help="only print the mutants")
    options = parser.parse_args()
    mutants = [] if options.drawn else by_hand()
    mutants += [] if options.by_hand else drawn(options.count, options.seed)
    if options.list:
        for mutant in mutants:
            print(mutant.name)
        return 0
    survivors = []
    for number, (mutant, by) in enumerate(tried(mutants, options.jobs, SUITE[: 1 if options.quick else None]), start=1):
        print(f"{number}/{len(mutants)} {mutant.name}: {by or 'SURVIVES'}", flush=True)
        if not by:
            survivors.append(mutant.name)
    killed = len(mutants) - len(survivors)
    share = killed / len(mutants)
    print(
        json.dumps(
            {
                "bench": "mutation",
                "mutants": len(mutants),
                "killed": killed,
                "share": round(share, 4),
                "survivors": survivors,
            }
        )
    )
    return 0 if share >= options.share else 1


if __name__ == "__main__":
    sys.exit(main())
