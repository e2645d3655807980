"""Errors that new code hides: broad handlers, handlers that do nothing or return a default, `suppress`, placeholders.

What Section 5 shows, and what the file had before, is not the agent's. A comment `# swallowed: reason` in the handler
makes a finding a note, for the reviewer to judge.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from codegen.diagnostics import Finding, Severity

_BROAD = {"Exception", "BaseException"}
_REASON = "# swallowed:"


def swallowed(path: str, new: str, known: list[str]) -> list[Finding]:
    """What `new` hides that none of the `known` texts (the file as it was, the fences of Section 5) hides."""
    tree = ast.parse(new)
    allowed: Counter[str] = Counter()
    for text in known:
        allowed |= Counter(ast.dump(node) for node, _, _ in _hiding(ast.parse(text)))
    lines = new.split("\n")
    findings: list[Finding] = []
    for node, code, message in _hiding(tree):
        shape = ast.dump(node)
        if allowed[shape]:
            allowed[shape] -= 1
            continue
        last = getattr(node, "end_lineno", node.lineno) or node.lineno
        excused = any(_REASON in line for line in lines[node.lineno - 1 : last])
        severity: Severity = "note" if excused else "error"
        fix = "Let the error through or raise one that names the value; Section 5 must show a handler that stays."
        findings.append(Finding(path, node.lineno, node.col_offset + 1, code, message, severity, fix))
    return findings


def placeholders(path: str, new: str, names: list[str]) -> list[Finding]:
    """Bodies that the scaffold left open: `raise NotImplementedError("5.2.2 Shelf.weight")`."""
    findings: list[Finding] = []
    for node in ast.walk(ast.parse(new)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            argument = node.exc.args[0]
            if isinstance(argument, ast.Constant) and argument.value in names:
                message = f"{argument.value} is not written yet"
                findings.append(Finding(path, node.lineno, node.col_offset + 1, "AUD003", message, fix="Write it."))
    return findings


def _hiding(tree: ast.Module) -> Iterator[tuple[ast.ExceptHandler | ast.stmt, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = "everything" if node.type is None else ast.unparse(node.type)
            if _is_broad(node.type) and not _raises(node.body):
                yield node, "AUD001", f"`except` of {caught} ends here, whatever the error was"
            elif all(_is_nothing(statement) for statement in node.body):
                yield node, "AUD002", f"{caught} is swallowed: the handler only {_what(node.body[-1])}"
        elif isinstance(node, ast.Try | ast.TryStar):
            for leaving in _leaving(node.finalbody):
                yield leaving, "AUD002", "any error is swallowed: `finally` leaves the block by itself"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in ("__exit__", "__aexit__"):
            for part in _inside(node.body):
                if isinstance(part, ast.Return) and isinstance(part.value, ast.Constant) and part.value.value:
                    yield part, "AUD002", f"any error is swallowed: {node.name} returns {part.value.value!r}"
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                call = item.context_expr
                if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "suppress":
                    yield node, "AUD002", f"{', '.join(map(ast.unparse, call.args))} is swallowed by `suppress`"


def _is_broad(kind: ast.expr | None) -> bool:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(each is None or ast.unparse(each).rpartition(".")[2] in _BROAD for each in kinds)


def _raises(body: list[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Raise) for node in _inside(body))


def _leaving(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that drop an error on its way through this `finally`; a loop of its own may break."""
    loops = ast.For | ast.AsyncFor | ast.While
    own = {id(part) for node in _inside(body) if isinstance(node, loops) for part in _inside(node.body)}
    for node in _inside(body):
        if isinstance(node, ast.Return) or (isinstance(node, ast.Break | ast.Continue) and id(node) not in own):
            yield node


def _inside(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes that run when these statements run: none of functions and classes defined in them."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))


def _is_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Continue() | ast.Break() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Return(value=value) | ast.Assign(value=value) | ast.AnnAssign(value=value):
            return value is None or _is_default(value)
    return False


def _is_default(value: ast.expr) -> bool:
    """A literal that could mean any failure: a constant, or a container of none or constants."""
    match value:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=ast.Constant()):
            return True
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
            return all(_is_default(part) for part in parts)
        case ast.Call(func=ast.Name(id="dict" | "list" | "set" | "tuple" | "str"), args=[], keywords=[]):
            return True
    return False


def _what(statement: ast.stmt) -> str:
    return {
        ast.Return: "returns a default",
        ast.Continue: "continues",
        ast.Break: "leaves the loop",
    }.get(type(statement), "sets a default" if isinstance(statement, ast.Assign | ast.AnnAssign) else "passes")
