"""Match the arguments of an annotation to a pattern's parameters, as source text.

Positional arguments fill the positional parameters that no keyword names; one more than those, and the first is
the target. Literals must have the parameter's type; any other expression is taken as it is, since its value is
not known before the code runs.
"""

from __future__ import annotations

import ast
import difflib
from typing import Any, cast

from codegen.patterns.model import BadArgument, Bound, Each, Parameter, Pattern
from codegen.patterns.source import BadSource, elements, parse, tidy

RESERVED = frozenset({"target", "each", "error", "about"})
_EACH = {"none": "none", "items": "items", "keys": "keys", "values": "values", "True": "items", "False": "none"}
_LITERALS: dict[str, tuple[type, ...]] = {
    "int": (int,), "number": (int, float), "str": (str,), "list": (list, tuple, set, dict),
}  # fmt: skip
UNBOUNDED = frozenset({"inf", "-inf", "math.inf", "-math.inf"})


def bind(pattern: Pattern, positional: list[str], keywords: dict[str, str]) -> Bound:
    """Match arguments to parameters. Raises BadArgument with the fix."""
    keywords = dict(keywords)
    reserved = {name: keywords.pop(name) for name in RESERVED if name in keywords}
    target = reserved.get("target")
    values = {}
    for name, text in keywords.items():
        parameter = pattern.parameter(name)
        if parameter is None:
            raise _unknown(pattern, name)
        values[name] = check_value(parameter, text)
    free = [p for p in pattern.parameters if p.positional and p.name not in values]
    rest = list(positional)
    room = len(free) + (pattern.target != "none" and target is None)
    if len(rest) > room:
        raise BadArgument(f"{pattern.id} takes no further argument {rest[room]}", f"Write {signature(pattern)}.")
    first_is_target = bool(rest) if pattern.target == "expression" else len(rest) == len(free) + 1
    if target is None and pattern.target != "none" and first_is_target:
        target = rest.pop(0)
    for parameter, text in zip(free, rest, strict=False):
        values[parameter.name] = check_value(parameter, text)
    missing = [p.name for p in pattern.parameters if p.default is None and p.name not in values]
    if missing:
        raise BadArgument(f"{pattern.id} needs {', '.join(missing)}", f"Write {signature(pattern)}.")
    for parameter in pattern.parameters:
        values.setdefault(parameter.name, parameter.default or "")
    if target is not None and pattern.target == "none":
        raise BadArgument(f"{pattern.id} takes no target", f"Write {signature(pattern)}.")
    about = {"about": _expression("about", reserved["about"])} if "about" in reserved else {}
    return Bound(
        {p.name: values[p.name] for p in pattern.parameters} | about,
        None if target is None else _expression("target", target),
        _each(pattern, reserved.get("each")),
        _error(reserved.get("error")),
    )


def parse_use(pattern: Pattern, text: str) -> Bound:
    """Bind `ID` or `ID(arguments)`. Raises BadArgument."""
    try:
        node = parse(text)
    except BadSource as error:
        raise BadArgument(f"{text}: {error}", f"Write {signature(pattern)}.") from error
    call = node if isinstance(node, ast.Call) else None
    name = call.func if call else node
    if not isinstance(name, ast.Name) or name.id != pattern.id:
        raise BadArgument(f"{text} does not use {pattern.id}", f"Write {signature(pattern)}.")
    if call is None:
        return bind(pattern, [], {})
    source = f"f({text.strip()}\n)"

    def segment(part: ast.expr) -> str:
        return ast.get_source_segment(source, part) or ast.unparse(part)

    keywords = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise BadArgument(f"{pattern.id} cannot take **arguments", "Write each argument by its name.")
        if keyword.arg in keywords:
            raise BadArgument(f"{keyword.arg} is given twice", "Keep one of them.")
        keywords[keyword.arg] = segment(keyword.value)
    return bind(pattern, [segment(part) for part in call.args], keywords)


def signature(pattern: Pattern) -> str:
    """How to write the annotation, e.g. `VAL_INT_RANGE([target,] min=None, max=None)`."""
    parts = {"required": ["[target]"], "expression": ["expression"], "none": []}[pattern.target]
    for p in sorted(pattern.parameters, key=lambda p: not p.positional):
        name = p.name if p.positional else f"{p.name}="
        parts.append(name if p.default is None and p.positional else f"{p.name}={p.default or '…'}")
    return f"{pattern.id}({', '.join(parts)})"


def check_value(parameter: Parameter, text: str) -> str:
    """The argument's tidy source. Raises BadArgument when it cannot be of the parameter's type."""
    text = _expression(parameter.name, text)
    if text == parameter.default:
        return text
    if parameter.type == "number" and text in UNBOUNDED:
        return text
    node = parse(text)
    wrong = _mismatch(parameter, node)
    if wrong:
        raise BadArgument(f"{parameter.name} is {text}, {wrong}", f"Give {parameter.name} {_WANTED[parameter.type]}.")
    return text


_WANTED = {
    "int": "an int, or an expression for one", "number": "a number, or an expression for one",
    "str": "a string, or an expression for one", "bool": "True or False", "expression": "an expression",
    "name": "a name such as self.lock", "list": "a container, or an expression for one",
    "display": "a list or tuple written out", "type": "a class, or a tuple of classes",
}  # fmt: skip


def _mismatch(parameter: Parameter, node: ast.expr) -> str | None:
    """Why the node cannot be of the parameter's type; None when it may be."""
    if parameter.type == "bool":
        known = isinstance(node, ast.Constant) and isinstance(node.value, bool)
        return None if known else "which has to be known before the code runs"
    if parameter.type == "name":
        return None if _is_dotted(node) else "not a name"
    if parameter.type == "type":
        return _not_a_type(node)
    if parameter.type == "display":
        try:
            return None if elements(ast.unparse(node)) else "which is empty"
        except BadSource as error:
            return str(error)
    allowed = _LITERALS.get(parameter.type)
    if allowed is None:
        return None
    try:
        value: Any = ast.literal_eval(node)
    except (ValueError, TypeError):
        display = isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict | ast.JoinedStr)
        fits = parameter.type == "list" or (parameter.type == "str" and isinstance(node, ast.JoinedStr))
        return f"not {parameter.type}" if display and not fits else None
    fits = isinstance(value, allowed) and not isinstance(value, bool)
    return None if fits else f"of type {type(value).__name__}"


def _not_a_type(node: ast.expr) -> str | None:
    if isinstance(node, ast.Tuple):
        return next((wrong for item in node.elts if (wrong := _not_a_type(item))), None if node.elts else "empty")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _not_a_type(node.left) or _not_a_type(node.right)
    if isinstance(node, ast.Subscript):
        return "whose element types isinstance cannot check"
    if _is_dotted(node) or (isinstance(node, ast.Constant) and node.value is None):
        return None
    return "not a class"


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _expression(name: str, text: str) -> str:
    try:
        return tidy(text)
    except BadSource as error:
        raise BadArgument(f"{name} is {text}: {error}", "Give one expression without side effects.") from error


def _each(pattern: Pattern, text: str | None) -> Each | None:
    if text is None:
        return None
    word = text.strip().strip("'\"")
    if word not in _EACH:
        raise BadArgument(f"each is {text}", "Use each=items, keys, values or none.")
    if not pattern.elementwise and _EACH[word] != "none":
        raise BadArgument(f"{pattern.id} checks a value as a whole", "Leave each= out.")
    return cast(Each, _EACH[word])


def _error(text: str | None) -> str | None:
    if text is None:
        return None
    text = _expression("error", text)
    if not _is_dotted(parse(text)):
        raise BadArgument(f"error is {text}, not a name", "Name an exception class, such as error=KeyError.")
    return text


def _unknown(pattern: Pattern, name: str) -> BadArgument:
    known = [p.name for p in pattern.parameters] + sorted(RESERVED)
    near = difflib.get_close_matches(name, known, n=1)
    fix = f"Did you mean {near[0]}=? " if near else ""
    return BadArgument(f"{pattern.id} has no parameter {name}", f"{fix}Write {signature(pattern)}.")
