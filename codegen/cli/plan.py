"""`codegen status`, `codegen plan` and `codegen graph`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from codegen.document.locate import find_documents, project_root
from codegen.plan.progress import Progress, progress


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add this module's commands."""
    parser = subparsers.add_parser("status", help="how far each document is, and what comes next")
    parser.add_argument("documents", nargs="*", metavar="DOC", help="path or id (default: all of design/)")
    parser.add_argument("--json", action="store_true", help="one JSON list on stdout")
    parser.add_argument("--methods", action="store_true", help="list the methods of every step")
    parser.add_argument("--require", choices=("done",), help="exit 1 unless everything is done")
    parser.set_defaults(run=run_status)


def run_status(args: argparse.Namespace) -> int:
    """Print the state of documents."""
    found = [progress(document) for document in find_documents(args.documents, project_root(Path.cwd()))]
    if args.json:
        rows = [asdict(item) | {"counts": item.counts, "done": item.done} for item in found]
        json.dump(rows, sys.stdout, indent=2, ensure_ascii=False)
        print()
    else:
        print("\n".join(status_text(item, methods=args.methods) for item in found), end="")
    return int(args.require == "done" and not all(item.done for item in found))


def status_text(item: Progress, methods: bool = False) -> str:
    """The state of a document for people."""
    total = sum(item.counts.values())
    done_steps = sum(step.status == "DONE" for step in item.steps)
    counts = ", ".join(f"{n} {word}" for word, n in sorted(item.counts.items()) if word != "DONE")
    lines = [
        f"{item.id} {item.version} ({item.status}): {item.title}",
        f"  methods {item.counts.get('DONE', 0)}/{total} DONE{', ' + counts if counts else ''}; "
        f"steps {done_steps}/{len(item.steps)} DONE",
    ]
    lines += [f"  {s.id:<6} {s.done:>3}/{s.entries:<3} {s.title}" for s in item.sections]
    for step in item.steps:
        waits = f"  waits for {', '.join(map(str, step.waits_for))}" if step.waits_for else ""
        head = f"  Step {step.number:<3} {step.status:<11} {step.done:>2}/{len(step.methods):<2} {step.title}"
        lines.append(
            f"{head}{'  ' + step.commit if step.commit else ''}{waits if step.status != 'DONE' else ''}"
        )
        shown = [m for m in step.methods if methods or m.status in ("STALE", "BLOCKED", "FAILED")]
        lines += [f"    {method.status:<11} {method.section:<7} {method.name}" for method in shown]
    if item.unplanned:
        lines.append(f"  in no step: {', '.join(item.unplanned)} (run `codegen plan`)")
    if item.unreviewed:
        lines.append(f"  not approved: {len(item.unreviewed)} (run `codegen review next`)")
    lines += [f"  {todo}" for todo in item.todos]
    titles = {step.number: step.title for step in item.steps}
    if item.next is not None:
        others = [number for number in item.ready if number != item.next]
        ready = f"; also ready: {', '.join(map(str, others))}" if others else ""
        lines.append(f"  next: Step {item.next}: {titles[item.next]}{ready}")
    elif item.done:
        lines.append("  all steps are DONE")
    return "".join(f"{line}\n" for line in lines)
