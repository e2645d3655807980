"""What a change took away: validations of other code in the step's files, and tests there were before.

What the step's own entries say is Section 5's business, and `codegen drift` holds them to it. Everything else in a file
keeps its annotations, guards and asserts. In a test file whatever was there stays as it was; adding is free.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from codegen.diagnostics import Finding
from codegen.drift.promises import read_promises
from codegen.drift.signatures import read_definitions
from codegen.expand.unmanaged import find_unmanaged

_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_test(path: str) -> bool:
    """Whether a file holds tests, by its name or its folder."""
    pure = PurePosixPath(path)
    name = pure.name
    return name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py" or "tests" in pure.parts


def lost_validations(path: str, old: str, new: str | None, own: Iterable[str]) -> list[Finding]:
    """Annotations, guards and asserts of `old` that `new` lacks, outside of the definitions named by `own`."""
    mine = set(own)
    fix = "Put it back; what an older step validates is not this step's to drop."
    findings: list[Finding] = []
    before, after = _promises(old), _promises(new or "")
    for name, texts in before.items():
        if name not in mine:
            for text in (Counter(texts) - Counter(after.get(name, ()))).elements():
                message = f"{name or 'the module'}: the validation `{text}` was deleted"
                findings.append(Finding(path, 0, 0, "AUD004", message, fix=fix))
    tree = ast.parse(old)
    spans = [range(each.line, each.end_line + 1) for name, each in read_definitions(tree).items() if name in mine]
    guards = Counter(
        found.message.partition("; ")[0]
        for found in find_unmanaged(old, path)
        if not any(found.line in span for span in spans)
    )
    left = Counter(found.message.partition("; ")[0] for found in find_unmanaged(new or "", path))
    for text in (guards - left).elements():
        findings.append(Finding(path, 0, 0, "AUD005", f"a check was deleted: {text.partition(': ')[2]}", fix=fix))
    return findings


def weakened_tests(path: str, old: str, new: str | None) -> list[Finding]:
    """Tests, helpers and module code of `old` that `new` lacks or changed, and new marks that skip."""
    fix = "Put it back. If the test is wrong, a person changes it, or allows it with --allow AUD006."
    before = dict(_parts(ast.parse(old).body, ""))
    tree = ast.parse(new or "")
    after = dict(_parts(tree.body, ""))
    findings: list[Finding] = []
    for name, (shape, _) in before.items():
        if name in after and after[name][0] == shape:
            continue
        line = after[name][1] if name in after else 0
        what = "was changed" if name in after else "was removed"
        findings.append(Finding(path, line, 0, "AUD006", f"{_named(name)}, there before this step, {what}", fix=fix))
    return findings


def empty_tests(path: str, new: str, old: str | None) -> list[Finding]:
    """New test functions that check nothing, as warnings."""
    known = {name for name, _ in _parts(ast.parse(old or "").body, "")}
    findings: list[Finding] = []
    for name, node in _functions(ast.parse(new).body, ""):
        if node.name.startswith("test") and name not in known and not any(map(_checks, ast.walk(node))):
            message = f"{name} checks nothing"
            findings.append(Finding(path, node.lineno, 0, "AUD007", message, "warning", "Assert what it is about."))
    return findings


def _promises(text: str) -> dict[str, list[str]]:
    definitions = read_definitions(ast.parse(text))
    found = read_promises(text, definitions.values()).promises
    return {name: [promise.text for promise in group] for name, group in found.items()}


def _parts(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, tuple[str, int]]]:
    """Every function, class member and loose statement of a test file, by a name that stays when others are added."""
    seen: Counter[str] = Counter()
    for node in body:
        if isinstance(node, ast.ClassDef):
            head = ast.dump(ast.ClassDef(node.name, node.bases, node.keywords, [], node.decorator_list))
            yield f"{prefix}{node.name}", (head, node.lineno)
            yield from _parts(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, _DEFS):
            yield f"{prefix}{node.name}", (ast.dump(node), node.lineno)
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            shape = ast.dump(node)
            seen[shape] += 1
            text = ast.unparse(node)
            yield f"{prefix}`{text}`#{seen[shape]}", (shape, node.lineno)


def _named(name: str) -> str:
    text = name.partition("#")[0] if "`" in name else name
    return text if len(text) <= 90 else f"{text[:87]}…`"


def _functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, _DEFS):
            yield f"{prefix}{node.name}", node


def _checks(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func).rpartition(".")[2].lower()
        return name.startswith(("assert", "raises", "warns", "fail", "check", "expect"))
    return False
