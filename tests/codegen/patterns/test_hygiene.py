"""Every shipped pattern keeps the meaning of the expressions it is given, wherever its template puts them."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from codegen.patterns import Bound, Pattern, Site, bind, load_library, render
from codegen.patterns.source import is_simple

PATTERNS = list(load_library())
EXPRESSIONS = [
    "a or b", "a if b else c", "n - 1", "not a", "a < b", "a, b", "(a, b)", "lambda: a", "-n", "a.b[0]", "f(a)",
    "(i for i in a)", "{1: a}[k]", "a @ b", "a ** b", "[*a]", "a[1:]", "x == 1", "a | b",
]  # fmt: skip
OPEN_TYPES = {"expression", "int", "number", "list", "str"}


def _arguments(used: Pattern, **given: str) -> dict[str, str]:
    stand_ins = {"type": "int", "display": "(p, q)", "bool": "False", "name": "self.name"}
    return {p.name: given.get(p.name, stand_ins.get(p.type, f"arg_{p.name}")) for p in used.parameters}


def _code(pattern: Pattern, target: str | None, arguments: dict[str, str], each: Any = "none") -> ast.Module:
    """The rendered statements, with messages taken out: those show source, so they differ."""
    bound: Bound = bind(pattern, [], arguments)
    site = Site(target=target, label="label", expression="claimed", each=each, body="await body()", binds_calls=False)
    tree = ast.parse(render(pattern, bound, site))
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc.args = []
        if isinstance(node, ast.Assert):
            node.msg = None
    return tree


class _Put(ast.NodeTransformer):
    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.parse(self.text, mode="eval").body if node.id == self.name else node


def _same(left: ast.Module, right: ast.Module) -> bool:
    return ast.dump(left) == ast.dump(right)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.id)
def test_an_argument_means_in_the_code_what_it_means_alone(pattern: Pattern) -> None:
    target = "aim" if pattern.target == "required" else None
    for parameter in pattern.parameters:
        if parameter.type not in OPEN_TYPES:
            continue
        plain = _code(pattern, target, _arguments(pattern))
        for text in EXPRESSIONS:
            if text == "a, b" or ((text == "(a, b)" or text == "[*a]") and parameter.type != "list"):
                continue
            filled = _code(pattern, target, _arguments(pattern, **{parameter.name: text}))
            expected = _Put(f"arg_{parameter.name}", text).visit(ast.parse(ast.unparse(plain)))
            assert _same(filled, expected), f"{parameter.name}={text}\n{ast.unparse(filled)}"


@pytest.mark.parametrize("pattern", [p for p in PATTERNS if p.target == "required"], ids=lambda p: p.id)
def test_a_target_means_in_the_code_what_it_means_alone(pattern: Pattern) -> None:
    for each in ("none", "items", "values") if pattern.elementwise else ("none",):
        plain = _code(pattern, "aim", _arguments(pattern), each)
        for text in EXPRESSIONS:
            if text == "a, b":
                continue
            filled = _code(pattern, text, _arguments(pattern), each)
            if is_simple(text):
                assert _same(filled, _Put("aim", text).visit(ast.parse(ast.unparse(plain)))), text
            else:
                first, *rest = filled.body
                assert ast.unparse(first) == f"_checked = {ast.unparse(ast.parse(text))}"
                expected = _Put("aim", "_checked").visit(ast.parse(ast.unparse(plain)))
                assert _same(ast.Module(rest, []), expected), text


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.id)
def test_a_pattern_declares_the_builtins_and_imports_it_relies_on(pattern: Pattern) -> None:
    target = "aim" if pattern.target == "required" else None
    code = render(
        pattern,
        bind(pattern, [], _arguments(pattern)),
        Site(target=target, label="label", expression="claimed", body="await body()"),
    )
    tree = ast.parse(code)
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    caught = {h.name for h in ast.walk(tree) if isinstance(h, ast.ExceptHandler)}
    own = {*_arguments(pattern).values(), "aim", "claimed", "body", "p", "q", "self", "int", pattern.error}
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - stored - caught - own
    imported = {
        (alias.asname or alias.name).partition(".")[0]
        for line in pattern.imports
        for node in ast.walk(ast.parse(line))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert read <= imported | set(pattern.builtins)
    assert imported <= read


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.id)
def test_a_pattern_stays_within_the_ten_lines_that_may_be_inlined(pattern: Pattern) -> None:
    target = "self.scheduler.pending_trajectories" if pattern.target == "required" else None
    each = "items" if pattern.elementwise else "none"
    site = Site(target, "self.scheduler.pending_trajectories", "shrink_sampler", each, expression="a", body="await b()")
    assert len(render(pattern, bind(pattern, [], _arguments(pattern)), site).splitlines()) <= 10
