"""`codegen drift`, `codegen adopt` and `codegen sync-from-code`."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path

from codegen.diagnostics import FORMATS

Run = Callable[[argparse.Namespace], int]


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add this module's commands."""
    parser = subparsers.add_parser("drift", help="compare Section 5 with the code")
    parser.add_argument("documents", nargs="*", metavar="DOC", help="path or id; all documents by default")
    _add_common(parser)
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument("--json", action="store_true", help="coverage and findings as one JSON object")
    parser.add_argument("--any", type=Path, metavar="FILE", help="any Markdown file with fenced Python signatures")
    parser.add_argument("--against", metavar="PACKAGE", help="with --any: path or dotted name of the package")
    parser.set_defaults(run=_later("drift_documents"))

    parser = subparsers.add_parser("sync-from-code", help="bring Section 5 up to code that moved first")
    parser.add_argument("document", nargs="?", metavar="DOC", help="path or id; may be left out where there is one")
    _add_common(parser)
    parser.add_argument("--write", action="store_true", help="change the document; by default the patch is printed")
    help = "shorten what is DONE to signature, annotations and raises"
    parser.add_argument("--compact", action="store_true", help=help)
    parser.set_defaults(run=_later("sync_from_code"))

    parser = subparsers.add_parser("adopt", help="a whole design document of code that is there")
    parser.add_argument("packages", nargs="+", metavar="PACKAGE", help="path or dotted name of a package or module")
    _add_common(parser)
    help = "new file to write, its id from its name; standard output by default"
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help=help)
    help = "what Section 5 shows: what crosses a border, or everything public; chosen from the code by default"
    parser.add_argument("--surface", choices=("border", "all"), help=help)
    help = "folders, files or globs that are no part of the package, besides tests"
    parser.add_argument("--exclude", nargs="+", metavar="PATH", default=[], help=help)
    parser.set_defaults(run=_later("adopt"))


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", type=Path, help="project folder; found from the current one by default")


def _later(action: str) -> Run:
    """The action, its module imported only when it runs: other commands start without it."""

    def run(args: argparse.Namespace) -> int:
        found: Run = getattr(importlib.import_module("codegen.cli.drift_actions"), action)
        return found(args)

    return run
