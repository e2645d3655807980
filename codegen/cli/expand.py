"""`codegen expand`: turn annotations into code, check that they are, or take the code out again."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from codegen.diagnostics import FORMATS, Finding, UsageError, exit_status, render, summary

if TYPE_CHECKING:
    from codegen.expand.model import Outcome


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add this module's commands."""
    parser = subparsers.add_parser("expand", help="expand VAL and AST annotations into code", description=__doc__)
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, folders, a design document; - reads stdin")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="write nothing; exit 1 unless all sites are FRESH")
    what.add_argument("--unmanaged", action="store_true", help="list hand-written guards and asserts instead")
    parser.add_argument("--diff", action="store_true", help="write nothing; print what would change")
    parser.add_argument("--strip", action="store_true", help="take generated code out, keep annotations")
    parser.add_argument("--force", action="store_true", help="also replace edited blocks, between their marks")
    parser.add_argument("--adopt", action="store_true", help="take equivalent hand-written checks under management")
    parser.add_argument("--extract", action="store_true", help="make functions of checks of more than 10 lines")
    parser.add_argument(
        "--suggest", action="store_true", help="propose what annotations that cannot be expanded probably mean"
    )
    parser.add_argument(
        "--accept", metavar="all|LINES", help="with --suggest: write the proposals, all or those on these lines (12,40)"
    )
    parser.add_argument("--strict", action="store_true", help="warnings fail, too")
    parser.add_argument("--section", metavar="ID", help="of a design document: preview only this section")
    parser.add_argument("--index", action="store_true", help="of a design document: list its patterns")
    parser.add_argument("--exclude", action="append", default=[], metavar="GLOB", help="skip matching paths")
    parser.add_argument("--no-cache", action="store_true", help="neither read nor write .codegen_cache")
    parser.add_argument("--no-prefilter", action="store_true", help="analyse files without any mark, too")
    parser.add_argument("--format", choices=FORMATS, default="text", help="form of the findings on standard output")
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="same as --format json")
    parser.add_argument("--stdin-filename", metavar="NAME", help="what to call standard input")
    parser.add_argument("--quiet", action="store_true", help="no summary on standard error")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    _consistent(args)
    documents = [path for path in args.paths if path.endswith(".md")]
    if documents:
        if len(documents) < len(args.paths):
            raise UsageError("design documents and Python files together; run the command for each kind")
        return _preview(args)
    if args.section or args.index:
        raise UsageError("--section and --index go with a design document, DOC.md")
    if args.suggest:
        return _suggest(args)
    return _unmanaged(args) if args.unmanaged else _expand(args)


def _consistent(args: argparse.Namespace) -> None:
    if args.stdin_filename and args.paths != ["-"]:
        raise UsageError("--stdin-filename goes with - as the only path")
    if "-" in args.paths and len(args.paths) > 1:
        raise UsageError("- has to be the only path")
    if args.accept is not None and not args.suggest:
        raise UsageError("--accept goes with --suggest")
    if args.suggest and (args.strip or args.adopt or args.unmanaged or "-" in args.paths):
        raise UsageError("--suggest goes with files and folders, and with none of --strip, --adopt, --unmanaged")
    if args.strip and (args.adopt or args.extract):
        raise UsageError("--strip takes code out; --adopt and --extract put code in")


def _expand(args: argparse.Namespace) -> int:
    from codegen.expand.driver.request import Request, execute

    request = Request(
        paths=tuple(args.paths),
        check=args.check,
        diff=args.diff,
        strip=args.strip,
        force=args.force,
        adopt=args.adopt,
        extract=args.extract,
        exclude=tuple(args.exclude),
        stdin_filename=args.stdin_filename or "<stdin>",
        use_cache=not args.no_cache,
        prefilter=not args.no_prefilter,
    )
    text_out = args.diff or (args.paths == ["-"] and not args.check)
    stream = sys.stderr if text_out else sys.stdout
    findings: list[Finding] = []
    sites = changed = 0
    for outcome in execute(request):
        found = request.findings_of(outcome.report)
        findings.extend(found)
        sites += len(outcome.report.sites) + outcome.report.known_sites
        if outcome.new is not None:
            changed += outcome.new != outcome.old
            _print_text(args, outcome)
        if args.format == "text":
            stream.write(render(found))
    if args.format != "text":
        stream.write(render(findings, args.format))
    if not args.quiet:
        verb = "would change" if args.check or args.diff else "changed"
        counts = f"{sites} site{'s' * (sites != 1)}, {changed} file{'s' * (changed != 1)} {verb}"
        print(f"{counts}, {summary(findings)}", file=sys.stderr)
    return exit_status(findings, args.strict)


def _suggest(args: argparse.Namespace) -> int:
    from codegen.expand.driver.request import suggestions

    lines = _accepted(args)
    write = args.accept is not None and not (args.check or args.diff)
    findings: list[Finding] = []
    written = 0
    for found, accepted in suggestions(tuple(args.paths), tuple(args.exclude), lines, write):
        written += accepted
        findings += [each.finding() for each in found]
    sys.stdout.write(render(findings, args.format))
    if not args.quiet:
        print(f"{len(findings)} proposals, {written} written", file=sys.stderr)
    return 1 if written < len(findings) else 0


def _accepted(args: argparse.Namespace) -> frozenset[int] | None:
    """The lines whose proposals are accepted; None for all of them."""
    if args.accept in (None, "all"):
        return None
    if len(args.paths) > 1 or not all(part.strip().isdigit() for part in args.accept.split(",")):
        raise UsageError(f"--accept {args.accept}: give all, or the line numbers of one file, such as 12,40")
    return frozenset(int(part) for part in args.accept.split(","))


def _print_text(args: argparse.Namespace, outcome: Outcome) -> None:
    """The diff, or the new text of standard input, on standard output."""
    from codegen.expand.driver.request import unified_diff

    assert outcome.new is not None
    if args.diff:
        sys.stdout.write(unified_diff(outcome))
    elif args.paths == ["-"] and not args.check:
        sys.stdout.flush()
        sys.stdout.buffer.write(outcome.new)
        sys.stdout.buffer.flush()


def _unmanaged(args: argparse.Namespace) -> int:
    from pathlib import Path

    from codegen.expand.judging.unmanaged import find_unmanaged

    findings = [found for path in args.paths for found in find_unmanaged(Path(path))]
    sys.stdout.write(render(findings, args.format))
    if not args.quiet:
        print(summary(findings), file=sys.stderr)
    return exit_status(findings)


def _preview(args: argparse.Namespace) -> int:
    from pathlib import Path

    from codegen.expand.driver.documents import pattern_index, preview

    findings: list[Finding] = []
    for path in map(Path, args.paths):
        shown = pattern_index(path) if args.index else preview(path, args.section)
        sys.stdout.write(shown.text)
        findings.extend(shown.findings)
    sys.stderr.write(render(findings, args.format))
    if not args.quiet:
        print(summary(findings), file=sys.stderr)
    return exit_status(findings)
