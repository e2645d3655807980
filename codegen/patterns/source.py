"""Source text of expressions: parse it, tidy it, embed it. Nothing here evaluates what it is given.

Text that passes `parse` is one expression on one line, so it can be put inside another line of code.
"""

from __future__ import annotations

import ast
import warnings
from typing import Literal, overload

MAX_LENGTH = 2000
MAX_DEPTH = 100
_EAGER = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
_LOOSE = (ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.Tuple, ast.GeneratorExp)
_OPPOSITES: dict[type[ast.cmpop], str] = {
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in", ast.Eq: "!=", ast.NotEq: "==",
}  # fmt: skip
_SIMPLE = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Slice, ast.UnaryOp, ast.expr_context, ast.unaryop)


class BadSource(ValueError):
    """Text that is not one plain expression."""


@overload
def quiet_parse(text: str, mode: Literal["eval"]) -> ast.Expression: ...
@overload
def quiet_parse(text: str, mode: Literal["exec"]) -> ast.Module: ...
def quiet_parse(text: str, mode: Literal["eval", "exec"]) -> ast.AST:
    """`ast.parse` without Python's warnings about the style of the text: the author's linter gives them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, mode=mode)


def parse(text: str) -> ast.expr:
    """The expression of that text. Raises BadSource for anything else, side effects included."""
    if len(text) > MAX_LENGTH:
        raise BadSource(f"longer than {MAX_LENGTH} characters")
    try:
        quiet_parse(text.strip(), "eval")
        call = quiet_parse(f"f({text.strip()}\n)", "eval").body
    except SyntaxError as error:
        raise BadSource(f"not an expression: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadSource(f"not an expression: {error or type(error).__name__}") from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.keywords:
        raise BadSource("not one expression")
    if len(call.args) != 1 or isinstance(call.args[0], ast.Starred):
        raise BadSource("not one expression")
    node = call.args[0]
    if _depth(node) > MAX_DEPTH:
        raise BadSource(f"nested deeper than {MAX_DEPTH} levels")
    for inner in ast.walk(node):
        if isinstance(inner, _EAGER) or (isinstance(inner, ast.comprehension) and inner.is_async):
            raise BadSource("a check must not assign, await or yield")
    return node


def tidy(text: str) -> str:
    """The text on one line without comments, as the author wrote it where possible."""
    node = parse(text)
    text = text.strip()
    return ast.unparse(node) if any(mark in text for mark in "\n\r\f\v\\#") else text


def operand(text: str) -> str:
    """The text as it can be written beside a comparison: parentheses around what binds less tightly."""
    node = parse(text)
    loose = isinstance(node, _LOOSE) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
    return f"({text})" if loose and not enclosed(text, node) else text


def negated(text: str) -> str:
    """The source of a condition for the opposite; only its truth counts.

    The opposite of an order is `not a < b`: NaN is neither below nor above. Parts of `and` and `or` are turned round
    one by one where that takes no more words than one `not` around them.
    """
    node = parse(text)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and not text.startswith("("):
        return text.removeprefix("not").strip()
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPPOSITES:
        return f"{_part(text, node.left)} {_OPPOSITES[type(node.ops[0])]} {_part(text, node.comparators[0])}"
    if isinstance(node, ast.BoolOp):
        if enclosed(text, node):
            return negated(text[1:-1].strip())
        turned = _turned(text, node)
        nots = sum(part.startswith("not ") for part in turned)
        if nots <= 1 + sum(isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not) for value in node.values):
            return (" or " if isinstance(node.op, ast.And) else " and ").join(turned)
    loose = isinstance(node, ast.BoolOp | ast.IfExp | ast.Lambda) and not enclosed(text, node)
    return f"not ({text})" if loose else f"not {text}"


def _turned(text: str, node: ast.BoolOp) -> list[str]:
    """The opposite of each part of `and` or `or`, in brackets where it binds less tightly."""
    found = []
    for value in node.values:
        opposite = negated(ast.get_source_segment(f"f({text.strip()}\n)", value) or ast.unparse(value))
        loose = isinstance(parse(opposite), ast.BoolOp | ast.IfExp | ast.Lambda) and not enclosed(
            opposite, parse(opposite)
        )
        found.append(f"({opposite})" if loose else opposite)
    return found


def _part(text: str, node: ast.expr) -> str:
    """Source of a part of an expression that `parse` has read, as an operand."""
    return operand(ast.get_source_segment(f"f({text.strip()}\n)", node) or ast.unparse(node))


def atom(text: str) -> str:
    """The text as it can be written before a dot or between arithmetic operators."""
    node = parse(text)
    tight = (
        ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.SetComp,
        ast.DictComp, ast.JoinedStr,
    )  # fmt: skip
    is_number = isinstance(node, ast.Constant) and text[0] in "0123456789."
    if isinstance(node, tight) or enclosed(text, node) or (isinstance(node, ast.Constant) and not is_number):
        return text
    return f"({text})"


def is_simple(text: str) -> bool:
    """Whether reading the expression twice is as good as once: names, attributes, subscripts, constants."""
    return all(isinstance(node, _SIMPLE) for node in ast.walk(parse(text)))


def is_literal(text: str) -> bool:
    """Whether the text is a constant, or a container of constants."""
    try:
        ast.literal_eval(parse(text))
    except ValueError:
        return False
    except (TypeError, RecursionError, MemoryError):
        return False
    return True


def elements(text: str) -> list[str]:
    """Sources of the elements of a tuple, list or set display. Raises BadSource for another expression."""
    node = parse(text)
    if not isinstance(node, ast.Tuple | ast.List | ast.Set):
        raise BadSource("not a list or tuple written out")
    if any(isinstance(item, ast.Starred) for item in node.elts):
        raise BadSource("starred elements cannot be told apart before the code runs")
    return [ast.unparse(item) for item in node.elts]


def parses_as(text: str, kind: Literal["import"]) -> bool:
    """Whether the text is one import statement."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return False
    return len(body) == 1 and isinstance(body[0], ast.Import | ast.ImportFrom)


def _depth(node: ast.AST) -> int:
    """Levels of the tree, counted without recursion."""
    deepest, pending = 0, [(node, 1)]
    while pending:
        at, level = pending.pop()
        deepest = max(deepest, level)
        pending += [(child, level + 1) for child in ast.iter_child_nodes(at)]
    return deepest


def enclosed(text: str, node: ast.expr) -> bool:
    """Whether one pair of brackets spans the whole text."""
    if isinstance(node, ast.Tuple | ast.GeneratorExp):
        # The parentheses belong to these nodes themselves: f(…) adds two columns before them.
        return text.startswith("(") and node.col_offset == 2 and node.end_col_offset == len(text) + 2
    return text.startswith("(") and text.endswith(")") and node.col_offset > 2 and _balanced(text[1:-1])


def _balanced(inner: str) -> bool:
    try:
        quiet_parse(f"({inner})", "eval")
        parse(inner)
    except (SyntaxError, BadSource):
        return False
    return True
