"""A layered drawing of an acyclic graph as SVG: no library, no script, the same bytes every time.

Nodes are placed in columns by the longest way that leads to them; within a column they are ordered by the mean place of
what they need, in a few sweeps, which removes most crossings. Edges that would go backwards (a cycle) are drawn
dashed and ignored for the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

HEIGHT, GAP_Y, MARGIN = 44, 14, 12
_SWEEPS = 6
_CHARACTER = 6.9  # pixels, on the wide side for the page's 12 px type


@dataclass(frozen=True)
class Node:
    """`status` names a colour of the page's style sheet; `href` is an anchor on the page."""

    id: str
    title: str
    note: str
    href: str
    status: str


@dataclass(frozen=True)
class Edge:
    """From what is needed to what needs it."""

    start: str
    end: str


@dataclass(frozen=True)
class Shape:
    """Width of a node and of the gap between columns, in pixels."""

    width: int = 190
    gap: int = 70


def draw(
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    label: str,
    shape: Shape = Shape(),
    columns: dict[str, int] | None = None,
) -> str:
    """The graph as an `<svg>` element; `columns` fixes the column of every node instead of the longest way, and then
    the first column keeps its order."""
    if not nodes:
        return ""
    known = {node.id for node in nodes}
    edges = [edge for edge in dict.fromkeys(edges) if {edge.start, edge.end} <= known and edge.start != edge.end]
    place = columns or longest_ways([node.id for node in nodes], edges)
    rows = _ordered(nodes, edges, place, keep_first=columns is not None)
    position = {
        ident: (MARGIN + column * (shape.width + shape.gap), MARGIN + row * (HEIGHT + GAP_Y))
        for column, idents in rows.items()
        for row, ident in enumerate(idents)
    }
    width = 2 * MARGIN + (max(rows) + 1) * (shape.width + shape.gap) - shape.gap
    height = 2 * MARGIN + max(map(len, rows.values())) * (HEIGHT + GAP_Y) - GAP_Y
    parts = [
        f'<svg class="graph" role="img" aria-label="{escape(label)}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">'
    ]
    parts += [_edge(position[edge.start], position[edge.end], shape) for edge in edges]
    parts += [_node(node, *position[node.id], shape) for node in nodes]
    return "\n".join([*parts, "</svg>"])


def longest_ways(nodes: Sequence[str], edges: Iterable[Edge]) -> dict[str, int]:
    """Column of each node: how many edges the longest way to it has. An edge that closes a cycle does not count."""
    needs: dict[str, list[str]] = {node: [] for node in nodes}
    for edge in edges:
        needs[edge.end].append(edge.start)
    found: dict[str, int] = {}
    for first in nodes:
        stack: list[tuple[str, int]] = [(first, 0)]
        open_nodes: dict[str, int] = {}
        while stack:
            node, at = stack.pop()
            if node in found:
                continue
            open_nodes.setdefault(node, 0)
            waiting = [need for need in needs[node][at:] if need not in found and need not in open_nodes]
            if waiting:
                stack += [(node, needs[node].index(waiting[0]) + 1), (waiting[0], 0)]
                continue
            found[node] = max((found[need] + 1 for need in needs[node] if need in found), default=0)
            del open_nodes[node]
    return found


def _ordered(
    nodes: Sequence[Node], edges: Sequence[Edge], place: dict[str, int], keep_first: bool
) -> dict[int, list[str]]:
    rows: dict[int, list[str]] = {}
    for node in nodes:
        rows.setdefault(place[node.id], []).append(node.id)
    around: dict[str, list[str]] = {node.id: [] for node in nodes}
    for edge in edges:
        around[edge.start].append(edge.end)
        around[edge.end].append(edge.start)
    for sweep in range(_SWEEPS):
        for column in sorted(rows, reverse=bool(sweep % 2)):
            if keep_first and column == min(rows):
                continue
            at = {ident: row for idents in rows.values() for row, ident in enumerate(idents)}
            side = [other for other in rows if (other > column if sweep % 2 else other < column)]
            beside = {ident for other in side for ident in rows[other]}

            def mean(ident: str, at: dict[str, int] = at, beside: set[str] = beside) -> float:
                known = [at[other] for other in around[ident] if other in beside]
                return sum(known) / len(known) if known else float(at[ident])

            rows[column] = sorted(rows[column], key=mean)
    return dict(sorted(rows.items()))


def _edge(start: tuple[int, int], end: tuple[int, int], shape: Shape) -> str:
    x1, y1 = start[0] + shape.width, start[1] + HEIGHT // 2
    x2, y2 = end[0], end[1] + HEIGHT // 2
    back = "" if x2 > x1 else ' class="back"'
    bend = max(shape.gap // 2, abs(x2 - x1) // 2)
    return f'<path{back} d="M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"/>'


def _node(node: Node, x: int, y: int, shape: Shape) -> str:
    room = int((shape.width - 20) / _CHARACTER)
    return (
        f'<a href="{escape(node.href)}"><g class="node {escape(node.status)}">'
        f"<title>{escape(node.title)}{escape(f' ({node.note})') if node.note else ''}</title>"
        f'<rect x="{x}" y="{y}" width="{shape.width}" height="{HEIGHT}" rx="7"/>'
        f'<text x="{x + 10}" y="{y + 18}">{escape(_cut(node.title, room))}</text>'
        f'<text class="note" x="{x + 10}" y="{y + 34}">{escape(_cut(node.note, room))}</text></g></a>'
    )


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1].rstrip() + "…"
