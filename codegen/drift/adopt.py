"""A whole design document from code that exists already.

Sections 1 to 4 are questions with what the code shows beside them; Section 5 shows, folded, each callable that users
reach, where it is defined; there is no plan, because nobody has to do what is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codegen.diagnostics import UsageError
from codegen.document.edit import yaml_scalar
from codegen.document.folded import module_lines
from codegen.drift.calls import CallGraph
from codegen.drift.code import Code, Module
from codegen.drift.commands import entry_points
from codegen.drift.questions import architecture, decision, flows, goals
from codegen.drift.stubbing import Stubber
from codegen.drift.surface import ALL, BORDER, Surface, modules_below, surface
from codegen.drift.survey import Survey, says, survey


@dataclass(frozen=True)
class Adopted:
    """The document's text, the surface it shows (`border` or `all`) and why, and what the code shows of itself."""

    text: str
    wanted: str
    why: str
    surface: Surface
    survey: Survey


def adopted_document(
    code: Code,
    packages: Sequence[str],
    ident: str,
    date: str,
    wanted: str | None = None,
    excluded: Sequence[str] = (),
) -> Adopted:
    """The document of some packages, given as paths or dotted names. `wanted` is `border` or `all`; chosen where it is
    not given.

    UsageError: there is no such package, or nobody reaches a function or class in it.
    """
    roots = tuple(package_path(code, package) for package in packages)
    modules = modules_below(code, roots, tuple(excluded))
    if wanted is None:
        wanted, why = _choice(code, modules)
    else:
        why = "as asked"
    found = surface(code, modules, wanted == ALL)
    if not found.reached:
        raise UsageError(f"{', '.join(packages)}: nobody reaches a function or class in it")
    facts = survey(code, modules)
    lines = [*_head(ident, roots, date, wanted, excluded), *_sections(ident, facts, found)]
    return Adopted("\n".join([*lines, *section_5(code, modules, found), *_PLAN]) + "\n", wanted, why, found, facts)


def section_5(code: Code, modules: Sequence[Module], found: Surface) -> list[str]:
    """The lines of Section 5: one folded block for each module that defines something that users reach."""
    graph = CallGraph(code, list(modules))
    lines = ["## 5. APIs and implementation", ""]
    definers = {each.place.module.name: each.place.module for each in found.reached}
    for number, module in enumerate(definers.values(), 1):
        shown = Stubber(module, graph).code(each.place.definition.name for each in found.of(module))
        fields = {"decisions": "D-1", "tests": tests_of(module, code)}
        lines += [*module_lines(f"5.{number}", module.name, purpose_of(module, found), fields, shown, {}), ""]
    return lines


def purpose_of(module: Module, found: Surface) -> str:
    """What a module says of itself, and where users find its names if that is not in the module."""
    shown = [each.name.rpartition(".")[0] for each in found.of(module) if each.place.definition.owner == ""]
    elsewhere = sorted({f"`{name}`" for name in shown if name != module.name})
    reach = f"Users find it in {', '.join(elsewhere)}." if elsewhere else ""
    return " ".join(filter(None, [says(module).replace("<", "\\<"), reach]))


def tests_of(module: Module, code: Code) -> str:
    """The test file named like the module, if there is one; none is invented."""
    parts = [part.strip("_") for part in module.name.split(".")]
    for guess in ("/".join(["tests", *parts[:-1], f"test_{parts[-1]}.py"]), f"tests/test_{parts[-1]}.py"):
        if parts[-1] and (code.root / guess).is_file():
            return guess
    return ""


def package_path(code: Code, package: str) -> str:
    """The path of a package given as a path or as a dotted name. UsageError: there is none."""
    if (code.root / package).exists():
        return package.rstrip("/")
    dotted = package.replace(".", "/")
    for guess in (dotted, f"{dotted}.py", f"src/{dotted}", f"src/{dotted}.py"):
        if (code.root / guess).exists():
            return guess
    raise UsageError(f"{package}: no such package below {code.root}; give a path or a dotted name")


def _choice(code: Code, modules: list[Module]) -> tuple[str, str]:
    """The surface to begin with: everything public where most public names cross no border and no command runs the
    package, as in a library whose users import its modules."""
    border = surface(code, modules)
    total = len(border.inside) + len(border.reached)
    tops = {module.name.partition(".")[0] for module in modules}
    if len(border.inside) > len(border.reached) and tops.isdisjoint(
        name.partition(".")[0] for name in entry_points(code.root)
    ):
        return ALL, f"{len(border.inside)} of {total} public names cross no border, and no command runs the package"
    return BORDER, f"{len(border.inside)} more public names cross no border"


def _head(ident: str, roots: Sequence[str], date: str, wanted: str, excluded: Sequence[str]) -> list[str]:
    title = ident.replace("_", " ").replace("-", " ").capitalize()
    return [
        "---",
        f"id: {ident}",
        f"title: {yaml_scalar(title)}",
        "version: 0.1",
        "status: draft",
        f"roots: [{', '.join(roots)}]",
        "supersedes: []",
        *([f"surface: {wanted}"] if wanted != BORDER else []),
        *([f"exclude: [{', '.join(excluded)}]"] if excluded else []),
        "---",
        f"# {title}",
        "",
        "## Version history",
        "",
        "| Version | Date | Change |",
        "|---|---|---|",
        f"| 0.1 | {date} | adopted from the code |",
        "",
        "## Iteration log",
        "",
        "| Round | Date | Asked | Changed | Decisions |",
        "|---|---|---|---|---|",
        "",
        "## Open to-dos",
        "",
        "- T-1: answer the questions of Sections 1 to 4.",
        "",
    ]


def _sections(ident: str, facts: Survey, found: Surface) -> list[str]:
    first = found.reached[0].place.module.name
    names = tuple(each.name for each in found.reached)
    return [*goals(ident, facts, names), *architecture(facts), *decision(first), *flows(facts)]


_PLAN = (
    "## 6. Plan",
    "",
    "There is no plan: the code was there before its document.",
    "",
    "### 6.1 Dependency graph",
    "",
    "<!-- codegen:graph -->",
    "",
    "```mermaid",
    "flowchart LR",
    "```",
    "",
    "<!-- codegen:end -->",
)
