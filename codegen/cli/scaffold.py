"""`codegen init` and `codegen new`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from codegen.cli.common import shown, today
from codegen.diagnostics import UsageError
from codegen.document.locate import project_root
from codegen.document.scaffold import document_text, init_project, new_document, template_text

RUFF = """[tool.ruff.lint]
task-tags = ["VAL", "AST"]   # annotations are no commented-out code
"""


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add these commands."""
    parser = subparsers.add_parser("init", help="make the folders of a project; overwrites nothing")
    parser.add_argument("path", nargs="?", type=Path, default=Path(), help="the project's folder (default: here)")
    parser.set_defaults(run=run_init)
    parser = subparsers.add_parser("new", help="begin a design document from a template")
    parser.add_argument("id", nargs="?", help="its id, also the name of the file; asked for when not given")
    parser.add_argument("--title", help="default: made from the id")
    parser.add_argument("--roots", default="", metavar="PATH,…", help="the code that Section 5 describes")
    parser.add_argument("--supersedes", default="", metavar="ID,…", help="documents that this one replaces")
    parser.add_argument("--template", default="design", help="a template's name or path (default: design)")
    parser.add_argument("--date", default=None, help="default: today")
    parser.set_defaults(run=run_new)


def run_init(args: argparse.Namespace) -> int:
    """Make a project."""
    if args.path.exists() and not args.path.is_dir():
        raise UsageError(f"{args.path}: is a file; name a folder")
    for item in init_project(args.path):
        print(f"{'made' if item.made else 'kept'} {item.path}")
    pyproject = args.path / "pyproject.toml"
    if not pyproject.exists() or "task-tags" not in pyproject.read_text(encoding="utf-8"):
        print(f"For ruff, put into {pyproject}:\n\n{RUFF}", file=sys.stderr)
    print("Next: codegen new ID --title TITLE --roots PACKAGE", file=sys.stderr)
    return 0


def run_new(args: argparse.Namespace) -> int:
    """Begin a document."""
    ident = args.id
    if ident is None:
        if not sys.stdin.isatty():
            raise UsageError("which id? run `codegen new ID`")
        print("id of the document: ", end="", file=sys.stderr, flush=True)
        ident = sys.stdin.readline().strip()
    root = project_root(Path.cwd())
    title = args.title or ident.replace("_", " ").replace("-", " ").capitalize()
    text = document_text(
        template_text(root, args.template),
        ident,
        title,
        _names(args.roots),
        _names(args.supersedes),
        args.date or today(),
    )
    path = new_document(root, text, ident)
    print(shown(path))
    print("Next: fill it in, then `codegen lint` and `codegen plan`", file=sys.stderr)
    return 0


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
