"""Folded fences brought up to the code, and stubs for callables that no fence shows yet.

Only stubs that differ are written again; what only the document says of them stays. A new name comes where the code has
it: behind its neighbour in the fence of its module, inside of its class where an open entry shows that, or in a module
of its own at the end of Section 5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.document.folded import module_lines
from codegen.document.lines import LineEdit
from codegen.document.model import Document
from codegen.document.model import Module as Heading
from codegen.document.stubs import Stubs
from codegen.drift.adopt import tests_of
from codegen.drift.calls import CallGraph
from codegen.drift.code import Code, Module, Place
from codegen.drift.compare import Strictness, compare
from codegen.drift.raises import undocumented_raises
from codegen.drift.report import drift
from codegen.drift.section import Documented, documented_definitions, place_of
from codegen.drift.stubbing import Stubber, is_constructor
from codegen.drift.surface import modules_of
from codegen.drift.survey import says

_UNIT = "    "


def folded_modules(document: Document, code: Code) -> Iterator[LineEdit]:
    """The edits of all modules."""
    uncovered = drift(document, code).coverage.uncovered
    missing = {module: names for module, names in uncovered.items() if names}
    graph = CallGraph(code, modules_of(document, code))
    everything = documented_definitions(document)[0]
    number = max([0, *(int(module.id.partition(".")[2] or 0) for module in document.modules)])
    seen: set[str] = set()
    for heading in document.modules:
        module = code.module(heading.name)
        if module is not None:
            shown = [each for each in everything if each.module == heading.name]
            names = () if heading.name in seen else missing.get(heading.name, ())
            yield from _ModuleEdits(document, heading, code, Stubber(module, graph), shown).edits(names)
            seen.add(heading.name)
    appended: list[str] = []
    for at, name in enumerate((name for name in missing if name not in seen), number + 1):
        module = code.module(name)
        assert module is not None, name
        stubs = Stubber(module, graph).code(missing[name])
        appended += [*module_lines(f"5.{at}", name, says(module), {"tests": tests_of(module, code)}, stubs, {}), ""]
    if appended:
        chapter = document.section("5")
        yield _insert(document, chapter.line_end if chapter else len(document.lines), appended)


@dataclass(frozen=True)
class _ModuleEdits:
    """One heading of Section 5, the module in the code, and what all fences show of it."""

    document: Document
    heading: Heading
    code: Code
    stubber: Stubber
    shown: list[Documented]

    @property
    def module(self) -> Module:
        return self.stubber.module

    def edits(self, names: tuple[str, ...]) -> Iterator[LineEdit]:
        """Rewrite the stubs that differ and show the new `names`."""
        classes = {d.definition.name: d for d in self.shown if d.definition.kind == "class" and not d.entry.folded}
        inside = [name for name in names if name.rpartition(".")[0] in classes]
        yield from self._into_classes(inside, classes)
        names = tuple(name for name in names if name not in inside)
        if self.heading.folded:
            yield from self._fence(names)
        elif names:
            last = self.heading.line_end or self.heading.line
            fence = ["```python", *self.stubber.code(names).rstrip("\n").split("\n"), "```", ""]
            yield _insert(self.document, last, fence)

    def _fence(self, names: tuple[str, ...]) -> Iterator[LineEdit]:
        fence = self.heading.fences[0]
        stubs = Stubs(fence.code)
        changed = False
        for each in self.shown:
            place = place_of(each, self.code)
            if each.entry.folded and place and place.module is self.module and self._differs(each, place):
                stubs.put(each.definition.name, self.stubber.own(place.definition.name, each))
                changed = True
        definitions = self.module.definitions
        constructors = {f"{name}.__init__" for name in stubs.names} & definitions.keys()
        new = {*names, *(name for name in constructors if is_constructor(definitions[name]))}
        for name in self.stubber.shown(new):
            if name not in stubs.names:
                stubs.put(name, self.stubber.own(name), self._neighbour(name, stubs))
                changed = True
        if changed:
            yield LineEdit(fence.line + 1, fence.line_end - 1, tuple(stubs.text().rstrip("\n").split("\n")))

    def _differs(self, documented: Documented, place: Place) -> bool:
        """Whether the code says something of a name that its stub does not say."""
        if documented.definition.kind != place.definition.kind:
            return False
        promised = Counter(text for text, _ in documented.promises)
        held = Counter(each.text for each in self.module.annotated.promises.get(place.definition.name, ()))
        if any(compare(documented.definition, place.definition, Strictness())) or held - promised:
            return True
        apart = frozenset({f"{place.full_name}.__init__"})
        return bool(undocumented_raises(documented.entry, [(documented, place)], self.stubber.graph, apart))

    def _neighbour(self, name: str, stubs: Stubs) -> str:
        """The name in the fence that a new one follows: the one before it in the code, in the same class."""
        owner = name.rpartition(".")[0]
        before = owner
        for other in self.module.definitions:
            if other == name:
                break
            if other.rpartition(".")[0] == owner and other in stubs.names:
                before = other
        return before

    def _into_classes(self, names: list[str], classes: dict[str, Documented]) -> Iterator[LineEdit]:
        """Show new members in the fence of an open entry that shows their class."""
        for owner, documented in classes.items():
            stubs = [self.stubber.own(name) for name in names if name.rpartition(".")[0] == owner]
            node = documented.definition.node
            last = node.end_lineno or node.lineno
            line = documented.fence_line + last
            outer = " " * node.col_offset
            lines = [outer + _UNIT + text for stub in stubs for text in stub]
            if not lines:
                continue
            if node.body[0].lineno == node.lineno:
                # `class Full(Exception): ...` in one line
                head = documented.fence_lines[node.lineno - 1].encode()[: node.body[0].col_offset].decode().rstrip()
                yield LineEdit(line, line, (head, *lines))
            else:
                yield LineEdit(line + 1, line, ("", *lines))


def _insert(document: Document, after: int, lines: list[str]) -> LineEdit:
    """Insert below a line, one blank line before what is new."""
    if document.lines[after - 1].strip():
        lines = ["", *lines[:-1]]
    return LineEdit(after + 1, after, tuple(lines))
