"""Say in words what an expression claims, and which values explain its failure.

Only values whose reading cannot fail once the claim was evaluated are shown: a name or attribute chain that every
evaluation reads; behind `and`, `or`, `if` or a chained comparison, only the local name at its root.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping

from codegen.patterns.source import is_simple, parse

MAX_VALUES = 5
_BUILTINS = frozenset(dir(builtins))


def empty_check(text: str) -> str | None:
    """For `len(X) > 0` and its equals: the source of X."""
    node = parse(text)
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.left, ast.Call):
        return None
    call, right = node.left, node.comparators[0]
    if not isinstance(call.func, ast.Name) or call.func.id != "len" or len(call.args) != 1 or call.keywords:
        return None
    limit = right.value if isinstance(right, ast.Constant) and type(right.value) is int else None
    if (type(node.ops[0]), limit) not in {(ast.Gt, 0), (ast.GtE, 1), (ast.NotEq, 0)}:
        return None
    source = ast.unparse(call.args[0])
    return source if is_simple(source) else None


def replace_names(text: str, names: Mapping[str, str]) -> str:
    """The expression with names replaced by other expressions; the text itself when none occurs."""
    node = parse(text)
    if not any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node)):
        return text
    return ast.unparse(_Replace(names).visit(node))


def shown_values(text: str) -> list[str]:
    """Sources of the values that explain why the claim failed, in reading order."""
    found = list(dict.fromkeys(_values(parse(text), True, frozenset())))
    return found[:MAX_VALUES]


class _Replace(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return parse(self.names[node.id]) if node.id in self.names else node


def _values(node: ast.AST, certain: bool, inner: frozenset[str]) -> Iterator[str]:
    """Depth first; `certain` is whether every evaluation reads this node, `inner` the comprehension names."""
    if isinstance(node, ast.Name):
        bare_self = not certain and node.id in ("self", "cls")
        if node.id not in _BUILTINS | inner and not _is_class(node.id) and not bare_self:
            yield node.id
    elif isinstance(node, ast.Attribute | ast.Subscript):
        yield from _place(node, certain, inner)
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield from _values(node.func.value, certain, inner)
        elif not isinstance(node.func, ast.Name):
            yield from _values(node.func, certain, inner)
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            yield from _values(argument, certain, inner)
    elif isinstance(node, ast.Lambda):
        names = frozenset(a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg))
        yield from _values(node.body, False, inner | names)
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        yield from _comprehension(node, certain, inner)
    else:
        for index, child in enumerate(_children(node)):
            yield from _values(child, certain and _always_read(node, index), inner)


def _children(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.IfExp):
        return [node.test, node.body, node.orelse]
    return list(ast.iter_child_nodes(node))


def _always_read(node: ast.AST, index: int) -> bool:
    """Whether evaluating the node always evaluates that child. Operators count as children."""
    if isinstance(node, ast.BoolOp):
        return index <= 1
    if isinstance(node, ast.IfExp):
        return index == 0
    if isinstance(node, ast.Compare):
        return index <= len(node.ops) + 1
    return True


def _place(node: ast.Attribute | ast.Subscript, certain: bool, inner: frozenset[str]) -> Iterator[str]:
    root: ast.expr = node
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    if isinstance(root, ast.Name) and _is_class(root.id):
        return
    if certain and isinstance(root, ast.Name) and is_simple(ast.unparse(node)) and not names & inner:
        yield ast.unparse(node)
        if isinstance(node, ast.Subscript):
            yield from _values(node.slice, certain, inner)
        return
    yield from _values(node.value, certain, inner)
    if isinstance(node, ast.Subscript):
        yield from _values(node.slice, certain, inner)


def _comprehension(
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, certain: bool, inner: frozenset[str]
) -> Iterator[str]:
    """Only the first iterable is always read; the loop names exist nowhere else."""
    first = node.generators[0].iter
    yield from _values(first, certain, inner)
    names = frozenset(n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name))
    for child in ast.iter_child_nodes(node):
        for part in ast.iter_child_nodes(child) if isinstance(child, ast.comprehension) else [child]:
            if part is not first:
                yield from _values(part, False, inner | names)


def _is_class(name: str) -> bool:
    """Whether a name reads as a class, whose repr explains nothing."""
    return name[:1].isupper() and any(c.islower() for c in name)
