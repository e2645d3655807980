"""How long the tools take to read, judge and plan a design document, and to hold ours against the code.

    python bench/documents.py [--methods 500 1000 2000 5000] [--seed 1] [--check]

First lint + status + plan of one generated document of about 20 lines a method, in one process. `floor` is what nobody
can go below who reads the same text with the same libraries: markdown-it-py over the document and `ast` over its
fences. `times` is the total against it, and `ratio` is `times` against the first row: 1.0 is linear, also on a machine
that grows slower meanwhile.
Then drift of this repository's own documents, against reading and `ast`-parsing the same files, and each `codegen`
command of `make lint`, with `codegen status`, as a process of its own, against `codegen --help`.

Seconds are of processor time (one thread, no waiting), so that neighbours do not count; each is the least of several
runs. With --check: exit 1 when the document of 500 methods takes a second or more, a ratio is over 1.5, drift or lint
takes three seconds or more, status half a second, or the commands of `make lint` twenty. The last line is one JSON
object.
"""

from __future__ import annotations

import argparse
import ast
import gc
import itertools
import random
import resource
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from _closing import closing_line
from markdown_it import MarkdownIt

from codegen.cli import COLLECT_EVERY
from codegen.cli.annotations import check_annotations
from codegen.document.blocks import _piece
from codegen.document.definitions import _read_code
from codegen.document.digests import normal_code
from codegen.document.lint import lint
from codegen.document.locate import find_documents
from codegen.document.parse import parse_document
from codegen.document.references import References
from codegen.drift.code import Code
from codegen.drift.report import drift
from codegen.expand.reading.marks import Marks
from codegen.patterns import load_library
from codegen.plan.merge import merge
from codegen.plan.progress import progress
from codegen.plan.schedule import schedule

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = load_library(None)
MARKS = Marks(LIBRARY.tags())
METHODS_A_MODULE = 12
LIMIT_METHODS = 500
LIMIT_SECONDS = 1.0
LIMIT_RATIO = 1.5
LIMIT_DRIFT = 3.0
LIMITS_OF_COMMANDS = {"status": 0.5, "lint": 3.0, "drift": 3.0}
LIMIT_COMMANDS = 20.0
PARTS = ("read", "lint", "status", "plan")


def synthetic(methods: int, seed: int) -> str:
    """A document with this many entries in Section 5 and no plan; each needs up to three earlier ones."""
    chance = random.Random(seed)
    lines = [
        "---",
        "id: synthetic",
        "title: Synthetic",
        "version: 0.1",
        "status: draft",
        "roots: [pkg]",
        "---",
        "# Synthetic",
        "",
        "## Version history",
        "",
        "| Version | Date | Change |",
        "|---|---|---|",
        "| 0.1 | 2026-01-01 | first |",
        "",
        "## 1. Goals and scope",
        "",
        "- G-1: be large",
        "",
        "## 2. Architecture and integration",
        "",
        "Nothing is integrated.",
        "",
        "## 3. Decisions",
        "",
    ]
    modules = -(-methods // METHODS_A_MODULE)
    for number in range(1, modules + 1):
        lines += [
            f"### D-{number}: Module {number} exists",
            "",
            "- status: accepted",
            "- drivers: size",
            "- options: none; one",
            "- outcome: one",
            "- consequences: more lines",
            f"- affects: 5.{number}",
            "- confirmation: the bench",
            "",
        ]
    lines += ["## 4. Flows, states and failures", "", "None.", "", "## 5. APIs and implementation", ""]
    for index in range(methods):
        module, place = divmod(index, METHODS_A_MODULE)
        if place == 0:
            lines += [f"### 5.{module + 1} `pkg.part{module // 10}.m{module}`", ""]
        lines += _entry(index, module, place, chance)
    return "\n".join(lines) + "\n"


def _entry(index: int, module: int, place: int, chance: random.Random) -> list[str]:
    needs = sorted({index - chance.randint(1, 60) for _ in range(3)} - set(range(-60, 0)))
    deps = ", ".join(f"5.{n // METHODS_A_MODULE + 1}.{n % METHODS_A_MODULE + 1}" for n in needs) or "-"
    called = "".join(f"    f{need}(value)\n" for need in needs).rstrip("\n")
    return [
        f"#### 5.{module + 1}.{place + 1} `f{index}`",
        "",
        f"Function number {index}. It adds what those before it give.",
        "",
        f"- deps: {deps}",
        f"- decisions: D-{module + 1}",
        f"- errors: ValueError when the value is below {index}",
        f"- tests: tests/pkg/part{module // 10}/test_m{module}.py",
        "",
        "```python",
        f"def f{index}(value: int, *, scale: float = 1.0) -> int:",
        f"    # VAL: VAL_INT_RANGE(value, min={index})",
        *filter(None, [called]),
        "    total = int(value * scale)",
        f"    # AST: AST_POSTCONDITION(total >= {index})",
        "    return total",
        "```",
        "",
    ]


def measure(methods: int, seed: int) -> tuple[int, dict[str, float]]:
    """Lines of the document and seconds of each part. The plan is merged, and read again, as the command does."""
    text = synthetic(methods, seed)
    forget()
    seconds: dict[str, float] = {}

    def timed(name: str, started: float) -> float:
        now = time.process_time()
        seconds[name] = now - started
        return now

    at = time.process_time()
    document = parse_document(text, Path("synthetic.md"))
    references = References(document)
    at = timed("read", at)
    findings = lint(document, None, lambda document: check_annotations(document, LIBRARY, MARKS), references)
    at = timed("lint", at)
    progress(document)
    at = timed("status", at)
    planned = schedule(document, 5, lambda module: module.replace(".", "/") + ".py", references)
    merge(document, planned)
    timed("plan", at)
    errors = [finding for finding in findings if finding.severity == "error" and finding.code != "DOC005"]
    if errors or not planned.new:
        raise SystemExit(f"the synthetic document is not clean: {errors[:3]}")
    fences = [textwrap.dedent(fence.code) for fence in document.fences]
    at = time.process_time()
    MarkdownIt("commonmark").enable("table").parse(text)
    for fence in fences:
        ast.parse(fence)
    timed("floor", at)
    return len(document.lines), seconds


def forget() -> None:
    """What one run has read is not kept for the next."""
    for cached in (_piece, _read_code, normal_code):
        cached.cache_clear()
    gc.collect()


def least(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: min(run[name] for run in runs) for name in runs[0]}


def measure_drift() -> dict[str, float]:
    """Seconds of drift of our own documents, and of reading and parsing the Python files below their roots."""
    forget()
    at = time.process_time()
    code = Code(ROOT)
    documents = find_documents([], ROOT)
    for document in documents:
        drift(document, code)
    taken = time.process_time() - at
    roots = [ROOT / root for document in documents for root in document.front.roots]
    files = {file for root in roots for file in ([root] if root.is_file() else root.rglob("*.py"))}
    at = time.process_time()
    for file in files:
        ast.parse(file.read_bytes())
    return {"drift": taken, "floor": time.process_time() - at, "files": len(files), "documents": len(documents)}


def lint_commands() -> list[list[str]]:
    """The arguments of each `codegen` command of `make lint`."""
    mark = "\t$(PY)/codegen "
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("lint:"))
    rules = itertools.takewhile(lambda line: line.startswith("\t"), lines[start + 1 :])
    return [line.removeprefix(mark).split() for line in rules if line.startswith(mark)]


def processor_seconds(arguments: list[str]) -> float:
    """Processor time of one `codegen` command in a process of its own. What it finds does not matter here."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", "codegen", *arguments], cwd=ROOT, capture_output=True, check=False)
    if done.returncode > 1:
        raise SystemExit(f"codegen {' '.join(arguments)}: exit {done.returncode}: {done.stderr.decode()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_commands() -> dict[str, float]:
    """Seconds of each command, the least of two runs, by its text."""
    wanted = [["--help"], ["status"], *lint_commands()]
    return {" ".join(each): min(processor_seconds(each) for _ in range(2)) for each in wanted}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", type=int, default=[500, 1000, 2000, 5000])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    gc.set_threshold(COLLECT_EVERY)
    measure(50, args.seed)
    print("| methods | lines | read | lint | status | plan | total s | ratio | floor s | times |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    rows: list[dict[str, float]] = []
    missed: list[str] = []
    for methods in args.methods:
        runs = [measure(methods, args.seed) for _ in range(3 if methods > LIMIT_METHODS else 5)]
        best = least([seconds for _, seconds in runs])
        total = sum(best[name] for name in PARTS)
        row = {"methods": methods, "lines": runs[0][0], **best, "total": total, "times": total / best["floor"]}
        row["ratio"] = row["times"] / rows[0]["times"] if rows else 1.0
        rows.append(row)
        parts = " | ".join(f"{best[name]:.3f}" for name in PARTS)
        end = f"{total:.3f} | {row['ratio']:.2f} | {best['floor']:.3f} | {row['times']:.1f}"
        print(f"| {methods} | {row['lines']} | {parts} | {end} |", flush=True)
        if row["ratio"] > LIMIT_RATIO:
            missed.append(f"{methods} methods: ratio {row['ratio']:.2f}, over {LIMIT_RATIO}")
        if methods == LIMIT_METHODS and total >= LIMIT_SECONDS:
            missed.append(f"{methods} methods: {total:.2f} s, not under {LIMIT_SECONDS}")
    own = least([measure_drift() for _ in range(3)])
    times = own["drift"] / own["floor"]
    print("\n| documents | files | drift s | read and parse s | times |\n|---|---|---|---|---|")
    print(f"| {own['documents']} | {own['files']} | {own['drift']:.3f} | {own['floor']:.3f} | {times:.1f} |")
    if own["drift"] >= LIMIT_DRIFT:
        missed.append(f"drift: {own['drift']:.2f} s, not under {LIMIT_DRIFT}")
    commands = measure_commands()
    floor = commands.pop("--help")
    print("\n| command | s | times |\n|---|---|---|")
    for name, seconds in commands.items():
        print(f"| codegen {name} | {seconds:.2f} | {seconds / floor:.1f} |")
        if seconds >= LIMITS_OF_COMMANDS.get(name, LIMIT_COMMANDS):
            missed.append(f"codegen {name}: {seconds:.2f} s, not under {LIMITS_OF_COMMANDS.get(name, LIMIT_COMMANDS)}")
    together = sum(seconds for name, seconds in commands.items() if name != "status")
    print(f"| all of `make lint` | {together:.2f} | {together / floor:.1f} |")
    if together >= LIMIT_COMMANDS:
        missed.append(f"codegen in make lint: {together:.2f} s, not under {LIMIT_COMMANDS}")
    for line in missed:
        print(f"NOT KEPT: {line}")
    figures = {"kept": not missed, "documents": rows, "drift": {**own, "times": times}, "commands": commands}
    print(closing_line("documents", figures, [args.seed], "markdown-it-py", "libcst", "PyYAML"))
    return int(args.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
