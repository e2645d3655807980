"""What a function calls inside its project, and which exceptions can leave it. Read from the text alone.

A call is followed where the text says what it means: a name of the module, an import, `self.method`, `cls.method`,
a class (its `__init__` and `__post_init__`). `anything.method` is followed to every class of the looked-at modules
that has such a method; those are candidates only: they may satisfy a documented error, and never accuse.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from codegen.document.trees import children
from codegen.drift.code import Code, Module, Place
from codegen.drift.signatures import dotted

# Methods whose names say nothing about whose they are.
_COMMON_METHODS = frozenset(name for kind in (dict, list, set, str, bytes) for name in dir(kind)) | {"close", "put"}
_MAX_CANDIDATES = 4
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True)
class Raise:
    """An exception by the name it is raised under, and where the statement stands."""

    name: str
    line: int
    module: Module


@dataclass
class _Sites:
    """The statements of one function that matter here, each with the exceptions caught around it. `names` are the
    references in source order, the called ones marked; `bound` are local names, which are values."""

    raises: list[tuple[str, int, tuple[str, ...]]] = field(default_factory=list)
    asserts: list[tuple[str, int, tuple[str, ...]]] = field(default_factory=list)
    calls: list[tuple[ast.expr, tuple[str, ...]]] = field(default_factory=list)
    names: list[tuple[ast.expr, bool]] = field(default_factory=list)
    bound: set[str] = field(default_factory=set)


@dataclass
class CallGraph:
    """Call targets and escaping exceptions of the functions of `code`; `modules` are the ones searched for
    `anything.method`."""

    code: Code
    modules: list[Module]
    _methods: dict[str, list[Place]] = field(default_factory=dict)
    _escapes: dict[tuple[str, bool], frozenset[Raise]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for module in self.modules:
            for definition in module.definitions.values():
                if definition.kind == "function" and definition.owner:
                    self._methods.setdefault(definition.last_name, []).append(Place(module, definition))

    def targets(self, place: Place, call: ast.expr) -> tuple[list[Place], bool]:
        """What a called expression may mean, and whether the text settles it."""
        name = dotted(call)
        if name is None:
            return self._candidates(call), False
        head, _, rest = name.partition(".")
        owner = _class_of(place)
        if head in ("self", "cls") and owner:
            if rest and "." not in rest:
                found = self.code.find(place.module.name, f"{owner}.{rest}")
                return ([found] if found else []), True
            return self._candidates(call), False
        is_local = head in self._sites(place).bound
        found = None if is_local else self.code.find(place.module.name, name)
        if found:
            return [found], True
        if isinstance(call, ast.Attribute) and (is_local or head not in place.module.imports):
            return self._candidates(call), False
        return [], True

    def methods_called(self, name: str) -> list[Place]:
        """Every method of this name in the looked-at modules."""
        return self._methods.get(name, [])

    def called(self, place: Place) -> list[tuple[Place, bool]]:
        """Definitions of the project that a function refers to, or the body of a class outside its methods, in
        order of first use; each with whether the text settles it."""
        found: dict[str, tuple[Place, bool]] = {}
        sites = self._sites(place)
        for node, is_call in sites.names:
            if is_call:
                places, settled = self.targets(place, node)
            else:
                name = dotted(node)
                is_local = name is not None and name.partition(".")[0] in sites.bound
                target = self.code.find(place.module.name, name) if name and not is_local else None
                places, settled = ([target] if target else []), True
            for target in places:
                if target != place:
                    found.setdefault(target.full_name, (target, settled))
        return list(found.values())

    def call_names(self, place: Place) -> set[str]:
        """The called expressions of a function as written, and their last parts (`json.loads`, `loads`)."""
        names = {dotted(call) or "" for call, _ in self._sites(place).calls}
        return names | {name.rpartition(".")[2] for name in names}

    def escapes(self, place: Place, everywhere: bool) -> frozenset[Raise]:
        """Exceptions that `raise` statements can send out of a function (for a class: out of its body; ask for its
        methods one by one).

        `everywhere` follows every call, candidates too, and counts `assert` (what may be documented); otherwise only
        private helpers of the same module are followed (what must be documented). An exception caught around the
        statement or the call does not count; nor does a bare `raise` or one of an unknown value.
        """
        key = (place.full_name, everywhere)
        if key not in self._escapes:
            self._escapes[key] = frozenset()  # a recursive call adds nothing of its own
            self._escapes[key] = frozenset(self._escaping(place, everywhere))
        return self._escapes[key]

    def ancestry(self, module: Module, name: str) -> list[str]:
        """Last names of an exception class and everything it inherits from, as far as project and builtins tell."""
        last = name.rpartition(".")[2]
        known = getattr(builtins, last, None)
        if isinstance(known, type) and issubclass(known, BaseException):
            return [each.__name__ for each in known.__mro__]
        found = [last]
        place = self.code.find(module.name, name)
        if place is not None:
            for base in place.definition.bases:
                base_name = dotted(base)
                if base_name and base_name != name:
                    found += self.ancestry(place.module, base_name)
        return found

    def _escaping(self, place: Place, everywhere: bool) -> Iterator[Raise]:
        sites = self._sites(place)
        for name, line, caught in [*sites.raises, *(sites.asserts if everywhere else [])]:
            if not self._is_caught(place.module, name, caught):
                yield Raise(name, line, place.module)
        for call, caught in sites.calls:
            places, settled = self.targets(place, call)
            for target in places:
                if everywhere or (settled and _is_private_helper(place, target)):
                    for each in self._escapes_of_call(target, everywhere):
                        if not self._is_caught(each.module, each.name, caught):
                            yield each

    def _escapes_of_call(self, target: Place, everywhere: bool) -> frozenset[Raise]:
        if target.definition.kind == "function":
            return self.escapes(target, everywhere)
        found: frozenset[Raise] = frozenset()
        for name in ("__init__", "__post_init__", "__new__"):
            method = self.code.find(target.module.name, f"{target.definition.name}.{name}")
            if method:
                found |= self.escapes(method, everywhere)
        return found

    def _is_caught(self, module: Module, name: str, caught: tuple[str, ...]) -> bool:
        return bool(caught) and not set(caught).isdisjoint(self.ancestry(module, name))

    def _candidates(self, call: ast.expr) -> list[Place]:
        if not isinstance(call, ast.Attribute) or call.attr in _COMMON_METHODS:
            return []
        found = self._methods.get(call.attr, [])
        return found if len(found) <= _MAX_CANDIDATES else []

    @staticmethod
    def _sites(place: Place) -> _Sites:
        known = _known_sites.setdefault(place.module, {})
        if place.definition.name not in known:
            known[place.definition.name] = _read_sites(place.definition.node)
        return known[place.definition.name]


# Graphs of several documents look at the same modules.
_known_sites: WeakKeyDictionary[Module, dict[str, _Sites]] = WeakKeyDictionary()


def _read_sites(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> _Sites:
    sites = _Sites()
    for child in children(node):
        if not (isinstance(node, ast.ClassDef) and isinstance(child, _SCOPES)):
            _collect(child, (), sites)
    if isinstance(node, ast.ClassDef):
        sites.bound.clear()  # fields are no local names
    return sites


def _collect(node: ast.AST, caught: tuple[str, ...], sites: _Sites, local: bool = False) -> None:
    """Gather what matters below `node`. Inside a local function (`local`) nothing runs yet, so only names count."""
    if isinstance(node, ast.Constant):
        return
    if isinstance(node, (ast.Try, ast.TryStar)):
        _collect_all(node.body, caught + tuple(_caught_names(node.handlers)), sites, local)
        _collect_all([*node.handlers, *node.orelse, *node.finalbody], caught, sites, local)
        return
    if isinstance(node, ast.Raise) and node.exc is not None and not local:
        name = dotted(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
        # `raise error` of a local says nothing about its type; exception classes are capitalised
        if name and name.rpartition(".")[2][:1].isupper():
            sites.raises.append((name, node.lineno, caught))
    elif isinstance(node, ast.Assert) and not local:
        sites.asserts.append(("AssertionError", node.lineno, caught))
    elif isinstance(node, ast.Call):
        sites.names.append((node.func, True))
        if not local:
            sites.calls.append((node.func, caught))
    elif isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load):
            sites.names.append((node, False))
        else:
            sites.bound.add(node.id)
        return
    elif isinstance(node, ast.Attribute):
        sites.names.append((node, False))
        if dotted(node):
            return
    elif isinstance(node, ast.arg):
        sites.bound.add(node.arg)
    _collect_all(children(node), caught, sites, local or isinstance(node, _SCOPES))


def _collect_all(nodes: Iterable[ast.AST], caught: tuple[str, ...], sites: _Sites, local: bool) -> None:
    for node in nodes:
        _collect(node, caught, sites, local)


def _class_of(place: Place) -> str:
    return place.definition.name if place.definition.kind == "class" else place.definition.owner


def _is_private_helper(place: Place, target: Place) -> bool:
    return target.module == place.module and target.definition.last_name.startswith("_")


def _caught_names(handlers: list[ast.ExceptHandler]) -> Iterator[str]:
    for handler in handlers:
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        if _raises_again(handler):
            continue  # the exception goes on after all
        for kind in kinds:
            yield "BaseException" if kind is None else (dotted(kind) or "").rpartition(".")[2]


def _raises_again(handler: ast.ExceptHandler) -> bool:
    return any(
        isinstance(node, ast.Raise)
        and (node.exc is None or (isinstance(node.exc, ast.Name) and node.exc.id == handler.name))
        for statement in handler.body
        for node in ast.walk(statement)
    )
