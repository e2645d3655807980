"""Layered drawings keep the direction of their edges and come out the same every time."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.view.layers import Edge, Node, draw, longest_ways

pairs = st.tuples(st.integers(0, 9), st.integers(0, 9))


def node(ident: str, title: str = "") -> Node:
    return Node(ident, title or ident, "", f"#{ident}", "done")


@settings(deadline=None, derandomize=True)
@given(st.lists(pairs, max_size=25))
def test_in_an_acyclic_graph_every_edge_goes_to_a_later_column(drawn: list[tuple[int, int]]) -> None:
    edges = [Edge(str(min(pair)), str(max(pair))) for pair in drawn if pair[0] != pair[1]]
    column = longest_ways([str(number) for number in range(10)], edges)
    assert all(column[edge.start] < column[edge.end] for edge in edges)
    assert all(column[n] == 0 for n in column if all(edge.end != n for edge in edges))


@settings(deadline=None, derandomize=True)
@given(st.lists(pairs, max_size=25))
def test_any_graph_has_a_column_for_every_node_and_draws_well_formed(drawn: list[tuple[int, int]]) -> None:
    edges = [Edge(str(start), str(end)) for start, end in drawn]
    nodes = [node(str(number)) for number in range(10)]
    svg = draw(nodes, edges, "any")
    assert svg == draw(nodes, edges, "any")
    root = ElementTree.fromstring(svg)
    boxes = {(rect.get("x"), rect.get("y")) for rect in root.iter("{http://www.w3.org/2000/svg}rect")}
    assert len(boxes) == 10


def test_labels_are_escaped_and_cut_to_the_box() -> None:
    svg = draw([node("a", "<script>" + "x" * 80)], [], 'a "label"')
    assert "<script>" not in svg and "&lt;script&gt;" in svg
    assert 'aria-label="a &quot;label&quot;"' in svg
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", svg)[0]
    assert shown.endswith("…") and len(shown) < 60


def test_no_nodes_draw_nothing() -> None:
    assert draw([], [], "empty") == ""
