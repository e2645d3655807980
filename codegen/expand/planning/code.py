"""Make a function of a check that is too long to stand inline.

The function is a generated block at module level, above the top-level statement that holds the site; what stands
at the site is its call. It takes the local names that the check reads.
"""

from __future__ import annotations

import ast
import re

from codegen.expand.meaning.checks import Check
from codegen.expand.meaning.effects import changing_calls, refuse_recursion, refuse_used_up
from codegen.expand.meaning.fits import misfits, other_pattern, words
from codegen.expand.meaning.snapshots import texts_of
from codegen.expand.meaning.types import scope_at
from codegen.expand.model import SiteError
from codegen.expand.planning.planned import GUARD_LINES, MAX_INLINE_LINES
from codegen.expand.planning.rendering import render_check
from codegen.expand.planning.state import MODULE, Planning
from codegen.expand.reading.parsing import first_line, last_line
from codegen.expand.reading.scopes import Fresh, bound_in, imported_names, names_in, parameters_of
from codegen.expand.reading.suites import Suite


def code_of(planning: Planning, check: Check, suite: Suite, result: str | None = None) -> str:
    """The check's code at zero indentation; what it imports is noted. Raises SiteError."""
    code = render_check(check, planning.tree, planning.scope_of(check.place).fresh, suite, planning.options, result)
    _judge(planning, check, code)
    for statement in check.imports:
        planning.plan.imports.setdefault(statement, []).append(check)
    # The `try` around the condition is no part of the validation that somebody has to read.
    guard = GUARD_LINES if "\nexcept Exception as" in f"\n{code}" else 0
    if len(code.splitlines()) - guard <= MAX_INLINE_LINES:
        return code
    name = function_name(planning, check)
    if not planning.options.extract and name not in planning.extracted:
        raise SiteError(
            "too-long",
            f"{check.item.id} takes {len(code.splitlines())} lines here; a pattern may have {MAX_INLINE_LINES}",
            "Run `codegen expand --extract`, which makes a function of it.",
        )
    return extract_function(planning, check, name, code, suite.unit)


def _judge(planning: Planning, check: Check, code: str) -> None:
    """Refuse a check that its operands' types cannot bear, or that would change what it checks. Raises SiteError."""
    suite, id = check.place.speaks_of or check.place.suite, check.item.id
    scope = scope_at(suite)
    texts = texts_of(check.bound)
    refuse_recursion(texts, check.place.function, suite, scope, id)
    refuse_used_up("\n".join((code, *check.olds)), id, scope)
    other = other_pattern(id, check.bound.values.get("mapping"), scope)
    if other is not None:
        kind, pattern = other
        raise SiteError("wrong-type", f"{id} asks for keys, and {kind} has none", f"Use {pattern} for its elements.")
    imported = [name for text in check.imports for name in imported_names(text)]
    for problem in words(misfits(code, scope, imported)):
        raise SiteError("wrong-type", f"{id}: {problem}", "Name the value that is meant, or take another pattern.")
    for call in changing_calls(texts, suite, scope):
        message = f"{id}: `{call}` may change what is checked, each time it is checked"
        planning.warn_once(check.opener, "impure-check", message, "Call it in the code, and check what it gave.")


def function_name(planning: Planning, check: Check) -> str:
    """`_validate_<function>_<what>`, unused in the module; the same on every call for one check."""
    if id(check) not in planning.functions:
        function = check.place.function
        what = check.target.source if check.target else check.pattern.id.partition("_")[2].lower()
        words = [function.name] if function else []
        words += [word for word in re.findall(r"\w+", what) if word not in ("self", "cls")][:3]
        stem = "_".join(word.strip("_") for word in ("validate", *words) if word.strip("_"))
        used = names_in(planning.tree) | set(planning.functions.values())
        planning.functions[id(check)] = Fresh(used)(stem)
    return planning.functions[id(check)]


def extract_function(planning: Planning, check: Check, name: str, code: str, unit: str) -> str:
    """Plan the function, once, and give the code of its call. Raises SiteError."""
    if check.placement == "wrap":
        raise SiteError("too-long", f"{check.item.id} encloses a statement and is too long", "Shorten its template.")
    tree = ast.parse(code)
    arguments = _local_names(planning, check, tree)
    waits = any(isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith) for node in ast.walk(tree))
    call = f"{'await ' if waits else ''}{name}({', '.join(arguments)})\n"
    if not any(block.key[0] == "module" and name in _defined(block.code) for block in planning.plan.blocks):
        after = _line_above(planning, check)
        text = _function(planning, check, name, arguments, code, unit, waits)
        planning.add(("module", after), after, planning.places.root, text, [check], MODULE)
    return call


def _defined(code: str) -> list[str]:
    return [node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _local_names(planning: Planning, check: Check, tree: ast.Module) -> list[str]:
    """Names that the code reads from the function around it, in the order in which it reads them."""
    place = check.place
    known: set[str] = set()
    for function in (place.speaks_of or place.suite).functions:
        known |= bound_in(function)
    scope = planning.scope_of(place)
    known |= {scope.result, *scope.snapshots.values()}
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    loads = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    loads.sort(key=lambda node: (node.lineno, node.col_offset))
    return list(dict.fromkeys(n.id for n in loads if n.id in known and n.id not in stored))


def _line_above(planning: Planning, check: Check) -> int:
    """The line below which the function goes: above the top-level statement and the comments that touch it."""
    line = check.opener.line
    for statement in planning.tree.body:
        if first_line(statement) <= line <= last_line(statement):
            line = first_line(statement)
    above = line - 1
    while above and planning.lines[above - 1].startswith("#"):
        above -= 1
    return above


def _function(
    planning: Planning, check: Check, name: str, arguments: list[str], code: str, unit: str, waits: bool
) -> str:
    function = check.place.function
    hints: dict[str, str] = {}
    if function is not None:
        for parameter in parameters_of(function):
            if parameter.annotation is not None:
                hints[parameter.arg] = ast.unparse(parameter.annotation)
    signature = ", ".join(f"{a}: {hints[a]}" if a in hints else a for a in arguments)
    where = f" for {function.name}" if function else ""
    error = "AssertionError" if check.pattern.tag == "AST" else check.bound.error or check.pattern.error
    summary = check.pattern.summary.strip().rstrip(".").replace("\\", "\\\\").replace('"', "'")
    body = "".join(unit + row if row.strip() else row for row in code.splitlines(keepends=True))
    return (
        f"{'async ' if waits else ''}def {name}({signature}) -> None:\n"
        f'{unit}"""{check.item.id}{where}: {summary}.\n\n'
        f"{unit}Raises:\n{unit}{unit}{error}: if it does not hold.\n"
        f'{unit}"""\n{body}\n\n'
    )
