"""Whether a name has a value where the code of a check will run, as far as the file alone can say.

A local has one if it is bound above in a branch that can have run; a module's name, if the module binds it and not only
for type checkers, for one platform or when run as a script, and does not delete it again. Nothing is assumed of files
that bind names in ways that cannot be read: a star import, `globals()`, `exec`.
"""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from codegen.expand.meaning.classes import shape_of
from codegen.expand.meaning.types import scope_at
from codegen.expand.reading.parsing import Function, first_line, last_line
from codegen.expand.reading.scopes import bound_by, bound_in, parameters_of
from codegen.expand.reading.suites import Suite

_MODULE_NAMES = frozenset(
    {"__name__", "__file__", "__doc__", "__spec__", "__package__", "__path__", "__loader__", "__builtins__"}
    | {"__annotations__", "__debug__", "__class__", "__cached__", "__dict__"}
)
_BUILTINS = frozenset(dir(builtins)) | _MODULE_NAMES
_NAMESPACES = frozenset({"globals", "vars", "locals"})
_READING = frozenset({"keys", "values", "items", "get", "copy"})


@dataclass(frozen=True)
class Event:
    """A name is bound or deleted by a statement of a suite that ends on `line`."""

    name: str
    line: int
    suite: Suite
    node: ast.AST
    deleted: bool = False


def missing(name: str, suite: Suite, after: int) -> str | None:
    """Why a name has no value in code below line `after` of the suite; None when it has one, or may have."""
    for depth, function in enumerate(reversed(suite.functions)):
        if name in bound_in(function):
            if depth or any(parameter.arg == name for parameter in parameters_of(function)):
                return None
            return _missing_local(name, suite, after, function)
    why = _missing_global(name, suite, after)
    # A built-in is there in any case; and what nobody can read is asked last, for it means to read the whole file.
    return None if why is None or name in _BUILTINS or unreadable(scope_at(suite).tree) else why


def _missing_local(name: str, suite: Suite, after: int, function: Function) -> str | None:
    body = _body_of(suite, function)
    events = _events_of(body).get(name, ())
    # Above in the text is above in time, but for loops; and there the first round decides, for it would raise.
    usable = [
        e for e in events if not e.deleted and e.line <= after and not _apart(e.suite, suite) and _lives(e, suite)
    ]
    if not usable:
        bound = [event.line for event in events if not event.deleted]
        return "has no value yet: it is bound further down" if bound and min(bound) > after else "has no value here"
    last = max(event.line for event in usable)
    gone = [e.line for e in events if e.deleted and last < e.line <= after and _around(e.suite, suite)]
    return "is deleted above" if gone else None


def _missing_global(name: str, suite: Suite, after: int) -> str | None:
    root = _root(suite)
    events = _events_of(root).get(name, ())
    bound = [event for event in events if not event.deleted]
    if not bound and name in _BUILTINS:
        return None
    if not bound:
        return None if name in _global_names(scope_at(suite).tree) else "is not defined"
    if not suite.functions:
        bound = [event for event in bound if event.line <= after]
        if not bound:
            return "has no value yet: it is bound further down"
    reasons = [reason for event in bound if (reason := _only_sometimes(event.suite, suite))]
    if len(reasons) == len(bound) and not _every_branch(bound):
        return reasons[0]
    last = max(event.line for event in bound)
    if any(e.deleted and e.line > last and not _only_sometimes(e.suite, suite) for e in events):
        return "is deleted again"
    return None


def _only_sometimes(inner: Suite, site: Suite) -> str:
    """Why code of a module's suite may not have run when code of the site does; "" when nothing known forbids it."""
    while not _around(inner, site):
        if isinstance(inner.owner, ast.If):
            test = ast.unparse(inner.owner.test)
            other = inner.clause == "else"
            if "TYPE_CHECKING" in test and not other:
                return "is bound for type checkers only"
            if any(word in test for word in ("platform", "os.name", "version_info", "implementation")):
                return f"is bound only under `{'else' if other else 'if'} {test}`"
            if test.startswith("__name__ ==") and not other:
                return "is bound only when the file is run as a script"
            if isinstance(inner.owner.test, ast.Constant) and not inner.owner.test.value and not other:
                return "is bound in code that never runs"
        assert inner.parent is not None
        inner = inner.parent
    return ""


def _every_branch(bound: list[Event]) -> bool:
    """Whether some `if` binds the name in all its branches."""
    for event in bound:
        owner = event.suite.owner
        if isinstance(owner, ast.If) and event.suite.clause in (None, "elif", "else"):
            homes = {id(e.suite.statements) for e in bound}
            if _covers(owner, homes):
                return True
    return False


def _covers(node: ast.If, homes: set[int]) -> bool:
    if id(node.body) not in homes or not node.orelse:
        return False
    if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If) and id(node.orelse) not in homes:
        return _covers(node.orelse[0], homes)
    return id(node.orelse) in homes


def surely_runs_before(statement: ast.stmt, suite: Suite, after: int, root: Suite) -> bool:
    """Whether a statement at module level has run whenever code of the suite does, calls during the import included."""
    home = next((event.suite for event in _events(root) if event.node is statement), None)
    if home is None or not _around(home, suite):
        return False
    top = next((s for s in root.statements if first_line(s) <= after <= last_line(s)), None)
    limit = min(after, first_line(top)) if top is not None and suite.functions else after
    if last_line(statement) <= limit:
        return True
    between = [s for s in root.statements if s is not top and limit <= first_line(s) <= statement.lineno]
    return bool(suite.functions) and not any(_calls(s) for s in [*between, *([top] if top else [])])


def _calls(statement: ast.stmt) -> bool:
    """Whether a statement may call something while the module is imported."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        parts: list[ast.AST] = [*statement.decorator_list, *statement.args.defaults]
        return bool(statement.decorator_list) or any(isinstance(n, ast.Call) for p in parts for n in ast.walk(p))
    if isinstance(statement, ast.ClassDef):
        return bool(statement.decorator_list or statement.keywords) or any(_calls(s) for s in statement.body)
    return any(isinstance(node, ast.Call) for node in ast.walk(statement))


def deleted_later(name: str, root: Suite) -> bool:
    """Whether the module deletes the name."""
    return any(event.deleted for event in _events_of(root).get(name, ()))


def nearest(name: str, suite: Suite) -> str:
    """The visible name that looks most alike, members of `self` included; "" when none does."""
    scope = scope_at(suite)
    for owner in ("self", "cls"):
        shape = shape_of(scope.tree, suite, owner)
        if shape is not None and name in shape.members:
            return f"{owner}.{name}"
    visible = set(bound_in(scope.tree)) | {word for word in _BUILTINS if not word.startswith("_")}
    for function in suite.functions:
        visible |= bound_in(function)
    members = shape_of(scope.tree, suite, "self")
    candidates = {word: word for word in visible}
    for member in sorted(members.members if members else ()):
        if not member.startswith("__"):
            candidates.setdefault(member, f"self.{member}")
    near = difflib.get_close_matches(name, sorted(candidates), n=1, cutoff=0.6)
    return candidates[near[0]] if near else ""


@lru_cache(maxsize=32)
def unreadable(tree: ast.Module) -> bool:
    """Whether the module binds names in a way that cannot be read: a star import, `exec`, a namespace written to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return True
        named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "exec"
        if named and (len(node.args) < 2 or ast.unparse(node.args[1]) == "globals()"):  # type: ignore[attr-defined]
            return True
        space = node.value if isinstance(node, ast.Subscript | ast.Attribute | ast.Assign | ast.NamedExpr) else None
        if not (isinstance(space, ast.Call) and isinstance(space.func, ast.Name) and space.func.id in _NAMESPACES):
            continue
        if space.args:
            continue  # `vars(x)` is the namespace of an object.
        reads = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
        if not reads and not (isinstance(node, ast.Attribute) and node.attr in _READING):
            return True
    return False


@lru_cache(maxsize=32)
def _global_names(tree: ast.Module) -> frozenset[str]:
    """Names that functions declare `global`: they bind them whenever they are called."""
    return frozenset(name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names)


def _root(suite: Suite) -> Suite:
    while suite.parent is not None:
        suite = suite.parent
    return suite


def _body_of(suite: Suite, function: Function) -> Suite:
    while suite.owner is not function:
        assert suite.parent is not None
        suite = suite.parent
    return suite


def _chain(suite: Suite) -> list[Suite]:
    chain = [suite]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    return chain


def _around(outer: Suite, inner: Suite) -> bool:
    """Whether a suite is another one, or encloses it."""
    return any(each is outer for each in _chain(inner))


def _apart(one: Suite, other: Suite) -> bool:
    """Whether two suites are branches of one `if`, `match` or set of handlers, of which only one runs.

    In a loop both may have run by now, but not before the first of them; the first time decides.
    """
    mine, theirs = _chain(one), _chain(other)
    while mine and theirs and mine[-1] is theirs[-1]:
        mine.pop()
        theirs.pop()
    if not mine or not theirs:
        return False
    left, right = mine[-1], theirs[-1]
    if isinstance(left.owner, ast.match_case) or isinstance(right.owner, ast.match_case):
        return _one_statement(left, right)
    if isinstance(left.owner, ast.If) and isinstance(right.owner, ast.If):
        return _one_statement(left, right)
    handlers = isinstance(left.owner, ast.ExceptHandler) or left.clause == "else"
    return handlers and isinstance(right.owner, ast.ExceptHandler) and _one_statement(left, right)


def _one_statement(left: Suite, right: Suite) -> bool:
    assert left.parent is not None
    for statement in left.parent.statements:
        first, last = first_line(statement), last_line(statement)
        if first <= left.header_end <= last:
            return first <= right.header_end <= last
    return False


def _lives(event: Event, site: Suite) -> bool:
    """The name of an exception exists in its handler only."""
    return not isinstance(event.node, ast.ExceptHandler) or _around(event.suite, site)


@lru_cache(maxsize=32)
def _events_of(body: Suite) -> dict[str, list[Event]]:
    """The events of a scope by the name that they are about."""
    found: dict[str, list[Event]] = {}
    for event in _events(body):
        found.setdefault(event.name, []).append(event)
    return found


@lru_cache(maxsize=256)
def _events(body: Suite) -> tuple[Event, ...]:
    """What the suite and the blocks in it bind and delete; functions and classes inside bind their own name only."""
    found: list[Event] = []
    waiting = [body]
    while waiting:
        suite = waiting.pop()
        if isinstance(suite.owner, ast.ExceptHandler) and suite.owner.name:
            found.append(Event(suite.owner.name, suite.header_end, suite, suite.owner))
        if suite.clause == "elif" and suite.parent is not None:
            # An `elif` is no statement of any suite; what its test binds belongs to the suite of the whole `if`.
            assert isinstance(suite.owner, ast.If)
            for node in (suite.owner.test, *_header_nodes(suite.owner.test)):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    found.append(Event(node.id, suite.owner.lineno, suite.parent, suite.owner))
        if isinstance(suite.owner, ast.match_case):
            found += [Event(n, suite.header_end, suite, suite.owner) for n in _captures(suite.owner.pattern)]
        for statement in suite.statements:
            found.extend(_of_statement(statement, suite))
        waiting.extend(child for child in suite.children if child.kind == "block")
    return tuple(found)


def _captures(pattern: ast.pattern) -> Iterator[str]:
    for node in ast.walk(pattern):
        name = getattr(node, "name", None) or getattr(node, "rest", None)
        if isinstance(name, str):
            yield name


def _of_statement(statement: ast.stmt, suite: Suite) -> Iterator[Event]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield Event(statement.name, last_line(statement), suite, statement)
        return
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return
    if isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (Event(bound_by(alias), last_line(statement), suite, statement) for alias in statement.names)
        return
    header = bool(getattr(statement, "body", None))
    line = statement.lineno if header else last_line(statement)
    for node in _header_nodes(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield Event(node.id, line, suite, statement, isinstance(node.ctx, ast.Del))


def _header_nodes(statement: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a statement without its blocks, and without what comprehensions and lambdas keep for themselves."""
    waiting: list[ast.AST] = list(ast.iter_child_nodes(statement))
    inner: set[int] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case | ast.Lambda):
            continue
        if isinstance(node, ast.comprehension):
            inner.update(id(name) for name in ast.walk(node.target))
        if id(node) not in inner:
            yield node
        waiting.extend(ast.iter_child_nodes(node))
