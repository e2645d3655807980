"""`codegen review next|list|show|approve|reject`."""

from __future__ import annotations

import argparse
import getpass
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from codegen.cli.common import chosen, today
from codegen.document.locate import project_root
from codegen.document.model import Document
from codegen.document.parse import parse_document, read_document
from codegen.document.review import Subject, record, select, subjects, withdrawn
from codegen.document.store import update_document
from codegen.document.versions import text_with
from codegen.document.words import word_diff


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add this command."""
    parser = subparsers.add_parser("review", help="approve a document decision by decision, until aligned")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(
        name: str, help_text: str, run: Callable[[argparse.Namespace], int], ids: str | None
    ) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=help_text)
        if ids:
            action.add_argument("ids", nargs=ids, metavar="ID", help="D-3, 1.2, 5.2.4; 5.2 or 3 mean all below")
        action.add_argument("--doc", metavar="DOC", help="path or id (default: the only one)")
        action.set_defaults(run=run)
        return action

    for name, help_text in (("next", "show what waits for review, top-down: the first one"), ("list", "all verdicts")):
        action = add(name, help_text, run_next if name == "next" else run_list, None)
        action.add_argument("--json", action="store_true")
    add("show", "show what an id means, and its verdict", run_show, "+")
    for name, help_text in (("approve", "record an approval"), ("reject", "record a rejection")):
        action = add(name, help_text, run_record, "+")
        action.set_defaults(verdict="APPROVED" if name == "approve" else "REJECTED")
        action.add_argument("--reviewer", help="default: git's user.name, else the login name")
        action.add_argument("--reason", default="", required=name == "reject", help="goes into the iteration log")
        action.add_argument("--date", help="default: today")


def _path(args: argparse.Namespace) -> Path:
    return chosen([args.doc] if args.doc else [], project_root(Path.cwd()), one=True)[0]


def run_next(args: argparse.Namespace) -> int:
    """Show the first subject that is not approved."""
    document = read_document(_path(args))
    waiting = [subject for subject in subjects(document).values() if subject.verdict != "APPROVED"]
    if args.json:
        json.dump(asdict(waiting[0]) if waiting else None, sys.stdout, indent=2, ensure_ascii=False)
        print()
    elif waiting:
        print(_shown(document, waiting[0]), end="")
    print(f"{len(waiting) or 'nothing'} to review", file=sys.stderr)
    return 0


def run_list(args: argparse.Namespace) -> int:
    """List all verdicts."""
    found = list(subjects(read_document(_path(args))).values())
    if args.json:
        json.dump([asdict(subject) for subject in found], sys.stdout, indent=2, ensure_ascii=False)
        print()
    else:
        for subject in found:
            print(f"{subject.verdict:<12} {subject.number or subject.id:<8} {subject.title}{_by(subject)}")
    return 0


def run_show(args: argparse.Namespace) -> int:
    """Show subjects."""
    document = read_document(_path(args))
    print("\n".join(_shown(document, subject) for subject in select(document, args.ids)), end="")
    return 0


def run_record(args: argparse.Namespace) -> int:
    """Record a verdict."""
    path = _path(args)
    reviewer = args.reviewer or _reviewer()
    chosen_ids: list[str] = []
    kept: list[Subject] = []

    def change(document: Document) -> str:
        found = select(document, args.ids)
        again = args.verdict == "APPROVED"
        kept[:] = [subject for subject in found if again and subject.verdict == "APPROVED"]
        chosen_ids[:] = [subject.id for subject in found if subject not in kept]
        text = record(document, found, args.verdict, reviewer, args.date or today(), args.reason)
        return withdrawn(parse_document(text, path))

    update_document(path, change, doing=f"review {args.action}")
    for ident in chosen_ids:
        print(f"{args.verdict} {ident}")
    for subject in kept:
        print(f"kept     {subject.id}{_by(subject)}")
    return 0


def _shown(document: Document, subject: Subject) -> str:
    named = subject.label if subject.kind == "section" else subject.id
    head = f"{document.path}:{subject.line}: {subject.kind} {named}: {subject.verdict}{_by(subject)}\n"
    if subject.follows:
        titles = (f"{name} {document.decision_by_id[name].title}" for name in subject.follows)
        head += f"follows {'; '.join(titles)}\n"
    changes = _changes(document, subject)
    if changes:
        return f"{head}changed since it was approved:\n\n{changes}\n"
    return f"{head}\n{_text(document, subject)}\n"


def _text(document: Document, subject: Subject) -> str:
    return "".join(document.lines[subject.line - 1 : subject.line_end]).rstrip()


def _changes(document: Document, subject: Subject) -> str:
    """What changed since the approval, word by word, in the text and in the decisions that it follows.

    "" where nothing was approved, or git does not have the text that was.
    """
    approval = subject.approval
    if approval is None or subject.verdict == "APPROVED" or not approval.digest:
        return ""
    for old in text_with(document.path, approval.digest):
        was = subjects(old).get(subject.id)
        if was is None or was.digest != approval.digest:
            continue
        parts = [] if was.own == subject.own else word_diff(_text(old, was), _text(document, subject))
        now, then = subjects(document), subjects(old)
        for name in subject.follows:
            if name not in then:
                parts += ["", f"{name} is followed now and was not"]
            elif then[name].own != now[name].own:
                parts += ["", f"{name}:", *word_diff(_text(old, then[name]), _text(document, now[name]))]
        return "\n".join(parts).strip("\n")
    return ""


def _by(subject: Subject) -> str:
    if subject.approval is None:
        return ""
    recorded = subject.approval.verdict
    old = f", {recorded} for an earlier text" if recorded == "APPROVED" != subject.verdict else ""
    return f" ({subject.approval.reviewer}, {subject.approval.date}{old})"


def _reviewer() -> str:
    try:
        done = subprocess.run(["git", "config", "user.name"], capture_output=True, text=True, timeout=10, check=False)
    except FileNotFoundError:
        return getpass.getuser()
    return done.stdout.strip() or getpass.getuser()
