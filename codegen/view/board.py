"""What the page shows beside the document: steps by status, decisions and what follows them, drift and coverage."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.document.model import Document
from codegen.document.reasons import Reasons
from codegen.document.review import subjects
from codegen.drift.report import DriftReport
from codegen.plan.progress import Progress, StepProgress
from codegen.view.layers import Edge, Node, Shape, draw

COLUMNS = ("NOT_STARTED", "IN_PROGRESS", "BLOCKED", "FAILED", "STALE", "DONE")


@dataclass(frozen=True)
class Share:
    """A module's part of the coverage."""

    module: str
    covered: int
    total: int

    @property
    def percent(self) -> int:
        return 100 * self.covered // self.total if self.total else 100


def step_columns(state: Progress) -> list[tuple[str, list[StepProgress]]]:
    """Steps by status, statuses without a step left out."""
    found = [(status, [step for step in state.steps if step.status == status]) for status in COLUMNS]
    return [(status, steps) for status, steps in found if steps]


def step_graph(document: Document, state: Progress) -> str:
    """The steps and what they wait for."""
    nodes = [
        Node(
            f"s{step.number}",
            f"{step.number}. {step.title}",
            f"{step.status}, {step.done}/{len(step.methods)}",
            f"#step-{step.number}",
            step.status.lower(),
        )
        for step in state.steps
    ]
    edges = [Edge(f"s{need}", f"s{step.number}") for step in document.steps for need in step.depends]
    return draw(nodes, edges, "Steps and what they depend on")


def decision_graph(document: Document) -> str:
    """Decisions on the left, the modules of Section 5 that follow them on the right."""
    reasons = Reasons(document)
    known = subjects(document)
    modules: dict[str, str] = {}
    edges: list[Edge] = []
    counts: dict[str, int] = {}
    for entry in document.entries:
        home = entry.number if entry.folded else entry.number.rpartition(".")[0]
        modules.setdefault(home, entry.module or home)
        counts[home] = counts.get(home, 0) + 1
        edges += [Edge(ident, home) for ident in reasons.of_entry(entry) if ident in document.decision_by_id]
    nodes = [
        Node(
            decision.id,
            f"{decision.id} {decision.title.replace('`', '')}",
            f"{decision.status}, {known[decision.id].verdict.lower().replace('_', ' ')}",
            f"#{decision.id.lower()}",
            decision.status,
        )
        for decision in document.decisions
    ]
    nodes += [
        Node(
            home,
            module,
            f"{home}, {counts[home]} {'entry' if counts[home] == 1 else 'entries'}",
            f"#s-{home}",
            "module",
        )
        for home, module in modules.items()
    ]
    columns = {node.id: int(node.status == "module") for node in nodes}
    return draw(nodes, edges, "Decisions and the modules that follow them", Shape(340, 190), columns)


def shares(report: DriftReport) -> list[Share]:
    """Coverage by module, modules without public callables left out."""
    coverage = report.coverage
    found = [
        Share(module, len(names), len(names) + len(coverage.uncovered[module]))
        for module, names in coverage.covered.items()
    ]
    return [share for share in found if share.total]
