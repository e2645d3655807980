"""What `codegen drift`, `adopt` and `sync-from-code` do: call drift and print."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from codegen.cli.common import shown, today
from codegen.diagnostics import UsageError, exit_status, render, summary
from codegen.document.locate import find_document, find_documents, project_root
from codegen.document.parse import read_document
from codegen.document.store import document_lock, write_document
from codegen.drift.adopt import adopted_document, package_path
from codegen.drift.code import Code
from codegen.drift.markdown import drift_any
from codegen.drift.report import DriftReport, drift
from codegen.drift.sync import propose
from codegen.workflow.sealing import seal_findings


def _root(args: argparse.Namespace) -> Path:
    root = args.root or project_root(Path.cwd())
    if not root.is_dir():
        raise UsageError(f"{root}: is not a folder")
    return root.resolve()


def drift_documents(args: argparse.Namespace) -> int:
    root = _root(args)
    code = Code(root)
    if args.any or args.against:
        return _drift_any(args, code)
    documents = find_documents(args.documents, root)
    if not args.documents:
        # what another document replaced describes code that is no more
        documents = [document for document in documents if document.front.status != "superseded"]
    reports = [drift(document, code) for document in documents]
    findings = [finding for report in reports for finding in report.findings]
    for document in documents:
        if any(row.proof for row in document.record_rows):
            findings += seal_findings(document, root, str(document.path))
    if args.json:
        print(json.dumps({"documents": [_as_json(report) for report in reports]}, indent=2, ensure_ascii=False))
    else:
        sys.stdout.write(render(findings, args.format))
        if args.format == "text":
            for report in reports:
                print(_line(report))
            print(summary(findings))
    return exit_status(findings)


def _drift_any(args: argparse.Namespace, code: Code) -> int:
    if not (args.any and args.against) or args.documents:
        raise UsageError("give --any FILE and --against PACKAGE together, and no other document")
    report = drift_any(args.any, code, package_path(code, args.against))
    if args.json:
        findings = [asdict(finding) for finding in report.findings]
        counts = {"document": str(args.any), "fences": report.fences, "compared": report.compared}
        print(json.dumps({**counts, "findings": findings}, indent=2, ensure_ascii=False))
    else:
        sys.stdout.write(render(report.findings, args.format))
        if args.format == "text":
            print(f"{args.any}: {report.fences} Python fences, {report.compared} definitions compared")
            print(summary(report.findings))
    return exit_status(report.findings)


def sync_from_code(args: argparse.Namespace) -> int:
    root = _root(args)
    path = find_document(args.document, root)
    if args.write:
        with document_lock(path, "sync-from-code"):
            document = read_document(path)
            proposal = propose(document, Code(root), args.compact)
            if proposal.text != document.text:
                write_document(path, proposal.text, document.text)
    else:
        document = read_document(path)
        proposal = propose(document, Code(root), args.compact)
        old, new = document.text.splitlines(keepends=True), proposal.text.splitlines(keepends=True)
        shown = path.resolve().relative_to(root).as_posix() if path.resolve().is_relative_to(root) else str(path)
        sys.stdout.writelines(difflib.unified_diff(old, new, f"a/{shown}", f"b/{shown}"))
    left = [finding for finding in proposal.left.findings if finding.severity != "note"]
    if left:
        print(f"left to you ({summary(left)}):", file=sys.stderr)
        sys.stderr.write(render(left))
    return 0


def _line(report: DriftReport) -> str:
    coverage = report.coverage
    share = f" ({100 * coverage.covered_count / coverage.total:.0f} %)" if coverage.total else ""
    pending = f", {len(report.pending)} entries not started" if report.pending else ""
    inside = f"; {len(coverage.inside)} more public names stay inside (`surface: all`)" if coverage.inside else ""
    return (
        f"{report.document}: {coverage.covered_count}/{coverage.total} public callables covered{share}, "
        f"{report.compared} definitions compared{pending}{inside}"
    )


def _as_json(report: DriftReport) -> dict[str, Any]:
    coverage = report.coverage
    uncovered = coverage.uncovered
    modules = {
        name: {"covered": list(covered), "uncovered": list(uncovered[name])}
        for name, covered in coverage.covered.items()
    }
    names = [
        {
            "name": each.name,
            "defined": each.place.full_name,
            "why": each.why,
            "covered": each.place.full_name in coverage.documented,
        }
        for each in coverage.reached
    ]
    counts = {"covered": coverage.covered_count, "total": coverage.total, "inside": list(coverage.inside)}
    return {
        "document": report.document,
        "clean": report.is_clean,
        "compared": report.compared,
        "pending": list(report.pending),
        "coverage": {**counts, "modules": modules, "names": names},
        "findings": [asdict(finding) for finding in report.findings],
    }


def adopt(args: argparse.Namespace) -> int:
    root = _root(args)
    last = args.packages[0].rstrip("/").removesuffix(".py").replace("/", ".").rpartition(".")[2]
    output: Path | None = args.output
    if output is not None and output.exists():
        raise UsageError(f"{output}: exists already; nothing was written")
    ident = output.stem if output else last
    found = adopted_document(Code(root), args.packages, ident, today(), args.surface, args.exclude)
    if output is None:
        sys.stdout.write(found.text)
    else:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_document(output, found.text, None)
    lines = sum(module.lines for module in found.survey.modules)
    size = len(found.text.splitlines())
    print(f"{shown(output) if output else 'document'}: {size} lines for {lines} of code", file=sys.stderr)
    print(f"surface: {found.wanted}, {len(found.surface.reached)} names; {found.why}", file=sys.stderr)
    for group in found.survey.cycles:
        print(f"modules that import each other: {', '.join(group)}", file=sys.stderr)
    return 0
