"""`codegen mcp`: serve this project's facts to agents over the Model Context Protocol."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from codegen.diagnostics import Finding
from codegen.document.model import Document


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add this command."""
    parser = subparsers.add_parser("mcp", help="serve this project to agents (MCP over stdio)", description=__doc__)
    parser.add_argument("--root", type=Path, help="project folder; found from the current one by default")
    parser.set_defaults(run=run_server)


def run_server(args: argparse.Namespace) -> int:
    """Serve until the client closes."""
    from codegen.cli.annotations import check_annotations
    from codegen.document.locate import project_root
    from codegen.expand.reading.marks import Marks
    from codegen.mcp.server import serve
    from codegen.patterns import load_library

    root = (args.root or project_root(Path.cwd())).resolve()
    os.chdir(root)  # settings and the cache of expansions are found from the current folder

    def annotations(document: Document) -> Iterable[Finding]:
        library = load_library(root)
        return check_annotations(document, library, Marks(library.tags()))

    serve(root, annotations)
    return 0
