"""Prove an expanded text before it is written: it parses, the author's code is what it was, a second pass is idle.

Two parsers have to accept the text, the running interpreter's and libcst's; the latter only if it accepted the text
from before. A text that fails is never written.
"""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_right
from dataclasses import dataclass

from codegen.expand.model import FileReport
from codegen.expand.reading.blocks import Block
from codegen.expand.reading.file import Reading
from codegen.expand.reading.parsing import first_line, last_line, same_tree, suites_of


@dataclass(frozen=True)
class Expansion:
    """The report on one file, and the file taken apart where it holds marks."""

    report: FileReport
    reading: Reading | None = None


def problem_of(first: Expansion, second: Expansion, adopted: bool) -> str | None:
    """What is wrong with the first expansion's text, given the expansion of that text; None when it holds.

    With `adopted`, hand-written checks became blocks, so the author's code is not compared.
    """
    old, new, text = first.reading, second.reading, first.report.text
    assert text is not None and old is not None
    if (problem := _libcst_problem(text)) and not _libcst_problem(old.source.text):
        return problem
    if second.report.refused:
        return second.report.findings[0].message if second.report.findings else "it cannot be read again"
    if new is None:
        return "the annotations are gone"
    if problem := _compile_problem(old.source.text, text):
        return problem
    if not adopted and new.base.lines != old.base.lines:
        return "taking the blocks out again does not give the text from before"
    if not second.report.clean or second.report.changed or second.report.text != text:
        return "a second expansion would change it again"
    if not adopted and not same_tree(_without_blocks(new), old.base_tree):
        return "the code outside the blocks is not what it was"
    return None


def _compile_problem(old: str, new: str) -> str | None:
    """What the compiler, which runs nothing, refuses in the new text and not in the old: a `global` after a use."""
    refusal = _refusal(new)
    return f"Python refuses the result: {refusal}" if refusal and not _refusal(old) else None


def _refusal(text: str) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "<expansion>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return str(error)
    return None


def _libcst_problem(text: str) -> str | None:
    import libcst

    try:
        libcst.parse_module(text)
    except libcst.ParserSyntaxError as error:
        return f"libcst cannot parse the result: {error.message}"
    except RecursionError:
        return "libcst cannot parse the result: nested too deeply"
    return None


def _without_blocks(reading: Reading) -> ast.Module:
    """The tree of the text with the statements of all blocks taken out, and what they hold put back."""
    blocks = sorted(reading.all_blocks, key=_begin)
    imports = {mark.line for mark in reading.imports}
    waiting: list[ast.AST] = [reading.tree]
    while waiting:
        node = waiting.pop()
        for _, suite in suites_of(node):
            suite[:] = _kept(suite, blocks, imports)
            waiting.extend(suite)
    return reading.tree


def _begin(block: Block) -> int:
    return block.body_first


def _kept(suite: list[ast.stmt], blocks: list[Block], imports: set[int]) -> list[ast.stmt]:
    kept: list[ast.stmt] = []
    for statement in suite:
        line = first_line(statement)
        if line in imports:
            continue
        at = bisect_right(blocks, line, key=_begin)
        block = blocks[at - 1] if at and line <= blocks[at - 1].body_last else None
        if block is None or (block.shape == "wrap" and _inside(block.hole, line)):
            kept.append(statement)
        elif block.hole is not None and (statement is block.hole or block.shape == "wrap"):
            kept.append(_restored(block))
    return kept


def _inside(hole: ast.stmt | None, line: int) -> bool:
    """Whether a line belongs to the author's statement in a wrapper."""
    return hole is not None and first_line(hole) <= line <= last_line(hole)


def _restored(block: Block) -> ast.stmt:
    assert block.hole is not None
    if block.shape == "return":
        assert isinstance(block.hole, ast.Assign)
        return ast.Return(block.hole.value)
    return block.hole
