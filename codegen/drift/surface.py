"""What crosses a package's border: the callables that somebody outside of it reaches, and by which name.

A name is on the surface when it has no private part where users find it, and

- another package or sub-package of the project imports it (tests left out), `__main__` included;
- an `__init__` or an `__all__` offers it, wherever it is defined;
- a command or an entry point of the project runs it; or
- a public module defines it that no module of the project imports: that module is there for others.

With a class come its public members, those of bases that are not on the surface themselves included. A top-level
package that declares nothing (no name in its `__init__`, no command) offers everything public, and so does each with
`surface: all` in the document's front matter. `exclude:` there names folders and files that are left out like tests.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import partial
from pathlib import PurePosixPath

from codegen.diagnostics import UsageError
from codegen.document.model import Document, split_names
from codegen.drift.code import Code, Module, Place, is_public_module
from codegen.drift.commands import entry_points
from codegen.drift.exports import declared, offered
from codegen.drift.uses import WHOLE, Use, uses

BORDER, ALL = "border", "all"
_TEST_FOLDERS = frozenset({"tests", "test"})
_TEST_FILES = ("test_*.py", "*_test.py", "conftest.py")


@dataclass(frozen=True)
class Reached:
    """One callable on the surface: the name users reach it by, where it is defined, and why it is there."""

    name: str
    place: Place
    why: str


@dataclass(frozen=True)
class Surface:
    """The callables that users reach, in the order of their definitions; `inside` are the other public names of
    public modules, full names in source order."""

    reached: tuple[Reached, ...]
    inside: tuple[str, ...]
    names: dict[str, Reached] = field(init=False)
    """What is reached, by the full name where it is defined."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", {each.place.full_name: each for each in self.reached})

    def of(self, module: Module) -> list[Reached]:
        """What of a module's own definitions is reached, in source order."""
        return [each for each in self.reached if each.place.module is module]


def surface_of(document: Document, code: Code) -> Surface:
    """The surface of the code below a document's roots. UsageError: `surface:` is neither `border` nor `all`."""
    return surface(code, modules_of(document, code), wanted_surface(document) == ALL)


def wanted_surface(document: Document) -> str:
    """`border` or `all`, as the front matter says."""
    given = document.front.extra.get("surface", BORDER)
    if given not in (BORDER, ALL):
        line = document.front.lines.get("surface", 1)
        raise UsageError(f"{document.path}:{line}: `surface: {given}` is neither `{BORDER}` nor `{ALL}`")
    return given


def modules_of(document: Document, code: Code) -> list[Module]:
    """The modules below a document's roots, in their order, tests and what `exclude:` names left out; roots without
    code are left out."""
    return modules_below(code, document.front.roots, split_names(document.front.extra.get("exclude", "")))


def modules_below(code: Code, roots: Iterable[str], excluded: tuple[str, ...] = ()) -> list[Module]:
    """The modules below some roots, tests and what is `excluded` left out; roots without code are left out."""
    found: dict[str, Module] = {}
    for root in roots:
        if has_root(code, root):
            below = code.modules_under(root, partial(is_left_out, excluded=excluded, root=root))
            found |= {module.name: module for module in below}
    return list(found.values())


def has_root(code: Code, root: str) -> bool:
    """Whether there is code at a root yet."""
    return (code.root / root).exists() or (code.root / f"{root}.py").is_file()


def is_left_out(shown: str, excluded: tuple[str, ...], root: str = "") -> bool:
    """Whether a file, by its path below the project, is a test or named by `exclude:` (a path or a glob)."""
    path = PurePosixPath(shown)
    below = path.relative_to(root) if root and path.is_relative_to(root) else path
    if below.parts and is_test(below):
        return True
    return any(path.is_relative_to(each.strip("/")) or fnmatch(shown, each) for each in excluded if each.strip("/"))


def is_test(path: PurePosixPath) -> bool:
    """Whether a path is a test by its name: in `tests/` or `test/`, `test_*.py`, `*_test.py` or `conftest.py`."""
    return not _TEST_FOLDERS.isdisjoint(path.parts[:-1]) or any(fnmatch(path.name, each) for each in _TEST_FILES)


def surface(code: Code, modules: list[Module], everything: bool = False) -> Surface:
    """The surface of some modules of a project."""
    return _Reading(code, modules, everything).surface()


def package_of(module: Module) -> str:
    """The package whose border is around a module: its folder; a module without one and `__main__` are their own."""
    if module.path.name == "__init__.py" or "." not in module.name or module.name.endswith(".__main__"):
        return module.name
    return module.name.rpartition(".")[0]


class _Reading:
    def __init__(self, code: Code, modules: list[Module], everything: bool) -> None:
        self.code = code
        self.modules = modules
        self.everything = everything
        self.inner = {module.name for module in modules}
        self.commands = entry_points(code.root)
        self.users = users(code, modules)
        self.imported = {use.module for use in self.users}
        self.found: dict[str, Reached] = {}

    def surface(self) -> Surface:
        for name, why in self.commands.items():
            self._reach(name, why, explicit=True)
        for module in self.modules:
            self._offered_by(module)
        for use, importers in self.users.items():
            for importer in importers:
                self._used(use, importer)
        for each in list(self.found.values()):
            self._members(each.name, each.place, set())
        definers = {module.name: module for module in self.modules}
        definers |= {each.place.module.name: each.place.module for each in self.found.values()}
        names = [f"{module.name}.{name}" for module in definers.values() for name in module.definitions]
        public = [f"{module.name}.{name}" for module in self.modules for name in public_callables(module)]
        return Surface(
            tuple(self.found[name] for name in names if name in self.found),
            tuple(name for name in public if name not in self.found),
        )

    def _offered_by(self, module: Module) -> None:
        if not is_public_module(module.name):
            return
        listed = declared(module, self.code)
        names = offered(module, self.code)
        if listed is not None:
            self._reach_all(module, listed, f"in `__all__` of {module.name}", explicit=True)
        elif package_of(module) == module.name:
            self._reach_all(module, names, f"offered by {module.name}")
        elif module.name not in self.imported:
            self._reach_all(module, names, f"public in {module.name}, which nobody imports")
        else:
            handed_on = [name for name in names if name not in module.definitions]
            self._reach_all(module, handed_on, f"offered by {module.name}")
        if self.everything or self._declares_nothing(module.name.partition(".")[0]):
            tops = [name for name in public_callables(module) if "." not in name]
            self._reach_all(module, tops, f"public in {module.name}")

    def _declares_nothing(self, top: str) -> bool:
        """Whether a top-level package says nowhere what it offers."""
        package = self.code.module(top)
        if package is not None:
            if package.path.name != "__init__.py":
                return False
            if any(self.code.find(top, name) for name in offered(package, self.code)):
                return False
        has_command = any(name.partition(".")[0] == top for name in self.commands)
        return not has_command and self.code.module(f"{top}.__main__") is None

    def _used(self, use: Use, importer: Module) -> None:
        target = self.code.module(use.module)
        if target is None or not use.name or package_of(importer) == package_of(target):
            return
        names = offered(target, self.code) if use.name == WHOLE else (use.name,)
        self._reach_all(target, names, f"imported by {importer.name}")

    def _reach_all(self, module: Module, names: Iterable[str], why: str, explicit: bool = False) -> None:
        for name in names:
            if explicit or not name.startswith("_"):
                self._reach(f"{module.name}.{name}", why)

    def _reach(self, name: str, why: str, explicit: bool = False) -> None:
        """Note a name as reached, if it is a callable that counts here. A private module on the way to it hides it,
        unless it is `explicit`, like that of a command."""
        module = name.rpartition(".")[0]
        place = None if not explicit and not is_public_module(module) else self.code.resolve(name)
        if place is None or not self._counts_here(module, place):
            return
        known = self.found.get(place.full_name)
        if known is None or _order(name) < _order(known.name):
            self.found[place.full_name] = Reached(name, place, why)

    def _counts_here(self, module: str, place: Place) -> bool:
        """Whether a definition is below the roots, or in a private module beside them that a module of the roots
        stands before. What another public module defines is counted there."""
        if place.module.name in self.inner:
            return True
        return module in self.inner and not is_public_module(place.module.name)

    def _members(self, name: str, owner: Place, seen: set[str]) -> None:
        """The public members of a class that is reached, and those that it inherits from one that is not."""
        for each in owner.module.definitions.values():
            if each.owner != owner.definition.name or each.last_name in seen:
                continue
            seen.add(each.last_name)
            if not each.last_name.startswith("_"):
                full, place = f"{name}.{each.last_name}", Place(owner.module, each)
                self.found.setdefault(place.full_name, Reached(full, place, f"member of {name}"))
                self._members(full, place, set())
        for base in self.code.bases(owner):
            if base.full_name not in self.found and self._counts_here(name.rpartition(".")[0], base):
                self._members(name, base, seen)


def users(code: Code, modules: Iterable[Module] = ()) -> dict[Use, list[Module]]:
    """Every use of a name of the project by one of its packages or by one of `modules`, with the modules that use it;
    tests and files that are no Python left out."""
    found: dict[Use, list[Module]] = {}
    packaged = {module.name: module for module in code.packaged_modules(lambda path: is_test(PurePosixPath(path)))}
    for module in (packaged | {module.name: module for module in modules}).values():
        for use in uses(module, code):
            found.setdefault(use, []).append(module)
    return found


def public_callables(module: Module) -> list[str]:
    """Names of the functions, classes and methods that a public module defines, in source order."""
    if not is_public_module(module.name):
        return []
    return [name for name, each in module.definitions.items() if each.is_public]


def _order(name: str) -> tuple[int, str]:
    return name.count("."), name
