"""Generated blocks that are in a file: where they begin and end, and whether their seal holds.

A block is read without the pattern library: the seal alone says whether somebody edited it. Two shapes hold a
piece of the author's code, their *hole*: a bound return (`_result = <expression>` … `return _result`) and a wrapped
statement. The seal covers everything but the hole.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from codegen.expand.reading.canonical import HOLE, canonical, digest_of
from codegen.expand.reading.comments import Comment, Layout
from codegen.expand.reading.marks import EndMark, ImportMark, Mark, Opener, is_prose
from codegen.expand.reading.parsing import first_line, last_line, statements_between, suites_of

Seal = Literal["whole", "edited", "empty", "broken", "cut"]
Shape = Literal["plain", "return", "wrap"]
MAX_WRAP_DEPTH = 4


@dataclass(frozen=True)
class Block:
    """One generated block. Lines are those of the file as it is.

    `first`..`last` is what the tool wrote (the author's annotation line is not in it). `form` is the canonical
    text of what stands there, the hole left out. `broken`: the end mark is missing, or the text is not Python; `cut`:
    the marks do not enclose whole statements of one suite. `returns`: the lines hold a return statement, which may
    be the author's.
    """

    openers: tuple[Opener, ...]
    end: EndMark | None
    first: int
    last: int
    body_first: int
    body_last: int
    seal: Seal
    shape: Shape = "plain"
    form: str = ""
    hole: ast.stmt | None = None
    has_comments: bool = False
    returns: bool = False

    @property
    def replaceable(self) -> bool:
        """Whether everything between the marks was generated, but for a hole that is known."""
        if self.end is None or self.seal in ("broken", "cut"):
            return False
        return self.hole is not None or not (self.place == "return" and self.returns)

    @property
    def place(self) -> str | None:
        """Where a remote block stands; None for a block below its annotation."""
        return self.openers[0].place if self.openers else None

    @property
    def tag(self) -> str:
        """Tag of the block's first opener, or of its end mark."""
        return self.openers[0].tag if self.openers else (self.end.tag if self.end else "")


def read_blocks(
    tree: ast.Module,
    marks: Sequence[Mark],
    layout: Layout,
    wraps: Callable[[str], bool] = lambda id: False,
) -> tuple[list[Block], list[Block], list[EndMark]]:
    """Blocks with an opener; blocks whose annotation is gone but whose seal holds; end marks that fit nothing.

    `wraps` says whether a pattern encloses a statement, so that an edited block of such a pattern is read as one.
    """
    blocks: list[Block] = []
    loose: list[EndMark] = []
    current: list[Opener] = []
    for mark in marks:
        if isinstance(mark, ImportMark) or (isinstance(mark, Opener) and not _may_own(mark, layout)):
            continue
        if isinstance(mark, EndMark):
            if current:
                blocks.append(_read(tree, tuple(current), mark, layout, wraps))
            else:
                loose.append(mark)
            current = []
        elif _joins(current, mark):
            current.append(mark)
        else:
            blocks.extend(_unclosed(current))
            current = [mark]
    blocks.extend(_unclosed(current))
    orphans = [(mark, _orphan(tree, mark, layout.comments)) for mark in loose]
    return blocks, [block for _, block in orphans if block], [mark for mark, block in orphans if block is None]


def _may_own(mark: Opener, layout: Layout) -> bool:
    """Whether a block can stand below an opening. Inside brackets only at the end of a statement that a formatter
    wrapped in parentheses, with nothing but the closing one below."""
    if is_prose(mark) or mark.comment.depth > 1:
        return False
    return not mark.comment.depth or layout.logical_end(mark.line) == mark.line + 1


def _joins(current: Sequence[Opener], mark: Opener) -> bool:
    """Whether a remote opening goes on with the group above it."""
    if not current or mark.place is None:
        return False
    return current[-1].place == mark.place and current[-1].last_line + 1 == mark.line


def _unclosed(current: Sequence[Opener]) -> list[Block]:
    """A remote opening without its end mark is a broken block; an annotation without one is just unexpanded."""
    if not current or current[0].place is None:
        return []
    first, last = current[0].line, current[-1].last_line
    return [Block(tuple(current), None, first, last, last + 1, last, "broken")]


def _read(
    tree: ast.Module,
    openers: tuple[Opener, ...],
    end: EndMark,
    layout: Layout,
    wraps: Callable[[str], bool],
) -> Block:
    comments = layout.comments
    above = openers[-1].last_line if not openers[-1].comment.depth else layout.logical_end(openers[-1].line)
    body_first, body_last = above + 1, end.line - 1
    first = openers[0].line if openers[0].place else body_first
    inside_comments = comments[
        bisect_left(comments, body_first, key=_line_of) : bisect_right(comments, body_last, key=_line_of)
    ]
    has_comments = bool(inside_comments)
    statements = statements_between(tree, body_first, body_last)

    def block(seal: Seal, shape: Shape = "plain", form: str = "", hole: ast.stmt | None = None) -> Block:
        inner = has_comments
        if hole is not None:
            inside = range(first_line(hole), last_line(hole) + 1)
            inner = any(comment.line not in inside for comment in inside_comments)
        returns = any(isinstance(node, ast.Return) for s in statements or () for node in ast.walk(s))
        return Block(openers, end, first, end.line, body_first, body_last, seal, shape, form, hole, inner, returns)

    if statements is None:
        return block("cut")
    if not statements:
        return block("edited" if has_comments else "empty")
    if bound := bound_return(statements) if openers[0].place == "return" else None:
        form = canonical(statements, {id(bound.value): HOLE})
        return block(_seal(form, end), "return", form, bound)
    form = canonical(statements)
    if openers[0].place is None and digest_of(form) != end.digits:
        for hole in wrap_holes(statements):
            wrapped = canonical(statements, {id(hole): HOLE})
            if digest_of(wrapped) == end.digits:
                return block(_seal(wrapped, end), "wrap", wrapped, hole)
        items = openers[0].notation.items if openers[0].notation else ()
        if any(wraps(item.id) for item in items) and (holes := wrap_holes(statements)):
            return block("edited", "wrap", form, holes[-1])
    return block(_seal(form, end) if end.tag == openers[0].tag else "edited", "plain", form)


def _line_of(comment: Comment) -> int:
    return comment.line


def _seal(form: str, end: EndMark) -> Seal:
    return "whole" if digest_of(form) == end.digits else "edited"


def bound_return(statements: Sequence[ast.stmt]) -> ast.Assign | None:
    """The binding of a returned value, when the statements begin with it and end by returning the name."""
    binding, leaving = statements[0], statements[-1]
    if (
        isinstance(binding, ast.Assign)
        and isinstance(leaving, ast.Return)
        and isinstance(leaving.value, ast.Name)
        and len(binding.targets) == 1
        and isinstance(binding.targets[0], ast.Name)
        and binding.targets[0].id == leaving.value.id
    ):
        return binding
    return None


def wrap_holes(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Statements that a wrapper may enclose: the only statement of the first suite, one and more levels down."""
    holes: list[ast.stmt] = []
    suite: Sequence[ast.stmt] = statements
    while len(suite) == 1 and len(holes) < MAX_WRAP_DEPTH:
        outer = suite[0]
        if not isinstance(outer, ast.Try | ast.With | ast.AsyncWith) or len(outer.body) != 1:
            break
        suite = outer.body
        holes.append(suite[0])
    return holes


def _orphan(tree: ast.Module, mark: EndMark, comments: Sequence[Comment]) -> Block | None:
    """The statements right above a lone mark that its digits seal, as a block; None if there are none."""
    suite = _suite_before(tree, mark)
    statements: list[ast.stmt] = []
    for statement in reversed(suite):
        statements.insert(0, statement)
        form = canonical(statements)
        if digest_of(form) == mark.digits:
            first = first_line(statement)
            inner = any(first <= comment.line < mark.line for comment in comments)
            return Block((), mark, first, mark.line, first, mark.line - 1, "whole", "plain", form, None, inner)
    return None


def _suite_before(tree: ast.Module, mark: EndMark) -> list[ast.stmt]:
    """Statements before the mark in the innermost suite whose column the mark has."""
    best: list[ast.stmt] = []
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        for _, suite in suites_of(node):
            before = [statement for statement in suite if last_line(statement) < mark.line]
            fits = bool(before) and before[-1].col_offset == mark.comment.column
            if fits and (not best or last_line(best[-1]) <= last_line(before[-1])):
                best = before
            inside = [statement for statement in suite if first_line(statement) < mark.line]
            if inside:
                stack.append(inside[-1])
    return best
