"""`codegen patterns`: list, show, test, extend and document the validation patterns."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from codegen.diagnostics import FORMATS, Finding, UsageError, exit_status, render, summary
from codegen.document.locate import project_root
from codegen.patterns.arguments import signature
from codegen.patterns.files import FOLDER
from codegen.patterns.library import Library, load_library
from codegen.patterns.model import ExampleResult, Pattern, PatternFileError, RenderError, UnknownPattern
from codegen.patterns.reference import expansion, update_reference
from codegen.patterns.scaffold import new_pattern
from codegen.patterns.testing import last_line, verdict

_ID = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*\Z")
_TAG = re.compile(r"[A-Z][A-Z0-9]*\Z")


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add this module's commands."""
    parser = subparsers.add_parser("patterns", help="list, show, test and write validation patterns")
    commands = parser.add_subparsers(dest="patterns_command", required=True, metavar="COMMAND")

    listing = commands.add_parser("list", help="all patterns, by group")
    listing.add_argument("word", nargs="?", help="only those whose id, group or summary holds this")
    listing.add_argument("--json", action="store_true", help="for machines")
    listing.set_defaults(run=run_list)

    show = commands.add_parser("show", help="one pattern: arguments, error, expansion, examples")
    show.add_argument("id", metavar="ID")
    show.add_argument("--json", action="store_true", help="for machines")
    show.set_defaults(run=run_show)

    test = commands.add_parser("test", help="run the examples and try the template; exit 1 if one fails")
    test.add_argument("ids", nargs="*", metavar="ID", help="default: all")
    test.add_argument("--mutate", action="store_true", help="also run them against wrong variants of each condition")
    test.add_argument("--json", action="store_true", help="every example and its outcome, for machines")
    test.add_argument("--format", choices=FORMATS, default="text", help="of the failures")
    test.set_defaults(run=run_test)

    new = commands.add_parser("new", help="write a working pattern file to start from")
    new.add_argument("id", metavar="ID")
    new.add_argument("--extends", metavar="ID", help="inherit everything from this pattern")
    new.add_argument("--group", default="project", help="folder below validation_patterns/ (default: project)")
    new.add_argument("--tag", help="default: VAL, or the tag of the pattern that is extended")
    new.add_argument("--json", action="store_true", help="for machines")
    new.set_defaults(run=run_new)

    page = commands.add_parser("reference", help="write the library's reference into a Markdown page")
    page.add_argument("page", type=Path, metavar="FILE")
    page.add_argument("--check", action="store_true", help="exit 1 if the page is out of date; write nothing")
    page.set_defaults(run=run_reference)


def run_list(args: argparse.Namespace) -> int:
    """Print one line for each pattern."""
    word = (args.word or "").lower()
    chosen = [p for p in _library() if word in f"{p.id} {p.group} {p.summary}".lower()]
    chosen.sort(key=lambda p: (p.group, p.id))
    if args.json:
        _print_json([_brief(p) for p in chosen])
        return 0
    width = max((len(p.id) for p in chosen), default=0)
    group = None
    for pattern in chosen:
        if pattern.group != group:
            group = pattern.group
            print(group)
        print(f"  {pattern.id:{width}}  {pattern.summary}")
    print(f"{len(chosen)} patterns", file=sys.stderr)
    return 0


def run_show(args: argparse.Namespace) -> int:
    """Print all about one pattern."""
    pattern = _get(_library(), args.id)
    try:
        example, code = expansion(pattern)
    except RenderError as error:
        raise UsageError(f"{pattern.path}: {error}") from error
    if args.json:
        _print_json(_full(pattern) | {"expansion": {"use": example.use, "code": code}})
        return 0
    print(f"{signature(pattern)}\n\n{pattern.summary}")
    if pattern.description:
        print(f"{pattern.description.rstrip()}")
    print(f"\nraises {pattern.error}; {pattern.placement.replace('_', ' ')}; {pattern.cost}; version {pattern.version}")
    for parameter in pattern.parameters:
        default = "required" if parameter.default is None else f"default {parameter.default}"
        print(f"  {parameter.name}: {parameter.type}, {default}. {parameter.help}")
    print(f"\n# {pattern.tag}: {example.use}\n{code}")
    for case in pattern.examples:
        outcome = "passes" if case.message is None else f"{pattern.error}: {case.message}"
        print(f"{case.use} with {last_line(case)}\n    {outcome}")
    print(f"\n{pattern.path}", file=sys.stderr)
    return 0


def run_test(args: argparse.Namespace) -> int:
    """Run the examples of the chosen patterns."""
    library = _library()
    try:
        chosen = [_get(library, id) for id in args.ids] if args.ids else list(library)
    except PatternFileError as error:
        print(render(error.findings, "json" if args.json else args.format), end="")
        print(summary(error.findings), file=sys.stderr)
        return exit_status(error.findings)
    verdicts = [verdict(pattern, args.mutate) for pattern in chosen]
    results = [result for each in verdicts for result in each.results]
    counts = {status: sum(r.status == status for r in results) for status in ("passed", "failed", "skipped")}
    findings = [finding for each in verdicts for finding in each.findings]
    if args.json:
        found = json.loads(render(findings, "json"))
        _print_json({"patterns": len(chosen), **counts, "examples": [_outcome(r) for r in results], "findings": found})
    else:
        print(render(findings, args.format), end="")
    for reason in sorted({r.detail for r in results if r.status == "skipped"}):
        print(f"skipped {sum(r.detail == reason for r in results)}: {reason}", file=sys.stderr)
    print(
        f"{len(results)} examples of {len(chosen)} pattern{'s' * (len(chosen) != 1)}: "
        + ", ".join(f"{count} {status}" for status, count in counts.items()),
        file=sys.stderr,
    )
    return exit_status(findings)


def run_new(args: argparse.Namespace) -> int:
    """Write a pattern file into the project."""
    if not _ID.match(args.id):
        raise UsageError(f"{args.id!r} is no pattern id; write capitals, digits and underscores, e.g. VAL_RANK")
    if args.tag is not None and not _TAG.match(args.tag):
        raise UsageError(f"{args.tag!r} is no tag; write capitals and digits, e.g. VAL")
    if Path(args.group).name != args.group or args.group in ("", ".", ".."):
        raise UsageError(f"{args.group!r} is no group; give the name of one folder")
    library = _library()
    parent = _get(library, args.extends) if args.extends else None
    folder = project_root(Path.cwd()) / FOLDER
    taken = sorted(folder.rglob(f"{args.id}.yaml"))
    if taken:
        raise UsageError(f"{taken[0]} exists already; edit it, or choose another id")
    path = folder / args.group / f"{args.id}.yaml"
    _write_new(path, new_pattern(args.id, args.tag or (parent.tag if parent else "VAL"), parent))
    if args.json:
        _print_json({"id": args.id, "path": str(path)})
    else:
        print(path)
    print(f"edit it, then run `codegen patterns test {args.id}`", file=sys.stderr)
    return 0


def run_reference(args: argparse.Namespace) -> int:
    """Write or check the reference page."""
    try:
        page = args.page.read_text(encoding="utf-8") if args.page.exists() else ""
    except UnicodeDecodeError as error:
        raise UsageError(f"{args.page}: byte {error.start} is not UTF-8; name a Markdown page") from error
    try:
        wanted = update_reference(page, _library())
    except RenderError as error:
        raise UsageError(f"{error}; run `codegen patterns test`") from error
    if wanted == page:
        return 0
    if args.check:
        fix = f"Run `codegen patterns reference {args.page}`."
        finding = Finding(str(args.page), 1, 1, "stale-reference", "the page does not match the patterns", fix=fix)
        print(render([finding]), end="")
        return 1
    _write(args.page, wanted)
    return 0


def _library() -> Library:
    return load_library(project_root(Path.cwd()))


def _get(library: Library, id: str) -> Pattern:
    try:
        return library.get(id)
    except UnknownPattern as error:
        raise UsageError(str(error)) from error


def _brief(pattern: Pattern) -> dict[str, Any]:
    names = ("id", "tag", "group", "summary", "error", "placement", "cost", "version", "since")
    return {name: getattr(pattern, name) for name in names} | {"signature": signature(pattern)}


def _full(pattern: Pattern) -> dict[str, Any]:
    return asdict(pattern) | {"path": str(pattern.path), "signature": signature(pattern)}


def _outcome(result: ExampleResult) -> dict[str, Any]:
    example = result.example
    return {
        "pattern": result.pattern, "line": example.line, "use": example.use, "given": example.given,
        "message": example.message, "status": result.status, "detail": result.detail,
    }  # fmt: skip


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def _write_new(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, text)


def _write(path: Path, text: str) -> None:
    """Whole or not at all: a sibling is written first and takes the file's place."""
    path = path.resolve()
    with tempfile.NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", delete=False) as handle:
        beside = Path(handle.name)
        handle.write(text.encode("utf-8"))
    try:
        os.chmod(beside, path.stat().st_mode & 0o7777 if path.exists() else 0o644)
        os.replace(beside, path)
    except OSError:
        beside.unlink()
        raise
