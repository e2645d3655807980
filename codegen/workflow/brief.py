"""The brief of a step: all that is needed to implement it, and nothing of the rest of the document.

A brief is derived from the document alone, holds no status and changes only when what it says changes; so its file
under `steps/` can be checked for freshness. It is made to fit a budget of tokens: first the decisions shrink to their
titles, then the dependencies to their names. What still does not fit is a step to be cut in two.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codegen.diagnostics import Finding, UsageError
from codegen.document.fold import long_lines
from codegen.document.model import Document, Entry, Fence, Step
from codegen.document.reasons import Reasons
from codegen.document.references import References
from codegen.drift.promises import read_promises
from codegen.drift.signatures import read_definitions
from codegen.drift.sketch import signature_lines
from codegen.patterns import Library, UnknownPattern
from codegen.workflow.ledger import came_before
from codegen.workflow.target import Target

FOLDER = "steps"
_LEVELS = ("whole", "decisions by title", "dependencies by name")


@dataclass(frozen=True)
class Brief:
    """The text, its estimated tokens, and how far it had to be shortened."""

    text: str
    tokens: int
    budget: int
    shortened: str

    @property
    def fits(self) -> bool:
        return self.tokens <= self.budget


def brief(target: Target, library: Library, budget: int | None = None) -> Brief:
    """The brief of a step, in the longest form that fits the budget; the shortest where none does."""
    limit = budget or target.config.brief_tokens
    for level in range(len(_LEVELS)):
        text = "\n".join(_lines(target, library, level)).rstrip() + "\n"
        tokens = estimate_tokens(text)
        if tokens <= limit:
            break
    return Brief(text, tokens, limit, _LEVELS[level])


def estimate_tokens(text: str) -> int:
    """About how many tokens a language model reads: four ASCII characters make one, any other character is one."""
    ascii_count = sum(character.isascii() for character in text)
    return -(-ascii_count // 4) + len(text) - ascii_count


def stale_briefs(targets: list[Target], root: Path, library: Library) -> list[Finding]:
    """Briefs that are missing for a step that has begun, that say something else than the document, or that belong
    to no step."""
    findings: list[Finding] = []
    known: set[Path] = set()
    for target in targets:
        path = root / target.brief_path
        known.add(path)
        if target.step.folded:
            if target.step.commit and not path.is_file():  # a record is written once, by the step's commit
                message = f"the record of Step {target.step.number} is gone: its files and tests are not known"
                findings.append(Finding(target.brief_path, 1, 1, "STEP001", message, fix="Take it back from git."))
            continue
        fix = f"Run `codegen step brief {target.step.number} --doc {target.document.id}`."
        if not path.is_file():
            if target.step.status != "NOT_STARTED" and not came_before(target.step):
                message = f"Step {target.step.number} is {target.step.status} and has no brief"
                findings.append(Finding(target.brief_path, 1, 1, "STEP001", message, fix=fix))
        elif path.read_text(encoding="utf-8") != brief(target, library).text:
            message = f"the brief of Step {target.step.number} is not what the document says now"
            findings.append(Finding(target.brief_path, 1, 1, "STEP002", message, fix=fix))
    for folder in {path.parent for path in known}:
        for path in sorted(folder.glob("step_*.md")) if folder.is_dir() else []:
            if path not in known:
                shown = path.relative_to(root).as_posix()
                message = "this brief belongs to no step of the document"
                findings.append(Finding(shown, 1, 1, "STEP003", message, fix="Remove the file."))
    return findings


def _lines(target: Target, library: Library, level: int) -> Iterator[str]:
    document, step = target.document, target.step
    yield from (f"# Step {step.number}: {step.title}", "")
    yield from (f"Rendered from `{target.document_path}` by `codegen step brief {step.number}`; not edited.", "")
    yield from _facts(document, step)
    needed = _dependencies(target)
    if needed:
        yield from ("## What it builds on", "")
        yield from _dependency_lines(needed, document, by_name=level >= 2)
    decisions = [document.decision_by_id[ident] for ident in _decisions(target)]
    if decisions:
        yield from ("## Decisions to follow", "")
        for decision in decisions:
            outcome = decision.text("outcome")
            yield f"- {decision.id}: {decision.title}{f'. {outcome}' if outcome and level < 1 else ''}"
        yield ""
    yield from ("## What to write", "")
    for entry in target.entries:
        yield from _entry_lines(document, entry)
    patterns = list(_pattern_lines(target, library))
    if patterns:
        yield from ("## Patterns used", "", *patterns, "")


def _facts(document: Document, step: Step) -> Iterator[str]:
    for name in ("purpose", "depends", "files", "checkpoints", "tests", "rollback"):
        if name == "depends":
            titles = [document.step_by_number[n] for n in step.depends if n in document.step_by_number]
            value = "; ".join(f"Step {each.number} ({each.title})" for each in titles)
        elif name == "files":
            value = ", ".join(f"`{path}`" for path in step.files)
        else:
            value = getattr(step, name)
        if value:
            yield f"- {name}: {value}"
    yield ""


def _dependencies(target: Target) -> list[Entry]:
    """Entries outside the step that its entries need, in document order."""
    references = References(target.document)
    own = {entry.id for entry in target.entries}
    needed = {ident for entry in target.entries for ident in references.deps(entry)} - own
    return [entry for entry in target.document.entries if entry.id in needed]


def _dependency_lines(entries: list[Entry], document: Document, by_name: bool) -> Iterator[str]:
    if by_name:
        yield from (f"- {entry.number} `{entry.full_name or entry.title}`" for entry in entries)
        yield ""
        return
    module = ""
    lines: list[str] = []
    for entry in entries:
        if entry.module != module:
            module = entry.module
            lines += [*([""] if lines else []), f"# {module}"]
        lines += [line for line in signatures_of(entry)]
    yield from ("```python", *lines, "```", "")


def signatures_of(entry: Entry) -> list[str]:
    """The heads of an entry's definitions, each on its own lines, qualified by comment where they are methods."""
    lines: list[str] = []
    for fence in entry.fences:
        tree = _tree(entry, fence)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                lines += _class_signature(fence.code, node)
        definitions = read_definitions(tree)
        for definition in definitions.values():
            if definition.kind == "function" and not definition.owner:
                heading = next((name for name in entry.names if name.endswith(f".{definition.name}")), "")
                note = f"  # {heading}" if heading else ""
                head = signature_lines(definition)
                lines += [*head[:-1], f"{head[-1]} ...{note}"]
    return lines


def _tree(entry: Entry, fence: Fence) -> ast.Module:
    try:
        return ast.parse(fence.code)
    except SyntaxError as error:
        raise UsageError(f"entry {entry.number}: its fence is not Python: {error}; run `codegen lint`") from error


def _class_signature(code: str, node: ast.ClassDef) -> list[str]:
    source = code.split("\n")
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    lines = source[first - 1 : node.body[0].lineno - 1] or [source[node.lineno - 1].split(":")[0] + ":"]
    lines = [line for line in lines if not line.lstrip().startswith("# ")]
    tree = ast.Module([node], [])
    body: list[str] = []
    for statement in node.body:
        if isinstance(statement, (ast.AnnAssign, ast.Assign)):
            body += source[statement.lineno - 1 : statement.end_lineno]
    for definition in read_definitions(tree).values():
        if definition.owner == node.name and definition.kind == "function":
            head = signature_lines(definition)
            body += [*(f"    {line}" for line in head[:-1]), f"    {head[-1]} ..."]
    return lines + (body or ["    ..."])


def _decisions(target: Target) -> list[str]:
    """The decisions that the step's entries follow, in document order."""
    reasons = Reasons(target.document)
    named = {ident for entry in target.entries for ident in reasons.of_entry(entry)}
    return [decision.id for decision in target.document.decisions if decision.id in named]


def _entry_lines(document: Document, entry: Entry) -> Iterator[str]:
    """An entry as the document has it, one heading level higher, without its decisions."""
    if entry.folded:
        yield from (re.sub(r"^#+ ", "### ", line) for line in long_lines(entry) if not line.startswith("- decisions:"))
        yield ""
        return
    first, last = entry.line, entry.line_end
    lines = [line.rstrip("\r\n") for line in document.lines[first - 1 : last]]
    hidden = {
        number
        for name in ("decisions", "tests")
        if name in entry.fields
        for number in range(entry.fields[name].line, entry.fields[name].line_end + 1)
    }
    module = f" (`{entry.module}`)" if entry.module else ""
    yield re.sub(r"^#+", "###", lines[0]) + module
    for number, line in enumerate(lines[1:], first + 1):
        if number not in hidden or not line.strip():
            yield line
    if lines[-1].strip():
        yield ""


def _pattern_lines(target: Target, library: Library) -> Iterator[str]:
    found: dict[str, None] = {}
    for entry in target.entries:
        for fence in entry.fences:
            promises = read_promises(fence.code, read_definitions(_tree(entry, fence)).values()).promises
            for promise in (each for group in promises.values() for each in group):
                found[promise.text.partition(": ")[2].partition("(")[0]] = None
    for ident in sorted(found):
        try:
            yield f"- {ident}: {library.get(ident).summary}"
        except UnknownPattern as error:
            raise UsageError(f"{error}; run `codegen lint`") from error
