"""`codegen report`: the method's own figures, so that a team can see whether it pays."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add this command."""
    help = "attempts, findings, time, size and validation of each step"
    parser = subparsers.add_parser("report", help=help, description=__doc__)
    parser.add_argument("documents", nargs="*", metavar="DOC", help="path or id (default: all of design/)")
    parser.add_argument("--json", action="store_true", help="one JSON list on stdout")
    parser.set_defaults(run=run_report)


def run_report(args: argparse.Namespace) -> int:
    """Print the figures."""
    from codegen.agents.record import read_runs
    from codegen.document.locate import find_documents, project_root
    from codegen.report.figures import report
    from codegen.report.text import report_text
    from codegen.workflow.git import Git
    from codegen.workflow.trail import step_commits

    root = project_root(Path.cwd()).resolve()
    git = Git(root) if _in_repository(root) else None
    found = []
    for document in find_documents(args.documents, root):
        path = document.path.resolve().relative_to(root).as_posix()
        commits = step_commits(git, path) if git else []
        found.append(report(document, read_runs(root, document.id), commits, git))
    if args.json:
        print(json.dumps([asdict(each) for each in found], indent=2, ensure_ascii=False))
    else:
        print("\n".join(report_text(each) for each in found), end="")
    return 0


def _in_repository(root: Path) -> bool:
    return any((folder / ".git").exists() for folder in (root, *root.parents))
