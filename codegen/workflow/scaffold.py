"""Write what a step's entries define and the code lacks: signature, docstring, annotated body, expanded.

What exists is never touched. Definitions go in the order of Section 5, each after its nearest earlier neighbour that
exists, methods into their class. A body that is only `...` raises NotImplementedError until it is written: silence
would be a wrong answer. Imports are added for names of other modules of the document, of the standard library's usual
ones, and for modules of the standard library that the bodies name.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

from codegen.diagnostics import Finding, UsageError
from codegen.document.model import Document
from codegen.document.store import replace_file
from codegen.drift.code import Code
from codegen.drift.section import Documented, documented_definitions, place_of
from codegen.drift.signatures import Definition, read_definitions
from codegen.workflow.imports import with_imports
from codegen.workflow.target import Target
from codegen.workflow.verify import expand_bytes

_UNIT = "    "
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Scaffold:
    """What was written: full names by file; findings of the expansion that stopped a file from being written; and notes
    on annotations that wait for their body to be written."""

    written: dict[str, tuple[str, ...]]
    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()


def scaffold(target: Target) -> Scaffold:
    """Write the step's missing definitions. UsageError: a method whose class neither exists nor is in the step."""
    code = Code(target.root)
    definitions, bad = documented_definitions(target.document)
    wanted = {entry.id for entry in target.entries}
    for fence in bad:
        if fence.entry.id in wanted:
            raise UsageError(f"{target.document.path}:{fence.line}: the fence is not Python: {fence.reason}")
    by_module: dict[str, list[Documented]] = {}
    for documented in definitions:
        by_module.setdefault(documented.module, []).append(documented)
    written: dict[str, tuple[str, ...]] = {}
    findings: list[Finding] = []
    notes: list[Finding] = []
    for module, all_of_it in by_module.items():
        missing = _missing([each for each in all_of_it if each.entry.id in wanted], code)
        if not missing:
            continue
        path = module_file(target, module)
        file = target.root / path
        new, newline = _read(file) if file.is_file() else (_new_module(target.document, module), "\n")
        for documented in missing:
            new = _inserted(new, documented, all_of_it)
        new = with_imports(new, module, target.document)
        problems, waiting = _write(target, path, new.replace("\n", newline))
        findings += problems
        notes += waiting
        if not problems:
            written[path] = tuple(each.full_name for each in missing)
    return Scaffold(written, tuple(findings), tuple(notes))


def module_file(target: Target, module: str) -> str:
    """Where a module's file is or goes: what the step's `files:` says, else its path below the project or `src`."""
    if not module:
        raise UsageError("an entry is under no module heading; write `### 5.n `package.module`` above it")
    stem = module.replace(".", "/")
    guesses = [f"{stem}.py", f"{stem}/__init__.py", f"src/{stem}.py", f"src/{stem}/__init__.py"]
    for guess in guesses:
        if guess in target.step.files or (target.root / guess).is_file():
            return guess
    return guesses[2] if (target.root / "src" / module.partition(".")[0]).is_dir() else guesses[0]


def _missing(definitions: list[Documented], code: Code) -> list[Documented]:
    """What the code lacks, in document order, members of a missing class left to their class, and of two forms of
    one definition the fuller one."""
    lacking: dict[str, Documented] = {}
    for documented in definitions:
        if place_of(documented, code) is None:
            name = documented.full_name
            if name not in lacking or lacking[name].definition.elided:
                lacking[name] = documented
    inside = {
        f"{each.module}.{sibling.name}"
        for each in lacking.values()
        if each.definition.kind == "class"
        for sibling in each.siblings
        if sibling.owner == each.definition.name
    }
    fuller = {name for name, each in lacking.items() if "." not in each.key and each.definition.owner}
    return [each for name, each in lacking.items() if name not in inside or name in fuller]


def _read(file: Path) -> tuple[str, str]:
    """A file's text with plain line ends, and the line end it has. UsageError: it is not UTF-8, or not Python."""
    try:
        text = file.read_bytes().decode("utf-8")
        newline = "\r\n" if "\r\n" in text else "\n"
        text = text.replace("\r\n", "\n")
        ast.parse(text)
    except (UnicodeDecodeError, SyntaxError) as error:
        raise UsageError(f"{file}: cannot be added to: {error}") from error
    return text, newline


def _new_module(document: Document, module: str) -> str:
    purpose = next((entry.purpose for entry in document.entries if entry.module == module and entry.purpose), "")
    first = purpose.split(". ")[0].rstrip(".") or module.rpartition(".")[2].replace("_", " ").capitalize()
    return f'"""{first}."""\n\nfrom __future__ import annotations\n'


def _inserted(text: str, documented: Documented, order: list[Documented]) -> str:
    """The module's text with one definition more."""
    present = read_definitions(ast.parse(text))
    definition = documented.definition
    if definition.name in present:
        return text
    lines = text.split("\n")
    owner = definition.owner
    if owner and owner not in present:
        place = f"entry {documented.entry.number}"
        raise UsageError(f"{place}: class {owner} does not exist in {documented.module}; do its step first")
    indent = _UNIT * (present[owner].node.col_offset // len(_UNIT) + 1) if owner else ""
    block = [f"{indent}{line}" if line else "" for line in source_of(documented)]
    names = [each.definition.name for each in order if each.definition.owner == owner]
    earlier = [name for name in names[: names.index(definition.name)] if name in present]
    if earlier:
        at = _end(lines, present[earlier[-1]])
    elif owner:
        at = _end(lines, present[owner])
    else:
        at = len(lines)
        while at and not lines[at - 1].strip():
            at -= 1
    gap = [""] if owner else ["", ""]
    tail = lines[at:]
    if not owner and any(line.strip() for line in tail):
        tail = ["", *([""] if tail and tail[0].strip() else []), *tail] if tail and tail[0].strip() else tail
    return "\n".join([*lines[:at], *gap, *block, *(tail or [""])])


def _end(lines: list[str], definition: Definition) -> int:
    """How many lines stand up to the end of a definition, its closing comments included."""
    last = definition.end_line
    for at in range(last, len(lines)):
        stripped = lines[at].lstrip()
        if stripped and not (stripped.startswith("#") and len(lines[at]) - len(stripped) > definition.node.col_offset):
            break
        if stripped:
            last = at + 1
    return last


def source_of(documented: Documented) -> list[str]:
    """A definition as it is written into code: from its fence, with a docstring, elided bodies made loud."""
    node = documented.definition.node
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    annotations = documented.annotated.promises.get(documented.key, ())
    last = max([node.end_lineno or node.lineno, *(promise.last_line for promise in annotations)])
    source = _opened(textwrap.dedent("\n".join(documented.fence_lines[first - 1 : last])))
    tree = ast.parse(source)
    edits: list[tuple[int, int, list[str]]] = []
    if not _is_interface(tree):
        for each in ast.walk(tree):
            if isinstance(each, _FUNCTIONS) and _is_silent(each):
                edits.append(_loud(each, documented))
    top = tree.body[0]
    purpose = documented.entry.purpose
    assert isinstance(top, (*_FUNCTIONS, ast.ClassDef))
    if purpose and ast.get_docstring(top) is None and _is_subject(documented):
        edits.append(_docstring(top, source, purpose))
    lines = source.split("\n")
    for at, until, new in sorted(edits, key=lambda edit: edit[:2], reverse=True):
        lines[at:until] = new
    return lines


def _opened(source: str) -> str:
    """The source with every `def f(): ...` and `class C: ...` on two lines."""
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            body = node.body[0]
            head = lines[body.lineno - 1].encode()[: body.col_offset].decode()
            if head.strip() and not head.rstrip().endswith('"""'):
                tail = lines[body.lineno - 1].encode()[body.col_offset :].decode()
                lines[body.lineno - 1] = f"{head.rstrip()}\n{' ' * node.col_offset}{_UNIT}{tail}"
    return "\n".join(lines)


def _is_subject(documented: Documented) -> bool:
    """Whether the entry's purpose is about this definition: the only one its heading names."""
    names = [name.removeprefix(f"{documented.entry.module}.") for name in documented.entry.names]
    return names[:1] == [documented.definition.name]


def _is_interface(tree: ast.Module) -> bool:
    top = tree.body[0]
    bases = [ast.unparse(base) for base in top.bases] if isinstance(top, ast.ClassDef) else []
    return any(base.rpartition(".")[2].partition("[")[0] == "Protocol" for base in bases)


def _is_silent(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the body ends in `...` though it should do something; abstract methods and overloads should not."""
    if {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list} & {"abstractmethod", "overload"}:
        return False
    last = node.body[-1]
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value is ...


def _loud(node: ast.FunctionDef | ast.AsyncFunctionDef, documented: Documented) -> tuple[int, int, list[str]]:
    last = node.body[-1]
    loud = f'raise NotImplementedError("{documented.entry.number} {documented.definition.name}")'
    return last.lineno - 1, last.lineno, [" " * last.col_offset + loud]


def _docstring(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, source: str, purpose: str
) -> tuple[int, int, list[str]]:
    lines = source.split("\n")
    at = node.lineno
    while at < node.body[0].lineno - 1 and not lines[at - 1].split("#")[0].rstrip().endswith(":"):
        at += 1
    text = " ".join(purpose.split()).replace("\\", "\\\\").replace('"""', "'''")
    wrapped = textwrap.wrap(f'"""{text}', width=100 - len(_UNIT))
    if len(wrapped) == 1:
        wrapped[0] += '"""'
    else:
        wrapped.append('"""')
    gap = [""] if isinstance(node, ast.ClassDef) else []
    return at, at, [*(_UNIT + line for line in wrapped), *gap]


def _write(target: Target, path: str, text: str) -> tuple[list[Finding], list[Finding]]:
    """Write the file with its annotations expanded: (errors, notes). With an error it stays as it was.

    An annotation about a name that its body has still to bind cannot be expanded yet: it stays as its comment.
    """
    data = text.encode("utf-8")
    outcome = expand_bytes(target, path, data, "write")
    errors = [finding for finding in outcome.report.findings if finding.severity == "error"]
    still_open = _open_lines(text)
    waiting = [each for each in errors if each.code == "unresolved-name" and each.line in still_open]
    errors = [each for each in errors if each not in waiting]
    if not errors:
        file = target.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, outcome.new or data)
    fix = "Expand it once the body is written: `codegen expand`."
    return errors, [replace(each, severity="note", fix=fix) for each in waiting]


def _open_lines(text: str) -> set[int]:
    """The lines of functions that do nothing but raise NotImplementedError."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _FUNCTIONS):
            body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
            if all(isinstance(each, ast.Raise) and "NotImplementedError" in ast.unparse(each) for each in body):
                found |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found
