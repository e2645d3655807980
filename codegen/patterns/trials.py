"""Try a pattern where its examples do not go: beside names that it might capture, with expressions that bind loosely.

Each trial renders the pattern with stand-ins for its arguments and looks at the tree; nothing is run.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import get_args

from codegen.patterns.arguments import bind, parse_use
from codegen.patterns.examples import example_site, render_example
from codegen.patterns.model import BadArgument, Bound, Each, Parameter, Pattern, RenderError, Site, underscored
from codegen.patterns.render import render
from codegen.patterns.source import is_simple

LOOSE = (
    "a or b", "a if b else c", "n - 1", "not a", "a < b", "lambda: a", "-n", "a.b[0]", "f(a)", "{1: a}[k]", "a @ b",
    "a ** b", "x == 1", "a | b",
)  # fmt: skip
_OPEN = frozenset({"expression", "int", "number", "list", "str"})
_STAND_INS = {"type": "int", "display": "(stand_in_p, stand_in_q)", "bool": "False", "name": "stand_in.name"}
_TARGET = "stand_in_target"
_CLAIM = "stand_in_claim"
_NAMED = (
    ast.ExceptHandler, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.MatchAs, ast.MatchStar,
)  # fmt: skip
_SCOPES = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp, ast.Lambda)


@dataclass(frozen=True)
class Trouble:
    """What a trial found: the key of the pattern file it speaks of, what is wrong, and the fix."""

    key: str
    message: str
    fix: str


def troubles(pattern: Pattern) -> list[Trouble]:
    """All that the trials find, each once. Raises RenderError when an example does not render."""
    trees = list(_renderings(pattern))
    found = [*_captures(pattern), *_names(pattern, trees), *_unused(pattern, trees), *_loose(pattern)]
    return list(dict.fromkeys(found))


def _other(stem: str) -> str:
    """A second way to name fresh variables, so that names which are not fresh can be recognised."""
    return f"_{stem}_2"


def _renderings(pattern: Pattern) -> Iterator[ast.Module]:
    """The trees of all examples, and of the pattern with stand-ins for its arguments."""
    for example in pattern.examples:
        yield ast.parse(render_example(pattern, example))
    for each in _eaches(pattern):
        tree = _tree(pattern, {}, each=each)
        if tree is not None:
            yield tree


def _eaches(pattern: Pattern) -> tuple[Each, ...]:
    return get_args(Each) if pattern.elementwise else ("none",)


def _argument(parameter: Parameter) -> str:
    return _STAND_INS.get(parameter.type, f"stand_in_{parameter.name}")


def _tree(
    pattern: Pattern,
    given: dict[str, str],
    target: str = _TARGET,
    each: Each = "none",
    fresh: Callable[[str], str] = underscored,
) -> ast.Module | None:
    """The tree with stand-ins but for the given arguments; None when the pattern takes no such argument."""
    texts = {p.name: given.get(p.name, _argument(p)) for p in pattern.parameters}
    try:
        bound: Bound = bind(pattern, [], texts)
        site = Site(
            target=target if pattern.target == "required" else None,
            label="label",
            each=each,
            fresh=fresh,
            expression=_CLAIM,
            body="await stand_in_body()",
            binds_calls=False,
        )
        tree = ast.parse(render(pattern, bound, site))
    except BadArgument:
        return None
    except RenderError:
        if given or target != _TARGET:
            return None  # The pattern refuses such an argument, which is its right.
        if _all_free(pattern):
            raise
        return None  # Stand-ins are not what this pattern takes; its examples are.
    return tree


def _all_free(pattern: Pattern) -> bool:
    return all(p.type in _OPEN for p in pattern.parameters)


def _captures(pattern: Pattern) -> Iterator[Trouble]:
    """Names that the template binds itself: they hide, or overwrite, what the code around calls by that name."""
    pairs: list[tuple[ast.Module, ast.Module, set[str]]] = []
    for example in pattern.examples:
        bound = parse_use(pattern, example.use)
        site = example_site(pattern, bound, example)
        codes = [render(pattern, bound, _with_fresh(site, way)) for way in (underscored, _other)]
        own = _bound_names(ast.parse(f"[{', '.join([*bound.values.values(), bound.target or '0'])}]"))
        own |= _bound_names(ast.parse(example.body)) if example.body else set()
        pairs.append((ast.parse(codes[0]), ast.parse(codes[1]), own))
    for each in _eaches(pattern):
        with_one, with_other = (_tree(pattern, {}, each=each, fresh=way) for way in (underscored, _other))
        if with_one is not None and with_other is not None:
            pairs.append((with_one, with_other, set()))
    for first, second, own in pairs:
        for name in sorted(_stored(first) & _stored(second) - own):
            yield Trouble(
                "template",
                f"the template assigns {name}, and would overwrite the {name} of the code around it",
                f"Name it freshly: {{% set {name} = fresh('{name}') %}}, then {{{{ {name} }}}}.",
            )
        fixed = _scoped(first) & _scoped(second) - own
        for name, hidden in sorted(_hiding(first, fixed)):
            yield Trouble(
                "template",
                f"the template binds {name} around {hidden}, so an argument that uses a {name} of its own "
                "would mean another thing",
                f"Name it freshly: {{% set {name} = fresh('{name}') %}}, then {{{{ {name} }}}}.",
            )


def _with_fresh(site: Site, fresh: Callable[[str], str]) -> Site:
    return Site(**{**vars(site), "fresh": fresh})


def _stored(tree: ast.AST) -> set[str]:
    """Names that statements bind in the function around them."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, _SCOPES):
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(node.id)
        elif isinstance(node, _NAMED) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return found


def _scoped(tree: ast.AST) -> set[str]:
    """Names that comprehensions and lambdas bind."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension):
            found.update(n.id for n in ast.walk(node.target) if isinstance(n, ast.Name))
        elif isinstance(node, ast.Lambda):
            found.update(a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg))
    return found


def _bound_names(tree: ast.AST) -> set[str]:
    return _stored(tree) | _scoped(tree)


def _hiding(tree: ast.Module, fixed: set[str]) -> Iterator[tuple[str, str]]:
    """(bound name, stand-in inside its scope) wherever an argument is written where a fixed name is bound."""
    for node in ast.walk(tree):
        if not isinstance(node, _SCOPES):
            continue
        names = fixed & _scoped(node)
        outside: set[int] = set()
        if not isinstance(node, ast.Lambda):
            outside = {id(n) for n in ast.walk(node.generators[0].iter)}
        inside = sorted(
            n.id
            for n in ast.walk(node)
            if isinstance(n, ast.Name) and id(n) not in outside and n.id.startswith("stand_in")
        )
        for name in names:
            if inside:
                yield name, inside[0].removeprefix("stand_in_")


def _read(tree: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _imported(pattern: Pattern) -> dict[str, str]:
    """Name → import statement that binds it."""
    return {
        (alias.asname or alias.name).partition(".")[0]: line
        for line in pattern.imports
        for node in ast.walk(ast.parse(line))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _names(pattern: Pattern, trees: list[ast.Module]) -> Iterator[Trouble]:
    """Names that the template reads on its own account, which nobody gives it."""
    known = {*_imported(pattern), *pattern.builtins, pattern.error.partition(".")[0], "int", "result"}
    for each in _eaches(pattern):
        tree = _tree(pattern, {}, each=each)
        if tree is None:
            continue
        for name in sorted(_read(tree) - _bound_names(tree) - known):
            if name.startswith("stand_in") or name == "label":
                continue
            if hasattr(builtins, name):
                fix = f"Declare it: `builtins: [{name}]`."
                message = f"the template relies on the built-in {name}, which the pattern does not declare"
            else:
                fix = "Import it under `imports:`, or make it a parameter."
                message = f"the template reads {name}, which is no argument, no import and no name of its own"
            yield Trouble("template", message, fix)


def _unused(pattern: Pattern, trees: list[ast.Module]) -> Iterator[Trouble]:
    """Imports and built-ins that no rendering reads; parameters that neither template nor message names."""
    read = set().union(*map(_read, trees))
    for name, line in _imported(pattern).items():
        if name not in read:
            message = f"no example's code uses {name}, which `{line}` binds"
            yield Trouble("imports", message, "Drop the import, or add an example that needs it.")
    for name in pattern.builtins:
        if name not in read:
            yield Trouble("builtins", f"no example's code uses the built-in {name}", "Drop it, or add an example.")
    for parameter in pattern.parameters:
        if f"{parameter.name}" not in _words(pattern):
            message = f"neither template nor message uses the parameter {parameter.name}"
            yield Trouble("parameters", message, "Use it, or drop it.")


def _words(pattern: Pattern) -> set[str]:
    from codegen.patterns.template import environment

    texts = (pattern.template, pattern.message)
    return {str(token[2]) for text in texts for token in environment().lex(text) if token[1] == "name"}


class _Put(ast.NodeTransformer):
    """Replaces a stand-in, a name or the call of one, by an expression."""

    def __init__(self, stand_in: str, text: str) -> None:
        self.stand_in = stand_in
        self.text = text

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and ast.unparse(node) == self.stand_in:
            return ast.parse(self.text, mode="eval").body
        return self.generic_visit(node)


def _loose(pattern: Pattern) -> Iterator[Trouble]:
    """Arguments whose operators fall apart in the template: `n - 1` in `x % {{ n }}` becomes `x % n - 1`."""
    places: list[tuple[str, Each]] = [(p.name, "none") for p in pattern.parameters if p.type in _OPEN]
    if pattern.target == "required":
        places += [("", each) for each in _eaches(pattern)]
    for name, each in places:
        for text in LOOSE:
            plain = f"stand_in_{name or 'target'}" + ("" if is_simple(text) else "()")
            trees = [_filled(pattern, name, each, words) for words in (plain, text)]
            if trees[0] is None or trees[1] is None:
                continue
            expected = _Put(plain, text).visit(ast.parse(ast.unparse(trees[0])))
            if ast.dump(expected) != ast.dump(trees[1]):
                what = name or "target"
                yield Trouble(
                    "template",
                    f"the {what} `{text}` means another thing inside the template: {_difference(expected, trees[1])}",
                    f"Write {{{{ {name or 'each'}|atom }}}} beside an operator or a dot.",
                )
                break


def _filled(pattern: Pattern, name: str, each: Each, text: str) -> ast.Module | None:
    tree = _tree(pattern, {name: text}, each=each) if name else _tree(pattern, {}, text, each)
    if tree is None:
        return None
    for node in ast.walk(tree):  # Messages show the text as it is, so they are no part of the comparison.
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc.args = []
        elif isinstance(node, ast.Assert):
            node.msg = None
    return tree


def _difference(expected: ast.AST, got: ast.AST) -> str:
    """The first line of the code that was meant, and of the code that is."""
    wanted, found = ast.unparse(expected).splitlines(), ast.unparse(got).splitlines()
    pairs = [(a, b) for a, b in zip(wanted, found, strict=False) if a != b]
    meant, is_now = pairs[0] if pairs else (wanted[0], found[0])
    return f"`{is_now.strip()}`, not `{meant.strip()}`"
