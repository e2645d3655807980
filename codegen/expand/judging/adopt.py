"""Recognise hand-written code that already makes a planned check, so that it can be taken under management.

Equivalent means: the same statements with the same conditions and error types. Messages and the names of
temporary variables may differ.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codegen.expand.planning.planned import Planned
from codegen.expand.reading.canonical import canonical
from codegen.expand.reading.comments import Comment
from codegen.expand.reading.parsing import first_line, last_line


def twin_of(planned: Planned, tree: ast.Module, comments: Sequence[Comment]) -> range | None:
    """Base lines right below the site whose code makes the planned check; None if the code there does not.

    Code whose variables are used elsewhere is more than a check.
    """
    wanted = ast.parse(planned.code).body
    if not any(isinstance(node, ast.Raise | ast.Assert) for statement in wanted for node in ast.walk(statement)):
        return None
    found = list(planned.following[: len(wanted)])
    if planned.shape != "plain" or len(found) < len(wanted) or not equivalent(found, wanted):
        return None
    lines = range(planned.after + 1, last_line(found[-1]) + 1)
    between = range(planned.after + 1, first_line(found[0]))
    inside = {id(node) for statement in found for node in ast.walk(statement)}
    stored = {n.id for s in found for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if any(isinstance(n, ast.Name) and n.id in stored and id(n) not in inside for n in ast.walk(tree)):
        return None
    if any(comment.line in lines for comment in comments) or len(between) > 1:
        return None
    return lines


def equivalent(left: Sequence[ast.stmt], right: Sequence[ast.stmt]) -> bool:
    """Whether two runs of statements make the same check."""
    return _loose(left) == _loose(right)


def _loose(statements: Sequence[ast.stmt]) -> str:
    holes: dict[int, str] = {}
    names: dict[str, str] = {}
    nodes = [node for statement in statements for node in ast.walk(statement)]
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.setdefault(node.id, f"temporary {len(names)}")
        elif isinstance(node, ast.Assert) and node.msg is not None:
            holes[id(node.msg)] = "message"
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            holes.update((id(part), "message") for part in (*node.exc.args, *node.exc.keywords))
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in names:
            holes[id(node)] = names[node.id]
    return canonical(statements, holes)
