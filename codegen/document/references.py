"""What the names in a document mean: dependencies, decisions, sections.

A reference is a number ("5.1.2", "5.1" for all below it) or a name: a full name, a name of the entry's own class or
module, or the tail of exactly one full name. A name whose first part is no class and no package of ours means
something outside the document and is left alone.
"""

from __future__ import annotations

import builtins
import difflib
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import cached_property

from codegen.document.definitions import Api, read_api
from codegen.document.model import Decision, Document, Entry
from codegen.document.project import Named, Project
from codegen.document.reasons import Reasons

NUMBER = re.compile(r"(\d+(?:\.\d+)+)\b")
IN_CODE = re.compile(r"`([^`]+)`")
NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Target:
    """What a reference means: entries of the document, or of other documents (`elsewhere`). Without either it is
    `external`, or unknown; `candidates` when ambiguous."""

    name: str
    entries: tuple[Entry, ...] = ()
    external: bool = False
    candidates: tuple[str, ...] = ()
    elsewhere: tuple[Named, ...] = ()

    @property
    def unknown(self) -> bool:
        return not (self.entries or self.external or self.candidates or self.elsewhere)


class References:
    """The names of one document, and, with its project, those of the others behind them."""

    def __init__(self, document: Document, project: Project | None = None) -> None:
        self.document = document
        self.project = project
        self.apis: dict[str, Api] = {}
        self.reasons = Reasons(document)
        self._deps: dict[str, tuple[str, ...]] = {}
        self._by_full: dict[str, Entry] = {}
        self._by_tail: dict[str, dict[str, Entry]] = defaultdict(dict)
        self.packages = {root.strip("/").split("/")[0] for root in document.front.roots}
        for entry in document.entries:
            for name in entry.full_names:
                self._learn(name, entry)
        uses = project.uses if project else None
        for entry in document.entries:
            api = read_api(entry)
            if entry.folded and uses is not None:
                api = replace(api, used=(*api.used, *uses.of(entry)))
            self.apis.setdefault(entry.id, api)
            for name in api.defined:
                self._learn(f"{entry.module}.{name}" if entry.module else name, entry)
        self.packages |= {module.name.split(".")[0] for module in document.modules}
        self.packages |= project.packages if project else set()

    def _learn(self, full_name: str, entry: Entry) -> None:
        if full_name in self._by_full:
            return
        self._by_full[full_name] = entry
        parts = full_name.split(".")
        for at in range(len(parts)):
            self._by_tail[".".join(parts[at:])].setdefault(full_name, entry)

    def resolve(self, text: str, entry: Entry) -> Target:
        """What `text`, written in `entry`, means."""
        number = NUMBER.match(text)
        if number:
            return self._numbered(number.group(1))
        code = IN_CODE.search(text)
        found = NAME.match(code.group(1) if code else text)
        if not found:
            return Target(text)
        return self._named(found.group(), entry)

    def _numbered(self, number: str) -> Target:
        one = self.document.entry_by_number.get(number)
        if one and number in self._doubled:
            alike = [each.id for each in self.document.entries if not each.folded and each.number == number]
            return Target(number, candidates=tuple(alike))
        return Target(number, (one,) if one else self.under(number))

    def under(self, number: str) -> tuple[Entry, ...]:
        """The entries below a section number."""
        return tuple(self._by_prefix.get(number, ()))

    @cached_property
    def _doubled(self) -> set[str]:
        """Printed numbers that two open entries carry."""
        counts = Counter(entry.number for entry in self.document.entries if not entry.folded)
        return {number for number, count in counts.items() if count > 1}

    @cached_property
    def _by_prefix(self) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = defaultdict(list)
        for entry in self.document.entries:
            parts = entry.number.split(".")
            for length in range(1, len(parts) + entry.folded):
                found[".".join(parts[:length])].append(entry)
        return found

    @cached_property
    def _by_module(self) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = defaultdict(list)
        for entry in self.document.entries:
            found[entry.module].append(entry)
        return found

    def _named(self, name: str, entry: Entry) -> Target:
        owner = owner_of(entry)
        head, _, rest = name.partition(".")
        if head in ("self", "cls"):
            name = rest
            if owner and (own := self._by_full.get(f"{owner}.{rest.split('.')[0]}")):
                return Target(name, (own,))
        for prefix in filter(None, (owner, entry.module)):
            if own := self._by_full.get(f"{prefix}.{name}"):
                return Target(name, (own,))
        if own := self._by_full.get(name):
            return Target(name, (own,))
        module = tuple(self._by_module.get(name, ()))
        if module:
            return Target(name, module)
        tails = self._by_tail.get(name, {})
        entries = {found.id: found for found in tails.values()}
        if len(entries) == 1:
            return Target(name, tuple(entries.values()))
        if entries:
            return Target(name, candidates=tuple(sorted(tails)))
        others = self.project.find(name, self.document) if self.project else {}
        if others and (len(others) == 1 or all(entry.module == name for _, entry in others.values())):
            return Target(name, elsewhere=tuple(others.values()))
        if others:
            return Target(name, candidates=tuple(sorted(others)))
        return Target(name, external=self._is_external(name))

    def _is_external(self, name: str) -> bool:
        head, _, rest = name.partition(".")
        if not rest:
            return hasattr(builtins, head)
        return head not in self.packages and not head[0].isupper() and head not in self._by_tail

    def deps(self, entry: Entry) -> tuple[str, ...]:
        """The other entries that `deps:` names, by identity, in order."""
        if entry.id not in self._deps:
            found: dict[str, None] = {}
            for text in entry.deps:
                found |= dict.fromkeys(target.id for target in self.resolve(text, entry).entries)
            found.pop(entry.id, None)
            self._deps[entry.id] = tuple(found)
        return self._deps[entry.id]

    def names(self, full_name: str) -> bool:
        """Whether this full name is an API of Section 5, or a module or package that has one."""
        return full_name in self._by_full or any(
            module.name == full_name or module.name.startswith(full_name + ".") for module in self.document.modules
        )

    def nearest(self, name: str) -> str | None:
        """The known name most like this one."""
        found = difflib.get_close_matches(name, self._by_tail, n=1, cutoff=0.75)
        return found[0] if found else self.project.nearest(name) if self.project else None

    def decision_elsewhere(self, name: str) -> Decision | None:
        """The decision of another document that `other:D-3` names."""
        ident, _, decision = name.rpartition(":")
        others = self.project.others(self.document) if self.project and ident else ()
        return next((other.decision_by_id.get(decision) for other in others if other.id == ident), None)

    def is_elsewhere(self, name: str) -> bool:
        """Whether a name or module is one of another document."""
        return bool(self.project and self.project.find(name.strip("`"), self.document))

    def elsewhere(self, entry: Entry) -> dict[str, Named]:
        """The entries of other documents that `deps:` or the code of an entry names, by identity."""
        found: dict[str, Named] = {}
        for text in entry.deps:
            found |= {other[1].id: other for other in self.resolve(text, entry).elsewhere}
        if self.project and entry.folded:
            for name in self.apis[entry.id].used if entry.id in self.apis else ():
                if "." in name and name not in self._by_full:
                    found |= {
                        other[1].id: other
                        for full, other in self.project.find(name, self.document).items()
                        if full == name and other[1].module != name
                    }
        return found

    def used(self, entry: Entry) -> dict[str, Entry]:
        """The other entries whose APIs the code of an entry certainly uses, each with the name it is used by.

        Certain are: a member of the own class, a name of the own module, and a class or dotted name that only one
        entry has. A method of some other object says nothing about that object's class and is left out.
        """
        found: dict[str, Entry] = {}
        owner = owner_of(entry)
        for name in self.apis[entry.id].used if entry.id in self.apis else ():
            target = self._used(name, entry, owner)
            if target is not None and target.id != entry.id:
                found.setdefault(target.id, target)
        return found

    def _used(self, name: str, entry: Entry, owner: str) -> Entry | None:
        head, _, rest = name.partition(".")
        if head in ("self", "cls"):
            return self._by_full.get(f"{owner}.{rest.split('.')[0]}") if owner and rest else None
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            tail = ".".join(parts[:length])
            if entry.module and (own := self._by_full.get(f"{entry.module}.{tail}")):
                return own
            known = self._by_tail.get(tail, {})
            distinct = {found.id: (full, found) for full, found in known.items()}
            if len(distinct) == 1:
                full, found = next(iter(distinct.values()))
                if "." in tail or full == f"{found.module}.{tail}":
                    return found
        return None


def owner_of(entry: Entry) -> str:
    """The full name of the class an entry belongs to: the class itself for a class, "" for a function."""
    head, _, last = entry.full_name.rpartition(".")
    if last[:1].isupper():
        return entry.full_name
    return head if head != entry.module and head.startswith(entry.module) and entry.module else ""
