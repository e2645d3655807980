"""What a change took away: validations of other code in the step's files, and tests there were before.

What the step's own entries say is Section 5's business, and `codegen drift` holds them to it. Everything else in a file
keeps its annotations, guards and asserts. In a test file whatever was there stays as it was; adding is free.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from codegen.diagnostics import Finding
from codegen.drift.promises import read_promises
from codegen.drift.signatures import read_definitions
from codegen.expand.judging.kept import lost_checks

_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SWEEPING = {"pytestmark", "collect_ignore", "collect_ignore_glob", "__test__", "skip", "importorskip", "exit", "_exit"}


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
    for gone in lost_checks(old, new or "", spans):
        findings.append(Finding(path, 0, 0, "AUD005", f"a check was deleted: {gone.shown}", fix=fix))
    return findings


def weakened_tests(path: str, old: str, new: str | None) -> list[Finding]:
    """Tests, helpers and module code of `old` that `new` lacks or changed, and what is new and acts on them all."""
    fix = "Put it back. If the test is wrong, a person changes it, or allows it with --allow AUD006."
    known, tree = ast.parse(old), ast.parse(new or "")
    before, after = dict(_parts(known.body, "")), dict(_parts(tree.body, ""))
    findings: list[Finding] = []
    for name, (shape, _) in before.items():
        if name in after and after[name][0] == shape:
            continue
        line = after[name][1] if name in after else 0
        what = "was changed" if name in after else "was removed"
        findings.append(Finding(path, line, 0, "AUD006", f"{_named(name)}, there before this step, {what}", fix=fix))
    bound = _bindings(known)
    for name, shapes in _bindings(tree).items():
        for shape, line in shapes.items():
            if name in bound and shape not in bound[name]:
                message = f"{name}, there before this step, means something else now"
                findings.append(Finding(path, line, 0, "AUD006", message, fix=fix))
    return [*findings, *sweeping(path, new or "", old)]


def sweeping(path: str, new: str, old: str | None) -> list[Finding]:
    """What is new in a test file and acts on tests that it does not name: marks, hooks, automatic fixtures, skips."""
    known = {shape for shape, _, _ in _sweeps(ast.parse(old or "").body)}
    fix = "Name the tests that it is for. A person may allow it with --allow AUD006."
    return [
        Finding(path, line, 0, "AUD006", f"`{text}` acts on all tests, also on those there before this step", fix=fix)
        for shape, text, line in _sweeps(ast.parse(new).body)
        if shape not in known
    ]


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


def _bindings(tree: ast.Module) -> dict[str, dict[str, int]]:
    """What each name of a module is bound to by imports and assignments, with the lines."""
    found: dict[str, dict[str, int]] = {}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            origin = f"{'.' * node.level}{node.module or ''}:" if isinstance(node, ast.ImportFrom) else ""
            for each in node.names:
                name = each.asname or each.name.partition(".")[0]
                found.setdefault(name, {})[f"{origin}{each.name if each.asname or origin else name}"] = node.lineno
        elif not isinstance(node, (*_DEFS, ast.ClassDef)):
            for part in ast.walk(node):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store | ast.Del):
                    found.setdefault(part.id, {})[ast.dump(node)] = node.lineno
        else:
            found.setdefault(node.name, {})["defined"] = node.lineno
    return found


def _sweeps(body: list[ast.stmt]) -> Iterator[tuple[str, str, int]]:
    for node in body:
        text = ast.unparse(node).partition("\n")[0]
        if isinstance(node, ast.ClassDef):
            yield from _sweeps(node.body)
        elif isinstance(node, _DEFS):
            automatic = any("autouse=True" in ast.unparse(each) for each in node.decorator_list)
            if automatic or node.name.startswith("pytest_") or node.name == "load_tests":
                yield ast.dump(node), f"def {node.name}", node.lineno
        elif isinstance(node, ast.Raise) or _SWEEPING & set(re.findall(r"\w+", _heads(node))):
            yield ast.dump(node), text, node.lineno


def _heads(node: ast.stmt) -> str:
    """What a loose statement assigns to, and what it calls."""
    names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
    return " ".join([*names, *(ast.unparse(part.func) for part in ast.walk(node) if isinstance(part, ast.Call))])
