"""What is known of a value's type from the file alone: annotations, displays, and calls of well-known functions.

A type is an annotation's expression, as if the author had written it. None means that nothing is known; every rule
that rests on a type has to be safe without one.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass

from codegen.expand.meaning.classes import classes_of, decorator_names, is_property, last_word, shape_of
from codegen.expand.reading.exits import is_generator
from codegen.expand.reading.parsing import Function, definitions, own_nodes
from codegen.expand.reading.scopes import bound_in, parameters_of
from codegen.expand.reading.suites import Suite

TRANSPARENT = frozenset({"Annotated", "Final", "ClassVar", "Required", "NotRequired"})
ONE_PASS = frozenset(
    [
        "Iterable",
        "Iterator",
        "Generator",
        "AsyncIterable",
        "AsyncIterator",
        "AsyncGenerator",
        "IO",
        "TextIO",
        "BinaryIO",
    ]
)
AWAITABLE = frozenset({"Awaitable", "Coroutine", "Future", "Task"})
IMMUTABLE = frozenset(
    {"int", "float", "complex", "bool", "str", "bytes", "frozenset", "range", "NoneType", "Decimal", "Fraction", "Path"}
    | {"PurePath", "datetime", "date", "time", "timedelta", "UUID", "Literal", "Type", "type", "Callable", "Enum"}
)
MUTABLE = frozenset(
    {"list", "List", "dict", "Dict", "set", "Set", "bytearray", "deque", "Deque", "defaultdict", "DefaultDict"}
    | {"OrderedDict", "Counter", "Mapping", "MutableMapping", "MutableSequence", "MutableSet", "array", "ndarray"}
    | {"Tensor", "Sequence", "Collection", "DataFrame", "Series", "memoryview", "SimpleNamespace"}
)
_RESULTS = {
    "int": "int", "float": "float", "complex": "complex", "str": "str", "bool": "bool", "bytes": "bytes",
    "bytearray": "bytearray", "list": "list", "tuple": "tuple", "set": "set", "frozenset": "frozenset", "dict": "dict",
    "sorted": "list", "len": "int", "id": "int", "hash": "int", "ord": "int", "chr": "str", "repr": "str",
    "ascii": "str", "hex": "str", "bin": "str", "oct": "str", "format": "str", "isinstance": "bool",
    "issubclass": "bool", "callable": "bool", "hasattr": "bool", "any": "bool", "all": "bool", "range": "range",
    "iter": "Iterator", "map": "Iterator", "filter": "Iterator", "zip": "Iterator", "enumerate": "Iterator",
    "reversed": "Iterator", "open": "IO", "input": "str",
}  # fmt: skip
_STANDARD = {
    "time.time": "float", "time.monotonic": "float", "time.perf_counter": "float", "time.process_time": "float",
    "time.time_ns": "int", "time.monotonic_ns": "int", "time.perf_counter_ns": "int", "os.getpid": "int",
    "os.getcwd": "str", "os.path.join": "str", "random.random": "float", "random.uniform": "float",
    "random.randint": "int", "math.sqrt": "float", "math.log": "float", "math.exp": "float", "math.floor": "int",
    "math.ceil": "int", "math.gcd": "int", "itertools.chain": "Iterator", "itertools.islice": "Iterator",
    "itertools.pairwise": "Iterator", "io.open": "IO", "gzip.open": "IO",
    "csv.reader": "Iterator", "asyncio.create_task": "Task",
    "asyncio.ensure_future": "Future", "threading.get_ident": "int", "json.dumps": "str",
}  # fmt: skip
_CONSTANTS = ("math.inf", "math.nan", "math.pi", "math.e", "math.tau")
_NUMBERS = ("int", "float")
_SPELLINGS = {"List": list, "Dict": dict, "Set": set, "Tuple": tuple, "FrozenSet": frozenset, "NoneType": type(None)}


@dataclass(frozen=True)
class Scope:
    """Where an expression is read: the suite, and the module around it."""

    suite: Suite
    tree: ast.Module

    @property
    def function(self) -> Function | None:
        """The innermost function."""
        return self.suite.function


def scope_at(suite: Suite) -> Scope:
    """The scope of code in a suite."""
    root = suite
    while root.parent is not None:
        root = root.parent
    assert isinstance(root.owner, ast.Module)
    return Scope(suite, root.owner)


def unwrapped(node: ast.expr) -> tuple[ast.expr | None, bool]:
    """The annotation without quotes, Optional, `| None` and Annotated, and whether None was allowed. A union of several
    types gives None: nothing holds for all of them."""
    optional = False
    while True:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value.strip(), mode="eval").body
            except (SyntaxError, ValueError):
                return None, optional
        elif isinstance(node, ast.Subscript) and last_word(node) in TRANSPARENT:
            node = arguments_of(node)[0]
        elif isinstance(node, ast.Subscript) and last_word(node) == "Optional":
            node, optional = node.slice, True
        elif (isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)) or last_word(node) == "Union":
            members = _members(node)
            rest = [member for member in members if not is_none(member)]
            optional = optional or len(rest) < len(members)
            if len(rest) != 1:
                return None, optional
            node = rest[0]
        else:
            return node, optional


def _members(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _members(node.left) + _members(node.right)
    if isinstance(node, ast.Subscript) and last_word(node) == "Union":
        return arguments_of(node)
    return [node]


def is_none(node: ast.expr) -> bool:
    """Whether the annotation is None."""
    return isinstance(node, ast.Constant) and node.value is None


def arguments_of(node: ast.expr) -> list[ast.expr]:
    """What stands in an annotation's brackets."""
    if not isinstance(node, ast.Subscript):
        return []
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def members_of(annotation: ast.expr) -> list[ast.expr]:
    """The types that a union allows besides None, each without its wrapping; one that cannot be read gives []."""
    kind, _ = unwrapped(annotation)
    if kind is not None:
        return [kind]
    node = annotation
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            return []
    parts = [unwrapped(part)[0] for part in _members(node) if not is_none(part)]
    return [] if None in parts or len(parts) < 2 else [part for part in parts if part is not None]


def type_of(source: str, scope: Scope) -> ast.expr | None:
    """The type of an expression where it is read, None when nothing is known."""
    try:
        node = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return infer(node, scope)


def infer(node: ast.expr, scope: Scope, depth: int = 0) -> ast.expr | None:
    """The type of a parsed expression. `depth` ends chains of assignments."""
    if depth > 4:
        return None
    if isinstance(node, ast.Name):
        return _of_name(node.id, scope, depth)
    if isinstance(node, ast.Attribute):
        return _of_attribute(node, scope, depth)
    if isinstance(node, ast.Call):
        return _of_call(node, scope, depth)
    if isinstance(node, ast.Constant):
        return ast.Name("NoneType" if node.value is None else type(node.value).__name__)
    if isinstance(node, ast.BinOp):
        return _of_operation(node, scope, depth)
    if isinstance(node, ast.UnaryOp):
        return ast.Name("bool") if isinstance(node.op, ast.Not) else _number(infer(node.operand, scope, depth + 1))
    if isinstance(node, ast.IfExp):
        first, second = infer(node.body, scope, depth + 1), infer(node.orelse, scope, depth + 1)
        same = first is not None and second is not None and ast.unparse(first) == ast.unparse(second)
        return first if same else None
    if isinstance(node, ast.NamedExpr):
        return infer(node.value, scope, depth + 1)
    if isinstance(node, ast.Compare):
        # Only these operators give a bool whatever the operands are; `array == 3` is an array.
        sure = all(isinstance(operator, ast.Is | ast.IsNot | ast.In | ast.NotIn) for operator in node.ops)
        return ast.Name("bool") if sure else None
    name = {
        ast.JoinedStr: "str", ast.List: "list", ast.ListComp: "list", ast.Set: "set", ast.SetComp: "set",
        ast.Dict: "dict", ast.DictComp: "dict", ast.Tuple: "tuple", ast.GeneratorExp: "Generator",
        ast.Lambda: "Callable",
    }.get(type(node))  # fmt: skip
    return ast.Name(name) if name else None


def _number(kind: ast.expr | None) -> ast.expr | None:
    return kind if kind is not None and last_word(kind) in _NUMBERS else None


def _of_operation(node: ast.BinOp, scope: Scope, depth: int) -> ast.expr | None:
    """Arithmetic of plain numbers; what other types make of an operator is theirs."""
    kinds = [infer(part, scope, depth + 1) for part in (node.left, node.right)]
    names = {last_word(kind) if kind is not None else "" for kind in kinds}
    if names == {"int"} and not isinstance(node.op, ast.Div | ast.Pow):
        return ast.Name("int")
    return ast.Name("float") if names <= set(_NUMBERS) and not isinstance(node.op, ast.Pow) else None


def result_type(function: Function) -> ast.expr | None:
    """The declared type of what the function returns: for a generator of its return value, not of what it yields."""
    if function.returns is None or not is_generator(function):
        return function.returns
    kind = unwrapped(function.returns)[0]
    parts = arguments_of(kind) if kind is not None and last_word(kind) == "Generator" else []
    return parts[2] if len(parts) == 3 else None


def declared_type(source: str, scope: Scope) -> ast.expr | None:
    """What the author declared of a name, or of an attribute of `self`."""
    function = scope.function
    if source.isidentifier():
        return annotation_of(source, function) if function is not None else None
    node = ast.parse(source.strip(), mode="eval").body
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        shape = shape_of(scope.tree, scope.suite, node.value.id)
        return shape.annotations.get(node.attr) if shape is not None else None
    return None


def annotation_of(name: str, function: Function) -> ast.expr | None:
    """What the function's text says of a parameter or local variable."""
    for parameter in parameters_of(function):
        if parameter.arg == name:
            return parameter.annotation
    for node in own_nodes(function):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return node.annotation
    return None


def _of_name(name: str, scope: Scope, depth: int) -> ast.expr | None:
    for function in reversed(scope.suite.functions):
        if name not in bound_in(function):
            continue
        if any(parameter.arg == name for parameter in _starred(function)):
            return ast.Name("tuple" if function.args.vararg and function.args.vararg.arg == name else "dict")
        declared = annotation_of(name, function)
        if declared is not None or any(parameter.arg == name for parameter in parameters_of(function)):
            return declared
        return _of_assignments(name, function, scope, depth)
    if name in bound_in(scope.tree):
        for node in scope.tree.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
                return node.annotation
        return _of_assignments(name, scope.tree, Scope(scope.suite, scope.tree), depth)
    return None


def _starred(function: Function) -> list[ast.arg]:
    return [each for each in (function.args.vararg, function.args.kwarg) if each is not None]


def _of_assignments(name: str, owner: ast.AST, scope: Scope, depth: int) -> ast.expr | None:
    """The type that all assignments agree on, `with open(…) as name` among them; a loop, another `with` or an unpacking
    gives the name an unknown one."""
    values: list[ast.expr] = []
    plain: set[int] = set()
    for node in own_nodes(owner):
        if isinstance(node, ast.withitem) and _opens(node.context_expr) and _names(node.optional_vars, name):
            values.append(node.context_expr)
            plain.add(id(node.optional_vars))
        if not isinstance(node, ast.Assign | ast.NamedExpr):
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name) and target.id == name:
                values.append(node.value)
                plain.add(id(target))
    stores = [n for n in own_nodes(owner) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]
    bindings = [n for n in own_nodes(owner) if getattr(n, "name", None) == name or getattr(n, "asname", None) == name]
    if bindings or not values or any(id(store) not in plain for store in stores):
        return None
    kinds = [infer(value, scope, depth + 1) for value in values]
    texts = {ast.unparse(kind) if kind is not None else "" for kind in kinds}
    return kinds[0] if len(texts) == 1 else None


def _names(node: ast.expr | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _opens(node: ast.expr) -> bool:
    """Whether the value of `with` is surely what the call gives: a file is its own context."""
    return isinstance(node, ast.Call) and last_word(node.func) == "open"


def _of_attribute(node: ast.Attribute, scope: Scope, depth: int) -> ast.expr | None:
    if ast.unparse(node) in _CONSTANTS:
        return ast.Name("float")
    if not isinstance(node.value, ast.Name):
        return None
    shape = shape_of(scope.tree, scope.suite, node.value.id)
    if shape is None:
        kind = _of_name(node.value.id, scope, depth)
        inner = unwrapped(kind)[0] if kind is not None else None
        shape = classes_of(scope.tree).get(last_word(inner)) if inner is not None else None
    if shape is None:
        return None
    if node.attr in shape.annotations:
        return shape.annotations[node.attr]
    if node.attr in shape.methods:
        method = shape.methods[node.attr]
        return method.returns if is_property(method) else ast.Name("Callable")
    values = shape.assigned.get(node.attr, [])
    kinds = [infer(value, _of_init(shape.node, scope), depth + 1) if value is not None else None for value in values]
    texts = {ast.unparse(kind) if kind is not None else "" for kind in kinds}
    return kinds[0] if len(texts) == 1 else None


def _of_init(node: ast.ClassDef, scope: Scope) -> Scope:
    """Where the assignments of a class are read: in its `__init__`, if it has one."""
    root = scope.suite
    while root.parent is not None:
        root = root.parent
    waiting = [root]
    while waiting:
        suite = waiting.pop()
        owner = suite.owner
        named = isinstance(owner, ast.FunctionDef) and owner.name == "__init__"
        if named and suite.parent is not None and suite.parent.owner is node:
            return Scope(suite, scope.tree)
        waiting.extend(suite.children)
    return Scope(root, scope.tree)


def _of_call(node: ast.Call, scope: Scope, depth: int) -> ast.expr | None:
    text = ast.unparse(node.func)
    if isinstance(node.func, ast.Name):
        if text in _RESULTS and text not in bound_in(scope.tree) and text not in _local(scope):
            return ast.Name(_RESULTS[text])
        return _of_function(text, scope)
    if text in _STANDARD:
        return ast.Name(_STANDARD[text])
    if isinstance(node.func, ast.Attribute):
        owner = infer(node.func.value, scope, depth + 1)
        kind = unwrapped(owner)[0] if owner is not None else None
        if kind is not None and last_word(kind) == "Path" and node.func.attr == "open":
            return ast.Name("IO")
        if kind is not None and last_word(kind) == "str":
            text_methods = ("join", "strip", "lstrip", "rstrip", "lower", "upper", "format", "replace", "title")
            return ast.Name("str") if node.func.attr in text_methods else None
        if isinstance(node.func.value, ast.Name):
            shape = shape_of(scope.tree, scope.suite, node.func.value.id)
            method = shape.methods.get(node.func.attr) if shape else None
            return _returned(method) if method is not None else None
    return None


def _local(scope: Scope) -> frozenset[str]:
    return frozenset().union(*(bound_in(function) for function in scope.suite.functions))


def _of_function(name: str, scope: Scope) -> ast.expr | None:
    """What a function or class at the top level of the module gives."""
    if name in _local(scope):
        return None
    found = definitions(scope.tree, name)
    if len(found) != 1:
        return None
    if isinstance(found[0], ast.FunctionDef | ast.AsyncFunctionDef):
        return _returned(found[0])
    return ast.Name(name) if isinstance(found[0], ast.ClassDef) else None


def _returned(function: Function) -> ast.expr | None:
    if set(decorator_names(function)) - {"staticmethod", "classmethod", "override", "final"}:
        return None
    if is_generator(function):
        return ast.Name("AsyncGenerator" if isinstance(function, ast.AsyncFunctionDef) else "Generator")
    return ast.Name("Coroutine") if isinstance(function, ast.AsyncFunctionDef) else function.returns


def built_in(kind: ast.expr) -> type | None:
    """The class of a built-in type's annotation."""
    name = last_word(kind)
    found = _SPELLINGS.get(name, getattr(builtins, name, None))
    return found if isinstance(found, type) and found is not object and found is not type else None
