"""Cycles in a directed graph (Tarjan's strongly connected components, without recursion)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def components(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The strongly connected components, each in the order of `graph`. Edges to unknown nodes are left out."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    order = {node: at for at, node in enumerate(graph)}
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, edges = work[-1]
            descended = False
            for child in edges:
                if child not in order:
                    continue
                if child not in index:
                    index[child] = low[child] = len(index)
                    stack.append(child)
                    on_stack.add(child)
                    work.append((child, iter(graph[child])))
                    descended = True
                    break
                if child in on_stack:
                    low[node] = min(low[node], index[child])
            if descended:
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == index[node]:
                component: list[str] = []
                while True:
                    member = stack.pop()
                    on_stack.discard(member)
                    component.append(member)
                    if member == node:
                        break
                found.append(sorted(component, key=order.__getitem__))
    return found


def cycles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """One shortest circle in each component that has one, beginning at its first node in the order of `graph`."""
    found: list[list[str]] = []
    for component in components(graph):
        members = set(component)
        start = component[0]
        if len(component) == 1:
            if start in graph[start]:
                found.append([start])
            continue
        found.append(_circle(graph, start, members))
    order = {node: at for at, node in enumerate(graph)}
    return sorted(found, key=lambda circle: order[circle[0]])


def _circle(graph: Mapping[str, Iterable[str]], start: str, members: set[str]) -> list[str]:
    came: dict[str, str] = {}
    queue = [start]
    for node in queue:
        for child in graph[node]:
            if child == start:
                path = [node]
                while path[-1] != start:
                    path.append(came[path[-1]])
                return path[::-1]
            if child in members and child not in came:
                came[child] = node
                queue.append(child)
    raise AssertionError(f"no cycle through {start}: the component is not strongly connected")
