"""Graphs as Mermaid and DOT text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from codegen.document.model import Document
from codegen.plan.graph import Dependencies

LEVELS = ("step", "method", "module", "decision")


@dataclass(frozen=True)
class Drawing:
    """Nodes (id → label) and edges from what is needed to what needs it, both in document order."""

    nodes: dict[str, str]
    edges: tuple[tuple[str, str], ...]


def step_drawing(steps: Iterable[tuple[int, str, tuple[int, ...]]]) -> Drawing:
    """Steps (number, title, depends)."""
    known = list(steps)
    nodes = {f"s{number}": f"{number}. {title}" for number, title, _ in known}
    edges = [(f"s{need}", f"s{number}") for number, _, depends in known for need in depends]
    return Drawing(nodes, tuple(edge for edge in edges if edge[0] in nodes))


def method_drawing(graph: Dependencies) -> Drawing:
    """Entries and what they need."""
    nodes = {_ident(i): f"{entry.number} {entry.name or entry.title}" for i, entry in graph.entries.items()}
    return Drawing(nodes, tuple((_ident(n), _ident(i)) for i, needs in graph.edges.items() for n in needs))


def module_drawing(graph: Dependencies) -> Drawing:
    """Modules and the modules their entries need."""
    modules = list(dict.fromkeys(entry.module for entry in graph.entries.values() if entry.module))
    ids = {module: f"m{at}" for at, module in enumerate(modules, 1)}
    edges: dict[tuple[str, str], None] = {}
    for ident, needs in graph.edges.items():
        user = graph.entries[ident].module
        for need in needs:
            module = graph.entries[need].module
            if module and user and module != user:
                edges[ids[module], ids[user]] = None
    return Drawing({ids[module]: module for module in modules}, tuple(edges))


def decision_drawing(document: Document) -> Drawing:
    """Decisions and what they affect: entries that follow them, and sections they name."""
    nodes = {_ident(d.id): f"{d.id} {d.title}" for d in document.decisions}
    titles = {section.id: section.title.strip("`") for section in document.sections}
    edges: dict[tuple[str, str], None] = {}

    def add(decision: str, target: str, label: str) -> None:
        nodes.setdefault(_ident(target), label)
        edges[_ident(decision), _ident(target)] = None

    for decision in document.decisions:
        for text in decision.affects:
            if text in titles or text in document.decision_by_id:
                add(decision.id, text, f"{text} {titles.get(text, '')}".strip())
    for entry in document.entries:
        for ident in entry.decisions:
            if ident in document.decision_by_id:
                add(
                    ident,
                    entry.full_name if entry.folded else entry.number,
                    f"{entry.number} {entry.name or entry.title}",
                )
    return Drawing(nodes, tuple(edges))


def _ident(text: str) -> str:
    return "n" + "".join(c if c.isascii() and c.isalnum() else "_" for c in text)


def mermaid(drawing: Drawing) -> str:
    """A Mermaid flowchart."""
    lines = ["flowchart LR"]
    lines += [f'    {ident}["{_mermaid_label(label)}"]' for ident, label in drawing.nodes.items()]
    lines += [f"    {a} --> {b}" for a, b in drawing.edges]
    return "\n".join(lines) + "\n"


def _mermaid_label(label: str) -> str:
    text = label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("`", "")


def dot(drawing: Drawing, name: str = "plan") -> str:
    """A Graphviz digraph."""
    lines = [f"digraph {_quoted(name)} {{", "    rankdir=LR;", "    node [shape=box];"]
    lines += [f"    {ident} [label={_quoted(label)}];" for ident, label in drawing.nodes.items()]
    lines += [f"    {a} -> {b};" for a, b in drawing.edges]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
