"""Plan a pattern that encloses the statement below its annotation."""

from __future__ import annotations

import ast

from codegen.expand.meaning.checks import Check
from codegen.expand.meaning.effects import refuse_yield_inside
from codegen.expand.meaning.references import require_names
from codegen.expand.model import SiteError
from codegen.expand.planning.code import code_of
from codegen.expand.planning.planned import HOLE_NAME
from codegen.expand.planning.state import HERE, Planning
from codegen.expand.reading.canonical import HOLE
from codegen.expand.reading.marks import Opener
from codegen.expand.reading.parsing import first_line


def plan_wrap(planning: Planning, opener: Opener, check: Check) -> None:
    """Plan the block that takes the statement's place and holds it. Raises SiteError."""
    place, below, id_ = check.place, check.place.below, check.item.id
    if not opener.comment.own_line or place.clause or place.speaks_of or below is None:
        raise SiteError("wrap", f"{id_} encloses a statement", "Put it on its own line right above that statement.")
    if isinstance(below, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        raise SiteError("wrap", f"{id_} cannot enclose a definition", "Put it above a statement.")
    if first_line(below) != opener.last_line + 1:
        raise SiteError("wrap", f"{id_} does not touch its statement", "Put it on the line right above.")
    # The statement moves into the block and further right, so no line of it may hold anything else.
    planning.alone(place.suite, place.index, "statement")
    planning.unmarked(below, "that statement")
    refuse_yield_inside(below, id_)
    require_names(check, place.suite, first_line(below) - 1)
    code = code_of(planning, check, place.suite)
    tree = ast.parse(code)
    hole = next((node for node in ast.walk(tree) if _is_hole(node)), None)
    if hole is None:
        raise SiteError("pattern-defect", f"{id_} leaves its statement out", f"Correct {check.pattern.path}.")
    waits = any(isinstance(node, ast.AsyncWith | ast.Await | ast.AsyncFor) for node in ast.walk(tree))
    if waits and not isinstance(place.function, ast.AsyncFunctionDef):
        raise SiteError("wrap", f"{id_} needs an async function", "Use it where a call is awaited.")
    # Without an await inside, time would pass and the deadline never come: nothing can be cancelled.
    if waits and not any(isinstance(n, ast.Await | ast.AsyncWith | ast.AsyncFor) for n in ast.walk(below)):
        raise SiteError("wrap", f"the statement below {id_} awaits nothing", "Put it above the awaited call.")
    planning.add(
        ("own", opener.line),
        first_line(below) - 1,
        place.suite,
        code,
        [check],
        HERE,
        {id(hole): HOLE},
        tree.body,
        below,
    )


def _is_hole(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and node.value.id == HOLE_NAME
