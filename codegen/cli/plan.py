"""`codegen status`, `codegen plan` and `codegen graph`."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from codegen.cli.common import chosen, difference, today
from codegen.diagnostics import UsageError
from codegen.document.codebase import Codebase
from codegen.document.edit import add_log_row
from codegen.document.lint.steps import MOST_METHODS
from codegen.document.locate import find_document, find_documents, project_root
from codegen.document.model import Document
from codegen.document.modern import is_old, modern
from codegen.document.naming import with_names
from codegen.document.parse import parse_document, read_document
from codegen.document.review import Subject, unapproved
from codegen.document.store import document_lock, write_document
from codegen.plan.draw import (
    LEVELS,
    decision_drawing,
    dot,
    mermaid,
    method_drawing,
    module_drawing,
    step_drawing,
)
from codegen.plan.graph import dependencies
from codegen.plan.merge import merge
from codegen.plan.progress import Progress, progress
from codegen.plan.schedule import Schedule, differences, schedule

FEW = 8


def register(subparsers: argparse._SubParsersAction) -> None:
    """Add this module's commands."""
    parser = subparsers.add_parser("status", help="how far each document is, and what comes next")
    parser.add_argument("documents", nargs="*", metavar="DOC", help="path or id (default: all of design/)")
    parser.add_argument("--json", action="store_true", help="one JSON list on stdout")
    parser.add_argument("--methods", action="store_true", help="list the methods of every step")
    parser.add_argument("--require", choices=("done",), help="exit 1 unless everything is done")
    parser.set_defaults(run=run_status)
    _register_plan(subparsers)
    _register_graph(subparsers)


def _register_plan(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser("plan", help="cut Section 5 into steps and write them into Section 6")
    parser.add_argument("document", nargs="?", metavar="DOC", help="path or id (default: the only one)")
    parser.add_argument("--size", type=int, default=5, help="methods a step aims at, 1 to 10 (default 5)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when there is something to plan")
    parser.add_argument("--diff", action="store_true", help="show the change; write nothing")
    parser.add_argument("--json", action="store_true", help="the plan as JSON on stdout")
    parser.add_argument(
        "--unreviewed", action="store_true", help="plan what is not approved; recorded in the iteration log"
    )
    parser.set_defaults(run=run_plan)


def _register_graph(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser("graph", help="the dependency graph as Mermaid or DOT")
    parser.add_argument("document", nargs="?", metavar="DOC", help="path or id (default: the only one)")
    parser.add_argument("--level", choices=LEVELS, default="method")
    parser.add_argument("--format", choices=("mermaid", "dot"), default="mermaid")
    parser.set_defaults(run=run_graph)


def run_graph(args: argparse.Namespace) -> int:
    """Print a graph."""
    document = read_document(find_document(args.document, project_root(Path.cwd())))
    if args.level == "step":
        drawing = step_drawing((step.number, step.title, step.depends) for step in document.steps)
    elif args.level == "decision":
        drawing = decision_drawing(document)
    else:
        graph = dependencies(document)
        drawing = method_drawing(graph) if args.level == "method" else module_drawing(graph)
    print(mermaid(drawing) if args.format == "mermaid" else dot(drawing, document.id), end="")
    return 0


def run_plan(args: argparse.Namespace) -> int:
    """Plan what is not planned, and write it."""
    if not 1 <= args.size <= MOST_METHODS:
        raise UsageError(f"--size {args.size}: a step has 1 to {MOST_METHODS} methods")
    [path] = chosen([args.document] if args.document else [], project_root(Path.cwd()), one=True)
    dry = args.check or args.diff
    with document_lock(path, "plan") if not dry else contextlib.nullcontext():
        document = read_document(path)
        module_path = Codebase(project_root(path)).module_path
        planned = schedule(document, args.size, module_path)
        text = merge(document, planned)
        if text != document.text and is_old(document):
            moved = with_names(modern(document))
            planned = schedule(moved, args.size, module_path)
            text = merge(moved, planned)
        waiting = unapproved(document, list(planned.scheduled))
        if not dry and waiting and text != document.text:
            text = _unreviewed(document, text, waiting, args.unreviewed)
        if not dry and text != document.text:
            write_document(path, text, document.text)
    if args.json:
        json.dump(plan_json(planned), sys.stdout, indent=2, ensure_ascii=False)
        print()
    elif args.diff:
        sys.stdout.writelines(difference(document, text))
    else:
        print(plan_text(planned), end="")
    changed = text != document.text
    if not args.diff and not args.json:
        print(f"{path}: {_done_by(planned, changed, dry)}", file=sys.stderr)
    return int(changed and dry)


def _done_by(planned: Schedule, changed: bool, dry: bool) -> str:
    """What a plan did: "written: 2 new steps, 1 name joined a step"; or that nothing changed."""
    if not changed:
        return "nothing to plan, nothing changed"
    counts = (
        (len(planned.new), "new step", "new steps"),
        (len(planned.hosted), "name joined a step", "names joined steps"),
        (len(planned.stale), "name is STALE", "names are STALE"),
        (len(planned.reopened), "finished step is open again", "finished steps are open again"),
        (len(planned.depends), "step has other dependencies", "steps have other dependencies"),
    )
    said = [f"{count} {one if count == 1 else many}" for count, one, many in counts if count]
    return f"{'would change' if dry else 'written'}: {', '.join(said) or 'the drawing'}"


def _unreviewed(document: Document, text: str, waiting: list[Subject], allowed: bool) -> str:
    names = _in_short(document, [subject.id for subject in waiting])
    if not allowed:
        raise UsageError(
            f"{document.path}: not approved: {names}. Review them (`codegen review next`), "
            "or plan them as they are with --unreviewed, which is recorded"
        )
    print(f"{document.path}: planned without approval: {names}", file=sys.stderr)
    asked = f"planned without approval: {names}"
    return add_log_row(parse_document(text, document.path), asked, "6", "", today())


def _in_short(document: Document, idents: list[str]) -> str:
    """The names of a few entries; of many the modules, each with how many it has: "shop.till (8), shop.money (5)"."""
    if len(idents) <= FEW:
        return ", ".join(idents)
    sections = Counter(document.entry_by_id[ident].module for ident in idents)
    return ", ".join(f"{section} ({count})" for section, count in sections.items())


def plan_json(planned: Schedule) -> dict[str, object]:
    """The plan for machines."""
    return {
        "waves": planned.waves,
        "new": [
            {
                "number": step.number,
                "title": step.title,
                "depends": step.depends,
                "files": step.files,
                "methods": [{"name": method.name, "section": method.section} for method in step.methods],
            }
            for step in planned.new
        ],
        "added": [{"step": number, "name": row.name, "section": row.section} for number, row in planned.hosted],
        "depends": {str(number): needs for number, needs in planned.depends.items()},
        "stale": [{"step": step.number, "name": method.name} for step, method in planned.stale],
        "overlaps": [{"file": file, "steps": steps} for file, steps in planned.overlaps],
        "inferred": {entry.id: [other.id for other in others] for entry, others in differences(planned.graph)},
    }


def plan_text(planned: Schedule) -> str:
    """The plan for people."""
    lines = [f"Step {step.number}: {step.title} ({_after(step.depends)})" for step in planned.new]
    lines += [f"Step {number} takes in `{row.name}` ({row.section})" for number, row in planned.hosted]
    lines += [f"Step {number} now comes {_after(needs)}" for number, needs in planned.depends.items()]
    lines += [f"Step {step.number}: `{method.name}` is STALE" for step, method in planned.stale]
    lines += [f"wave {at}: {', '.join(f'Step {n}' for n in wave)}" for at, wave in enumerate(planned.waves, 1)]
    for file, steps in planned.overlaps:
        lines.append(f"overlap: {file} in {' and '.join(f'Step {n}' for n in steps)}, which may run side by side")
    for a, b in planned.circles:
        lines.append(f"cycle: Step {a} and Step {b} need each other; move a method from one to the other")
    for entry, others in differences(planned.graph):
        names = ", ".join(other.label for other in others)
        lines.append(f"not in `deps:` of {entry.label}: {names}")
    return "".join(f"{line}\n" for line in lines)


def _after(depends: Sequence[int]) -> str:
    return f"after {', '.join(f'Step {number}' for number in depends)}" if depends else "needs nothing"


def run_status(args: argparse.Namespace) -> int:
    """Print the state of documents."""
    documents = find_documents(args.documents, project_root(Path.cwd()))
    found = [progress(document) for document in documents]
    if args.json:
        rows = [asdict(item) | {"counts": item.counts, "done": item.done} for item in found]
        json.dump(rows, sys.stdout, indent=2, ensure_ascii=False)
        print()
    else:
        print("\n".join(status_text(item, methods=args.methods) for item in found), end="")
    if args.require != "done":
        return 0
    from codegen.workflow.requirements import not_done

    lacking = [(item, reason) for item in documents for reason in not_done(item, project_root(item.path))]
    for document, reason in lacking:
        print(f"{document.id}: {reason}", file=sys.stderr)
    return int(bool(lacking) or not all(item.done for item in found))


def status_text(item: Progress, methods: bool = False) -> str:
    """The state of a document for people."""
    total = sum(item.counts.values())
    done_steps = sum(step.status == "DONE" for step in item.steps)
    counts = ", ".join(f"{n} {word}" for word, n in sorted(item.counts.items()) if word != "DONE")
    lines = [
        f"{item.id} {item.version} ({item.status}): {item.title}",
    ]
    if item.adopted:
        lines.append(f"  {item.adopted} names adopted: their code was there before the document")
    if item.steps or not item.adopted:
        named = f"{item.counts.get('DONE', 0)}/{total} DONE{', ' + counts if counts else ''}"
        lines.append(f"  methods {named}; steps {done_steps}/{len(item.steps)} DONE")
    lines += [f"  {s.id:<6} {s.done:>3}/{s.entries:<3} {s.title}" for s in item.sections]
    for step in item.steps:
        waits = f"  waits for {', '.join(map(str, step.waits_for))}" if step.waits_for else ""
        head = f"  Step {step.number:<3} {step.status:<11} {step.done:>2}/{len(step.methods):<2} {step.title}"
        lines.append(f"{head}{'  ' + step.commit if step.commit else ''}{waits if step.status != 'DONE' else ''}")
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
    elif item.done and item.steps:
        lines.append("  all steps are DONE")
    return "".join(f"{line}\n" for line in lines)
