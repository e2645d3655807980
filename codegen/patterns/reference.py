"""The reference page of a library, as Markdown: written from the patterns, so that it cannot disagree with them."""

from __future__ import annotations

from codegen.patterns.arguments import parse_use, signature
from codegen.patterns.examples import example_site, render_example
from codegen.patterns.library import Library
from codegen.patterns.model import Example, Parameter, Pattern

START = "<!-- patterns: written by `codegen patterns reference`; edit the pattern files instead -->"
END = "<!-- end of patterns -->"


def update_reference(page: str, library: Library) -> str:
    """The page with the part between the marks written again; the marks are appended if it has none."""
    part = f"{START}\n\n{reference(library)}\n{END}\n"
    before, found, rest = page.partition(START)
    if not found:
        return f"{page.rstrip()}\n\n{part}".lstrip("\n")
    return before + part + rest.partition(END)[2].removeprefix("\n")


def reference(library: Library) -> str:
    """An index, and a section for each pattern, by group."""
    groups: dict[str, list[Pattern]] = {}
    for pattern in library:
        groups.setdefault(pattern.group, []).append(pattern)
    ordered = sorted(groups.items())
    return "\n".join([_index(ordered), *(_section(p) for _, patterns in ordered for p in patterns)])


def expansion(pattern: Pattern) -> tuple[Example, str]:
    """The first example, and the code it renders to, at zero indentation."""
    example = pattern.examples[0]
    return example, render_example(pattern, example)


def _index(groups: list[tuple[str, list[Pattern]]]) -> str:
    lines = ["| Group | Pattern | What holds after it |", "|---|---|---|"]
    for group, patterns in groups:
        lines += [f"| {group} | [{p.id}](#{p.id.lower()}) | {_cell(p.summary)} |" for p in patterns]
    return "\n".join(lines) + "\n"


def _section(pattern: Pattern) -> str:
    example, code = expansion(pattern)
    site = example_site(pattern, parse_use(pattern, example.use), example)
    each = f" (checked for each of its {site.each})" if site.each != "none" else ""
    note = f" - {example.note}" if example.note else ""
    parts = [f"### {pattern.id}", "", pattern.summary]
    if pattern.description:
        parts += ["", " ".join(pattern.description.split())]
    parts += ["", f"`{signature(pattern)}` raises {pattern.error}. {_facts(pattern)}"]
    if pattern.parameters:
        parts += ["", "| Argument | Type | Default | |", "|---|---|---|---|"]
        parts += [_parameter(parameter) for parameter in pattern.parameters]
    parts += ["", "```python", f"# {pattern.tag}: {example.use}{note}", code.rstrip("\n"), "```", ""]
    failing = next((e for e in pattern.examples if e.message is not None), None)
    if failing is not None:
        code_text = " ; ".join(failing.given.split("\n")[-1:])
        parts += [f"With `{code_text}`{each}: `{failing.message}`", ""]
    return "\n".join(parts)


def _facts(pattern: Pattern) -> str:
    facts = {
        "here": "Checked where it is written",
        "on_entry": "Checked at the function's entry",
        "on_return": "Checked at each return",
        "wrap": "Wraps the next statement",
    }[pattern.placement]
    if pattern.elementwise:
        facts += ", for a container each element"
    cost = {"O(1)": "constant time", "O(n)": "linear time", "io": "asks the file system", "await": "awaits"}
    facts += f"; {cost[pattern.cost]}."
    if pattern.extends:
        facts += f" Extends [{pattern.extends}](#{pattern.extends.lower()})."
    return f"{facts} Since {pattern.since}, version {pattern.version}."


def _parameter(parameter: Parameter) -> str:
    default = f"`{parameter.default}`" if parameter.default is not None else "required"
    place = " (positional)" if parameter.positional else ""
    return f"| `{parameter.name}`{place} | {parameter.type} | {default} | {_cell(parameter.help)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
