"""What a validation pattern is, and what is needed to render one at a place in somebody's code.

Everything here is data. Source text (`target`, parameter values, `expression`) is text that was parsed with
`ast` and is never evaluated during expansion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from codegen.diagnostics import Finding, UsageError

ParameterType = Literal["int", "number", "str", "bool", "expression", "name", "list", "display", "type"]
Target = Literal["required", "none", "expression"]
Placement = Literal["here", "on_entry", "on_return", "wrap"]
Each = Literal["none", "items", "keys", "values"]
Cost = Literal["O(1)", "O(n)", "io", "await"]


@dataclass(frozen=True)
class Parameter:
    """One argument of a pattern. `default` is source text; None means that the argument is required."""

    name: str
    type: ParameterType
    default: str | None = None
    positional: bool = False
    help: str = ""


@dataclass(frozen=True)
class Example:
    """One case that a pattern must decide: `given` is code that runs just before the rendered check.

    `message` is None when the check must pass, and otherwise the whole text of the error it must raise.
    """

    use: str
    given: str
    message: str | None
    each: Each = "none"
    is_async: bool = False
    needs: tuple[str, ...] = ()
    body: str = ""
    note: str | None = None
    line: int = 0


@dataclass(frozen=True)
class Pattern:
    """A validation, defined once. `template` and `message` are Jinja2 source; the rest is plain data.

    `digest` covers all that influences the rendered text, inherited parts included; examples do not count.
    """

    id: str
    tag: str
    summary: str
    template: str
    message: str
    description: str = ""
    group: str = ""
    parameters: tuple[Parameter, ...] = ()
    target: Target = "required"
    elementwise: bool = False
    placement: Placement = "here"
    error: str = "ValueError"
    imports: tuple[str, ...] = ()
    builtins: tuple[str, ...] = ()
    version: int = 1
    since: str = "0.1"
    extends: str | None = None
    cost: Cost = "O(1)"
    examples: tuple[Example, ...] = ()
    digest: str = ""
    path: Path = Path()

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of that name, or None."""
        return next((p for p in self.parameters if p.name == name), None)


@dataclass(frozen=True)
class Bound:
    """Arguments matched to a pattern's parameters, all as source text, defaults filled in.

    `target` is the explicit target, None when it has to be inferred from the site. For a pattern whose target
    is an expression it is that expression. `each` and `error` are the reserved arguments of those names; the
    reserved `about` is among the values, if it is given.
    """

    values: Mapping[str, str]
    target: str | None = None
    each: Each | None = None
    error: str | None = None


def underscored(stem: str) -> str:
    """`gpu` → `_gpu`: the fresh name where nothing can clash."""
    return f"_{stem}"


@dataclass(frozen=True)
class Site:
    """The place where a pattern is rendered.

    target: source of the checked value; label: what messages call it; function: unqualified name, "" at module
    level. `fresh(stem)` gives `_stem`, or the nearest name that the function does not use. `expression` is the
    claim of an AST pattern, in which `result` means the name `result` (the bound return value) and each
    snapshot name of `old` (source of the old expression → name of its snapshot) is already in place.
    `guarded`: whether what the condition raises has to end in the check's own error: "always" where nothing is known
    of the target's type, "arrays" where it has elements instead of a truth value.
    `binds_calls`: an argument with a call is evaluated once; without it stays where the template writes it, which is
    how templates are tried. `body` is the statement that a wrapping pattern encloses: its text at zero indentation,
    or a placeholder name that the caller replaces. `ast_mode` "raise" renders claims that `python -O` keeps. `width`
    is the longest line, at zero indentation, before a message is split into adjacent literals.
    """

    target: str | None = None
    label: str = ""
    function: str = ""
    each: Each = "none"
    result: str | None = None
    indent_unit: str = "    "
    fresh: Callable[[str], str] = underscored
    expression: str | None = None
    note: str | None = None
    old: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    guarded: Literal["never", "arrays", "always"] = "never"
    binds_calls: bool = True
    ast_mode: Literal["assert", "raise"] = "assert"
    width: int = 100


@dataclass(frozen=True)
class ExampleResult:
    """What came of one example. `detail` says, for a failed or skipped one, what happened instead."""

    pattern: str
    example: Example
    status: Literal["passed", "failed", "skipped"]
    detail: str = ""


class BadArgument(Exception):
    """Arguments of an annotation that do not fit the pattern; `fix` is an imperative sentence."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix


class UnknownPattern(LookupError):
    """No pattern has this id; `nearest` holds the ids that look alike, best first."""

    def __init__(self, id: str, nearest: list[str]) -> None:
        hint = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
        super().__init__(f"unknown pattern {id}{hint}")
        self.id = id
        self.nearest = nearest


class RenderError(Exception):
    """A pattern's template did not give Python statements: a defect of the pattern, not of the annotated code."""


class PatternFileError(UsageError):
    """A file of the library is broken; `findings` name file, line and column."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("\n".join(f"{f.path}:{f.line}:{f.column}: {f.message}" for f in findings))
        self.findings = findings
