"""Section 5 of a design document from code that exists already.

Every public function, class and method of the packages becomes an entry: its docstring's first line, the entries it
depends on (as its calls tell), the exceptions that leave it, and a sketch with its annotations. Neighbouring classes
that hold data only share one entry. Decisions are left to the author: code does not say why.
"""

from __future__ import annotations

import graphlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from codegen.diagnostics import UsageError
from codegen.drift.calls import CallGraph
from codegen.drift.code import Code, Module, Place
from codegen.drift.raises import constructed
from codegen.drift.signatures import Definition
from codegen.drift.sketch import Sketcher
from codegen.drift.surface import public_callables

MAX_FAMILY = 8


@dataclass(frozen=True)
class Sketch:
    """One entry to be: the definitions its heading names, and those its fence shows beside them."""

    module: Module
    names: tuple[str, ...]
    members: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def shown(self) -> Iterator[str]:
        for name in self.names:
            yield name
            yield from self.members.get(name, ())


class Adoption:
    """The entries for all public callables of some packages, and their text."""

    def __init__(self, code: Code, packages: list[str], whole_classes: bool = False) -> None:
        self.code = code
        modules: dict[str, Module] = {}
        for package in packages:
            for module in code.modules_under(package_path(code, package)):
                modules[module.name] = module
        self.modules = [module for module in modules.values() if public_callables(module)]
        if not self.modules:
            raise UsageError(f"{', '.join(packages)}: no public function or class in it")
        self.graph = CallGraph(code, list(modules.values()))
        self.sketches = {m.name: list(_sketches(m, whole_classes)) for m in self.modules}
        self.entry_of = {
            f"{sketch.module.name}.{name}": sketch
            for sketches in self.sketches.values()
            for sketch in sketches
            for name in sketch.shown
        }

    def section(self, first: int = 1) -> str:
        """The text of Section 5, modules numbered from `first`."""
        lines = ["## 5. APIs and implementation", ""]
        for number, module in enumerate(self.modules, first):
            lines += [f"### 5.{number} `{module.name}`", ""]
            for at, sketch in enumerate(self.sketches[module.name], 1):
                lines += [*self.entry(sketch, f"5.{number}.{at}"), ""]
        return "\n".join(lines)

    def cycles(self) -> list[list[str]]:
        """Circles among the `deps:` written, each as the full names on the way round; at most one per circle that
        is left when the earlier ones are cut."""
        graph: dict[str, set[str]] = {}
        for sketches in self.sketches.values():
            for sketch in sketches:
                own = f"{sketch.module.name}.{sketch.names[0]}"
                graph[own] = {f"{entry.module.name}.{entry.names[0]}" for entry, _ in self._used(sketch)}
        found: list[list[str]] = []
        while True:
            try:
                graphlib.TopologicalSorter(graph).prepare()
                return found
            except graphlib.CycleError as error:
                # the error lists the circle from a dependency to what needs it
                circle = list(reversed(error.args[1]))
                found.append(circle)
                graph[circle[0]].discard(circle[1])

    def entry(self, sketch: Sketch, ident: str) -> list[str]:
        """The lines of one entry."""
        module = sketch.module
        lines = [f"#### {ident} {', '.join(f'`{name}`' for name in sketch.names)}", ""]
        lines += [self._purpose(sketch), ""]
        deps = ", ".join(f"`{name}`" for name in self._deps(sketch))
        lines += [f"- deps: {deps or '-'}", "- decisions: -"]
        errors = "; ".join(self._errors(sketch))
        if errors:
            lines.append(f"- errors: {errors}")
        tests = self._tests(module)
        if tests:
            lines.append(f"- tests: {tests}")
        return [*lines, "", "```python", *self.code_lines(sketch), "```"]

    def code_lines(self, sketch: Sketch) -> list[str]:
        """The sketches of all its definitions, one blank line between them."""
        sketcher = Sketcher(sketch.module, sketch.module.annotated)
        lines: list[str] = []
        for name in sketch.names:
            definition = sketch.module.definitions[name]
            if definition.kind == "function":
                block = sketcher.function(definition)
            else:
                members = sketch.members.get(name, ())
                block = sketcher.class_(
                    definition, [sketcher.function(sketch.module.definitions[each]) for each in members]
                )
            lines += [*([""] if lines else []), *block]
        return lines

    def _purpose(self, sketch: Sketch) -> str:
        for name in sketch.names:
            docstring = sketch.module.definitions[name].docstring
            if docstring:
                return _first_sentence_line(docstring)
        return "Purpose not documented in the code."

    def _deps(self, sketch: Sketch) -> list[str]:
        names = (_heading_name(entry, target, sketch.module) for entry, target in self._used(sketch))
        return list(dict.fromkeys(names))

    def _used(self, sketch: Sketch) -> Iterator[tuple[Sketch, Place]]:
        """Entries that this one uses, straight or through things that have no entry (private helpers)."""
        todo = [Place(sketch.module, sketch.module.definitions[name]) for name in sketch.shown]
        seen: set[str] = set()
        while todo:
            place = todo.pop(0)
            if place.full_name in seen:
                continue
            seen.add(place.full_name)
            for target, settled in self.graph.called(place):
                entry = self.entry_of.get(target.full_name)
                if entry is None and settled:
                    todo.append(target)
                elif entry is not None and entry is not sketch and (settled or self._is_only(target)):
                    yield entry, target

    def _is_only(self, target: Place) -> bool:
        """Whether no other class of the packages has a method of this name."""
        return len(self.graph.methods_called(target.definition.last_name)) == 1

    def _errors(self, sketch: Sketch) -> list[str]:
        names: dict[str, None] = {}
        for name in sketch.shown:
            for each in constructed(Place(sketch.module, sketch.module.definitions[name])):
                for raised in sorted(self.graph.escapes(each, False), key=lambda found: found.line):
                    if not raised.module.annotated.is_managed(raised.line):
                        names[raised.name] = None
        return list(names)

    def _tests(self, module: Module) -> str:
        parts = module.name.split(".")
        guess = "/".join(["tests", *parts[:-1], f"test_{parts[-1]}.py"])
        return guess if (self.code.root / guess).is_file() else ""


def _heading_name(entry: Sketch, target: Place, seen_from: Module) -> str:
    """The name in an entry's heading under which it shows `target`."""
    shown = target.definition.name
    name = next(name for name in entry.names if shown == name or shown.startswith(f"{name}."))
    return name if entry.module == seen_from else f"{entry.module.name}.{name}"


def package_path(code: Code, package: str) -> str:
    """The path of a package given as a path or as a dotted name. UsageError: there is none."""
    if (code.root / package).exists():
        return package.rstrip("/")
    dotted = package.replace(".", "/")
    for guess in (dotted, f"{dotted}.py", f"src/{dotted}", f"src/{dotted}.py"):
        if (code.root / guess).exists():
            return guess
    raise UsageError(f"{package}: no such package below {code.root}; give a path or a dotted name")


def _sketches(module: Module, whole_classes: bool) -> Iterator[Sketch]:
    family: list[str] = []
    members: dict[str, tuple[str, ...]] = {}
    for name in public_callables(module):
        definition = module.definitions[name]
        if definition.owner in module.definitions and (whole_classes or definition.owner in family):
            continue
        inside = _members(module, definition, whole_classes)
        is_data = definition.kind == "class" and _holds_data_only(module, definition)
        if is_data and len(family) < MAX_FAMILY:
            family.append(name)
            members[name] = inside
            continue
        if family:
            yield Sketch(module, tuple(family), members)
            family, members = [], {}
        if is_data:
            family, members = [name], {name: inside}
        else:
            yield Sketch(module, (name,), {name: inside} if inside else {})
    if family:
        yield Sketch(module, tuple(family), members)


def _members(module: Module, owner: Definition, whole_classes: bool) -> tuple[str, ...]:
    """Methods that the class's own fence shows: its constructor, and all public ones of a class shown whole."""
    if owner.kind != "class":
        return ()
    whole = whole_classes or _holds_data_only(module, owner)
    found = []
    for name, each in module.definitions.items():
        if each.owner == owner.name and each.kind == "function":
            constructor = each.last_name == "__init__" and len(each.parameters) > 1
            if constructor or (whole and each.is_public):
                found.append(name)
    return tuple(found)


def _holds_data_only(module: Module, owner: Definition) -> bool:
    """Whether a class is its fields (or nothing, like an exception) with at most properties beside them."""
    methods = [each for each in module.definitions.values() if each.owner == owner.name and each.is_public]
    if any("property" not in each.decorators for each in methods):
        return False
    constructor = module.definitions.get(f"{owner.name}.__init__")
    return bool(owner.fields or owner.bases) and constructor is None


def _first_sentence_line(docstring: str) -> str:
    """The docstring's first paragraph up to the end of its first line, or of its first sentence."""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    first = docstring.split("\n")[0].strip()
    return first if first.endswith((".", ":", "!")) else (paragraph.split(". ")[0].rstrip(".") + ".")
