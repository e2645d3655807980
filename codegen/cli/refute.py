"""`codegen refute`: search annotated functions for inputs that break their claims."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from codegen.diagnostics import FORMATS, exit_status, render


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add this module's commands."""
    parser = subparsers.add_parser(
        "refute",
        help="search for inputs that break the claims of AST annotations",
        description="Search annotated functions for inputs that break their AST claims. Imports and runs the modules. "
        "Needs the extra `refute`.",
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files and folders")
    parser.add_argument("--seconds", type=float, default=None, metavar="N", help="longest search of one function")
    parser.add_argument("--iterations", type=int, default=None, metavar="N", help="most paths of one function")
    parser.add_argument("--json", action="store_true", help="every function and its outcome, for machines")
    parser.add_argument("--format", choices=FORMATS, default="text", help="of the findings")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Search, print what was found; exit 1 if a claim is broken."""
    from codegen.diagnostics import UsageError
    from codegen.refute.search import ITERATIONS, SECONDS, refute

    seconds = SECONDS if args.seconds is None else args.seconds
    iterations = ITERATIONS if args.iterations is None else args.iterations
    if not 0 < seconds <= 3600:
        raise UsageError(f"--seconds is {seconds:g}; give a number above 0, at most 3600")
    if iterations < 1:
        raise UsageError(f"--iterations is {iterations}; give at least 1")
    results = []
    for result in refute(args.paths, seconds, iterations):
        results.append(result)
        if not args.json and args.format == "text" and result.outcome != "none":
            print(render([result.finding()]), end="", flush=True)
    findings = [result.finding() for result in results if result.outcome != "none"]
    if args.json:
        print(json.dumps([asdict(result) for result in results], indent=2, ensure_ascii=False))
    elif args.format != "text":
        print(render(findings, args.format), end="")
    counts = {outcome: sum(r.outcome == outcome for r in results) for outcome in ("broken", "none", "unsearched")}
    print(
        f"{len(results)} functions with claims: {counts['broken']} broken, {counts['none']} without a finding, "
        f"{counts['unsearched']} not searched",
        file=sys.stderr,
    )
    return exit_status(findings)
