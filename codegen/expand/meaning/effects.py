"""Whether a check leaves the program as it is.

Refused is what a single evaluation changes or what can never be judged: a value that can be gone through only once, an
awaitable, a claim that calls the function it belongs to, a wrapper around a `yield`. A call that is known, or likely,
to change its object is a warning: only the author knows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codegen.expand.meaning.classes import is_property, last_word, shape_of
from codegen.expand.meaning.snapshots import MUTATORS
from codegen.expand.meaning.types import AWAITABLE, ONE_PASS, Scope, infer, members_of
from codegen.expand.model import SiteError
from codegen.expand.reading.parsing import Function, definitions, own_nodes
from codegen.expand.reading.suites import Suite

_LOOKING = frozenset({"isinstance", "issubclass", "type", "callable", "hasattr", "id", "getattr", "next"})
_CONSUMING = frozenset(
    {"next", "send", "read", "readline", "readlines", "close", "write", "acquire", "release", "join"}
)
_OPERATIONS = {
    "__len__": ("len",), "__bool__": ("bool",), "__hash__": ("hash",), "__iter__": ("iter", "list", "set", "sorted"),
    "__repr__": ("repr", "str"), "__str__": ("str",), "__int__": ("int",), "__float__": ("float",),
}  # fmt: skip
_COMPARING: dict[str, tuple[type[ast.cmpop], ...]] = {
    "__eq__": (ast.Eq, ast.NotEq), "__ne__": (ast.NotEq,), "__lt__": (ast.Lt, ast.Gt), "__gt__": (ast.Gt, ast.Lt),
    "__le__": (ast.LtE, ast.GtE), "__ge__": (ast.GtE, ast.LtE),
}  # fmt: skip
"""The operators that run a method: with the object on the right, the reflected one."""


def refuse_used_up(code: str, id: str, scope: Scope) -> None:
    """Refuse a check that would go through a one-pass value, or judge an awaitable. Raises SiteError."""
    tree = ast.parse(code)
    harmless = {id_ for node in ast.walk(tree) for id_ in _harmless(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call) or _id(node) in harmless:
            continue
        kind = infer(node, scope)
        for member in members_of(kind) if kind is not None else ():
            word, source = last_word(member), ast.unparse(node)
            if word in ONE_PASS and not (isinstance(node, ast.Call) and _fresh_call(node)):
                raise SiteError(
                    "used-up",
                    f"{id}: {source} is {_called(word)}, which a check could use up",
                    "Annotate it as Sequence or Collection, or check a list made of it.",
                )
            if word in AWAITABLE:
                raise SiteError(
                    "awaitable",
                    f"{id}: {source} is {_called(word)}, which says nothing before it is awaited",
                    "Await it in the code, and check what it gives.",
                )


def _id(node: ast.AST) -> int:
    return id(node)


def _fresh_call(node: ast.Call) -> bool:
    """Whether a call makes a one-pass value of its own, which nobody else sees: `zip(a, b)`, unlike `open(path)`."""
    return last_word(node.func) != "open"


def _called(word: str) -> str:
    return f"{'an' if word[0] in 'AEIOU' else 'a'} {word}"


def _harmless(node: ast.AST) -> Iterator[int]:
    """Nodes of which a check sees only that they are there, or what they are: none of these goes through a value."""
    if isinstance(node, ast.Compare) and all(isinstance(o, ast.Is | ast.IsNot) for o in node.ops):
        yield from map(_id, (node.left, *node.comparators))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _LOOKING:
        yield from map(_id, node.args)
    elif isinstance(node, ast.Attribute | ast.FormattedValue):
        yield _id(node.value)
    if isinstance(node, ast.Call):
        yield _id(node.func)


def refuse_recursion(texts: list[str], function: Function | None, suite: Suite, scope: Scope, id: str) -> None:
    """Refuse a claim that runs the function it belongs to, which runs the claim again. Raises SiteError."""
    # Only a text that names the function, or reads `self`, can come back to it; an operator does not name its method.
    if function is None:
        return
    if not function.name.startswith("__") and not any(
        function.name in text or "." in text or "(" in text for text in texts
    ):
        return
    first = [*function.args.posonlyargs, *function.args.args][:1]
    own = first[0].arg if first else ""
    shape = shape_of(scope.tree, suite, own) if own else None
    method = shape is not None and shape.methods.get(function.name) is function
    operations = _OPERATIONS.get(function.name, ()) if method else ()
    for text in texts:
        for node in ast.walk(ast.parse(text.strip() or "None", mode="eval")):
            again = (
                _reads(node, own, function.name) and (is_property(function) or _is_called(node, text))
                if method
                else isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function.name
            ) or (isinstance(node, ast.Call) and last_word(node.func) in operations and _is_name(node.args[:1], own))
            again = again or (method and _operates(node, function.name, own))
            through = "" if again or shape is None else _through(node, own, function, shape.methods)
            if again or through:
                by = f" through {through}" if through else ""
                raise SiteError(
                    "recursive-claim",
                    f"{id}: the claim `{text}` runs {function.name}{by}, whose check would run it again, without end",
                    "Claim something of the values that it reads.",
                )


def _operates(node: ast.AST, method: str, own: str) -> bool:
    """Whether an operator in a claim runs the method of the object itself."""
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
            if isinstance(op, ast.In | ast.NotIn):
                if method == "__contains__" and _is_name([right], own):
                    return True
            elif type(op) in _COMPARING.get(method, ()) and (_is_name([left], own) or _is_name([right], own)):
                return True
    if method not in ("__bool__", "__len__"):
        return False
    judged: list[ast.expr] = []
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        judged = [node.operand]
    elif isinstance(node, ast.BoolOp):
        judged = node.values
    elif isinstance(node, ast.IfExp):
        judged = [node.test]
    elif isinstance(node, ast.Expression):
        judged = [node.body]
    return any(_is_name([each], own) for each in judged)


def _is_name(nodes: list[ast.expr], name: str) -> bool:
    return bool(nodes) and isinstance(nodes[0], ast.Name) and nodes[0].id == name


def _reads(node: ast.AST, own: str, name: str) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.value, ast.Name)
        and node.value.id in (own, "self")
    )


def _is_called(node: ast.AST, text: str) -> bool:
    source = ast.unparse(node)
    return any(
        isinstance(n, ast.Call) and ast.unparse(n.func) == source
        for n in ast.walk(ast.parse(text.strip(), mode="eval"))
    )


def _through(node: ast.AST, own: str, function: Function, methods: dict[str, Function]) -> str:
    """The property by which a claim comes back to the property it belongs to."""
    if not isinstance(node, ast.Attribute) or not is_property(function):
        return ""
    seen: set[str] = set()
    waiting = [node.attr] if _reads(node, own, node.attr) else []
    while waiting:
        name = waiting.pop()
        method = methods.get(name)
        if name in seen or method is None or not is_property(method):
            continue
        seen.add(name)
        if method is function:
            return node.attr
        first = [*method.args.posonlyargs, *method.args.args][:1]
        read = [n.attr for n in own_nodes(method) if isinstance(n, ast.Attribute) and _reads(n, _arg(first), n.attr)]
        if function.name in read:
            return node.attr
        waiting += read
    return ""


def _arg(first: list[ast.arg]) -> str:
    return first[0].arg if first else ""


def refuse_yield_inside(statement: ast.stmt, id: str) -> None:
    """Refuse to enclose a `yield`: what encloses it would go on in whoever asked for the value. Raises SiteError."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            raise SiteError(
                "wrap",
                f"{id} would enclose the yield on line {node.lineno}: the time of whoever consumes the value would "
                "count, and it is the consumer that would be cancelled",
                "Bind the awaited value below the annotation, and yield it on the next line.",
            )
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))


def changing_calls(texts: list[str], suite: Suite, scope: Scope) -> list[str]:
    """Calls in an item that change, or are likely to change, what they are called on."""
    found: list[str] = []
    for text in texts:
        for node in ast.walk(ast.parse(text.strip() or "None", mode="eval")):
            if isinstance(node, ast.Call) and _changes(node, suite, scope):
                found.append(ast.unparse(node))
    return list(dict.fromkeys(found))


def _changes(call: ast.Call, suite: Suite, scope: Scope) -> bool:
    if isinstance(call.func, ast.Name):
        known = definitions(scope.tree, call.func.id)
        functions = [n for n in known if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        return call.func.id == "next" or any(_stores(function) for function in functions)
    if not isinstance(call.func, ast.Attribute):
        return False
    if isinstance(call.func.value, ast.Name):
        shape = shape_of(scope.tree, suite, call.func.value.id)
        method = shape.methods.get(call.func.attr) if shape is not None else None
        if method is not None:
            return _stores(method)
    if isinstance(call.func.value, ast.Constant | ast.JoinedStr):
        return False
    return call.func.attr in MUTATORS | _CONSUMING


def _stores(function: Function) -> bool:
    """Whether a function changes what it was given or what it is part of."""
    for node in own_nodes(function):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.Global | ast.Nonlocal):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            value = node.func.value
            if isinstance(value, ast.Attribute) or (
                isinstance(value, ast.Name) and value.id in {a.arg for a in function.args.args}
            ):
                return True
    return False
