"""Insert annotations at random places of real files, and hold the expander to its promises.

Promises, for each insertion that is not refused with a reason: the expansion is proven (two parsers, the author's
code unchanged, a second pass idle), stripping gives the original bytes, a formatter leaves every block FRESH, and ruff
finds no name without a value (F821, F823) and no import that hides another (F811) that it did not find before.
"""

from __future__ import annotations

import ast
import json
import random
import re
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from codegen.expand.driver.expansion import strip_bytes
from codegen.expand.driver.one_file import Job
from codegen.expand.model import Options
from codegen.expand.reading.scopes import own_parameters
from codegen.expand.reading.source import Unreadable, indent_of, read_source
from tests.codegen.expand.helpers import LIBRARY, MARKS

JOB = Job(LIBRARY, MARKS, Options(), "write", dry=True)
_WRITES = re.compile(rb"globals\(\)|import \*|exec\(")
ON_NAMES = (
    "VAL: VAL_POSITIVE({})",
    "VAL: VAL_NON_EMPTY({})",
    "VAL: VAL_INT_RANGE({}, min=0, max=7) - a note",
    "VAL: VAL_TYPE_CHECK({}, int), VAL_FINITE({})",
    "VAL: VAL_NO_DUPLICATES({})",
    "AST: AST_INVARIANT({} is not None and {{'{{': 1}})",
    "AST: AST_PRECONDITION(len({}) > 0)",
    "VAL: VAL_INT_RANGE({}, max=<name>)",
    "VAL: VAL_EQUAL({}, <name>), VAL_FINITE({})",
    "AST: AST_INVARIANT(<name> is not {})",
    "VAL: VAL_NOT_NONE(<name>, about=<name>)",
    "VAL: VAL_SUBSET({}, of=<name>) - a note",
)
ON_FUNCTIONS = (
    "AST: AST_ENSURES(result is None or True)",
    "AST: AST_POSTCONDITION(result != old(copy({})))",
    "AST: AST_ENSURES(<name> is not result)",
    "AST: AST_ENSURES(old(len({})) >= 0 and old(<name>) is not {})",
    "AST: AST_REQUIRES({} is not None)",
    "VAL: VAL_POSITIVE",
)


@dataclass
class Tally:
    """What came of the insertions."""

    files: set[str] = field(default_factory=set)
    expanded: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    texts: dict[str, list[bytes]] = field(default_factory=dict)

    def summary(self) -> str:
        """One line for people."""
        total = self.expanded + sum(self.refused.values())
        reasons = ", ".join(f"{code} {count}" for code, count in self.refused.most_common())
        return (
            f"{len(self.files)} files, {total} insertions, {self.expanded} expanded, "
            f"{sum(self.refused.values())} refused ({reasons or 'none'}), {len(self.failures)} failures"
        )


def real_files(limit: int) -> list[Path]:
    """Files of the standard library of at most `limit` bytes, in a fixed order."""
    root = Path(sysconfig.get_path("stdlib"))
    found = [path for path in sorted(root.rglob("*.py")) if "site-packages" not in path.parts]
    return [path for path in found if 200 < path.stat().st_size <= limit and "bad" not in path.name]


def insertions(rng: random.Random, data: bytes, count: int) -> Iterator[bytes]:
    """Copies of a file with one annotation each, somewhere inside its functions."""
    try:
        source = read_source(data)
        tree = ast.parse(source.text)
    except (Unreadable, SyntaxError, ValueError):
        return
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    every = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {"len"}
    for _ in range(count if functions else 0):
        lines = list(source.lines)
        _insert(rng, lines, rng.choice(functions), source.newline, every)
        yield source.encode("".join(lines))


def _insert(
    rng: random.Random,
    lines: list[str],
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    newline: str,
    every: Collection[str],
) -> None:
    names = [p.arg for p in own_parameters(function)] or ["len"]
    near = [node.id for node in ast.walk(function) if isinstance(node, ast.Name)]
    # Names of this function, of the whole file, of nowhere: most of the latter have no value where they are put.
    used = rng.choice((near or names, sorted(every), ["no_such_name", *names]))
    statements = [node for node in ast.walk(function) if isinstance(node, ast.stmt)]
    target = rng.choice(statements)
    kind = rng.choice(("above", "above", "trailing", "about", "head"))
    text = rng.choice(ON_FUNCTIONS if kind == "about" else (*ON_NAMES, *ON_FUNCTIONS)).replace("{}", rng.choice(names))
    while "<name>" in text:
        text = text.replace("<name>", rng.choice(used), 1)
    comment = f"# {text.replace('{{', '{').replace('}}', '}')}"
    if kind == "trailing":
        at = (target.end_lineno or target.lineno) - 1
        line = lines[at]
        body = line.rstrip("\r\n")
        if "#" not in body and not body.endswith("\\"):
            lines[at] = f"{body}  {comment}{line[len(body) :]}"
            return
    node: ast.stmt = {"about": function, "head": function.body[0]}.get(kind, target)
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    lines.insert(first - 1, f"{indent_of(lines[first - 1])}{comment}{newline}")


def examine(tally: Tally, name: str, data: bytes) -> None:
    """Expand one file and hold it to the promises."""
    tally.files.add(name)
    outcome = JOB.process(name, data)
    errors = [finding for finding in outcome.report.findings if finding.severity == "error"]
    if errors:
        tally.refused[errors[0].code] += 1
        if errors[0].code in ("unproven", "pattern-defect"):
            tally.failures.append(f"{name}:{errors[0].line}: {errors[0].message}")
        return
    if outcome.new is None:
        tally.refused[outcome.report.findings[0].code if outcome.report.findings else "no site"] += 1
        return
    tally.expanded += 1
    tally.texts.setdefault(name, []).append(outcome.new)
    stripped = strip_bytes(name, outcome.new, MARKS, Options())
    if stripped.text is None or read_source(outcome.new).encode(stripped.text) != data:
        tally.failures.append(f"{name}: stripping does not give the original bytes")


def same_names(tally: Tally, folder: Path) -> int:
    """Ruff finds nothing wrong with the names of an expanded text that it did not find in its file; how many texts."""
    texts = [(name, text) for name, found in sorted(tally.texts.items()) for text in found]
    # A file that writes to its namespace binds names that no tool can read, and the expander does not pretend to.
    texts = [(name, text) for name, text in texts if not _WRITES.search(text)]
    for number, (name, text) in enumerate(texts):
        (folder / f"{number}.py").write_bytes(text)
        (folder / f"{number}_before.py").write_bytes(Path(name).read_bytes())
    ruff = str(Path(sys.executable).parent / "ruff")
    command = [ruff, "check", "--isolated", "--no-cache", "--select", "F821,F811,F823", "--output-format", "json", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found: dict[str, Counter[str]] = {}
    for finding in json.loads(done.stdout):
        # Lines differ, so a finding is known by its text without them.
        said = re.sub(r"line \d+", "line", f"{finding['code']} {finding['message']}")
        found.setdefault(Path(finding["filename"]).stem, Counter())[said] += 1
    for number, (name, _) in enumerate(texts):
        new = found.get(str(number), Counter()) - found.get(f"{number}_before", Counter())
        if new:
            tally.failures.append(f"{name}: text {number}: {dict(new)}")
    return len(texts)


def still_fresh(tally: Tally, name: str, formatted: bytes) -> None:
    """After a formatter, each block has to be FRESH."""
    outcome = JOB.process(name, formatted)
    if not outcome.report.clean or outcome.new is not None:
        sites = [f"{site.state.value} {site.what}" for site in outcome.report.sites if site.state.value != "FRESH"]
        problems = [finding.message for finding in outcome.report.findings]
        tally.failures.append(f"{name}: after formatting: {sites or problems}")


def fuzz(seed: int, count: int, limit: int, per_file: int = 3, names: Sequence[Path] | None = None) -> Tally:
    """Make and examine `count` insertions."""
    rng = random.Random(seed)
    files = list(names or real_files(limit))
    rng.shuffle(files)
    tally, done = Tally(), 0
    while done < count:
        for path in files:
            for data in insertions(rng, path.read_bytes(), min(per_file, count - done)):
                examine(tally, str(path), data)
                done += 1
            if done >= count:
                break
    return tally
