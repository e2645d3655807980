"""What a class of the file surely has: members, their annotations, what is assigned to them.

A class is *whole* when nothing but this file says what its instances have: known bases, no `__getattr__`, no unknown
decorator or metaclass, no method whose body is still to be written. Only of a whole class can it be said that a member
does not exist.
"""

from __future__ import annotations

import ast
import builtins
import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from codegen.expand.reading.parsing import Function, suites_of
from codegen.expand.reading.suites import Suite

_ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})
_EMPTY_BASES = frozenset({"object", "ABC", "Protocol", "Generic"})
_HARMLESS = frozenset({"dataclass", "final", "total_ordering", "runtime_checkable", "unique"})
_DECLARES = frozenset({"abstractmethod", "overload"})
_ENUM_MEMBERS = frozenset(dir(enum.IntFlag)) | {"name", "value", "_name_", "_value_"}
_TUPLE_MEMBERS = frozenset(dir(tuple)) | {"_asdict", "_replace", "_fields", "_make", "_field_defaults"}
_OBJECT_MEMBERS = frozenset(dir(object)) | {"__dict__", "__module__", "__annotations__", "__slots__", "__name__"}


@dataclass
class Shape:
    """Members of a class and of its bases in the file. `assigned` maps an attribute to the values given to it."""

    node: ast.ClassDef
    tree: ast.Module
    members: set[str] = field(default_factory=set)
    annotations: dict[str, ast.expr] = field(default_factory=dict)
    assigned: dict[str, list[ast.expr | None]] = field(default_factory=dict)
    methods: dict[str, Function] = field(default_factory=dict)
    whole: bool = True

    def lacks(self, *names: str) -> bool:
        """Whether instances surely have no member of any of these names. What the file sets on whatever object might be
        set on this one."""
        if not self.whole or self.members & set(names):
            return False
        return not _stored_attributes(self.tree) & set(names)


def decorator_names(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[str]:
    """Last word of each decorator: `functools.cached_property` gives cached_property."""
    found = []
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        found.append(last_word(called))
    return found


def last_word(node: ast.expr) -> str:
    """`a.b.c` → c, `c[int]` → c; "" for another expression."""
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def is_property(function: Function) -> bool:
    """Whether the method is read without a call."""
    return any(word in ("property", "cached_property") for word in decorator_names(function))


class Classes:
    """The classes of a module by name, each read when it is first asked for. Of two with one name neither is whole."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._nodes: dict[str, list[ast.ClassDef]] = {}
        self._shapes: dict[str, Shape] = {}
        for statement in _statements(tree.body):
            if isinstance(statement, ast.ClassDef):
                self._nodes.setdefault(statement.name, []).append(statement)

    def get(self, name: str) -> Shape | None:
        """The class of that name; None when the module has none."""
        if name not in self._nodes:
            return None
        if name not in self._shapes:
            nodes = self._nodes[name]
            shape = _shape(nodes[-1], self._tree)
            shape.whole = shape.whole and len(nodes) == 1
            self._shapes[name] = shape
            _inherit(shape, self)
        return self._shapes[name]


@lru_cache(maxsize=16)
def classes_of(tree: ast.Module) -> Classes:
    """The classes of a module."""
    return Classes(tree)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements at every depth."""
    for statement in body:
        yield statement
        for _, suite in suites_of(statement):
            yield from _statements(suite)


def shape_of(tree: ast.Module, suite: Suite, name: str) -> Shape | None:
    """The class whose instance (or which itself) the name is, when it is the first parameter of a method around."""
    inner: Suite | None = suite
    while inner is not None:
        function = inner.owner
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and inner.kind == "function":
            first = [*function.args.posonlyargs, *function.args.args][:1]
            owner = inner.parent.owner if inner.parent else None
            if first and first[0].arg == name:
                static = "staticmethod" in decorator_names(function)
                known = classes_of(tree).get(owner.name) if isinstance(owner, ast.ClassDef) and not static else None
                return known if known is not None and known.node is owner else None
        inner = inner.parent
    return None


def _shape(node: ast.ClassDef, tree: ast.Module) -> Shape:
    shape = Shape(node, tree)
    shape.whole = all(word in _HARMLESS for word in decorator_names(node)) and not any(
        keyword.arg != "metaclass" or last_word(keyword.value) not in ("ABCMeta", "EnumMeta")
        for keyword in node.keywords
    )
    for statement in _class_level(node.body):
        _add_statement(shape, statement)
    for method in shape.methods.values():
        _add_stores(shape, method)
    if shape.members & {"__getattr__", "__getattribute__"} or any(_is_open(shape, m) for m in shape.methods.values()):
        shape.whole = False
    return shape


def _is_open(shape: Shape, method: Function) -> bool:
    """Whether the method is still to be written: it may store any attribute. What only declares stores none."""
    if _DECLARES & set(decorator_names(method)) or "Protocol" in map(last_word, shape.node.bases):
        return False
    body = method.body[1:] if ast.get_docstring(method, clean=False) is not None else method.body
    return bool(body) and all(_is_placeholder(statement) for statement in body)


def _is_placeholder(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise) and statement.exc is not None:
        made = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return last_word(made) == "NotImplementedError"
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and value.value is ...


def _class_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        for name in ("body", "orelse", "finalbody"):
            if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from _class_level(getattr(statement, name, []))


def _add_statement(shape: Shape, statement: ast.stmt) -> None:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        shape.members.add(statement.name)
        if statement.name not in shape.methods or not is_property(shape.methods[statement.name]):
            shape.methods[statement.name] = statement
    elif isinstance(statement, ast.ClassDef):
        shape.members.add(statement.name)
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        shape.members.add(statement.target.id)
        shape.annotations[statement.target.id] = statement.annotation
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Name):
                shape.assigned.setdefault(target.id, []).append(statement.value)
            for name in ast.walk(target):
                if isinstance(name, ast.Name):
                    shape.members.add(name.id)
                    if name.id == "__slots__":
                        shape.members |= set(_strings(statement.value))
    elif isinstance(statement, ast.Import | ast.ImportFrom | ast.For | ast.With | ast.Expr):
        for node in ast.walk(statement):
            if isinstance(node, ast.alias):
                shape.members.add(node.asname or node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                shape.members.add(node.id)
            elif isinstance(node, ast.Call) and last_word(node.func) in ("locals", "vars"):
                shape.whole = False


def _add_stores(shape: Shape, method: Function) -> None:
    """What a method stores on its first parameter."""
    first = [*method.args.posonlyargs, *method.args.args][:1]
    if not first:
        return
    own = first[0].arg
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node, own):
            shape.members.add(node.attr)
        if isinstance(node, ast.AnnAssign) and _is_own(node.target, own):
            assert isinstance(node.target, ast.Attribute)
            shape.annotations.setdefault(node.target.attr, node.annotation)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if _is_own(target, own):
                    assert isinstance(target, ast.Attribute)
                    shape.assigned.setdefault(target.attr, []).append(node.value)
                else:
                    _unknown_stores(shape, target, own)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.NamedExpr):
            _unknown_stores(shape, node.target, own)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            _unknown_stores(shape, node.optional_vars, own)
        elif isinstance(node, ast.Call):
            _add_call(shape, node)
        elif isinstance(node, ast.Attribute) and node.attr == "__dict__":
            shape.whole = False


def _unknown_stores(shape: Shape, target: ast.expr, own: str) -> None:
    for node in ast.walk(target):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node, own):
            shape.assigned.setdefault(node.attr, []).append(None)


def _add_call(shape: Shape, call: ast.Call) -> None:
    """`setattr(self, "name", …)` and `object.__setattr__(self, "name", …)`; a computed name could be any."""
    if last_word(call.func) in ("setattr", "__setattr__") and len(call.args) >= 2:
        name = call.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            shape.members.add(name.value)
            shape.assigned.setdefault(name.value, []).append(call.args[2] if len(call.args) > 2 else None)
        else:
            shape.whole = False
    elif last_word(call.func) == "vars":
        shape.whole = False


def _is_own(node: ast.expr, own: str) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own


@lru_cache(maxsize=16)
def _stored_attributes(tree: ast.Module) -> frozenset[str]:
    """Attributes that the file sets on whatever object."""
    return frozenset(n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))


def _strings(node: ast.expr) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def _inherit(shape: Shape, known: Classes) -> None:
    """Add what the bases have. A class is known by its name before its bases are read, so a cycle of bases ends."""
    shape.members |= _OBJECT_MEMBERS
    for base in shape.node.bases:
        name = last_word(base)
        plain = getattr(builtins, name, None)
        parent = known.get(name)
        if parent is not None and parent is not shape:
            shape.members |= parent.members
            shape.whole = shape.whole and parent.whole
            for source, into in ((parent.annotations, shape.annotations), (parent.methods, shape.methods)):
                for key, value in source.items():
                    into.setdefault(key, value)  # type: ignore[arg-type]
            for key, values in parent.assigned.items():
                mine = shape.assigned.setdefault(key, [])
                mine.extend(value for value in values if value not in mine)
        elif name in _ENUMS:
            shape.members |= _ENUM_MEMBERS
        elif name == "NamedTuple":
            shape.members |= _TUPLE_MEMBERS
        elif isinstance(plain, type) and isinstance(base, ast.Name):
            shape.members |= set(dir(plain))
        elif name not in _EMPTY_BASES:
            shape.whole = False
