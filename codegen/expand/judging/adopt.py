"""Recognise hand-written code that already makes a planned check, so that it can be taken under management.

Equivalent means: the same normal form (see `forms`), error class and kind. Messages and the names of temporary
variables may differ.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from codegen.expand.judging.forms import UNORDERED, Form, form_of, measured
from codegen.expand.planning.planned import Planned
from codegen.expand.reading.canonical import canonical
from codegen.expand.reading.comments import Comment
from codegen.expand.reading.parsing import Function, first_line, last_line, own_nodes
from codegen.patterns.guard import unguarded

_PERCENT = re.compile(r"%[-+ #0]*[\d.]*[a-zA-Z]")
_WORDS = frozenset({"len", "any", "all", "set", "bool", "range"})
_BRACES = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True)
class Twin:
    """Hand-written code that makes a planned check, or nearly: its base lines, its statements, and the difference."""

    lines: range
    statements: tuple[ast.stmt, ...]
    difference: str = ""


def twin_of(planned: Planned, tree: ast.Module, comments: Sequence[Comment]) -> Twin | None:
    """The code right below the site that makes the planned check; None if the code there does not.

    Code whose variables are used elsewhere is more than a check. `difference` is set for code that tests the same
    names for nearly the same.
    """
    # By hand nobody writes the `try` around a condition; taken under management, the check gets it.
    wanted = unguarded(ast.parse(planned.code).body)
    if planned.shape != "plain" or not _checks_something(wanted) or not _checks_something(planned.following[:2]):
        return None
    unordered = unordered_at(planned.following[0], tree)
    found = _equal_run(planned, wanted, unordered)
    if found is None:
        return _near(planned, wanted, unordered)
    lines = range(planned.after + 1, last_line(found[-1]) + 1)
    if _leaks(found, tree) or any(comment.line in lines for comment in comments):
        return None
    if first_line(found[0]) - planned.after > 2:
        return None
    return Twin(lines, tuple(found))


def _checks_something(statements: Sequence[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Raise | ast.Assert) for s in statements for node in ast.walk(s))


def _equal_run(planned: Planned, wanted: Sequence[ast.stmt], unordered: frozenset[str]) -> list[ast.stmt] | None:
    """The shortest run of statements below the site that makes the same check."""
    for count in range(1, len(planned.following) + 1):
        found = list(planned.following[:count])
        if not all(isinstance(s, ast.If | ast.Assert | ast.For | ast.Assign) for s in found):
            return None
        if equivalent(found, wanted, unordered):
            return found
    return None


def equivalent(left: Sequence[ast.stmt], right: Sequence[ast.stmt], unordered: frozenset[str] = frozenset()) -> bool:
    """Whether two runs of statements make the same check."""
    if _loose(left) == _loose(right):
        return True
    one, other = _forms(left, right, unordered)
    if one is None or other is None:
        return False
    return (one.kind, one.error, one.failing) == (other.kind, other.error, other.failing)


def _forms(
    left: Sequence[ast.stmt], right: Sequence[ast.stmt], unordered: frozenset[str]
) -> tuple[Form | None, Form | None]:
    containers = measured(left) | measured(right)
    return form_of(left, unordered, containers), form_of(right, unordered, containers)


def _near(planned: Planned, wanted: Sequence[ast.stmt], unordered: frozenset[str]) -> Twin | None:
    """A single check right below that reads the same names, with how it differs."""
    first = planned.following[0]
    if first_line(first) - planned.after > 2:
        return None
    is_now, meant = _forms([first], wanted, unordered)
    if is_now is None or meant is None or is_now.names - _WORDS != meant.names - _WORDS:
        return None
    if is_now.failing != meant.failing:
        difference = f"it fails if `{is_now.shown}`, the annotation if `{meant.shown}`"
    elif is_now.kind != meant.kind:
        difference = f"it {_how(is_now)}, the annotation {_how(meant)}"
    else:
        difference = f"it raises {is_now.error}, the annotation {meant.error} (error={is_now.error} says the same)"
    return Twin(range(first_line(first), last_line(first) + 1), (first,), difference)


def _how(form: Form) -> str:
    return "asserts, which python -O leaves out" if form.kind == "assert" else f"raises {form.error}"


def unordered_at(statement: ast.stmt, tree: ast.Module) -> frozenset[str]:
    """Names around a statement whose type annotations speak of values that need not be ordered."""
    function = _function_at(statement, tree)
    if function is None:
        return frozenset()
    arguments = function.args
    declared = {
        a.arg: a.annotation
        for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        if a is not None and a.annotation is not None
    }
    for node in own_nodes(function):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            declared[node.target.id] = node.annotation
    return frozenset(name for name, kind in declared.items() if any(word in ast.unparse(kind) for word in UNORDERED))


def _function_at(statement: ast.stmt, tree: ast.Module) -> Function | None:
    """The innermost function that holds the statement."""
    best: Function | None = None
    waiting: list[ast.AST] = [tree]
    while waiting:
        for child in ast.iter_child_nodes(waiting.pop()):
            if isinstance(child, ast.stmt) and child.lineno <= statement.lineno <= last_line(child):
                waiting.append(child)
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and child is not statement:
                    best = child
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                waiting.append(child)
    return best


def _leaks(found: Sequence[ast.stmt], tree: ast.Module) -> bool:
    """Whether a variable of the check is read elsewhere in its scope, other than by a loop of its own."""
    inside = {id(node) for statement in found for node in ast.walk(statement)}
    stored = {n.id for s in found for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    scope: ast.AST = _function_at(found[0], tree) or tree
    return any(_reads(node, stored, inside) for node in ast.iter_child_nodes(scope))


def _reads(node: ast.AST, names: set[str], inside: set[int]) -> bool:
    if id(node) in inside or not names:
        return False
    if isinstance(node, ast.Name):
        return isinstance(node.ctx, ast.Load) and node.id in names
    if isinstance(node, ast.For | ast.AsyncFor):
        rest = names - {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        return _reads(node.iter, names, inside) or any(_reads(s, rest, inside) for s in (*node.body, *node.orelse))
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        bound = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        names = names - bound
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        names = names - {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    return any(_reads(child, names, inside) for child in ast.iter_child_nodes(node))


def message_of(statements: Sequence[ast.stmt]) -> str | None:
    """What the hand-written check says, as a note; None when it says nothing of its own.

    The values that its message shows appear by their source: the block shows its own. Of several checks that become one
    all that is said is kept, for the block cannot tell which of them would have failed.
    """
    texts: list[str] = []
    for statement in statements:
        for node in ast.walk(statement):
            said = None
            if isinstance(node, ast.Assert):
                said = node.msg
            elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                said = node.exc.args[0]
            text = _words(said) if said is not None else ""
            if text and text not in texts:
                texts.append(text)
    return "; ".join(texts) or None


def _words(node: ast.expr) -> str:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        return _filled(node.left, _PERCENT, values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return _filled(node.func.value, _BRACES, node.args)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return " ".join(node.value.split())
    if not isinstance(node, ast.JoinedStr):
        return ""
    parts = [
        str(value.value) if isinstance(value, ast.Constant) else ast.unparse(value.value)
        for value in node.values
        if isinstance(value, ast.Constant | ast.FormattedValue)
    ]
    return " ".join("".join(parts).split())


def _filled(template: ast.expr, place: re.Pattern[str], values: Sequence[ast.expr]) -> str:
    """A template with the source of each value in its place; places without a value stay as they are."""
    if not isinstance(template, ast.Constant) or not isinstance(template.value, str):
        return ""
    waiting = [ast.unparse(value) for value in values]
    text = place.sub(lambda found: waiting.pop(0) if waiting else found.group(), template.value)
    return " ".join(text.split())


def _loose(statements: Sequence[ast.stmt]) -> str:
    """The canonical text of the statements without their messages and the names of their temporaries."""
    holes: dict[int, str] = {}
    names: dict[str, str] = {}
    nodes = [node for statement in statements for node in ast.walk(statement)]
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.setdefault(node.id, f"temporary {len(names)}")
        elif isinstance(node, ast.Assert) and node.msg is not None:
            holes[id(node.msg)] = "message"
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            holes.update((id(part), "message") for part in (*node.exc.args, *node.exc.keywords))
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in names:
            holes[id(node)] = names[node.id]
    return canonical(statements, holes)
