"""`codegen lint`: judge design documents."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from codegen.cli.common import chosen, difference
from codegen.diagnostics import FORMATS, Finding, UsageError, exit_status, render, summary
from codegen.document.codebase import Codebase
from codegen.document.lint import lint
from codegen.document.lint.fixes import fix
from codegen.document.lint.project import check_project
from codegen.document.locate import document_paths, project_root
from codegen.document.model import Document
from codegen.document.parse import parse_document, read_document
from codegen.document.project import Project, project_of
from codegen.document.references import References
from codegen.document.store import write_document
from codegen.document.threeway import merged
from codegen.document.versions import conflict_stages, merge_sides


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add this command."""
    parser = subparsers.add_parser("lint", help="judge design documents")
    parser.add_argument("documents", nargs="*", metavar="DOC", help="path or id (default: all of design/)")
    parser.add_argument("--fix", action="store_true", help="fix what can be fixed mechanically")
    parser.add_argument("--diff", action="store_true", help="show what --fix would do; write nothing")
    parser.add_argument("--strict", action="store_true", help="warnings also lead to exit 1")
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="same as --format json")
    parser.add_argument("--no-code", action="store_true", help="do not look up Section 2 in the code")
    parser.add_argument(
        "--unmanaged",
        nargs="+",
        metavar="PATH",
        default=[],
        help="list guards and asserts in this code that come from no annotation; without DOC, nothing else",
    )
    parser.set_defaults(run=run_lint)


def run_lint(args: argparse.Namespace) -> int:
    """Judge documents, and with --unmanaged code."""
    root = project_root(Path.cwd())
    paths = chosen(args.documents, root) if args.documents or not args.unmanaged else []
    documents = [read_document(path) for path in paths]
    if args.diff:
        changes = [change for document in documents for change in difference(document, _fixed(document).text)]
        sys.stdout.writelines(changes)
        return int(bool(changes))
    if args.fix:
        documents = [_write_fixed(document) for document in documents]
    findings: list[Finding] = []
    projects: dict[Path, Project] = {}
    for document in documents:
        project = project_root(document.path)
        code = None if args.no_code else Codebase(project)
        known = projects.setdefault(project, project_of(document, documents))
        findings += lint(document, code, _annotation_check(project), References(document, known))
    shown = {str(document.path.resolve()) for document in documents}
    for known in projects.values():
        findings += [each for each in check_project(known) if str(Path(each.path).resolve()) in shown]
    if documents:
        findings += _constraints(documents)
    if not args.no_code:
        findings += _weakened(documents)
    if args.unmanaged:
        findings += _unmanaged([Path(path) for path in args.unmanaged])
    print(render(findings, args.format), end="")
    print(summary(findings), file=sys.stderr)
    return exit_status(findings, args.strict)


def _weakened(documents: list[Document]) -> list[Finding]:
    """Names that are DONE and whose tests say less than when they were proven."""
    from codegen.workflow.sealing import seal_findings

    return [
        finding
        for document in documents
        if any(row.proof for row in document.record_rows)
        for finding in seal_findings(document, project_root(document.path), str(document.path), "warning")
    ]


def _annotation_check(project: Path) -> Callable[[Document], Iterable[Finding]]:
    # The expander is loaded for documents only: `--unmanaged` and `--diff` do without it.
    from codegen.cli.annotations import check_annotations, check_extracted
    from codegen.expand.reading.marks import Marks
    from codegen.patterns import load_library

    library = load_library(project)
    marks = Marks(library.tags())
    return lambda document: (
        *check_annotations(document, library, marks),
        *check_extracted(document, project, marks),
    )


def _constraints(documents: list[Document]) -> list[Finding]:
    """What constraints say of these documents; those of the other documents of their projects count too."""
    from codegen.constraints.check import check
    from codegen.patterns import load_library

    by_project: dict[Path, list[Document]] = {}
    for document in documents:
        by_project.setdefault(project_root(document.path), []).append(document)
    findings: list[Finding] = []
    for project, judged in by_project.items():
        paths = {document.path.resolve() for document in judged}
        others = [path for path in document_paths(project) if path.resolve() not in paths]
        together = [*judged, *map(read_document, others)]
        found = check(together, load_library(project))
        findings += [each for each in found if Path(each.path).resolve() in paths or _names(each, judged)]
    return findings


def _names(finding: Finding, judged: list[Document]) -> bool:
    """Whether a finding at another document's line names one of the documents that are judged."""
    return any(f"({document.path}:" in finding.message for document in judged)


def _fixed(document: Document) -> Document:
    """The document repaired; only one with doubled numbers needs to know what was merged.

    One with git's conflict marks is merged again from what git has of both branches, by its parts.
    """
    found = lint(document)
    stages = conflict_stages(document.path) if any(each.code == "DOC015" for each in found) else []
    if stages:
        document = parse_document(merged(*stages), document.path)
        return fix(document, stages[1:]) if not any(each.code == "DOC015" for each in lint(document)) else document
    doubled = any(each.code in ("DOC004", "DOC010", "REV003") for each in found)
    return fix(document, merge_sides(document.path) if doubled else ())


def _write_fixed(document: Document) -> Document:
    fixed = _fixed(document)
    if fixed.text != document.text:
        write_document(document.path, fixed.text, document.text)
        print(f"{document.path}: fixed", file=sys.stderr)
    return fixed


def _unmanaged(paths: list[Path]) -> list[Finding]:
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: does not exist")
        if path.is_dir() and not any(path.rglob("*.py")):
            print(f"{path}: no Python file, so nothing is looked at; documents go before --unmanaged", file=sys.stderr)
    find_unmanaged = importlib.import_module("codegen.expand.judging.unmanaged").find_unmanaged
    return [finding for path in paths for finding in find_unmanaged(path)]
