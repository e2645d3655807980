"""The annotations in the fences of Section 5 against the pattern library: notation, pattern, arguments; and the code
against Section 5: each function that `codegen expand --extract` made of a long check has a Full Specification.

Where a check would go is not asked: a body in a document may be pseudo-code. `codegen expand` asks it of the code.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from codegen.diagnostics import Finding
from codegen.document.lint.codes import finding
from codegen.document.model import Document, Entry, Fence
from codegen.expand.reading.comments import Comment, read_layout
from codegen.expand.reading.grammar import Item
from codegen.expand.reading.marks import Marks, Opener, is_prose
from codegen.expand.reading.parsing import parse_python
from codegen.expand.reading.source import Unreadable, read_source
from codegen.patterns import BadArgument, Library, UnknownPattern, bind

FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def check_annotations(document: Document, library: Library, marks: Marks) -> Iterator[Finding]:
    """Findings API005 (no such pattern), API006 (notation or arguments) and API007 (prose, expands to nothing)."""
    for entry in document.entries:
        for fence in entry.fences:
            if marks.prefilter.search(fence.code.encode()):
                for opener in _openers(fence, marks):
                    yield from _judge(document, entry, fence.line + opener.line, opener, library)


def check_extracted(document: Document, project: Path, marks: Marks) -> Iterator[Finding]:
    """Findings EXT001: a function made of a long check, below the document's roots, without a Full Specification."""
    specified = {name for entry in document.entries if entry.full_specification for name in entry.full_names}
    line = document.front.lines.get("roots", document.front.line) or 1
    for module, path in _modules(document, project):
        for name in _extracted(path, marks):
            if f"{module}.{name}" not in specified:
                message = f"{module}.{name} is made of a long check and has no Full Specification in Section 5"
                fix = f"Add the heading #### 5.x.y `{name}` - Full Specification, with what must hold, and why."
                yield Finding(str(document.path), line, 1, "EXT001", message, "warning", fix)


def _modules(document: Document, project: Path) -> Iterator[tuple[str, Path]]:
    """Name and path of each module below the document's roots."""
    for root in document.front.roots:
        for base in (project, project / "src"):
            for path in sorted((base / root).rglob("*.py")) or [base / root]:
                yield ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__"), path


def _extracted(path: Path, marks: Marks) -> list[str]:
    """Names of the functions in a file that an expansion made of long checks."""
    if path.suffix != ".py" or not path.is_file() or b" on module: " not in (data := path.read_bytes()):
        return []
    try:
        text = read_source(data).text
        functions = {node.name for node in parse_python(text).body if isinstance(node, FUNCTION)}
    except (Unreadable, SyntaxError):  # `codegen expand --check` names such a file.
        return []
    tags = "|".join(sorted(marks.tags))
    made = re.findall(rf"^# (?:{tags}) on module: .*\n(?:async )?def (\w+)\(", text, re.MULTILINE)
    return [name for name in made if name in functions]


def _openers(fence: Fence, marks: Marks) -> Iterator[Opener]:
    lines = textwrap.dedent(fence.code).rstrip("\n").split("\n")
    try:
        comments = _own_line_comments(lines) or read_layout([f"{line}\n" for line in lines]).comments
    except SyntaxError:
        return
    yield from (mark for mark in marks.find(comments) if isinstance(mark, Opener))


def _own_line_comments(lines: list[str]) -> list[Comment]:
    """The comments, where that is plain without the tokenizer: each has a line of its own and no string spans lines."""
    found: list[Comment] = []
    for number, line in enumerate(lines, 1):
        text = line.lstrip()
        if text.startswith("#"):
            found.append(Comment(number, len(line) - len(text), text.rstrip(), True, 0))
        elif "#" in text or '"""' in text or "'''" in text or text.endswith("\\"):
            return []
    return found


def _judge(document: Document, entry: Entry, line: int, opener: Opener, library: Library) -> Iterator[Finding]:
    problem = opener.problem
    if problem is not None:
        code = "API007" if is_prose(opener) else "API006"
        yield finding(document, line, code, f"{entry.label}: {problem.message}", problem.fix)
    for item in opener.notation.items if opener.notation else ():
        yield from _item(document, entry, line, item, library)


def _item(document: Document, entry: Entry, line: int, item: Item, library: Library) -> Iterator[Finding]:
    try:
        pattern = library.get(item.id)
    except UnknownPattern as error:
        fix = f"Write {error.nearest[0]}." if error.nearest else "`codegen patterns list` names the ids."
        yield finding(document, line, "API005", f"{entry.label}: {error}", fix)
        return
    if pattern.tag != item.tag:
        message = f"{entry.label}: {item.id} is a pattern of {pattern.tag}, not of {item.tag}"
        yield finding(document, line, "API006", message, f"Write `# {pattern.tag}: {item.source}`.")
    try:
        bind(pattern, list(item.positional), dict(item.keywords))
    except BadArgument as error:
        yield finding(document, line, "API006", f"{entry.label}: {error.message}", error.fix)
