"""The template language of patterns: a small, closed part of Jinja2.

A template may read its variables, branch, loop over the elements of an argument, name a fresh variable and call
the functions listed here. All else is refused when the pattern is loaded: attribute access, arithmetic,
includes, macros, other filters. So rendering cannot reach Python objects, run long or grow without bound.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from codegen.patterns.arguments import UNBOUNDED
from codegen.patterns.messages import escape
from codegen.patterns.source import atom, elements, is_literal, is_simple, operand, parse

if TYPE_CHECKING:
    from jinja2 import nodes
    from jinja2.sandbox import SandboxedEnvironment

    from codegen.patterns.model import Pattern

VARIABLES = frozenset({"target", "label", "function", "each", "expression", "result", "error", "where", "described"})
FUNCTIONS = frozenset({"fresh", "code"})
STATEMENT_NAMES = VARIABLES | FUNCTIONS | {"message", "body", "claim"}
MESSAGE_NAMES = VARIABLES | FUNCTIONS | {"value", "small", "plain", "text", "show"}
MAX_LOOPS = 2


def _unquoted(text: str) -> str:
    """A string literal without its quotes; other source as it is."""
    return str(ast.literal_eval(text)) if _is_string(text) else text


def _is_string(text: str) -> bool:
    return text[:1] in "'\"" and is_literal(text)


def code(form: str, *parts: str) -> str:
    """Source text with each % of the form replaced: `code("len(%)", target)`; as an atom before a dot."""
    texts = form.split("%")
    if len(texts) != len(parts) + 1:
        raise ValueError(f"code({form!r}) has {len(texts) - 1} places for {len(parts)} parts")
    filled = [
        (atom(part) if text.startswith(".") else part) + text for part, text in zip(parts, texts[1:], strict=True)
    ]
    return texts[0] + "".join(filled)


def _repeats(texts: list[str]) -> list[str]:
    """For each source that is a string literal seen before: the position of its first occurrence; else ""."""
    return [str(texts.index(t)) if _is_string(t) and texts.index(t) < n else "" for n, t in enumerate(texts)]


def _is_numeric(text: str) -> bool:
    """Whether the classes named accept int or float and do not name bool."""
    names = {node.id for node in ast.walk(parse(text)) if isinstance(node, ast.Name)}
    return bool(names & {"int", "float"}) and "bool" not in names


FILTERS = {
    "fmt": escape, "operand": operand, "atom": atom, "elements": elements, "repeats": _repeats, "unquoted": _unquoted,
    "join": None, "length": None,
}  # fmt: skip
TESTS = {
    "unset": lambda text: text == "None",
    "unbounded": lambda text: text == "None" or text in UNBOUNDED,
    "on": lambda text: text == "True",
    "literal": is_literal,
    "string": _is_string,
    "simple": is_simple,
    "numeric": _is_numeric,
}


@functools.cache
def environment() -> SandboxedEnvironment:
    """The one environment. Jinja2 is imported here because most runs of the tool render nothing."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    made = SandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False, cache_size=0
    )
    made.globals.clear()
    made.filters = {name: call or made.filters[name] for name, call in FILTERS.items()}
    made.tests = dict(TESTS)
    return made


@functools.cache
def compiled(source: str) -> Any:
    """The template, compiled once per process."""
    return environment().from_string(source)


def template_problems(pattern: Pattern, which: str) -> Iterator[tuple[str, int]]:
    """What the template uses beyond the language: (message, line of the template, from 1)."""
    from jinja2 import TemplateSyntaxError, meta, nodes

    source = pattern.template if which == "template" else pattern.message
    try:
        tree = environment().parse(source)
        refused = list(_refused(tree, 0))
        names = set() if refused else meta.find_undeclared_variables(tree)
    except TemplateSyntaxError as error:
        yield error.message or "syntax error", error.lineno
        return
    except RecursionError:
        yield "nested too deeply", 1
        return
    yield from refused
    known = (STATEMENT_NAMES if which == "template" else MESSAGE_NAMES) | {p.name for p in pattern.parameters}
    for name in sorted(names - known):
        line = next((n.lineno for n in tree.find_all(nodes.Name) if n.name == name), 1)
        yield f"unknown name {name}; a template may use {', '.join(sorted(known))}", line


def _refused(node: nodes.Node, loops: int) -> Iterator[tuple[str, int]]:
    from jinja2 import nodes

    allowed = (
        nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Const, nodes.Test,
        nodes.Not, nodes.And, nodes.Or, nodes.Compare, nodes.Operand, nodes.CondExpr,
    )  # fmt: skip
    problem = None
    if isinstance(node, nodes.Call):
        plain = isinstance(node.node, nodes.Name) and not (node.kwargs or node.dyn_args or node.dyn_kwargs)
        problem = None if plain else "only the listed functions can be called, with plain arguments"
    elif isinstance(node, nodes.Filter):
        problem = None if node.name in FILTERS else f"unknown filter {node.name}"
    elif isinstance(node, nodes.Assign):
        fresh = isinstance(node.node, nodes.Call) and getattr(node.node.node, "name", "") == "fresh"
        problem = None if fresh else "set may only name a fresh variable: {% set x = fresh('x') %}"
    elif isinstance(node, nodes.Getattr):
        loop = getattr(node.node, "name", "") == "loop" and node.attr in ("index0", "first", "last")
        problem = None if loop else "attribute access"
    elif isinstance(node, nodes.Name):
        # Names that Jinja2 itself puts into a template.
        problem = f"unknown name {node.name}" if node.name in ("self", "super", "caller", "varargs", "kwargs") else None
    elif isinstance(node, nodes.Getitem):
        problem = "subscripts"
    elif not isinstance(node, allowed):
        problem = f"{type(node).__name__.lower()} is not part of the template language"
    if isinstance(node, nodes.Test) and node.name not in TESTS:
        problem = f"unknown test {node.name}"
    if isinstance(node, nodes.For):
        loops += 1
        if node.recursive or loops > MAX_LOOPS:
            problem = "loops nested too deeply"
    if problem:
        yield problem, getattr(node, "lineno", 1)
        return
    for child in node.iter_child_nodes():
        yield from _refused(child, loops)
