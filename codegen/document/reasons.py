"""Which decisions are behind what: through an entry's `decisions:` and through the `affects:` of a decision."""

from __future__ import annotations

import re
from collections import defaultdict

from codegen.document.model import Document, Entry

PLACE = re.compile(r"(\d+(?:\.\d+)*)(?:\s|$)")


class Reasons:
    """The decisions behind sections and entries of one document."""

    def __init__(self, document: Document) -> None:
        self._named: dict[str, dict[str, None]] = defaultdict(dict)
        self._places: set[str] = set()
        self.affecting: dict[str, tuple[str, ...]] = {}
        for decision in document.decisions:
            for text in decision.affects:
                self._named[_place(text)][decision.id] = None
        for entry in document.entries:
            places = _places(entry)
            self._places.update(places)
            ids: dict[str, None] = {}
            for place in places:
                ids |= self._named.get(place, {})
            self.affecting[entry.id] = tuple(ids)

    def of_entry(self, entry: Entry) -> tuple[str, ...]:
        """The decisions an entry follows: those it names, and those that name it or a section above it."""
        named = (ident for ident in map(decision_name, entry.decisions) if ident.startswith("D-"))
        return tuple(dict.fromkeys([*named, *self.affecting.get(entry.id, ())]))

    def of_section(self, number: str) -> tuple[str, ...]:
        """The decisions that name a section or one above it in `affects:`."""
        parts = number.split(".")
        ids: dict[str, None] = {}
        for length in range(1, len(parts) + 1):
            ids |= self._named.get(".".join(parts[:length]), {})
        return tuple(ids)

    def is_place(self, text: str) -> bool:
        """Whether a reference in `affects:` means at least one entry."""
        return _place(text) in self._places


def decision_name(text: str) -> str:
    """The id in an item of `decisions:`: "D-3 (see there)" is D-3."""
    return text.split(" ")[0].strip("`()")


def _place(text: str) -> str:
    number = PLACE.match(text)
    return number.group(1) if number else text


def _places(entry: Entry) -> tuple[str, ...]:
    """The texts by which `affects:` may mean an entry: its number and those above, its packages, module and names."""
    parts = entry.number.split(".")
    numbers = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
    package = entry.module.split(".")
    modules = [".".join(package[:length]) for length in range(1, len(package) + 1)]
    members = (name.removeprefix(f"{entry.module}.") for name in entry.contracts)
    return tuple(dict.fromkeys([*numbers, *filter(None, (*modules, *entry.names, *entry.contracts, *members))]))
