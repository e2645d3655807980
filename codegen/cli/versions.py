"""`codegen diff`, `codegen impact` and `codegen bump`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from codegen.cli.common import chosen, shown, today
from codegen.constraints.links import shared_quantities
from codegen.diagnostics import UsageError
from codegen.document.compare import Change, compare, summary
from codegen.document.edit import add_history_row, set_front_field
from codegen.document.locate import project_root
from codegen.document.model import Document
from codegen.document.parse import parse_document, read_document
from codegen.document.project import project_of
from codegen.document.review import withdrawn
from codegen.document.store import update_document
from codegen.document.versions import PARTS, at_revision, raised
from codegen.plan.impact import impact


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add these commands."""
    parser = subparsers.add_parser("diff", help="what changed in a document, in decisions, methods and steps")
    parser.add_argument("revision", nargs="?", default="HEAD", help="git revision or version, or A..B (default: HEAD)")
    parser.add_argument("document", nargs="?", metavar="DOC", help="path or id (default: the only one)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--exit-code", action="store_true", help="exit 1 when something changed")
    parser.set_defaults(run=run_diff)
    parser = subparsers.add_parser("impact", help="everything that depends on a decision, goal or method, top-down")
    parser.add_argument("id", help="D-3, G-1, 5.2.4, 5.2, or a name")
    parser.add_argument("document", nargs="?", metavar="DOC", help="path or id (default: the only one)")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=run_impact)
    parser = subparsers.add_parser("bump", help="raise a document's version, with a row in its history")
    parser.add_argument("document", nargs="?", metavar="DOC", help="path or id (default: the only one)")
    parser.add_argument("-m", "--message", help="what changed (default: taken from `codegen diff HEAD`)")
    parser.add_argument("--part", choices=PARTS, default="minor")
    parser.add_argument("--to", metavar="VERSION", help="the new version itself")
    parser.add_argument("--date", help="default: today")
    parser.set_defaults(run=run_bump)


def _one(name: str | None) -> Path:
    return chosen([name] if name else [], project_root(Path.cwd()), one=True)[0]


def run_diff(args: argparse.Namespace) -> int:
    """Compare a document with an earlier self."""
    path = _one(args.document)
    first, dots, second = args.revision.partition("..")
    new = at_revision(path, second) if dots and second else read_document(path)
    changes = compare(at_revision(path, first or "HEAD"), new)
    if args.json:
        json.dump([asdict(change) for change in changes], sys.stdout, indent=2, ensure_ascii=False)
        print()
    else:
        print("".join(_change(change) for change in changes), end="")
        print(f"{len(changes) or 'no'} change{'s' * (len(changes) != 1)}", file=sys.stderr)
    return int(args.exit_code and bool(changes))


def _change(change: Change) -> str:
    lines = [f"{change.kind} {change.id} {change.what}: {change.title}"]
    lines += [f"    {detail}" for detail in change.details]
    return "".join(f"{line}\n" for line in lines)


def run_impact(args: argparse.Namespace) -> int:
    """List what depends on something."""
    document = read_document(_one(args.document))
    project = project_of(document)
    alive = [each for each in [document, *project.others(document)] if each.front.status != "superseded"]
    affected = impact(document, args.id, project, shared_quantities(alive))
    if args.json:
        json.dump([asdict(item) for item in affected], sys.stdout, indent=2, ensure_ascii=False)
        print()
        return 0
    for item in affected:
        path = shown(Path(item.path)) if item.path else document.path
        print(f"{path}:{item.line}: {item.kind} {item.id} {item.title} ({item.why})")
    print(f"{len(affected) or 'nothing'} depend{'s' * (len(affected) < 2)} on {args.id}", file=sys.stderr)
    return 0


def run_bump(args: argparse.Namespace) -> int:
    """Raise the version."""
    path = _one(args.document)

    def change(document: Document) -> str:
        version = raised(document.front.version, args.part, args.to)
        if any(row.version == version for row in document.history):
            raise UsageError(f"{path}: the version history has {version} already; give another one with --to")
        message = args.message or _message(document)
        document = parse_document(set_front_field(document, "version", version), path)
        document = parse_document(add_history_row(document, version, args.date or today(), message), path)
        return withdrawn(document)

    document = update_document(path, change, doing="bump")
    print(f"{path}: {document.front.version}: {document.history[-1].change}")
    return 0


def _message(document: Document) -> str:
    message = summary(compare(at_revision(document.path, "HEAD"), document))
    if not message:
        raise UsageError(f"{document.path}: nothing changed since the last commit; say why with -m")
    return message
