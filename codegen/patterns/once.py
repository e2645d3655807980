"""Evaluate an argument once: bind it to a name where the check would read it several times, or in a loop.

An argument is source text that the template may repeat: in the condition and in the message, or for each element. Text
that only reads names and calculates may be repeated; a call may not, for it may answer differently, or be slow.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from codegen.patterns.model import Bound, Pattern
from codegen.patterns.source import BadSource, elements, is_literal, parse, quiet_parse

_PURE = frozenset({"len", "min", "max", "abs", "int", "float", "str", "bool", "round", "isinstance", "type", "range"})
_READING = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Slice, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare,
    ast.IfExp, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.JoinedStr, ast.FormattedValue, ast.Lambda, ast.arguments,
    ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
_INNER = (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)


@dataclass(frozen=True)
class Bindings:
    """Arguments bound before the check: source of each by the name it is bound to, and the argument it belongs to."""

    sources: Mapping[str, str] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)

    @property
    def lines(self) -> list[str]:
        """The assignments."""
        return [f"{name} = {text}" for name, text in self.sources.items()]

    def renamed(self, text: str) -> str:
        """Source in which bound expressions are read from their names."""
        if not self.sources:
            return text
        names = {ast.dump(parse(source)): name for name, source in self.sources.items()}
        node = parse(text)
        if not any(isinstance(n, ast.expr) and ast.dump(n) in names for n in ast.walk(node)):
            return text
        return ast.unparse(_Rename(names).visit(node))

    def only(self, names: frozenset[str]) -> Bindings:
        """The bindings of these names."""
        return Bindings({name: text for name, text in self.sources.items() if name in names}, self.owners)


class _Rename(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit(self, node: ast.AST) -> ast.AST:
        name = self.names.get(ast.dump(node)) if isinstance(node, ast.expr) else None
        return ast.Name(name, ast.Load()) if name else self.generic_visit(node)


def repeatable(text: str) -> bool:
    """Whether reading the text twice gives what reading it once gives, at no cost that matters."""
    return all(isinstance(node, _READING) or _is_pure(node) for node in ast.walk(parse(text)))


def _is_pure(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _PURE and not node.keywords
    )


def bindings(pattern: Pattern, bound: Bound, fresh: Callable[[str], str]) -> Bindings:
    """A name for each argument with a call in it, or for each such element of an argument written out."""
    sources: dict[str, str] = {}
    owners: dict[str, str] = {}
    for parameter in pattern.parameters:
        text = bound.values[parameter.name]
        if not text or is_literal(text) or not _calls(text):
            continue
        parts = _parts(text) if parameter.type == "display" else [text]
        for number, part in enumerate(parts, 1):
            if _calls(part):
                stem = parameter.name if len(parts) == 1 else f"{parameter.name}_{number}"
                name = fresh(f"{stem}_given" if f'fresh("{stem}")' in pattern.template else stem)
                sources[name], owners[name] = part, parameter.name
    return Bindings(sources, owners)


def _calls(text: str) -> bool:
    """Whether the text calls, or goes through, something."""
    return any(isinstance(node, ast.Call | ast.comprehension) for node in ast.walk(parse(text)))


def _parts(text: str) -> list[str]:
    try:
        return elements(text)
    except BadSource:
        return [text]


def repeated(code: str, wanted: Bindings) -> frozenset[str]:
    """The bound names that the code needs: what it would otherwise evaluate several times."""
    tree = quiet_parse(code, "exec")
    found: set[str] = set()
    for name, text in wanted.sources.items():
        reads = list(_reads(tree, name, False))
        if any(inside for inside in reads) or (len(reads) > 1 and not repeatable(text)):
            found.add(name)
    return frozenset(found)


def _reads(node: ast.AST, name: str, inside: bool) -> Iterator[bool]:
    """For each place where the name is read: whether it is read again and again there."""
    if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
        yield inside
        return
    first = node.generators[0].iter if isinstance(node, _INNER) else getattr(node, "iter", None)
    loop = isinstance(node, (ast.For, ast.AsyncFor, ast.While, *_INNER))
    for child in ast.iter_child_nodes(node):
        if child is first or not isinstance(node, _INNER):
            yield from _reads(child, name, inside or (loop and child is not first))
        elif isinstance(child, ast.comprehension):
            for part in ast.iter_child_nodes(child):
                yield from _reads(part, name, inside or part is not first)
        else:
            yield from _reads(child, name, True)
