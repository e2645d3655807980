"""`codegen drift`, `codegen adopt` and `codegen sync-from-code`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from codegen.diagnostics import FORMATS, UsageError, exit_status, render, summary
from codegen.document.locate import find_documents, project_root
from codegen.document.store import write_document
from codegen.drift.adopt import Adoption
from codegen.drift.code import Code
from codegen.drift.report import DriftReport, drift


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add this module's commands."""
    parser = subparsers.add_parser("drift", help="compare Section 5 with the code")
    parser.add_argument("documents", nargs="*", metavar="DOC", help="path or id; all documents by default")
    _add_common(parser)
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument("--json", action="store_true", help="coverage and findings as one JSON object")
    parser.set_defaults(run=_drift)

    parser = subparsers.add_parser("adopt", help="write a Section 5 skeleton from existing code")
    parser.add_argument("packages", nargs="+", metavar="PACKAGE", help="path or dotted name of a package or module")
    _add_common(parser)
    parser.add_argument("-o", "--output", type=Path, help="new file to write; standard output by default")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="number the first module 5.N")
    parser.add_argument("--whole-classes", action="store_true", help="one entry per class, with all its methods")
    parser.set_defaults(run=_adopt)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", type=Path, help="project folder; found from the current one by default")


def _root(args: argparse.Namespace) -> Path:
    root = args.root or project_root(Path.cwd())
    if not root.is_dir():
        raise UsageError(f"{root}: is not a folder")
    return root.resolve()


def _drift(args: argparse.Namespace) -> int:
    root = _root(args)
    code = Code(root)
    reports = [drift(document, code) for document in find_documents(args.documents, root)]
    findings = [finding for report in reports for finding in report.findings]
    if args.json:
        documents = [_as_json(report) for report in reports]
        print(json.dumps({"documents": documents}, indent=2, ensure_ascii=False))
    else:
        sys.stdout.write(render(findings, args.format))
        if args.format == "text":
            for report in reports:
                print(_line(report))
            print(summary(findings))
    return exit_status(findings)


def _line(report: DriftReport) -> str:
    coverage = report.coverage
    share = f" ({100 * coverage.covered_count / coverage.total:.0f} %)" if coverage.total else ""
    pending = f", {len(report.pending)} entries not started" if report.pending else ""
    return (
        f"{report.document}: {coverage.covered_count}/{coverage.total} public callables covered{share}, "
        f"{report.compared} definitions compared{pending}"
    )


def _as_json(report: DriftReport) -> dict[str, Any]:
    coverage = report.coverage
    modules = {
        name: {"covered": list(covered), "uncovered": list(coverage.uncovered[name])}
        for name, covered in coverage.covered.items()
    }
    return {
        "document": report.document,
        "clean": report.is_clean,
        "compared": report.compared,
        "pending": list(report.pending),
        "coverage": {"covered": coverage.covered_count, "total": coverage.total, "modules": modules},
        "findings": [asdict(finding) for finding in report.findings],
    }


def _adopt(args: argparse.Namespace) -> int:
    adoption = Adoption(Code(_root(args)), args.packages, args.whole_classes)
    text = adoption.section(args.first)
    for cycle in adoption.cycles():
        print(f"cyclic deps, drop one of: {' -> '.join(cycle)}", file=sys.stderr)
    if args.output:
        write_document(args.output, text, None)
        print(f"{args.output}: {len(text.splitlines())} lines", file=sys.stderr)
    else:
        sys.stdout.write(text)
    return 0
