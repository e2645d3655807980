"""Checks that somebody wrote by hand: guard raises and asserts outside generated blocks.

A guard is an `if` whose suite does nothing but raise a new error (assignments that make its message may precede), or
one that passes where all is well and raises in its `else`. Bare re-raises, other `else: raise` and handlers that
translate errors are control flow, not validation. A comment
`# unmanaged: reason` on the statement's first or last line, or on its own line above, states an exception.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from codegen.diagnostics import Finding
from codegen.expand.reading.blocks import read_blocks
from codegen.expand.reading.comments import Comment, read_layout
from codegen.expand.reading.files import find_files
from codegen.expand.reading.marks import Marks
from codegen.expand.reading.parsing import last_line, parse_python, statements_between
from codegen.expand.reading.source import Unreadable, read_source, split_lines

_REASON = re.compile(r"#\s*unmanaged\b\s*:?\s*(.*?)\s*\Z")
TAGS = frozenset({"VAL", "AST"})
"""Whose blocks count as generated, where the library is not asked."""


def find_unmanaged(source: Path | str, name: str | None = None, tags: Iterable[str] = TAGS) -> list[Finding]:
    """Hand-written checks in a file, in the Python files of a folder, or in a text that `name` names.

    Errors, or notes where a reason is stated. Raises UsageError for a path that does not exist.
    """
    if isinstance(source, Path) and not source.is_file():
        return [found for path in find_files([str(source)]) for found in find_unmanaged(Path(path), tags=tags)]
    path = name or (str(source) if isinstance(source, Path) else "<text>")
    try:
        lines = read_source(source.read_bytes()).lines if isinstance(source, Path) else split_lines(source)
        tree = parse_python("".join(lines))
        layout = read_layout(lines)
    except Unreadable as error:
        return [Finding(path, error.line, 1, "unreadable", str(error), "error", error.fix)]
    except SyntaxError as error:
        return [Finding(path, error.lineno or 1, 1, "syntax", f"not Python: {error.msg}", "error", "Correct the file.")]
    managed = {line for _, block in managed_blocks(tree, "".join(lines), tags) for line in block}
    reasons = {comment.line: comment for comment in layout.comments if _REASON.match(comment.text)}
    found = [
        _finding(path, statement, what, reasons, lines)
        for statement, what in written_by_hand(tree, "".join(lines))
        if statement.lineno not in managed
    ]
    return sorted(found)


def managed_blocks(tree: ast.Module, text: str, tags: Iterable[str] = TAGS) -> list[tuple[list[ast.stmt], range]]:
    """The statements and the lines of each generated block. Raises Unreadable for a text that has no layout."""
    layout = read_layout(split_lines(text))
    blocks, orphans, _ = read_blocks(tree, Marks(tags).find(layout.comments), layout)
    return [
        (
            statements_between(tree, block.body_first, block.body_last) or [],
            range(block.body_first, block.body_last + 1),
        )
        for block in (*blocks, *orphans)
    ]


def _one_line(text: str, node: ast.expr) -> str:
    return " ".join((ast.get_source_segment(text, node) or "…").split())


def written_by_hand(tree: ast.Module, text: str) -> Iterator[tuple[ast.If | ast.Assert, str]]:
    """Every guard and assert of the module, generated or not, and its text on one line."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Assert):
            yield node, f"assert {_one_line(text, node.test)}"
        elif isinstance(node, ast.If) and _guards(node.body):
            yield node, f"if {_one_line(text, node.test)}: raise"
        elif isinstance(node, ast.If) and node.orelse and _passes(node.body) and _guards(node.orelse):
            yield node, f"if not ({_one_line(text, node.test)}): raise"
        if not isinstance(node, ast.expr):
            waiting.extend(ast.iter_child_nodes(node))


def _passes(body: list[ast.stmt]) -> bool:
    return all(isinstance(statement, ast.Pass) for statement in body)


def _guards(body: list[ast.stmt]) -> bool:
    last = body[-1]
    prepared = all(isinstance(s, ast.Assign | ast.AnnAssign) for s in body[:-1])
    return isinstance(last, ast.Raise) and last.exc is not None and prepared


def _finding(path: str, statement: ast.stmt, what: str, reasons: dict[int, Comment], lines: tuple[str, ...]) -> Finding:
    text = what if len(what) <= 80 else what[:77] + "..."
    comment = next((reasons[line] for line in _places(statement, lines) if line in reasons), None)
    column = statement.col_offset + 1
    if comment is None:
        fix = "Annotate it, e.g. `# VAL: …`, or state the exception: `# unmanaged: reason`."
        return Finding(path, statement.lineno, column, "unmanaged", f"hand-written check: {text}", "error", fix)
    matched = _REASON.match(comment.text)
    reason = matched[1] if matched else ""
    if not reason:
        fix = "Write `# unmanaged: reason`."
        return Finding(
            path, statement.lineno, column, "unmanaged", f"an exception without a reason: {text}", "error", fix
        )
    return Finding(path, statement.lineno, column, "unmanaged", f"hand-written check: {text}; {reason}", "note")


def _places(statement: ast.stmt, lines: tuple[str, ...]) -> Iterator[int]:
    """Where the comment may stand: on the header's line, inside, or above with nothing but comments between."""
    yield from range(statement.lineno, last_line(statement) + 1)
    above = statement.lineno - 1
    while above > 0 and lines[above - 1].lstrip().startswith("#"):
        yield above
        above -= 1
