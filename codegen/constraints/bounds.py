"""What the annotations of Section 5 claim of parameters and fields, in the language of constraints.

An annotation is rendered by its own pattern, and the condition of the check is what it claims: so every pattern whose
condition is a comparison counts, the project's own included. What a pattern checks that is no comparison (a type, a
file) says nothing here; nor does a check of each element, or of a value that is neither a parameter nor a field.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.constraints.kinds import Clash, infer
from codegen.constraints.language import Constraint, NotInLanguage, read_constraint
from codegen.constraints.quantities import Quantities
from codegen.drift.section import Documented
from codegen.patterns import BadArgument, Library, RenderError, Site, UnknownPattern, parse_use, render

_AFTERWARDS = frozenset({"AST_POSTCONDITION", "AST_ENSURES", "AST_UNCHANGED", "AST_MONOTONIC", "AST_UNREACHABLE"})


@dataclass(frozen=True)
class Bound:
    """One annotation as a constraint over full names."""

    text: str
    constraint: Constraint
    line: int


def bounds_of(documented: Documented, quantities: Quantities, library: Library) -> Iterator[Bound]:
    """The bounds that a definition's annotations set."""
    if not documented.promises:
        return
    names = _names_of(documented, quantities)
    for text, line in documented.promises:
        condition = _condition(text.partition(": ")[2], names, library)
        if condition is not None:
            try:
                constraint = read_constraint(ast.unparse(condition))
                infer([constraint.tree], quantities.kinds)
            except (NotInLanguage, Clash):
                continue
            if constraint.names and all(_is_known(name, quantities) for name in constraint.names):
                yield Bound(text, constraint, line)


def _is_known(name: str, quantities: Quantities) -> bool:
    if name.startswith("len("):
        return name[4:-1] in quantities.by_name
    return name in quantities.by_name and quantities.by_name[name].is_scalar


def _names_of(documented: Documented, quantities: Quantities) -> dict[str, str]:
    """Name as an annotation writes it → full name of the quantity."""
    own = documented.full_name
    if documented.definition.kind == "class":
        return {f"self.{last}": f"{own}.{last}" for last in quantities.below(own)}
    names = {last: f"{own}.{last}" for last in quantities.below(own)}
    if documented.definition.owner:
        owner = own.rpartition(".")[0]
        names |= {f"self.{last}": f"{owner}.{last}" for last in quantities.below(owner)}
    return names


def _condition(use: str, names: dict[str, str], library: Library) -> ast.expr | None:
    """What must hold, with full names; None where that cannot be told."""
    try:
        pattern = library.get(use.partition("(")[0].strip())
        bound = parse_use(pattern, use)
        target = bound.target
        if pattern.placement != "here" or pattern.id in _AFTERWARDS or pattern.target == "none":
            return None
        if pattern.target == "expression":
            rendered = render(pattern, bound, Site(expression=target))
        else:
            if target is None and len(plain := [name for name in names if not name.startswith("self.")]) == 1:
                target = plain[0]
            if target is None or (bound.each or "none") != "none":
                return None
            rendered = render(pattern, bound, Site(target=target, label=target))
    except (BadArgument, RenderError, UnknownPattern, SyntaxError):
        return None
    body = ast.parse(rendered).body
    if len(body) != 1:
        return None
    statement = body[0]
    test: ast.expr
    if isinstance(statement, ast.Assert):
        test = statement.test
    elif isinstance(statement, ast.If) and not statement.orelse and isinstance(statement.body[-1], ast.Raise):
        inner = statement.test
        negated = isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.Not)
        test = inner.operand if isinstance(inner, ast.UnaryOp) and negated else ast.UnaryOp(ast.Not(), inner)
    else:
        return None
    return _Renamed(names).visit(test)


class _Renamed(ast.NodeTransformer):
    """Local names become full ones."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._full(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return self._full(node)

    def _full(self, node: ast.expr) -> ast.expr:
        name = self.names.get(ast.unparse(node))
        return ast.parse(name, mode="eval").body if name else node
