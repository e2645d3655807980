"""`codegen expand`: turn annotations into code, check that they are, or take the code out again."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from codegen.diagnostics import FORMATS, Finding, UsageError, exit_status, render, summary

if TYPE_CHECKING:
    from codegen.expand.run import Outcome


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add this module's commands."""
    parser = subparsers.add_parser("expand", help="expand VAL and AST annotations into code", description=__doc__)
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files and folders; - reads standard input")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 unless all sites are FRESH")
    parser.add_argument("--diff", action="store_true", help="write nothing; print what would change")
    parser.add_argument("--strip", action="store_true", help="take generated code out, keep annotations")
    parser.add_argument("--force", action="store_true", help="also replace edited blocks, between their marks")
    parser.add_argument("--exclude", action="append", default=[], metavar="GLOB", help="skip matching paths")
    parser.add_argument("--format", choices=FORMATS, default="text", help="form of the findings on standard output")
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="same as --format json")
    parser.add_argument("--stdin-filename", metavar="NAME", help="what to call standard input")
    parser.add_argument("--quiet", action="store_true", help="no summary on standard error")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    from codegen.expand.command import Request, execute

    if args.stdin_filename and args.paths != ["-"]:
        raise UsageError("--stdin-filename goes with - as the only path")
    request = Request(
        paths=tuple(args.paths), check=args.check, diff=args.diff, strip=args.strip, force=args.force,
        exclude=tuple(args.exclude), stdin_filename=args.stdin_filename or "<stdin>",
    )  # fmt: skip
    changed = 0
    findings: list[Finding] = []
    sites = 0
    for outcome in execute(request):
        sites += len(outcome.report.sites)
        found = request.findings_of(outcome.report)
        findings.extend(found)
        if outcome.new is not None:
            changed += 1
            _print_text(args, outcome)
        if args.format == "text":
            print(
                render(found),
                end="",
                file=sys.stderr if args.diff or (args.paths == ["-"] and not args.check) else sys.stdout,
            )
    if args.format != "text":
        print(render(findings, args.format), end="", file=sys.stderr if args.diff else sys.stdout)
    if not args.quiet:
        verb = "would change" if args.check or args.diff else "changed"
        print(f"{sites} sites, {changed} files {verb}, {summary(findings)}", file=sys.stderr)
    return exit_status(findings)


def _print_text(args: argparse.Namespace, outcome: Outcome) -> None:
    """The diff, or the new text of standard input, on standard output."""
    from codegen.expand.command import unified_diff

    assert outcome.new is not None
    if args.diff:
        sys.stdout.write(unified_diff(outcome))
    elif args.paths == ["-"] and not args.check:
        sys.stdout.flush()
        sys.stdout.buffer.write(outcome.new)
        sys.stdout.buffer.flush()
