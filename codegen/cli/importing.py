"""`codegen import`: the folders of other tools, made into design documents."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from codegen.diagnostics import UsageError


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add this command."""
    parser = subparsers.add_parser(
        "import", help="a design document from a folder of another tool", description=__doc__
    )
    parser.add_argument("tool", choices=("spec-kit", "openspec"))
    parser.add_argument("folder", type=Path, metavar="DIR", help="a feature, a change, or a project with one of them")
    parser.add_argument("--id", help="id of the document (default: from the folder's name)")
    parser.add_argument("--roots", default="", metavar="PATH,…", help="the code that Section 5 will describe")
    parser.add_argument("--date", help="default: today")
    parser.add_argument("--stdout", action="store_true", help="print the document, write no file")
    parser.set_defaults(run=run_import)


def run_import(args: argparse.Namespace) -> int:
    """Read, assemble, write."""
    from codegen.cli.common import shown, today
    from codegen.document.locate import project_root
    from codegen.document.scaffold import new_document
    from codegen.importers.assemble import document_of
    from codegen.importers.openspec import read_change
    from codegen.importers.spec_kit import read_feature

    if not args.folder.is_dir():
        raise UsageError(f"{args.folder}: is not a folder")
    design = (read_feature if args.tool == "spec-kit" else read_change)(args.folder)
    design.ident = args.id or design.ident
    roots = [name.strip() for name in args.roots.split(",") if name.strip()]
    text = document_of(design, roots, args.date or today())
    if args.stdout:
        print(text, end="")
        return 0
    print(shown(new_document(project_root(Path.cwd()), text, design.ident)))
    done = sum(task.done for group in design.groups for task in group.tasks)
    total = sum(len(group.tasks) for group in design.groups)
    print(
        f"{len(design.goals)} goals, {len(design.decisions)} decisions, {len(design.groups)} steps, "
        f"{done} of {total} tasks done. Next: write Section 5, then `codegen lint` and `codegen plan`",
        file=sys.stderr,
    )
    return 0
