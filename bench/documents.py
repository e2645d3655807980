"""How long lint + status + plan take on one design document, in one process.

    python bench/documents.py [--methods 500 1000 2000 5000] [--check]

Seconds are of processor time (one thread, no waiting), so that neighbours do not count.
Each row is one document of about 20 lines a method. `ratio` is seconds a method against the first row: 1.0 is linear.
With --check: exit 1 when the document of 500 methods takes a second or more, or a ratio is over 1.5.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from pathlib import Path

from codegen.cli.annotations import check_annotations
from codegen.document.blocks import _piece
from codegen.document.definitions import _read_code
from codegen.document.lint import lint
from codegen.document.parse import parse_document
from codegen.expand.marks import Marks
from codegen.patterns import load_library
from codegen.plan.merge import merge
from codegen.plan.progress import progress
from codegen.plan.schedule import schedule

LIBRARY = load_library(None)
MARKS = Marks(LIBRARY.tags())
METHODS_A_MODULE = 12
LIMIT_SECONDS = 1.0
LIMIT_RATIO = 1.5


def synthetic(methods: int) -> str:
    """A document with this many entries in Section 5 and no plan; each needs up to three earlier ones."""
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
        lines += _entry(index, module, place)
    return "\n".join(lines) + "\n"


def _entry(index: int, module: int, place: int) -> list[str]:
    needs = sorted({index - step for step in (1, 7, 40) if index - step >= 0})
    deps = ", ".join(f"5.{n // METHODS_A_MODULE + 1}.{n % METHODS_A_MODULE + 1}" for n in needs) or "-"
    called = "".join(f"    f{need}(value)\n" for need in needs).rstrip("\n")
    return [
        f"#### 5.{module + 1}.{place + 1} `f{index}`",
        "",
        f"Function number {index}. It adds what those before it give.",
        "",
        f"- deps: {deps}",
        f"- decisions: D-{module + 1}",
        "- errors: ValueError when the value is negative",
        f"- tests: tests/pkg/part{module // 10}/test_m{module}.py",
        "",
        "```python",
        f"def f{index}(value: int, *, scale: float = 1.0) -> int:",
        "    # VAL: VAL_INT_RANGE(min=0)",
        *filter(None, [called]),
        "    total = int(value * scale)",
        "    # AST: AST_POSTCONDITION(total >= 0)",
        "    return total",
        "```",
        "",
    ]


def measure(methods: int) -> tuple[int, dict[str, float]]:
    """Lines of the document and seconds of each part. The plan is merged, and read again, as the command does."""
    text = synthetic(methods)
    _piece.cache_clear()
    _read_code.cache_clear()
    gc.collect()
    seconds: dict[str, float] = {}

    def timed(name: str, started: float) -> float:
        now = time.process_time()
        seconds[name] = now - started
        return now

    at = time.process_time()
    document = parse_document(text, Path("synthetic.md"))
    at = timed("read", at)
    findings = lint(document, annotations=lambda document: check_annotations(document, LIBRARY, MARKS))
    at = timed("lint", at)
    progress(document)
    at = timed("status", at)
    planned = schedule(document, 5, lambda module: module.replace(".", "/") + ".py")
    merge(document, planned)
    timed("plan", at)
    errors = [finding for finding in findings if finding.severity == "error" and finding.code != "DOC005"]
    if errors or not planned.new:
        raise SystemExit(f"the synthetic document is not clean: {errors[:3]}")
    return len(document.lines), seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", type=int, default=[500, 1000, 2000, 5000])
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    measure(50)
    print("| methods | lines | read | lint | status | plan | total s | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    first = 0.0
    good = True
    for methods in args.methods:
        lines, seconds = min((measure(methods) for _ in range(3)), key=lambda result: sum(result[1].values()))
        total = sum(seconds.values())
        first = first or total / methods
        ratio = total / methods / first
        parts = " | ".join(f"{seconds[name]:.3f}" for name in ("read", "lint", "status", "plan"))
        print(f"| {methods} | {lines} | {parts} | {total:.3f} | {ratio:.2f} |")
        good = good and ratio <= LIMIT_RATIO and (methods > 500 or total < LIMIT_SECONDS)
    return int(args.check and not good)


if __name__ == "__main__":
    sys.exit(main())
