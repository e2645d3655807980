"""`codegen view`: a document as one self-contained page."""

from __future__ import annotations

import argparse
from pathlib import Path

from codegen.diagnostics import UsageError


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add this command."""
    parser = subparsers.add_parser("view", help="write one self-contained page of a document", description=__doc__)
    parser.add_argument("document", nargs="?", metavar="DOC", help="path or id; may be left out where there is one")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: build/ID.html")
    parser.add_argument("--long", action="store_true", help="show folded modules in the long form, entry by entry")
    parser.set_defaults(run=_view)


def _view(args: argparse.Namespace) -> int:
    from codegen.document.locate import find_document, project_root
    from codegen.document.parse import read_document
    from codegen.document.store import replace_file
    from codegen.drift.code import Code
    from codegen.view.page import page

    root = project_root(Path.cwd())
    document = read_document(find_document(args.document, root))
    output: Path = args.output or root / "build" / f"{document.id}.html"
    if output.is_dir():
        raise UsageError(f"{output} is a folder; name a file")
    output.parent.mkdir(parents=True, exist_ok=True)
    replace_file(output, page(document, Code(root), args.long).encode("utf-8"))
    print(output)
    return 0
