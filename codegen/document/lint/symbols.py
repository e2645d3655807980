"""Section 2 against the code: paths and APIs that it names must exist, or be planned in Sections 5 and 6."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.diagnostics import Finding
from codegen.document.codebase import Codebase
from codegen.document.lint.codes import finding
from codegen.document.model import Document
from codegen.document.references import References
from codegen.document.rows import bare

SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PATH = re.compile(r"[\w.@+*-]+(/[\w.@+*-]+)*/?$")
FILE_ENDS = (".py", ".md", ".yaml", ".yml", ".toml", ".json", ".cfg", ".txt", ".sh", ".pyi")
DOTTED = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)+)(\(.*\).*)?$")


def check_symbols(document: Document, references: References, code: Codebase) -> Iterator[Finding]:
    """Findings SYM001 to SYM003."""
    for root in document.front.roots:
        if not code.has_path(root) and document.front.status != "draft":
            line = document.front.lines.get("roots", 1)
            yield finding(document, line, "SYM003", f"the code root {root!r} does not exist", "Correct the path.")
    chapter = next((s for s in document.sections if s.level == 2 and s.id == "2"), None)
    if chapter is None:
        return
    planned = {path.rstrip("/") for step in document.steps for path in step.files}
    fenced = {n for fence in document.fences for n in range(fence.line, fence.line_end + 1)}
    for number in range(chapter.line, chapter.line_end + 1):
        if number in fenced:
            continue
        for span in SPAN.findall(bare(document, number)):
            text = span.strip()
            if _is_path(text):
                # `rich.json` may be a module as well as a file
                if not code.has_path(text) and not code.has_name(text) and not _planned(text, planned, document):
                    message = f"`{text}` does not exist"
                    yield finding(document, number, "SYM001", message, "Correct the path, or plan it in Section 6.")
            elif (match := DOTTED.match(text)) and match.group(1).split(".")[0] in code.packages:
                name = match.group(1)
                known = references.names(name)
                if not known and not code.has_name(name):
                    message = f"`{name}` is not in the code and not in Section 5"
                    yield finding(document, number, "SYM002", message, "Correct the name.")


def _is_path(text: str) -> bool:
    if not PATH.match(text) or text.startswith(("-", "http")):
        return False
    return text.endswith(FILE_ENDS) if "/" not in text else not text.startswith("/") and " " not in text


def _planned(path: str, planned: set[str], document: Document) -> bool:
    path = path.rstrip("/")
    if any(file == path or file.startswith(path + "/") or file.endswith("/" + path) for file in planned):
        return True
    modules = {module.name.replace(".", "/") for module in document.modules}
    stem = path.removesuffix(".py")
    return any(module == stem or module.startswith(stem + "/") or module.endswith("/" + stem) for module in modules)
