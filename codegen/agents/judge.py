"""Judge what an agent left in its tree: first what it took away or hid, then what `codegen step verify` says."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

from codegen.agents.erosion import empty_tests, is_test, lost_validations, sweeping, weakened_tests
from codegen.agents.guard import printable
from codegen.agents.swallowed import placeholders, swallowed
from codegen.agents.tree import Tree
from codegen.diagnostics import Finding
from codegen.drift.section import documented_definitions
from codegen.proof.judge import Proof
from codegen.workflow.git import literal
from codegen.workflow.target import Target, belongs
from codegen.workflow.verify import verify


def own_changes(tree: Tree, target: Target) -> list[str]:
    """The step's files that differ from the base, by name."""
    return sorted(change.path for change in tree.git.changes() if belongs(change.path, list(target.step.files)))


def judge(
    tree: Tree, target: Target, project: Path, allow: Collection[str], say: Callable[[str], None]
) -> tuple[list[Finding], Proof | None]:
    """All findings, and what the tests proved, by the interpreter of `project`. They run when nothing else is wrong."""
    findings = [_allowed(finding, allow) for finding in defensive_audit(tree, target)]
    if any(finding.severity == "error" for finding in findings):
        return findings, None
    result = verify(target, say, project)
    return [*findings, *(_allowed(finding, allow) for finding in result.findings)], result.proof


def defensive_audit(tree: Tree, target: Target) -> list[Finding]:
    """Swallowed errors, open placeholders, lost validations and weakened tests of the step's changed files."""
    own: dict[str, set[str]] = {}
    fences: list[str] = []
    names: list[str] = []
    for documented in documented_definitions(target.document)[0]:
        if any(documented.entry.id == entry.id for entry in target.entries):
            own.setdefault(documented.module, set()).add(documented.definition.name)
            names.append(f"{documented.entry.number} {documented.definition.name}")
    for entry in target.entries:
        fences += [fence.code for fence in entry.fences if _syntax("", fence.code) is None]
    findings = _ignored(tree, target)
    for path in own_changes(tree, target):
        if not path.endswith(".py"):
            continue
        file = tree.root / path
        old = tree.git.show(tree.base, path)
        if _syntax(path, old):
            old = None  # what was no Python before cannot be compared
        new = file.read_bytes().decode("utf-8", "surrogateescape") if file.is_file() else None
        broken = _syntax(path, new)
        if broken:
            findings.append(broken)
            continue
        if new is not None:
            findings += swallowed(path, new, [text for text in (old, *fences) if text])
            findings += placeholders(path, new, names)
        if is_test(path):
            if old is not None:
                findings += weakened_tests(path, old, new)
            elif new is not None and path.endswith("conftest.py"):
                findings += sweeping(path, new, old)
            findings += empty_tests(path, new, old) if new is not None else []
        elif old is not None:
            module = path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            findings += lost_validations(path, old, new, own.get(module, ()))
    return sorted(findings)


def patch(tree: Tree, target: Target) -> str:
    """The step's changes so far as a patch against the base."""
    paths = own_changes(tree, target)
    if not paths:
        return ""
    tree.git.run("add", "--intent-to-add", "--all", "--", *map(literal, paths))
    text = tree.git.run("diff", "--binary", "--no-color", "--no-ext-diff", tree.base, "--", *map(literal, paths))
    tree.unstage()
    return text


def diff_size(tree: Tree, target: Target) -> dict[str, tuple[int, int]]:
    """Lines added and removed by path; (0, 0) for what is not text."""
    paths = own_changes(tree, target)
    if not paths:
        return {}
    tree.git.run("add", "--intent-to-add", "--all", "--", *map(literal, paths))
    text = tree.git.run("diff", "--numstat", "-z", "--no-renames", tree.base, "--", *map(literal, paths))
    tree.unstage()
    found: dict[str, tuple[int, int]] = {}
    for line in filter(None, text.split("\0")):
        added, removed, path = line.split("\t", 2)
        count = (int(added), int(removed)) if added.isdigit() and removed.isdigit() else (0, 0)
        found[printable(path.removeprefix(tree.git.prefix()))] = count
    return found


def _ignored(tree: Tree, target: Target) -> list[Finding]:
    """Files of the step that git ignores: they would be missing where the step goes."""
    names = [literal(path) for path in target.step.files if "*" not in path]
    found = tree.git.run("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", *names) if names else ""
    fix = "Use another name, or a person changes `.gitignore`."
    return [
        Finding(path, 0, 0, "RUN010", "is ignored by git, so the step would lack it", fix=fix)
        for path in found.split("\0")
        if path in target.step.files
    ]


def _syntax(path: str, text: str | None) -> Finding | None:
    """What keeps a file from being read as Python, by the compiler and by the walks over its tree."""
    try:
        compile(text or "", path, "exec", dont_inherit=True)
        ast.dump(ast.parse(text or ""))
    except SyntaxError as error:
        return Finding(path, error.lineno or 0, 0, "AUD008", f"is not Python: {error}", fix="Correct it.")
    except UnicodeEncodeError:
        return Finding(path, 0, 0, "AUD008", "is not text in UTF-8", fix="Correct it.")
    except (ValueError, RecursionError, MemoryError) as error:
        why = str(error) or "nested too deeply"
        return Finding(path, 0, 0, "AUD008", f"cannot be read as Python: {why}", fix="Correct it.")
    return None


def _allowed(finding: Finding, allow: Collection[str]) -> Finding:
    """A finding whose code the person allows is a warning, which the record keeps."""
    return replace(finding, severity="warning") if finding.code in allow and finding.severity == "error" else finding
