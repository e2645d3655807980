"""Cost, fidelity and worth of `codegen expand`.

    python bench/expand.py speed        cold and warm --check of a real tree, against a floor; 10 times the tree; memory
    python bench/expand.py fidelity     every file of the standard library and site-packages, forced all the way
    python bench/expand.py fuzz         random insertions into real files: refusals by reason, failures
    python bench/expand.py decorators   cost of a generated check, against hand-written code and four decorators
    python bench/expand.py refute       twenty wrong claims and twenty right ones: found, falsely found, seconds
    python bench/expand.py scale        4,000 annotated functions in one file against 400, per function
    python bench/expand.py size         generated share of the core; --against REF: checks that this commit had, too
    python bench/expand.py all [--check]

The floor of `speed` is a fresh process that imports libcst, reads every file and parses the annotated ones with it.
Seconds are of processor time (user and system, of the whole child process), so that neighbours do not count; each
is the least of several runs. Without a word: all of them. With --check: exit 1 when a bound of the table is not kept.
The last line is JSON.
"""

from __future__ import annotations

import argparse
import ast
import gc
import os
import random
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from _closing import closing_line  # noqa: E402

from codegen.cli import COLLECT_EVERY  # noqa: E402
from codegen.expand.driver.expansion import expand_file  # noqa: E402
from codegen.expand.reading.file import read_file  # noqa: E402
from codegen.expand.reading.files import find_files  # noqa: E402
from codegen.expand.reading.parsing import parse_python, same_tree  # noqa: E402
from codegen.expand.reading.source import read_source  # noqa: E402
from tests.codegen.expand.fuzz import JOB, fuzz, insertions  # noqa: E402

FILES, BYTES, SHARE = 1_000, 10_000_000, 100
SEED = 11
COLD, WARM_SECONDS, MEMORY_MB, SCALE = 1.7, 0.25, 250, 10.0
REFUTE_SECONDS, PER_FUNCTION = 60.0, 1.3
SHARE_OF_CORE = 8.0
CHOICES = ("size", "speed", "scale", "fidelity", "fuzz", "decorators", "refute", "all")
FLOOR = """
import sys, libcst
for line in open(sys.argv[1]):
    marked, path = line.rstrip("\\n").split(" ", 1)
    data = open(path, "rb").read()
    if marked == "1":
        libcst.parse_module(data)
"""


class Bounds:
    """Rows of results, and whether each bound was kept."""

    def __init__(self) -> None:
        self.kept = True
        self.figures: dict[str, str] = {}

    def row(self, name: str, value: str, bound: str = "", kept: bool = True) -> None:
        """Print one row."""
        self.kept = self.kept and kept
        self.figures[name] = value.strip()
        print(f"{name:<58} {value:>16}  {bound}{'' if kept else '  NOT KEPT'}", flush=True)


def library_files() -> Iterator[str]:
    """Python files of the standard library and of the installed packages."""
    folders = dict.fromkeys([sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")])
    seen: set[str] = set()
    for path in find_files(list(folders)):
        real = os.path.realpath(path)
        if real not in seen:
            seen.add(real)
            yield path


def child(command: list[str], cwd: Path, runs: int = 3) -> tuple[float, float, float]:
    """Least processor seconds, least wall seconds, peak memory in MB of a command. Raises when it fails."""
    best, wall, peak = float("inf"), float("inf"), 0.0
    for _ in range(runs):
        begin = time.perf_counter()
        process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} gave {process.returncode}:\n{said.decode()}")
        best = min(best, usage.ru_utime + usage.ru_stime)
        wall = min(wall, time.perf_counter() - begin)
        peak = max(peak, usage.ru_maxrss / 1024)
    return best, wall, peak


def make_tree(folder: Path, copies: int) -> tuple[int, int, int]:
    """Real files, one in a hundred annotated and expanded; returns files, bytes and annotated files.

    The choice of files is fixed: enough for the stated size, so with a typical mean size. No two copies of a file are
    equal, since equal contents are judged once.
    """
    rng = random.Random(7)
    found = [path for path in library_files() if 2_000 < os.path.getsize(path) < 60_000]
    rng.shuffle(found)
    files = total = marked = due = 0
    listing = []
    for path in found:
        data = Path(path).read_bytes()
        if b"VAL" in data or b"AST" in data:
            continue
        due += files % SHARE == 0
        annotated = _expanded(rng, data) if due else None
        due -= bool(annotated)
        for copy in range(copies):
            target = folder / f"part_{copy}_{files // 100}" / f"module_{files}.py"
            target.parent.mkdir(exist_ok=True)
            target.write_bytes((annotated or data) + f"\n# copy {copy}\n".encode())
            listing.append(f"{int(bool(annotated))} {target}\n")
            total += len(data)
        files += 1
        marked += bool(annotated)
        if files >= FILES and total >= BYTES * copies:
            break
    (folder.parent / f"{folder.name}.txt").write_text("".join(listing))
    return files * copies, total, marked * copies


def _expanded(rng: random.Random, data: bytes) -> bytes | None:
    for text in insertions(rng, data, 20):
        outcome = JOB.process("a.py", text)
        if outcome.new is not None and not outcome.report.findings:
            return outcome.new
    return None


def speed(bounds: Bounds) -> None:
    """Cold and warm checks of one tree and of ten."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "pyproject.toml").write_text("[project]\nname = 'tree'\n")
        check = [sys.executable, "-m", "codegen", "expand", "--check", "--quiet"]
        os.environ["PYTHONPATH"] = str(ROOT)
        for folder, copies in (("tree", 1), ("ten", 10)):
            (place / folder).mkdir()
            files, total, marked = make_tree(place / folder, copies)
            bounds.row(f"{folder}: files, MB, annotated", f"{files}, {total / 1e6:.1f}, {marked}")
        bare, _, _ = child([sys.executable, "-c", "pass"], place)
        floor, floor_wall, _ = child([sys.executable, "-c", FLOOR, "tree.txt"], place)
        cold, cold_wall, peak = child([*check, "--no-cache", "tree"], place)
        child([*check, "tree"], place, 1)
        warm, warm_wall, _ = child([*check, "tree"], place)
        loaded = subprocess.run(
            [sys.executable, "-X", "importtime", *check[1:], "tree"],
            cwd=place,
            capture_output=True,
            text=True,
            check=True,
        ).stderr
        ten, _, ten_peak = child([*check, "--no-cache", "ten"], place, 1)
        bounds.row("a bare interpreter, s", f"{bare:.3f}")
        bounds.row("floor, s (wall)", f"{floor:.3f} ({floor_wall:.3f})")
        bounds.row("cold check, s (wall)", f"{cold:.3f} ({cold_wall:.3f})")
        bounds.row("cold check / floor", f"{cold / floor:.2f}", f"<= {COLD}", cold / floor <= COLD)
        bounds.row("warm check, s (wall)", f"{warm:.3f} ({warm_wall:.3f})", f"<= {WARM_SECONDS}", warm <= WARM_SECONDS)
        heavy = [name for name in ("libcst", "jinja2", "yaml", "markdown_it") if f" {name}\n" in loaded]
        bounds.row("warm check: heavy modules imported", ", ".join(heavy) or "none", "none", not heavy)
        bounds.row("ten trees / one tree, cold", f"{ten / cold:.2f}", f"<= {SCALE}", ten / cold <= SCALE)
        most = max(peak, ten_peak)
        bounds.row("peak memory, MB", f"{most:.0f}", f"< {MEMORY_MB}", most < MEMORY_MB)


def fidelity(bounds: Bounds, limit: int | None) -> None:
    """Send every file through locate, plan, splice and verify; no byte may change."""
    files = size = changed = 0
    refused: dict[str, int] = {}
    for path in library_files():
        if limit is not None and files >= limit:
            break
        data = Path(path).read_bytes()
        files += 1
        size += len(data)
        done = expand_file(path, data, JOB.library, JOB.marks, JOB.options, unmarked=True)
        if done.report.text is None:
            code = done.report.findings[0].code
            refused[code] = refused.get(code, 0) + 1
            continue
        new = read_source(data).encode(done.report.text)
        assert done.reading is not None
        if new != data or not same_tree(parse_python(done.report.text), done.reading.base_tree):
            changed += 1
            print(f"changed: {path}")
    bounds.row("fidelity: files, MB", f"{files}, {size / 1e6:.0f}")
    bounds.row("fidelity: refused by reason", str(refused or "none"))
    bounds.row("fidelity: files with a changed byte", str(changed), "= 0", changed == 0)


def insert(bounds: Bounds, count: int) -> None:
    """Random insertions; see tests/codegen/expand/test_fuzz.py for the formatters."""
    tally = fuzz(seed=SEED, count=count, limit=60_000)
    for failure in tally.failures[:20]:
        print(failure)
    bounds.row("fuzz", "")
    print(f"  {tally.summary()}")
    bounds.row("fuzz: failures", str(len(tally.failures)), "= 0", not tally.failures)


CHECKED = """
def generated(rank: int) -> int:
    # VAL: VAL_INT_RANGE(rank, min=0, max=7)
    # AST: AST_ENSURES(result > rank)
    return rank + 1
"""
COLUMNS = ("bare", "hand-written", "generated", "icontract", "deal", "beartype", "pydantic")


def decorators(bounds: Bounds) -> None:
    """One range check of an argument and one claim about the result, where the tool has such a thing."""
    functions = _functions()
    seconds = _per_call(functions)
    base = seconds["hand-written"]
    for name in COLUMNS:
        if name in seconds:
            extra = (seconds[name] - seconds["bare"]) / max(base - seconds["bare"], 1e-12)
            value = f"{seconds[name] * 1e9:.0f} ns"
            bounds.row(
                f"per call: {name}", value, f"{seconds[name] / base:.2f} x hand-written; check alone {extra:.1f} x"
            )
        else:
            bounds.row(f"per call: {name}", "not installed")


def _functions() -> dict[str, Callable[[int], int]]:
    outcome = JOB.process("bench.py", CHECKED.encode())
    assert outcome.new is not None
    space: dict[str, Callable[[int], int]] = {}
    exec(outcome.new.decode(), space)

    def bare(rank: int) -> int:
        return rank + 1

    def hand(rank: int) -> int:
        if not 0 <= rank <= 7:
            raise ValueError(f"hand: rank must lie in [0, 7], got {rank!r}")
        result = rank + 1
        assert result > rank, f"Post-condition: result > rank, got result={result!r}, rank={rank!r}"
        return result

    found = {"bare": bare, "hand-written": hand, "generated": space["generated"]}
    for name, make in (("icontract", _icontract), ("deal", _deal), ("beartype", _beartype), ("pydantic", _pydantic)):
        try:
            found[name] = make(bare)
        except ImportError:
            print(f"{name} is not installed", file=sys.stderr)
    return found


def _icontract(bare: Callable[[int], int]) -> Callable[[int], int]:
    import icontract

    claimed = icontract.ensure(lambda rank, result: result > rank)(bare)
    return icontract.require(lambda rank: 0 <= rank <= 7)(claimed)


def _deal(bare: Callable[[int], int]) -> Callable[[int], int]:
    import deal

    return deal.pre(lambda rank: 0 <= rank <= 7)(deal.ensure(lambda rank, result: result > rank)(bare))


def _beartype(bare: Callable[[int], int]) -> Callable[[int], int]:
    from typing import Annotated

    from beartype import beartype
    from beartype.vale import Is

    def checked(rank: Annotated[int, Is[lambda rank: 0 <= rank <= 7]]) -> Annotated[int, Is[lambda result: result > 0]]:
        return rank + 1

    checked.__annotations__ = {
        "rank": Annotated[int, Is[lambda rank: 0 <= rank <= 7]],
        "return": Annotated[int, Is[lambda result: result > 0]],
    }
    return beartype(checked)


def _pydantic(bare: Callable[[int], int]) -> Callable[[int], int]:
    from typing import Annotated

    from pydantic import Field, validate_call

    def checked(rank: int) -> int:
        return rank + 1

    checked.__annotations__ = {"rank": Annotated[int, Field(ge=0, le=7)], "return": Annotated[int, Field(gt=0)]}
    return validate_call(validate_return=True)(checked)


def _per_call(functions: dict[str, Callable[[int], int]], calls: int = 100_000) -> dict[str, float]:
    """Processor seconds per call, the least of ten rounds; each round runs all functions, so that they share noise."""
    best = dict.fromkeys(functions, float("inf"))
    gc.disable()
    for _ in range(10):
        for name, function in functions.items():
            begin = time.process_time()
            for _ in range(calls // 8):
                for rank in range(8):
                    function(rank)
            best[name] = min(best[name], time.process_time() - begin)
    gc.enable()
    return {name: seconds / calls for name, seconds in best.items()}


def refuted(bounds: Bounds) -> None:
    """The planted claims of the tests: what the search finds, and its wall seconds, which its budgets are made of."""
    from codegen.refute.search import refute
    from tests.codegen.refute.planted import HEAD, RIGHT, WRONG

    with tempfile.TemporaryDirectory() as name:
        files = {"wrong": WRONG, "right": RIGHT}
        for each, functions in files.items():
            Path(name, f"{each}.py").write_text(HEAD + "\n\n".join(functions.values()), encoding="utf-8")
        begin = time.perf_counter()
        found = {each: sum(r.outcome == "broken" for r in refute([f"{name}/{each}.py"])) for each in files}
        seconds = time.perf_counter() - begin
    bounds.row("refute: wrong claims found", f"{found['wrong']} of {len(WRONG)}", "all", found["wrong"] == len(WRONG))
    bounds.row("refute: right claims reported", f"{found['right']} of {len(RIGHT)}", "= 0", found["right"] == 0)
    bounds.row("refute: seconds (wall)", f"{seconds:.1f}", f"<= {REFUTE_SECONDS}", seconds <= REFUTE_SECONDS)


def checks_of(text: str) -> tuple[list[str], int]:
    """What the annotations of a text check, each rule of AST_RULES by itself, and how many lines are generated."""
    reading = read_file(read_source(text.encode()), JOB.marks)
    if reading is None:
        return [], 0
    found: list[str] = []
    for opener in reading.openers:
        for item in opener.notation.items if opener.notation else ():
            if item.id == "AST_RULES":
                pairs = ast.parse(item.positional[0], mode="eval").body.elts
                found += [f"{ast.unparse(pair.elts[1])} - {pair.elts[0].value}" for pair in pairs]
            elif item.id == "AST_INVARIANT":
                claim = ast.unparse(ast.parse(item.positional[0], mode="eval"))
                found.append(f"{claim} - {opener.notation.note}")
            else:
                found.append(f"{item.source} - {opener.notation.note}")
    return found, sum(block.last - block.first + 1 for block in reading.all_blocks)


def size(bounds: Bounds, against: str | None) -> None:
    """The generated share of the core, and the checks that an earlier commit had."""
    lines = generated = 0
    now: Counter[str] = Counter()
    before: Counter[str] = Counter()
    for path in sorted((ROOT / "roll_ts" / "core").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found, made = checks_of(text)
        lines, generated = lines + text.count("\n"), generated + made
        now.update(found)
        if against:
            name = f"{against}:{path.relative_to(ROOT).as_posix()}"
            shown = subprocess.run(["git", "show", name], cwd=ROOT, capture_output=True, text=True, check=False)
            before.update(checks_of(shown.stdout)[0] if shown.returncode == 0 else [])
    if against and not before:
        raise SystemExit(f"--against {against}: no such commit, or no checks in its roll_ts/core")
    share = 100 * generated / lines
    bounds.row("core: lines, generated, checks", f"{lines}, {generated}, {now.total()}")
    bounds.row("core: generated share, %", f"{share:.1f}", f"<= {SHARE_OF_CORE}", share <= SHARE_OF_CORE)
    if against:
        lost = before - now
        for check in lost:
            print(f"  no longer checked: {check}")
        bounds.row(f"core: checks of {against} that are gone", str(lost.total()), "= 0", not lost)


def annotated(count: int) -> bytes:
    """A file of that many functions with three annotations each."""
    here = (
        "def work_{n}(ranks: list[int], limit: int) -> int:\n"
        "    # VAL: VAL_NON_EMPTY(ranks)\n"
        "    # VAL: VAL_POSITIVE(limit)\n"
        "    total = sum(ranks) % limit\n"
        "    # AST: AST_POSTCONDITION(0 <= total < limit)\n"
        "    return total\n\n\n"
    )
    remote = (
        "# AST: AST_ENSURES(len(result) <= old(limit))\n"
        "def rest_{n}(\n"
        "    ranks: list[int],  # VAL: VAL_NO_DUPLICATES\n"
        "    limit: int,  # VAL: VAL_INT_RANGE(min=0, max=work_0([1], 9))\n"
        ") -> list[int]:\n"
        "    return ranks[:limit]\n\n\n"
    )
    return "".join((here, remote)[n % 2].replace("{n}", str(n)) for n in range(count)).encode()


def scale(bounds: Bounds) -> None:
    """Expansion and check of large files: seconds of processor time per function."""
    per: dict[int, tuple[float, float]] = {}
    gc.set_threshold(COLLECT_EVERY)  # As the command line does.
    for count in (400, 4_000):
        data = annotated(count)
        rounds = 2
        written, write = _least(lambda data=data: JOB.process("m.py", data).new, rounds)
        assert written is not None
        _, check = _least(lambda data=written: expand_file("m.py", data, JOB.library, JOB.marks, JOB.options), rounds)
        per[count] = (write / count, check / count)
        bounds.row(
            f"{count} functions: ms each, written and checked", f"{write / count * 1e3:.2f}, {check / count * 1e3:.2f}"
        )
    for at, what in enumerate(("written", "checked")):
        ratio = per[4_000][at] / per[400][at]
        bounds.row(f"4,000 functions / 400, each {what}", f"{ratio:.2f}", f"<= {PER_FUNCTION}", ratio <= PER_FUNCTION)


def _least(call: Callable[[], object], rounds: int) -> tuple[Any, float]:
    """The call's value, and its least processor seconds."""
    value, best = None, float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        value = call()
        best = min(best, time.process_time() - begin)
    return value, best


def main() -> int:
    """Run the chosen measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="all", choices=CHOICES)
    parser.add_argument("--files", type=int, metavar="N", help="fidelity: only the first N files")
    parser.add_argument("--insertions", type=int, default=300, metavar="N", help="fuzz: how many (default 300)")
    parser.add_argument("--against", metavar="REF", help="size: the commit whose checks have to be there still")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bound is not kept")
    args = parser.parse_args()
    bounds = Bounds()
    if args.what in ("speed", "all"):
        speed(bounds)
    if args.what in ("size", "all"):
        size(bounds, args.against)
    if args.what in ("scale", "all"):
        scale(bounds)
    if args.what in ("refute", "all"):
        refuted(bounds)
    if args.what in ("decorators", "all"):
        decorators(bounds)
    if args.what in ("fidelity", "all"):
        fidelity(bounds, args.files)
    if args.what in ("fuzz", "all"):
        insert(bounds, args.insertions)
    others = ("libcst", "icontract", "deal", "beartype", "pydantic")
    print(closing_line("expand", bounds.figures | {"kept": bounds.kept}, [SEED], *others))
    return int(args.check and not bounds.kept)


if __name__ == "__main__":
    sys.exit(main())
