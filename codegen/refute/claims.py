"""Which functions of an expanded file carry claims, and which of them a search can call.

A claim is the block of an AST annotation. One at the head of its function, with nothing but other checks before it,
says what callers have to give: an input that breaks it is none of the function's. Every other claim is the
function's own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from codegen.expand.reading.blocks import Block
from codegen.expand.reading.file import Reading
from codegen.expand.reading.parsing import Function, first_line, is_docstring, last_line

CLAIM_TAG = "AST"


@dataclass(frozen=True)
class Claim:
    """One claim of a function: its text, its lines in the expanded file, the annotation's line in the file as it is."""

    text: str
    first: int
    last: int
    line: int


@dataclass(frozen=True)
class Subject:
    """A function that carries claims of its own. `reason` says why no search can call it; "" when one can.

    `asked` are the lines of the expanded file whose errors refuse an input; `line` is that of the `def` in the file
    as it is.
    """

    name: str
    line: int
    claims: tuple[Claim, ...]
    asked: tuple[tuple[int, int], ...] = ()
    reason: str = ""
    path: tuple[str, ...] = field(default=())


def subjects(expanded: Reading, original: Reading) -> list[Subject]:
    """The functions with claims of their own, in order. Both readings have the same base."""
    blocks = [block for block in expanded.blocks if any(opener.tag == CLAIM_TAG for opener in block.openers)]
    checks = [(block.first, block.last) for block in expanded.blocks if block.place in (None, "entry")]
    found = []
    for function, path, reason in _functions(expanded.tree, (), ""):
        inside = [b for b in blocks if _innermost(expanded.tree, b) is function]
        head_end = _head_end(function, checks)
        heads = [b for b in inside if b.place in (None, "entry") and b.body_first <= head_end]
        own = [b for b in inside if b not in heads and not _only_snapshots(expanded.tree, b)]
        if not own:
            continue
        asked = tuple((b.body_first, b.body_last) for b in heads)
        claims = tuple(Claim(_text(b), b.body_first, b.body_last, _line(b, function, expanded, original)) for b in own)
        line = _original(function.lineno, expanded, original)
        found.append(Subject(".".join(path), line, claims, asked, reason or _uncallable(function), path))
    return found


def _functions(node: ast.AST, path: tuple[str, ...], reason: str) -> Iterator[tuple[Function, tuple[str, ...], str]]:
    """Each function with its dotted path, and why the module gives no way to it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, (*path, child.name), reason)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child, (*path, child.name), reason
            yield from _functions(child, (*path, child.name), f"it is defined inside {child.name}")
        else:
            yield from _functions(child, path, reason)


def _innermost(tree: ast.Module, block: Block) -> ast.AST | None:
    """The innermost function whose lines hold the block."""
    best: ast.AST | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            holds = node.lineno <= block.body_first and block.body_last <= last_line(node)
            if holds and (best is None or node.lineno > best.lineno):  # type: ignore[attr-defined]
                best = node
    return best


def _head_end(function: Function, checks: Sequence[tuple[int, int]]) -> int:
    """The last line of the checks that stand at the head of the function; the `def` line when there are none."""
    end = function.lineno
    for index, statement in enumerate(function.body):
        if index == 0 and is_docstring(statement):
            continue
        if not any(first <= first_line(statement) <= last for first, last in checks):
            break
        end = last_line(statement)
    return end


def _only_snapshots(tree: ast.Module, block: Block) -> bool:
    """Whether the block claims nothing: it only remembers values for `old`."""
    return not any(
        isinstance(node, ast.Assert | ast.Raise) and block.body_first <= node.lineno <= block.body_last
        for node in ast.walk(tree)
    )


def _text(block: Block) -> str:
    return "; ".join(opener.text for opener in block.openers if opener.tag == CLAIM_TAG)


def _line(block: Block, function: Function, expanded: Reading, original: Reading) -> int:
    """The line of the annotation in the file as it is: found by its place, or for a remote block by its text."""
    opener = block.openers[0]
    if opener.place is None:
        return _original(opener.line, expanded, original)
    near = [o for o in original.openers if opener.text and opener.text in o.text]
    at = _original(function.lineno, expanded, original)
    lines = [original.base.origin[o.line - 1] for o in near]
    return min(lines, key=lambda line: abs(line - at)) if lines else at


def _original(line: int, expanded: Reading, original: Reading) -> int:
    base = expanded.base.line_of(line)
    origin = original.base.origin
    return origin[base - 1] if 0 < base <= len(origin) else line


def _uncallable(function: Function) -> str:
    if isinstance(function, ast.AsyncFunctionDef):
        return "it is async"
    own: list[ast.AST] = list(function.body)
    while own:
        node = own.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return "it is a generator"
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            own.extend(ast.iter_child_nodes(node))
    arguments = function.args
    if arguments.kwarg is not None:
        return f"it takes **{arguments.kwarg.arg}, whose names a search cannot choose"
    decorators = {ast.unparse(d) for d in function.decorator_list}
    if strange := sorted(decorators - {"staticmethod", "classmethod", "property", "override", "functools.cache"}):
        return f"it is decorated with {strange[0]}, which may call it with other arguments"
    plain = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    plain += [arguments.vararg] if arguments.vararg else []
    for index, argument in enumerate(plain):
        receiver = index == 0 and argument.arg in ("self", "cls")
        if argument.annotation is None and not receiver:
            return f"its parameter {argument.arg} has no type"
    return ""
